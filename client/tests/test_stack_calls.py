"""Every call of the client, on the local stack."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from duewheel import Duewheel, NewTask, errors
from duewheel.requests import OperationFilter
from tests.support import advance, received

HOOK = "https://example.com/hook"
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)  # farther than all tests together move the clock


def test_a_created_task_reads_as_it_was_made(client: Duewheel, biz_type: str) -> None:
    made = client.tasks.create(
        biz_type, delay=DAY, payload={"order": 17}, callback=HOOK, retry={"attempts": 3}
    )

    read = client.tasks.get(made.task_id)
    effective = {"type": "http", "url": HOOK, "method": "POST", "headers": {}}
    assert read == replace(made, effective_callback=effective)
    assert (read.status, read.payload, read.attempts) == ("pending", {"order": 17}, 0)
    assert read.callback == {"type": "http", "url": HOOK, "method": None, "headers": {}}
    assert read.created_at is not None
    assert read.due_at - read.created_at == DAY
    assert read.extra == {}


def test_a_due_instant_may_be_in_any_zone_but_not_naive(client: Duewheel, biz_type: str) -> None:
    due_at = datetime.fromisoformat("2031-02-01T12:00:00+05:45")
    assert client.tasks.create(biz_type, due_at=due_at, callback=HOOK).due_at == due_at
    due_ms = int(due_at.timestamp() * 1000)
    assert client.tasks.create(biz_type, due_ms=due_ms, callback=HOOK).due_at == due_at

    with pytest.raises(ValueError, match="time zone"):
        client.tasks.create(biz_type, due_at=datetime(2031, 2, 1), callback=HOOK)
    with pytest.raises(ValueError, match="exactly one"):
        client.tasks.create(biz_type, due_at=due_at, delay=DAY, callback=HOOK)
    with pytest.raises(ValueError, match="exactly one"):
        client.tasks.create(biz_type, callback=HOOK)


def test_a_payload_of_null_differs_from_no_payload(
    client: Duewheel, biz_type: str, stack_url: str
) -> None:
    inbox = f"{stack_url}/_local/inbox/{biz_type}"
    client.tasks.create(biz_type, delay=1, callback=inbox)
    client.tasks.create(biz_type, delay=2, callback=inbox, payload=None)
    advance(stack_url, timedelta(seconds=5))
    assert [call["body"] for call in received(stack_url, biz_type)] == ["", "null"]


def test_a_change_keeps_the_omitted_fields(client: Duewheel, biz_type: str) -> None:
    made = client.tasks.create(biz_type, delay=DAY, payload=1, callback=HOOK)
    moved = client.tasks.change(made.task_id, due_at=made.due_at + DAY)
    assert (moved.due_at, moved.payload) == (made.due_at + DAY, 1)
    changed = client.tasks.change(made.task_id, payload=None, callback=f"{HOOK}/2")
    assert (changed.due_at, changed.payload) == (moved.due_at, None)
    assert changed.callback is not None
    assert changed.callback["url"] == f"{HOOK}/2"


def test_a_pending_task_says_why_it_waits(client: Duewheel, biz_type: str, stack_url: str) -> None:
    nowhere = "http://127.0.0.1:1/"
    made = client.tasks.create(
        biz_type, delay=5, callback=nowhere, retry={"delays_seconds": [DAY.total_seconds()]}
    )
    assert client.tasks.get(made.task_id).waiting is None
    advance(stack_url, timedelta(seconds=10))
    failed = client.tasks.get(made.task_id)
    assert failed.waiting is not None
    assert (failed.waiting.reason, failed.waiting.expected_at) == ("retry", failed.next_at)
    client.businesses.pause(biz_type)
    paused = client.tasks.get(made.task_id).waiting
    assert paused is not None
    assert (paused.reason, paused.expected_at, paused.extra) == ("paused", None, {})


def test_a_business_without_settings_is_read_and_listed_as_soon_as_it_had_a_task(
    client: Duewheel, biz_type: str, stack_url: str
) -> None:
    made = client.tasks.create(biz_type, delay=5, callback=HOOK)
    assert client.businesses.get(biz_type).last_task_at is None
    client.tasks.cancel(made.task_id)
    advance(stack_url, 10 * MINUTE)
    found = client.businesses.get(biz_type)
    assert (found.version, found.own, found.created_at, found.extra) == (0, (), None, {})
    assert found.usage is not None
    assert (found.usage.calls, found.usage.dispatch_lag_seconds) == (None, 0)
    assert found.last_task_at == made.due_at.replace(second=0, microsecond=0)
    (listed,) = [one for one in client.businesses.list() if one.biz_type == biz_type]
    assert (listed.last_task_at, listed.usage) == (found.last_task_at, None)


def test_a_cancel_may_be_repeated(client: Duewheel, biz_type: str) -> None:
    made = client.tasks.create(biz_type, delay=DAY, callback=HOOK)
    assert client.tasks.cancel(made.task_id).status == "cancelled"
    assert client.tasks.cancel(made.task_id).status == "cancelled"


def test_a_task_is_paused_and_resumed(client: Duewheel, biz_type: str, stack_url: str) -> None:
    made = client.tasks.create(biz_type, delay=60, callback={"url": HOOK, "timeout_seconds": 5})
    until = made.due_at + DAY
    paused = client.tasks.pause(made.task_id, until=until)
    assert paused.paused is not None
    assert (paused.paused.until, paused.next_at, paused.status) == (until, until, "pending")
    assert client.tasks.pause(made.task_id) == paused
    advance(stack_url, timedelta(minutes=5))
    waiting = client.tasks.get(made.task_id).waiting
    assert waiting is not None
    assert (waiting.reason, waiting.until) == ("paused", until)
    resumed = client.tasks.resume(made.task_id)
    assert resumed.paused is None
    assert resumed.next_at is not None
    assert made.due_at < resumed.next_at < until
    assert client.tasks.resume(made.task_id).paused is None


def test_a_dead_task_shows_its_attempts_and_is_redriven(
    client: Duewheel, biz_type: str, stack_url: str
) -> None:
    nowhere = "http://127.0.0.1:1/"
    made = client.tasks.create(biz_type, delay=DAY, callback=nowhere, retry={"attempts": 1})
    assert client.tasks.run(made.task_id).next_at != made.next_at
    advance(stack_url, timedelta(seconds=5))

    dead = client.tasks.get(made.task_id)
    assert (dead.status, dead.attempts, len(dead.history)) == ("dead", 1, 1)
    assert dead.history[0].outcome == "retry"
    assert [task.task_id for task in client.businesses.dead(biz_type)] == [made.task_id]
    assert client.tasks.redrive(made.task_id).status == "pending"
    advance(stack_url, timedelta(seconds=5))
    assert made.created_at is not None
    found = client.operations.start(
        biz_type, "redrive", filter={"status": "dead", "since": made.created_at, "reason": None}
    )
    redriven = client.operations.wait(found.operation_id, timeout=DAY)
    assert (redriven.changed, redriven.refused) == (1, 0)


def test_a_list_follows_its_cursors(client: Duewheel, biz_type: str) -> None:
    due_at = datetime(2031, 1, 1, tzinfo=UTC)
    for hours in range(5):
        client.tasks.create(biz_type, due_at=due_at + hours * DAY, payload=hours, callback=HOOK)
    listed = client.tasks.list(
        biz_type, due_from=due_at + DAY, due_to=due_at + 5 * DAY, order="desc", page_size=2
    )
    assert [task.payload for task in listed] == [4, 3, 2, 1]
    assert list(client.tasks.list(biz_type, status="dead")) == []


def test_a_batch_answers_for_each_task_in_order(client: Duewheel, biz_type: str) -> None:
    tasks = [
        NewTask(biz_type=biz_type, delay=DAY, payload=number, callback=url)
        for number, url in enumerate([HOOK, "ftp://example.com", HOOK])
    ]
    first, second, third = client.tasks.create_many(tasks)
    assert isinstance(second, errors.InvalidField)
    assert second.field == "tasks[1].callback.url"
    assert not isinstance(first, errors.Problem)
    assert not isinstance(third, errors.Problem)
    assert (first.payload, third.payload) == (0, 2)


def test_a_batch_under_the_same_idempotency_key_creates_no_further_tasks(
    client: Duewheel, biz_type: str
) -> None:
    tasks = [NewTask(biz_type=biz_type, delay=DAY, callback=HOOK)] * 2
    first = client.tasks.create_batch(tasks, idempotency_key=f"{biz_type}-1")
    assert client.tasks.create_batch(tasks, idempotency_key=f"{biz_type}-1") == first


def test_a_create_with_a_given_idempotency_key_is_made_once(
    client: Duewheel, biz_type: str
) -> None:
    made = [
        client.tasks.create(biz_type, delay=DAY, callback=HOOK, once=f"{biz_type}-1")
        for _ in range(2)
    ]
    assert made[0] == made[1]


def test_threads_can_share_a_client(client: Duewheel, biz_type: str) -> None:
    def create(number: int) -> str:
        return client.tasks.create(biz_type, delay=DAY, payload=number, callback=HOOK).task_id

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(create, range(16)))) == 16


def test_tasks_are_replaced_read_and_cancelled_by_key(client: Duewheel, biz_type: str) -> None:
    key = "order-17:close~1.x_y-z"
    made = client.tasks.create(biz_type, delay=DAY, key=key, callback=HOOK)
    assert client.tasks.create(biz_type, delay=DAY, key=key, callback=HOOK) == made
    with pytest.raises(errors.KeyTaken):
        client.tasks.create(biz_type, delay=2 * DAY, key=key, callback=HOOK)

    moved = client.tasks.put(
        biz_type, key, delay=5 * DAY, callback=HOOK, max_due_at=made.due_at + 9 * DAY
    )
    assert (moved.task_id, moved.due_at) == (made.task_id, made.due_at + 4 * DAY)
    read = client.tasks.get_by_key(biz_type, key)
    assert replace(read, effective_callback=None) == moved
    assert client.tasks.cancel_by_key(biz_type, key).status == "cancelled"
    with pytest.raises(errors.UnknownTask):
        client.tasks.get_by_key(biz_type, "another")


@pytest.mark.parametrize(
    ("count", "page_size"), [(3, 2), pytest.param(102, 60, marks=pytest.mark.exhaustive)]
)
def test_all_tasks_under_a_prefix_are_listed_and_cancelled(
    client: Duewheel, biz_type: str, count: int, page_size: int
) -> None:
    tasks = [
        NewTask(biz_type=biz_type, delay=DAY, key=f"order-17:{number:03}", callback=HOOK)
        for number in range(count)
    ]
    assert all(not isinstance(made, errors.Problem) for made in client.tasks.create_many(tasks))
    client.tasks.put(biz_type, "order-18:000", delay=DAY, callback=HOOK)

    listed = client.tasks.list_by_prefix(biz_type, "order-17:", page_size=page_size)
    assert [task.key for task in listed] == [task.key for task in tasks]
    assert client.tasks.cancel_by_prefix(biz_type, "order-17:").cancelled == count
    assert list(client.tasks.list_by_prefix(biz_type, "order-17:")) == []
    assert client.tasks.get_by_key(biz_type, "order-18:000").status == "pending"


def test_a_watchdog_is_called_when_its_beats_stop(
    client: Duewheel, biz_type: str, stack_url: str
) -> None:
    watchdog = client.tasks.watchdog(
        biz_type,
        "sensor-9",
        timedelta(minutes=5),
        payload={"silent": "sensor-9"},
        callback=f"{stack_url}/_local/inbox/{biz_type}",
    )
    assert not watchdog.stop()
    watchdog.beat()
    advance(stack_url, timedelta(minutes=4))
    watchdog.beat()
    advance(stack_url, timedelta(minutes=4))
    assert received(stack_url, biz_type) == []
    advance(stack_url, timedelta(minutes=2))
    assert [call["body"] for call in received(stack_url, biz_type)] == ['{"silent":"sensor-9"}']
    assert not watchdog.stop()
    watchdog.beat()
    assert watchdog.stop()
    assert not watchdog.stop()


def test_a_business_is_configured_paused_and_deleted(client: Duewheel, biz_type: str) -> None:
    with pytest.raises(errors.UnknownBusiness):
        client.businesses.get(biz_type)
    made = client.businesses.configure(
        biz_type, callback=HOOK, retry={"attempts": 2, "delays_seconds": [timedelta(minutes=1)]}
    )
    assert (made.version, set(made.own)) == (1, {"callback", "retry"})
    assert made.retry == {"attempts": 2, "delays_seconds": [60]}

    changed = client.businesses.configure(biz_type, if_match=1, retry=None, priority="low")
    assert (changed.version, changed.priority, changed.lane) == (2, "low", "main")
    with pytest.raises(errors.VersionMismatch):
        client.businesses.pause(biz_type, if_match=1)
    assert client.businesses.pause(biz_type).paused
    assert not client.businesses.resume(biz_type).paused
    assert biz_type in [business.biz_type for business in client.businesses.list(page_size=1)]
    assert client.businesses.get(biz_type).extra == {}

    client.tasks.create(biz_type, delay=DAY)
    with pytest.raises(errors.TasksPending):
        client.businesses.delete(biz_type)
    deleted = client.businesses.delete(biz_type, cancel_pending=True)
    assert (deleted.done, deleted.cancelled) == (True, 1)


def test_statistics_count_delivered_tasks(client: Duewheel, biz_type: str, stack_url: str) -> None:
    url = f"{stack_url}/_local/inbox/{biz_type}"
    made = client.tasks.create(biz_type, delay=1, callback=url)
    advance(stack_url, timedelta(minutes=5))
    statistics = client.businesses.statistics(
        biz_type, begin=made.due_at - HOUR, end=made.due_at + HOUR
    )
    assert statistics.total.delivered == 1
    assert statistics.minutes[0].lateness.counts == {"up_to_10_ms": 1}
    assert statistics.begin <= made.due_at - HOUR


def test_a_timer_is_made_changed_and_run(client: Duewheel, biz_type: str, stack_url: str) -> None:
    url = f"{stack_url}/_local/inbox/{biz_type}"
    made = client.timers.create(
        biz_type,
        "remind",
        every_seconds=MINUTE,
        payload={"run": "{{number}}"},
        callback=url,
        enabled=False,
    )
    assert (made.every_seconds, made.state, made.version) == (60, "disabled", 1)
    assert client.timers.enable(made.timer_id, if_match=1).state == "enabled"
    with pytest.raises(errors.VersionMismatch):
        client.timers.disable(made.timer_id, if_match=1)
    upcoming = client.timers.upcoming(made.timer_id, count=2)
    assert upcoming[1] - upcoming[0] == MINUTE

    advance(stack_url, timedelta(seconds=130))
    run = client.timers.run(made.timer_id)
    advance(stack_url, timedelta(seconds=5))
    runs = list(client.timers.runs(made.timer_id, page_size=1))
    assert [task.number for task in runs] == [None, 2, 1]
    assert runs[0].task_id == run.task_id
    read = client.timers.get(made.timer_id)
    assert read.counters is not None
    assert read.counters["delivered"] == 3
    assert read.extra == {}

    changed = client.timers.change(
        made.timer_id,
        name="remind daily",
        cron="0 9 * * *",
        every_seconds=None,
        timezone="Asia/Kathmandu",
    )
    assert (changed.name, changed.cron, changed.every_seconds) == (
        "remind daily",
        "0 9 * * *",
        None,
    )
    listed = client.timers.list(biz_type, name_prefix="remind", state="enabled")
    assert [timer.timer_id for timer in listed] == [made.timer_id]
    assert client.timers.disable(made.timer_id).state == "disabled"
    client.timers.delete(made.timer_id)
    with pytest.raises(errors.UnknownTimer):
        client.timers.get(made.timer_id)


def test_a_schedule_is_previewed_with_the_zone_it_is_read_in(client: Duewheel) -> None:
    begin = datetime.fromisoformat("2030-03-29T00:00:00+00:00")
    ahead = client.timers.preview(
        cron="30 2 * * MON-FRI",
        timezone="Europe/London",
        count=2,
        begin=begin,
        exclude=[begin.date()],
    )
    assert [instant.isoformat() for instant in ahead] == [
        "2030-04-01T01:30:00+00:00",
        "2030-04-02T01:30:00+00:00",
    ]


def test_the_wheel_is_healthy_and_its_audit_is_empty(client: Duewheel) -> None:
    wheel = client.wheel()
    assert wheel.time_pointer.at >= wheel.sweep_pointer.at
    assert wheel.extra == {}
    assert list(client.audit(begin=wheel.now - MINUTE, end=wheel.now)) == []
    assert client.health().status == "ok"
    assert "/v1/tasks" in client.api_document()["paths"]


def test_problems_are_raised_by_their_type(client: Duewheel, biz_type: str) -> None:
    with pytest.raises(errors.InvalidField) as refused:
        client.tasks.create(biz_type, delay=-1, callback=HOOK)
    assert (refused.value.status, refused.value.field) == (422, "delay_seconds")
    with pytest.raises(errors.MalformedTaskId):
        client.tasks.get("nothing")
    with pytest.raises(ValueError, match="Out of range float"):
        client.tasks.create(biz_type, delay=1, payload=float("nan"), callback=HOOK)
    with pytest.raises(ValueError, match="is not allowed in a path"):
        client.tasks.get("..")


def test_many_tasks_are_counted_moved_and_cancelled(client: Duewheel, biz_type: str) -> None:
    due_at = datetime(2031, 1, 1, tzinfo=UTC)
    tasks = [
        client.tasks.create(biz_type, due_at=due_at, key=f"o-{number}", flow_key="c", callback=HOOK)
        for number in range(3)
    ]
    chosen: OperationFilter = {"key_prefix": "o-", "flow_key": "c", "status": "pending"}
    assert len(list(client.tasks.list(biz_type, **chosen))) == 3
    counted = client.operations.start(biz_type, "cancel", filter=chosen, dry_run=True)
    counted = client.operations.wait(counted.operation_id)
    assert (counted.state, counted.changed, counted.dry_run) == ("done", 3, True)

    begun = client.operations.start(biz_type, "reschedule", filter=chosen, shift=-DAY, once=True)
    moved = client.operations.wait(begun.operation_id, timeout=60)
    assert (moved.changed, moved.refused, moved.shift_seconds, moved.extra) == (3, 0, -86_400, {})
    assert client.tasks.get(tasks[0].task_id).due_at == due_at - DAY

    client.tasks.cancel(tasks[0].task_id)
    ids = [task.task_id for task in tasks]
    cancelled = client.operations.start(biz_type, "cancel", ids=ids, per_second=100)
    cancelled = client.operations.wait(cancelled.operation_id)
    assert (cancelled.changed, cancelled.unchanged, cancelled.total) == (2, 1, 3)
    assert list(client.operations.refused(cancelled.operation_id)) == []
    found = list(client.operations.list(biz_type, page_size=2))
    assert len(found) == 3
    assert {one.operation_id: one for one in found} == {
        one.operation_id: one for one in (counted, moved, cancelled)
    }
    assert list(client.operations.list(biz_type, state="running")) == []


def test_tasks_that_an_operation_cannot_change_are_listed_with_the_problem(
    client: Duewheel, biz_type: str, stack_url: str
) -> None:
    made = client.tasks.create(biz_type, delay=1, callback=f"{stack_url}/_local/inbox/{biz_type}")
    advance(stack_url, timedelta(seconds=5))
    begun = client.operations.start(biz_type, "cancel", ids=[made.task_id])
    ended = client.operations.wait(begun.operation_id)
    assert (ended.state, ended.changed, ended.refused) == ("done", 0, 1)
    (refused,) = client.operations.refused(ended.operation_id)
    assert refused.task_id == made.task_id
    assert errors.problem_from(409, refused.problem).type.endswith("already-settled")
    with pytest.raises(errors.OperationEnded):
        client.operations.stop(ended.operation_id)
    with pytest.raises(errors.UnknownOperation):
        client.operations.get("nothing")
