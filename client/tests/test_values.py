"""What answers are read into."""

import pytest

from duewheel import Business, NewTask, Task
from duewheel.errors import UnexpectedAnswer
from duewheel.values import ApiKey, Statistics, Timer, Wheel
from tests.support import TASK

SECRET = "very-secret"


def test_what_a_newer_service_adds_is_kept() -> None:
    task = Task.read(
        {**TASK, "colour": "red", "history": [{"at": TASK["due_at"], "outcome": "retry", "hue": 3}]}
    )
    assert task.extra == {"colour": "red"}
    assert task.history[0].extra == {"hue": 3}


def test_what_an_older_service_leaves_out_is_absent() -> None:
    task = Task.read(TASK)
    assert (task.timer_id, task.lateness_ms, task.history) == (None, None, ())


@pytest.mark.parametrize(
    "answer", [{}, [], None, {**TASK, "due_at": "soon"}, {**TASK, "history": 1}]
)
def test_what_is_no_task_is_not_taken_for_one(answer: object) -> None:
    with pytest.raises(UnexpectedAnswer, match="no Task"):
        Task.read(answer)


def test_no_repr_shows_what_may_be_secret() -> None:
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
                "on_dead": callback,
                "signing_secrets": [SECRET],
            }
        ),
        ApiKey.read({"key_id": "k", "name": "n", "grants": [], "state": "live", "key": SECRET}),
        NewTask(biz_type="o", delay=1, payload=SECRET, callback=callback),
    ]
    assert SECRET not in repr(shown)
    assert "AQG5dxdnQAAAeOt8N-CZJxW76LPH" in repr(shown)


def test_values_do_not_change() -> None:
    with pytest.raises(AttributeError):
        Task.read(TASK).status = "dead"  # type: ignore[misc]


def test_a_range_is_read_under_names_that_python_has() -> None:
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


def test_a_wheel_tells_the_places_that_the_sweep_left_open_and_an_older_service_none() -> None:
    at = TASK["due_at"]
    pointer = {"at": at, "second": 1, "lag_seconds": 0}
    older = {
        "now": at,
        "profile": "precise",
        "buckets": 1,
        "origin": at,
        "time_pointer": pointer,
        "sweep_pointer": pointer,
    }
    place = {"at": at, "second": 1, "shard": 3, "page": None, "since": at, "why": "refused"}
    found = {"count": 2, "oldest_age_seconds": 90, "places": [place]}
    places = Wheel.read({**older, "open_places": found}).open_places
    assert (places.count, places.oldest_age_seconds) == (2, 90)
    assert [(each.shard, each.page, each.why) for each in places.places] == [(3, None, "refused")]
    assert Wheel.read(older).open_places.count == 0
