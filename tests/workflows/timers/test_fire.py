"""A read of its timer right before the call decides whether an occurrence is called."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import force_setattr

from duewheel.rules.callbacks.outcome import Outcome, Verdict, outcome_of_answer
from duewheel.rules.callbacks.payload_encoding import AttemptName
from duewheel.rules.callbacks.types import HttpCallback, OnOutcome, RetryPolicy, Told
from duewheel.rules.instants import rfc3339
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.timers.occurrence_policy import Reason
from duewheel.rules.timers.outcome_counts import Counted
from duewheel.rules.timers.timer import Misfire, Overlap, Timer
from duewheel.rules.tolerance import Window, shared_ms
from duewheel.rules.wheel.queue_messages import Lane
from duewheel.wiring.long_work import reported_work
from duewheel.workflows.timers.check_occurrences import AHEAD_MS, FRESH_MS
from local.aws.patches.item_sizes import size_of
from tests.support.bounds import quick_first
from tests.support.damage import edit, key_of
from tests.support.receiver import BUSY, GONE, OK, WORKS_ON, Received
from tests.support.recorder import Call
from tests.support.stories import refused
from tests.support.timers import damage, fates, made, now, occurrences, patched
from tests.support.world import CALLER, World

QUICK_RETRY = RetryPolicy(attempts_max=3, delays_seconds=(20.0, 20.0))


def planned(world: World, every: int = 200, /, **rules: Any) -> Timer:
    """Its occurrences are in the wheel, by default so far ahead that only the scheduler announces
    their pages."""
    timer = made(world, every, **{"max_runs": 6, **rules})
    world.drain()
    assert occurrences(world, timer)
    return timer


def first_of(world: World, timer: Timer) -> Task:
    return occurrences(world, timer)[0]


def dispatched(world: World, timer: Timer) -> dict[str, Any]:
    """The message of the page of its first occurrence, a lead before that is due."""
    due_ms = first_of(world, timer).due_ms
    world.clock.set_ms(due_ms - world.settings.lead_ms)
    world.pointers.skip_to("time", world.origin, due_ms // 1000 - 1)
    world.lead_once()
    (message,) = world.receive()
    return message


def go_to(world: World, second: int) -> None:
    """All other tasks up to this second fall due, too. It was dispatched within the minute before,
    so that no scheduler moves the clock now."""
    world.dispatch_until(max(now(world), second - 60))
    world.clock.set_ms(max(world.clock.now_ms(), second * 1000))
    world.drain()


def test_an_occurrence_is_called_with_the_payload_of_its_timer_which_is_kept_in_its_record(
    world: World,
) -> None:
    timer = planned(
        world, payload='{"task":"{{task_id}}","of":"{{timer_id}}","at":"{{due_at}}"}', max_runs=1
    )
    task = first_of(world, timer)
    assert (task.payload, task.callback) == (None, None)
    go_to(world, task.due_ms // 1000)
    (received,) = world.receiver.received
    sent = f'{{"task":"{task.task_id}","of":"{timer.timer_id}","at":"2027-01-15T08:03:20.000Z"}}'
    assert (received.body, received.at_ms) == (sent.encode(), task.due_ms)
    done = first_of(world, timer)
    assert (done.status, done.lateness_ms, done.payload) == (Status.DELIVERED, 0, sent)
    (item,) = [item for item in world.items() if "timer" in item]
    assert size_of(item) <= 1024


def test_a_change_of_the_payload_applies_to_planned_occurrences(world: World) -> None:
    timer = planned(world)
    after = patched(world, timer, payload='"new"', callback=HttpCallback("https://new.example/"))
    assert after.chain == timer.chain
    go_to(world, first_of(world, timer).due_ms // 1000)
    (received,) = world.receiver.received
    assert (received.body, received.url) == (b'"new"', "https://new.example/")


def test_a_planned_occurrence_has_the_labels_of_its_timer_and_a_called_one_those_of_that_moment(
    world: World,
) -> None:
    timer = planned(world, labels=(("team", "billing"),))
    assert first_of(world, timer).labels == (("team", "billing"),)
    after = patched(world, timer, labels=(("team", "sales"),))
    assert after.chain == timer.chain
    go_to(world, first_of(world, timer).due_ms // 1000)
    labels = [task.labels for task in occurrences(world, timer)[:2]]
    assert labels == [(("team", "sales"),), (("team", "billing"),)]


def disable(world: World, timer: Timer) -> None:
    world.change_timer.disable(timer.timer_id, by=CALLER)


CHANGES: dict[str, tuple[Callable[[World, Timer], object], Reason]] = {
    "disabled": (disable, Reason.DISABLED),
    "deleted": (lambda w, t: w.change_timer.delete(t.timer_id, by=CALLER), Reason.DELETED),
    "other seconds": (lambda w, t: patched(w, t, every_seconds=61), Reason.CHANGED),
    "starts later": (lambda w, t: patched(w, t, start_at=now(w) + 600), Reason.CHANGED),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_was_answered_before_the_check_takes_effect(world: World, name: str) -> None:
    change, reason = CHANGES[name]
    timer = planned(world)
    task, message = first_of(world, timer), dispatched(world, timer)
    change(world, timer)
    world.handle(message)
    assert world.receiver.received == []
    ended = world.read(task)
    assert (ended.status, ended.reason) == (Status.CANCELLED, reason)
    assert ended.expires_at is not None


def test_the_timers_of_a_page_are_read_once_and_right_before_it_is_due(world: World) -> None:
    timers = [planned(world) for _ in range(3)]
    task, message = first_of(world, timers[0]), dispatched(world, timers[0])
    reads: list[tuple[int, int]] = []

    def note(call: Call) -> None:
        request = call.request.get("RequestItems", {}).get(world.settings.registry_table)
        if request is not None and request["ConsistentRead"]:
            reads.append((world.clock.now_ms(), len(request["Keys"])))

    world.recorder.before = note
    world.handle(message)
    assert reads == [(task.due_ms - AHEAD_MS, 3)]
    assert [received.at_ms for received in world.receiver.received] == [task.due_ms] * 3


def test_a_call_that_waits_for_a_call_slot_reads_its_timer_again(world: World) -> None:
    """The call before it takes some time, in which the timer is disabled."""
    timers = [planned(world) for _ in range(2)]
    message = dispatched(world, timers[0])

    def disable_the_other(received: Received) -> Outcome:
        (other,) = [t for t in timers if first_of(world, t).task_id != received.task_id]
        disable(world, other)
        world.clock.advance_ms(FRESH_MS + 1)
        return OK

    world.receiver.answer = disable_the_other
    world.handle(message, world.notifier(call_slots=1))
    assert len(world.receiver.received) == 1
    statuses = sorted(first_of(world, timer).status.value for timer in timers)
    assert statuses == ["cancelled", "delivered"]


def test_a_call_that_waits_for_its_turn_reads_its_timer_again(world: World) -> None:
    world.configured("orders", calls_per_second=1.0)
    timers = [planned(world) for _ in range(2)]
    message = dispatched(world, timers[0])

    def disable_all(_: Received) -> Outcome:
        for timer in timers:
            disable(world, timer)
        return OK

    world.receiver.answer = disable_all
    world.handle(message)
    assert len(world.receiver.received) == 1
    assert sorted(str(first_of(world, timer).reason) for timer in timers) == [
        "None",
        "timer disabled",
    ]


@pytest.mark.exhaustive
def test_an_occurrence_that_waits_for_its_turn_uses_later_changes_of_its_timer(
    world: World,
) -> None:
    world.configured("orders", calls_per_second=0.2)
    timers = [planned(world) for _ in range(2)]
    tasks = [first_of(world, timer) for timer in timers]
    go_to(world, tasks[0].due_ms // 1000)
    (waits,) = [one for task in tasks if (one := world.read(task)).is_live]
    assert waits.reservation is not None
    assert (waits.payload, waits.callback, waits.retry) == (None, None, None)
    for timer in timers:
        patched(world, timer, payload='"new"')
    go_to(world, waits.next_ms // 1000 + 1)
    assert world.receiver.received[-1].body == b'"new"'


def test_while_timers_cannot_be_read_the_other_tasks_of_its_business_are_called(
    world: World,
) -> None:
    timer = planned(world)
    task = first_of(world, timer)
    other = world.created(in_ms=task.due_ms - world.clock.now_ms())
    message = dispatched(world, timer)

    def refuse(call: Call) -> None:
        request = call.request.get("RequestItems", {}).get(world.settings.registry_table)
        if request is not None and request["ConsistentRead"]:
            refused(call)

    world.recorder.before = refuse
    with pytest.raises(ClientError):
        world.handle(message)
    assert world.receiver.task_ids == [other.task_id]
    assert world.read(other).status is Status.DELIVERED
    assert world.read(task).is_live


def test_a_timer_is_planned_in_the_main_lane_and_called_in_the_slow_lane(world: World) -> None:
    world.found_slow("orders")
    timer = made(world, 60, max_runs=1)
    world.drain(Lane.MAIN)
    task = first_of(world, timer)
    world.dispatch_until(task.due_ms // 1000)
    world.drain(Lane.MAIN)
    assert world.receiver.received == []
    world.drain(Lane.SLOW)
    assert world.read(task).status is Status.DELIVERED


def test_the_notice_of_a_dead_occurrence_has_the_payload_that_was_sent(world: World) -> None:
    told = OnOutcome((Told.DEAD,), HttpCallback("https://receiver.example/dead"), True)
    world.configured("orders", on_outcome=told)
    timer = planned(world, max_runs=1)
    world.receiver.answer = lambda received: OK if received.url.endswith("dead") else GONE
    go_to(world, first_of(world, timer).due_ms // 1000)
    go_to(world, now(world) + 1)
    (notice,) = [one for one in world.receiver.received if one.url.endswith("dead")]
    assert b'"payload":{"n":"1"}' in (notice.body or b"")


def test_a_retry_reads_its_timer_again(world: World) -> None:
    timer = planned(world, retry=QUICK_RETRY)
    task = first_of(world, timer)
    world.receiver.answer = lambda _: BUSY
    go_to(world, task.due_ms // 1000)
    assert world.read(task).attempts == 1
    disable(world, timer)
    go_to(world, task.due_ms // 1000 + 25)
    assert len(world.receiver.received) == 1
    assert world.read(task).reason == "timer disabled"


def test_the_retry_policy_and_the_grace_of_a_timer_apply_to_its_occurrences(world: World) -> None:
    timer = planned(world, retry=QUICK_RETRY, expires_after_seconds=30.0)
    task = first_of(world, timer)
    world.receiver.answer = lambda _: BUSY
    for after in (0, 20):
        go_to(world, task.due_ms // 1000 + after)
    ended = world.read(task)
    assert (ended.attempts, ended.status) == (2, Status.EXPIRED)
    assert (ended.retry, ended.expires_after_seconds) == (None, None), "its timer has them"
    assert world.counters.read(timer.timer_id)["expired"] == 1


@pytest.mark.parametrize(
    ("outcome", "disables", "enabled"),
    quick_first(
        [
            (GONE, True, False),
            (GONE, False, True),
            (outcome_of_answer(200, {}, b"", 0), True, True),
            (outcome_of_answer(503, {"duewheel-stop": "true"}, b"", 0), True, False),
            (outcome_of_answer(422, {}, b"", 0), True, True),
        ],
        pytest.mark.exhaustive,
        2,
    ),
)
def test_a_stop_by_the_receiver_disables_the_timer_only_with_disable_on_stop(
    world: World, outcome: Outcome, disables: bool, enabled: bool
) -> None:
    timer = planned(world, disable_on_stop=disables)
    task = first_of(world, timer)
    world.receiver.answer = lambda _: outcome
    go_to(world, task.due_ms // 1000)
    is_delivered = outcome.status_code == 200
    assert world.read(task).status is (Status.DELIVERED if is_delivered else Status.DEAD)
    current = world.timers.read(timer.timer_id)
    assert current is not None
    assert current.enabled is enabled
    go_to(world, task.due_ms // 1000 + 200)
    assert len(world.receiver.received) == (2 if enabled else 1)


def test_a_stop_does_not_disable_a_timer_that_was_changed_meanwhile(world: World) -> None:
    timer = planned(world, disable_on_stop=True)

    def change_callback(_: Received) -> Outcome:
        patched(world, timer, callback=HttpCallback("https://new.example/"))
        return GONE

    world.receiver.answer = change_callback
    go_to(world, first_of(world, timer).due_ms // 1000)
    current = world.timers.read(timer.timer_id)
    assert current is not None
    assert current.enabled


@pytest.mark.exhaustive
def test_an_occurrence_is_skipped_while_an_earlier_one_is_retried(world: World) -> None:
    timer = planned(
        world, 10, overlap=Overlap.SKIP, retry=RetryPolicy(3, delays_seconds=(15.0, 15.0))
    )
    begins = now(world)
    answers = iter([BUSY])
    world.receiver.answer = lambda _: next(answers, OK)
    for second in range(begins + 5, begins + 41, 5):
        go_to(world, second)
    assert [r.at_ms // 1000 - begins for r in world.receiver.received] == [10, 25, 30, 40]
    by_number = [task.reason or task.status.value for task in occurrences(world, timer)]
    assert by_number[:4] == ["delivered", "skipped", "delivered", "delivered"]
    assert world.counters.read(timer.timer_id)["skipped"] == 1


def test_only_one_of_two_simultaneous_occurrences_is_called_without_overlap(world: World) -> None:
    timer = planned(world, 5, overlap=Overlap.SKIP, jitter_seconds=20, max_runs=20)
    tasks = [task for task in occurrences(world, timer) if task.due_ms // 1000 > now(world) + 8]
    dues = Counter(task.due_ms for task in tasks)
    together = min(due_ms for due_ms, count in dues.items() if count == 2)
    go_to(world, together // 1000)
    reasons = [task.reason for task in occurrences(world, timer) if task.due_ms == together]
    assert sorted(map(str, reasons)) == ["None", "skipped"]


def test_runs_of_a_tolerant_timer_share_seconds_and_say_their_own_instants(world: World) -> None:
    begins = now(world)
    timer = planned(world, 20, tolerance_seconds=60, grace_seconds=1, misfire=Misfire.SKIP)
    tasks = occurrences(world, timer)
    for number, task in enumerate(tasks, 1):
        assert task.due_at_ms == (begins + 20 * number) * 1000
        assert task.due_at_ms <= task.due_ms <= task.due_at_ms + 60_000
    assert len({task.home.second for task in tasks}) <= 3
    for second in sorted({task.home.second for task in tasks}):
        go_to(world, second)
    assert fates(world, timer) == {"delivered": 6}
    said = {one.headers["duewheel-due-at"]: one.at_ms for one in world.receiver.received}
    assert said == {rfc3339(task.due_at_ms): task.due_ms for task in tasks}
    assert {task.lateness_ms for task in occurrences(world, timer)} == {0}


def test_a_timer_has_its_own_tolerance_alone(world: World) -> None:
    world.configured("orders", tolerance_seconds=3_600)
    timer = planned(world, max_runs=1, retry=QUICK_RETRY)
    task = first_of(world, timer)
    assert task.due_ms == task.due_at_ms
    world.receiver.answer = lambda _: BUSY
    go_to(world, task.due_ms // 1000)
    waiting = world.read(task)
    assert waiting.next_ms == waiting.updated_ms + 20_000


def test_a_retry_of_a_tolerant_timer_waits_for_a_shared_second(world: World) -> None:
    timer = planned(world, max_runs=1, retry=QUICK_RETRY, tolerance_seconds=60)
    task = first_of(world, timer)
    world.receiver.answer = lambda _: BUSY
    go_to(world, task.due_ms // 1000)
    waiting = world.read(task)
    window = Window(waiting.updated_ms + 20_000, "orders")
    assert waiting.next_ms == shared_ms(window, 60)
    assert (waiting.tolerance_seconds, waiting.due_at_ms) == (None, task.due_at_ms)


def test_another_tolerance_of_a_timer_plans_other_seconds(world: World) -> None:
    timer = planned(world, max_runs=2)
    before = occurrences(world, timer)
    patched(world, timer, tolerance_seconds=900)
    world.drain()
    after = [task for task in occurrences(world, timer) if task not in before]
    assert [task.due_at_ms for task in after] == [task.due_at_ms for task in before]
    for second in sorted(task.home.second for task in (*before, *after)):
        go_to(world, second)
    assert fates(world, timer) == {"timer changed": 2, "delivered": 2}
    assert {one.at_ms for one in world.receiver.received} == {task.due_ms for task in after}


def test_occurrences_overlap_by_default(world: World) -> None:
    timer = planned(world, 10, retry=RetryPolicy(3, delays_seconds=(35.0, 35.0)))
    answers = iter([BUSY])
    world.receiver.answer = lambda _: next(answers, OK)
    begins = now(world)
    go_to(world, begins + 40)
    assert fates(world, timer)["delivered"] == 3


def test_a_run_that_was_cancelled_lets_the_next_one_begin(world: World) -> None:
    """The occurrence that began last was cancelled."""
    timer = planned(world, 30, overlap=Overlap.SKIP, retry=RetryPolicy(9, delays_seconds=(500.0,)))
    answers = iter([BUSY])
    world.receiver.answer = lambda _: next(answers, OK)
    task = first_of(world, timer)
    go_to(world, task.due_ms // 1000)
    world.cancel(task.task_id)
    go_to(world, task.due_ms // 1000 + 30)
    assert fates(world, timer)["delivered"] == 1


def test_run_now_calls_a_disabled_timer(world: World) -> None:
    timer = made(world, 60, enabled=False, overlap=Overlap.SKIP, misfire=Misfire.SKIP)
    world.clock.advance_ms(250)
    task = world.run_timer(timer.timer_id)
    world.drain()
    (received,) = world.receiver.received
    assert (received.task_id, received.body) == (task.task_id, b'{"n":"0"}')
    done = world.read(task)
    assert done.status is Status.DELIVERED
    assert done.occurrence is not None
    assert done.occurrence.manual
    assert world.counters.read(timer.timer_id)["delivered"] == 1


def test_run_now_of_a_timer_that_is_deleted_before_the_call_calls_nothing(world: World) -> None:
    timer = made(world, 60, enabled=False)
    task = world.run_timer(timer.timer_id)
    world.change_timer.delete(timer.timer_id, by=CALLER)
    world.drain()
    assert world.receiver.received == []
    assert world.read(task).reason == "timer deleted"


def test_a_dead_occurrence_is_called_when_it_is_redriven(world: World) -> None:
    timer = planned(world, misfire=Misfire.SKIP, grace_seconds=1, expires_after_seconds=1.0)
    task = first_of(world, timer)
    world.receiver.answer = lambda _: GONE
    go_to(world, task.due_ms // 1000)
    assert world.read(task).status is Status.DEAD
    world.receiver.answer = lambda _: OK
    world.clock.advance_ms(20_000)
    world.redrive(task.task_id)
    world.drain()
    assert world.read(task).status is Status.DELIVERED
    counters = world.counters.read(timer.timer_id)
    assert (counters["fired"], counters["dead"], counters["delivered"]) == (1, 1, 1)


def test_an_occurrence_whose_timer_cannot_be_read_waits_until_it_can(world: World) -> None:
    timer = planned(world, misfire=Misfire.ALL)
    task = first_of(world, timer)
    damage(world, timer, enabled={"S": "true"})
    go_to(world, task.due_ms // 1000)
    waits = world.read(task)
    assert world.receiver.received == []
    assert (waits.status, waits.attempts) == (Status.PENDING, 0)
    assert waits.next_ms == task.due_ms + 60_000
    damage(world, timer, enabled={"BOOL": True})
    go_to(world, waits.next_ms // 1000)
    assert world.read(task).status is Status.DELIVERED


@pytest.mark.parametrize(
    "schedule",
    [
        '{"cron":"nonsense"}',
        '{"cron":"* * * * *","timezone":"Moon/Base"}',
        '{"every_seconds":60,"exclude":["2027-02-30"]}',
        '{"every_seconds":0}',
    ],
)
def test_an_invalid_stored_schedule_delays_no_other_timer(world: World, schedule: str) -> None:
    damaged, other = planned(world), planned(world)
    damage(world, damaged, rules={"S": f'{{"name":"closing","schedule":{schedule}}}'})
    go_to(world, first_of(world, other).due_ms // 1000)
    assert first_of(world, other).status is Status.DELIVERED
    assert (first_of(world, damaged).status, first_of(world, damaged).attempts) == (
        Status.PENDING,
        0,
    )


def test_a_damaged_occurrence_is_not_called(world: World) -> None:
    timer = planned(world)
    task = first_of(world, timer)
    edit(world, key_of(world, task), timer={"S": "no id"})
    go_to(world, task.due_ms // 1000)
    assert world.receiver.received == []


@pytest.mark.exhaustive
def test_an_occurrence_that_was_parked_reads_its_timer_after_the_pause(world: World) -> None:
    timers = [planned(world), planned(world)]
    tasks = [first_of(world, timer) for timer in timers]
    world.configured("orders", paused=True)
    world.clock.advance_ms(10_000)
    go_to(world, tasks[0].due_ms // 1000)
    assert [world.read(task).parked for task in tasks] == [True, True]
    disable(world, timers[1])
    world.configured("orders", paused=None)
    world.clock.advance_ms(10_000)
    world.drain()
    go_to(world, now(world) + 10)
    assert [world.read(task).reason for task in tasks] == [None, "timer disabled"]
    assert world.read(tasks[0]).status is Status.DELIVERED


def test_pages_without_occurrences_read_no_timer(world: World) -> None:
    task = world.created(in_ms=60_000)
    world.recorder.clear()
    go_to(world, task.due_ms // 1000)
    assert world.read(task).status is Status.DELIVERED
    kinds = {
        key["kind"]["S"].partition("#")[0]
        for call in world.recorder.calls
        for table in call.request.get("RequestItems", {}).values()
        if isinstance(table, dict)
        for key in table["Keys"]
        if "kind" in key
    }
    assert kinds == {"business", "standing"}


def test_an_occurrence_is_called_although_its_counters_cannot_be_written(world: World) -> None:
    timer = planned(world, max_runs=1)
    counters = world.deliver.deliver_entries.check.counters
    force_setattr(counters, "table", "there is none")
    go_to(world, first_of(world, timer).due_ms // 1000)
    assert fates(world, timer) == {"delivered": 1}


def test_runs_are_listed_by_their_timer_newest_first(world: World) -> None:
    timer, other = planned(world, max_runs=3), planned(world)
    homes = [task.home for task in occurrences(world, timer)]
    found, goes_on = world.runs.page(timer.timer_id, newest_first=True, behind=None, limit=2)
    assert (found, goes_on) == ([homes[2], homes[1]], True)
    rest, goes_on = world.runs.page(
        timer.timer_id, newest_first=True, behind=found[-1].place, limit=2
    )
    assert rest == [homes[0]]
    oldest, _ = world.runs.page(other.timer_id, newest_first=False, behind=None, limit=1)
    assert oldest == [first_of(world, other).home]


def test_other_tasks_of_the_business_do_not_wait_for_the_check(world: World) -> None:
    """The retry of the occurrence is due at the end of a second, the other task at its
    beginning."""
    timer = planned(world, max_runs=1, retry=RetryPolicy(delays_seconds=(20.9,)))
    due_ms = first_of(world, timer).due_ms
    world.receiver.answer = lambda received: OK if len(world.receiver.received) > 1 else BUSY
    go_to(world, due_ms // 1000)
    retried = first_of(world, timer)
    assert retried.next_ms == due_ms + 20_900
    other = world.created(in_ms=due_ms + 20_100 - world.clock.now_ms())
    assert other.biz_type == retried.biz_type
    go_to(world, due_ms // 1000 + 20)
    called = [(received.task_id, received.at_ms) for received in world.receiver.received[1:]]
    assert called == [(other.task_id, other.due_ms), (retried.task_id, retried.next_ms)]


# Work that goes on after its call


def test_a_run_whose_receiver_works_on_makes_the_next_one_skip(world: World) -> None:
    world.receiver.answer = lambda received: WORKS_ON
    timer = planned(world, 5, overlap=Overlap.SKIP, max_runs=2)
    task = first_of(world, timer)
    go_to(world, task.due_ms // 1000 + 6)
    first, second = occurrences(world, timer)
    assert (first.status, second.reason) == (Status.PENDING, Reason.SKIPPED)
    reported_work().complete(task.home, AttemptName(0, 1), "done")
    assert first_of(world, timer).result == "done"


def test_a_run_by_hand_counts_once_when_its_end_is_reported(world: World) -> None:
    world.receiver.answer = lambda received: WORKS_ON
    timer = made(world, 3_600, enabled=False)
    task = world.run_timer(timer.timer_id)
    world.clock.set_ms(task.due_ms)
    world.handle(world.receive()[0])
    assert world.read(task).running is not None
    for _ in range(2):
        reported_work().complete(task.home, AttemptName(0, 1), None)
    counted = world.counters.read(timer.timer_id)
    assert (counted[Counted.FIRED], counted[Counted.DELIVERED]) == (1, 1)


@pytest.mark.parametrize(
    ("disables", "is_changed", "enabled"),
    [(True, False, False), (False, False, True), (True, True, True)],
    ids=["follows", "does not follow", "changed since the call"],
)
def test_a_reported_stop_disables_the_timer_as_an_answered_one_does(
    world: World, disables: bool, is_changed: bool, enabled: bool
) -> None:
    world.receiver.answer = lambda received: WORKS_ON
    timer = planned(world, disable_on_stop=disables)
    task = first_of(world, timer)
    go_to(world, task.due_ms // 1000)
    if is_changed:
        patched(world, timer, callback=HttpCallback("https://new.example/"))
    stop = Outcome(Verdict.STOP, "no more", stopped_by_receiver=True)
    assert reported_work().fail(task.home, AttemptName(0, 1), stop).status is Status.DEAD
    current = world.timers.read(timer.timer_id)
    assert current is not None
    assert current.enabled is enabled


def test_a_run_that_lapses_is_retried_by_the_policy_of_its_timer(world: World) -> None:
    world.receiver.answer = lambda received: WORKS_ON
    timer = planned(world, 3_600, max_runs=1, retry=RetryPolicy(1, delays_seconds=()))
    task = first_of(world, timer)
    go_to(world, task.due_ms // 1000)
    go_to(world, first_of(world, timer).next_ms // 1000)
    assert first_of(world, timer).status is Status.DEAD
