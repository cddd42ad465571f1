"""The values of answers."""

import pytest

from duewheel import Business, NewTask, Task
from duewheel.errors import UnexpectedAnswer
from duewheel.values import ApiKey, Statistics, Timer, Wheel
from tests.support import TASK

SECRET = "very-secret"


def test_members_of_a_newer_service_are_kept() -> None:
    task = Task.read(
        {**TASK, "colour": "red", "history": [{"at": TASK["due_at"], "outcome": "retry", "hue": 3}]}
    )
    assert task.extra == {"colour": "red"}
    assert task.history[0].extra == {"hue": 3}


def test_members_that_are_absent_are_empty() -> None:
    task = Task.read(TASK)
    assert (task.timer_id, task.lateness_ms, task.history) == (None, None, ())


@pytest.mark.parametrize(
    "answer", [{}, [], None, {**TASK, "due_at": "soon"}, {**TASK, "history": 1}]
)
def test_an_answer_that_is_no_task_is_refused(answer: object) -> None:
    with pytest.raises(UnexpectedAnswer, match="no Task"):
        Task.read(answer)


def test_no_repr_shows_secrets() -> None:
    callback = {"url": f"https://example.com/?token={SECRET}", "headers": {"x-token": SECRET}}
    shown = [
        Task.read({**TASK, "callback": callback, "payload": SECRET, "new": SECRET}),
        Timer.read(
            {
                "timer_id": "1",
                "name": "n",
                "biz_type": "o",
                "state": "enabled",
                "version": 1,
                "callback": callback,
                "payload": SECRET,
            }
        ),
        Business.read(
            {
                "biz_type": "o",
                "version": 1,
                "callback": callback,
                "on_outcome": {"outcomes": ["dead"], "callback": callback},
                "signing_secrets": [SECRET],
            }
        ),
        ApiKey.read({"key_id": "k", "name": "n", "grants": [], "state": "live", "key": SECRET}),
        NewTask(biz_type="o", delay=1, payload=SECRET, callback=callback),
    ]
    assert SECRET not in repr(shown)
    assert "AQG5dxdnQAAAeOt8N-CZJxW76LPH" in repr(shown)


def test_values_are_immutable() -> None:
    with pytest.raises(AttributeError):
        Task.read(TASK).status = "dead"  # type: ignore[misc]


def test_from_and_to_are_read_as_begin_and_end() -> None:
    minute = dict.fromkeys(
        ["created", "pending", "delivered", "dead", "expired", "cancelled", "failed_attempts"], 0
    )
    total = {**minute, "lateness": {"sum_ms": 0, "max_ms": 0, "counts": {}}}
    at = TASK["due_at"]
    members = {
        "biz_type": "o",
        "from": at,
        "to": at,
        "counted_until": at,
        "closed_until": at,
        "total": total,
        "minutes": [{**total, "at": at}],
    }
    statistics = Statistics.read(members)
    assert statistics.begin == statistics.end == statistics.minutes[0].at
    assert statistics.extra == {}


def test_a_wheel_has_open_places() -> None:
    at = TASK["due_at"]
    pointer = {"at": at, "second": 1, "lag_seconds": 0}
    bare = {
        "now": at,
        "buckets": 1,
        "origin": at,
        "time_pointer": pointer,
        "sweep_pointer": pointer,
    }
    place = {"at": at, "second": 1, "shard": 3, "page": None, "since": at, "why": "refused"}
    found = {"count": 2, "oldest_age_seconds": 90, "places": [place]}
    places = Wheel.read({**bare, "open_places": found}).open_places
    assert (places.count, places.oldest_age_seconds) == (2, 90)
    assert [(each.shard, each.page, each.why) for each in places.places] == [(3, None, "refused")]
    assert Wheel.read(bare).open_places.count == 0
