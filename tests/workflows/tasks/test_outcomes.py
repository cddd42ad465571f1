"""Who asks is told what became of a task: each end that is asked for has one notice, which its home
names; nobody else pays for it."""

import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any

import pytest
from botocore.exceptions import ClientError

from duewheel.rules.access.grants import Access, Grant, Permit, Right
from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.callbacks.types import HttpCallback, OnOutcome, RetryPolicy, Told
from duewheel.rules.delivery.page_lease import PageFinished
from duewheel.rules.refusals import InvalidField, NotPermitted
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.rules.timers.occurrence_policy import Reason
from duewheel.rules.timers.outcome_counts import Counted
from duewheel.rules.timers.timer import Misfire, Overlap, Timer
from duewheel.stores.tasks import codec
from duewheel.wiring import changing, wheel
from duewheel.workflows.retry_throttled import TRY_MS_MAX
from duewheel.workflows.sweep.delete_business import CANCELLED_WITH_IT
from tests.support.conflicts import conflicts, of_transactions
from tests.support.receiver import BUSY, GONE, OK, Received
from tests.support.recorder import Call
from tests.support.stories import End, Interruption, Story, at_each_call
from tests.support.timers import made, now, occurrences, patched
from tests.support.world import FAR_MS, LAMBDA_MS, World

HOOK = HttpCallback("https://receiver.example/outcomes")
OTHER = HttpCallback("https://receiver.example/others")
ONCE = RetryPolicy(attempts_max=1)
ALL = OnOutcome(tuple(Told), HOOK)


def told(world: World, hook: HttpCallback = HOOK) -> list[dict[str, Any]]:
    """The bodies of the notices that were received."""
    return [json.loads(one.body or b"") for one in world.receiver.received if one.url == hook.url]


def outcomes_told(world: World, hook: HttpCallback = HOOK) -> list[tuple[str, str]]:
    return [(body["task_id"], body["outcome"]) for body in told(world, hook)]


def notices(world: World) -> list[Task]:
    tasks = [codec.task_from(item) for item in world.items() if "status" in item]
    return [task for task in tasks if task.notice_of is not None]


def check_notices(world: World) -> None:
    """Each ended task that asks for its outcome names its notice; each notice is named by its task,
    and tells how that ended."""
    tasks = [codec.task_from(item) for item in world.items() if "status" in item]
    by_id = {task.task_id: task for task in tasks}
    asking = [t for t in tasks if t.notice_of is None and not t.is_live and not t.is_internal]
    assert {t.notice_id for t in asking} == {t.task_id for t in tasks if t.notice_of is not None}
    for task in asking:
        notice = by_id[str(task.notice_id)]
        body = json.loads(notice.payload or "")
        assert notice.notice_of == task.task_id
        assert (body["task_id"], body["outcome"]) == (task.task_id, task.status.value)
        assert notice.notice_id is None


def pass_all(world: World, task: Task) -> Task:
    world.come_up(task)
    world.sweep_past(now(world))
    return world.read(task)


# The outcomes of a task


def deliver(world: World, task: Task) -> None:
    world.come_up(task)


def let_die(world: World, task: Task) -> None:
    world.receiver.answer = lambda received: OK if received.url == HOOK.url else GONE
    world.come_up(task)


def let_expire(world: World, task: Task) -> None:
    world.dispatch_until(task.due_ms // 1000)
    world.clock.advance_ms(5_000)
    world.drain()


def cancel(world: World, task: Task) -> None:
    assert world.cancel(task.task_id).notice_id is not None


ENDS: dict[str, Callable[[World, Task], None]] = {
    "delivered": deliver,
    "dead": let_die,
    "expired": let_expire,
    "cancelled": cancel,
}


@pytest.mark.parametrize("outcome", ENDS)
@pytest.mark.parametrize("by", ["task", "business"])
def test_each_outcome_that_is_asked_for_is_told_once(world: World, outcome: str, by: str) -> None:
    asked = OnOutcome((Told(outcome),), HOOK)
    if by == "business":
        world.configured("orders", on_outcome=asked)
    own = asked if by == "task" else None
    task = world.created(FAR_MS, expires_after_seconds=2.0, on_outcome=own)
    ENDS[outcome](world, task)
    world.sweep_past(now(world))
    ended = world.read(task)
    assert ended.status == outcome
    assert outcomes_told(world) == [(task.task_id, outcome)]
    check_notices(world)


@pytest.mark.parametrize("outcome", ENDS)
def test_an_outcome_that_nobody_asks_for_has_no_notice(world: World, outcome: str) -> None:
    others = tuple(one for one in Told if one != outcome)
    task = world.created(FAR_MS, expires_after_seconds=2.0, on_outcome=OnOutcome((*others,), HOOK))
    if outcome == "cancelled":
        assert world.cancel(task.task_id).notice_id is None
    else:
        ENDS[outcome](world, task)
    world.sweep_past(now(world))
    assert world.read(task).status == outcome
    assert notices(world) == []


def test_a_notice_says_what_became_of_the_task(world: World) -> None:
    task = world.created(
        FAR_MS, key="order-17", digest="d", retry=ONCE, on_outcome=OnOutcome((Told.DEAD,), HOOK)
    )
    let_die(world, task)
    world.sweep_past(now(world))
    (body,) = told(world)
    ended = world.read(task)
    assert ended.settled_ms is not None
    assert {**body, "due_at": "", "settled_at": ""} == {
        "outcome": "dead",
        "task_id": task.task_id,
        "biz_type": "orders",
        "key": "order-17",
        "timer_id": None,
        "reason": "stopped",
        "due_at": "",
        "settled_at": "",
        "attempts": 1,
        "last_error": "410",
        "last_status_code": 410,
    }


def test_a_notice_has_the_payload_as_it_was_written_only_if_that_is_asked_for(world: World) -> None:
    world.created(FAR_MS, payload='{"a": 1.0}', on_outcome=OnOutcome((Told.DELIVERED,), HOOK))
    task = world.created(
        FAR_MS, payload='{"a": 2.0}', on_outcome=OnOutcome((Told.DELIVERED,), OTHER, True)
    )
    pass_all(world, task)
    (without,) = (one.body for one in world.receiver.received if one.url == HOOK.url)
    (with_it,) = (one.body for one in world.receiver.received if one.url == OTHER.url)
    assert b"payload" not in (without or b"")
    assert (with_it or b"").endswith(b',"payload":{"a": 2.0}}')


def test_the_nearest_that_asks_for_an_outcome_is_told_of_it(world: World) -> None:
    usually = OnOutcome((Told.DELIVERED, Told.DEAD), HOOK)
    world.configured("orders", on_outcome=usually, retry=ONCE)
    near = world.created(FAR_MS, on_outcome=OnOutcome((Told.DELIVERED,), OTHER))
    usual = world.created(FAR_MS)
    dead = world.created(FAR_MS, on_outcome=OnOutcome((Told.DELIVERED,), OTHER))

    def answer(received: Received) -> Outcome:
        return GONE if received.task_id == dead.task_id else OK

    world.receiver.answer = answer
    pass_all(world, dead)
    assert outcomes_told(world, OTHER) == [(near.task_id, "delivered")]
    by_business = {(usual.task_id, "delivered"), (dead.task_id, "dead")}
    assert set(outcomes_told(world, HOOK)) == by_business


def test_a_notice_is_retried_with_the_same_id_and_its_own_end_is_told_to_nobody(
    world: World,
) -> None:
    world.configured(
        "orders", on_outcome=ALL, retry=RetryPolicy(attempts_max=3, delays_seconds=(5.0, 5.0))
    )
    task = world.created(FAR_MS)
    world.receiver.answer = lambda received: BUSY if received.url == HOOK.url else OK
    pass_all(world, task)
    world.sweep_past(now(world) + 60)
    (notice,) = notices(world)
    assert notice.status is Status.DEAD
    calls = [one.task_id for one in world.receiver.received if one.url == HOOK.url]
    assert calls == [notice.task_id] * 3
    assert world.read(task).notice_id == notice.task_id


def test_a_redriven_task_that_ends_again_is_told_again(world: World) -> None:
    task = world.created(FAR_MS, retry=ONCE, on_outcome=ALL)
    let_die(world, task)
    world.sweep_past(now(world))
    assert world.redrive(task.task_id).notice_id is None
    world.receiver.answer = lambda received: OK
    world.drain()
    world.sweep_past(now(world))
    assert outcomes_told(world) == [(task.task_id, "dead"), (task.task_id, "delivered")]


def test_an_upsert_sets_who_is_told(world: World) -> None:
    world.created_by_key(world.new(FAR_MS, key="a", digest="1", on_outcome=ALL))
    other = OnOutcome((Told.DELIVERED,), OTHER)
    task = world.keyed.upsert(world.new(FAR_MS, key="a", digest="2", on_outcome=other)).task
    pass_all(world, task)
    assert outcomes_told(world, OTHER) == [(task.task_id, "delivered")]
    assert told(world) == []


def test_the_cancels_of_a_deleted_business_are_told_to_nobody(world: World) -> None:
    task = world.created(FAR_MS, on_outcome=ALL)
    cancelled = world.cancel.at(task.home, CANCELLED_WITH_IT, told=None)
    assert cancelled.status is Status.CANCELLED
    assert notices(world) == []


def test_a_notice_to_a_host_that_the_business_does_not_allow_is_refused(world: World) -> None:
    world.configured("orders", allowed_hosts=("receiver.example",))
    elsewhere = OnOutcome((Told.DEAD,), HttpCallback("https://elsewhere.example/"))
    with pytest.raises(InvalidField, match=r"on_outcome\.callback\.url"):
        world.created(FAR_MS, on_outcome=elsewhere)
    assert world.items() == []


def test_secrets_of_a_business_go_to_the_notices_that_its_admin_sets_and_to_no_others(
    world: World,
) -> None:
    header = (("authorization", "Bearer {{secret:token}}"),)
    elsewhere = HttpCallback("https://elsewhere.example/", headers=header)
    with pytest.raises(InvalidField, match=r"does not go to this origin"):
        world.created(FAR_MS, on_outcome=OnOutcome((Told.DEAD,), elsewhere))


@pytest.fixture
def notice(world: World) -> Task:
    """One that waits for its next attempt."""
    world.configured("orders", on_outcome=OnOutcome((Told.CANCELLED,), HOOK))
    world.receiver.answer = lambda received: BUSY
    world.cancel(world.created(FAR_MS).task_id)
    world.drain()
    (notice,) = notices(world)
    assert (notice.status, notice.attempts) == (Status.PENDING, 1)
    return notice


WRITER = Permit(Access("a writer", (Grant(Right.WRITE, "orders"),)), Right.WRITE)
ADMIN = Permit(Access("an admin", (Grant(Right.ADMIN, "orders"),)), Right.WRITE)


@pytest.mark.parametrize("permit", [WRITER, ADMIN], ids=["writer", "admin"])
def test_no_caller_changes_runs_or_pauses_a_notice(
    world: World, notice: Task, permit: Permit
) -> None:
    forged = Change(payload='{"a":1}', sets_payload=True)
    later = Change(due_ms=world.clock.now_ms() + 600_000)
    for steered in (
        lambda: world.change(notice.task_id, forged, permit),
        lambda: world.change(notice.task_id, later, permit),
        lambda: world.change.run(notice.task_id, permit),
        lambda: changing.pause_task()(notice.task_id, None, "a caller", permit),
    ):
        with pytest.raises(NotPermitted, match="A notice is not changed"):
            steered()
    assert world.read(notice) == notice


def test_an_admin_alone_cancels_a_notice(world: World, notice: Task) -> None:
    with pytest.raises(NotPermitted, match="administer"):
        world.cancel(notice.task_id, WRITER)
    assert world.read(notice) == notice
    assert world.cancel(notice.task_id, ADMIN).status is Status.CANCELLED


# Exactness


class OutcomeStory(Story):
    """A page of tasks that are delivered, die and expire, beside one that is cancelled. Everything
    is told to the business."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        world.configured("orders", on_outcome=ALL)
        self.stops: set[str] = set()

    def _answered(self, received: Received) -> Outcome:
        if received.url == HOOK.url:
            usual, self.answer = self.answer, OK
            outcome = super()._answered(received) if self._is_dead else OK
            self.answer = usual
            return outcome
        usual = self.answer
        self.answer = GONE if received.task_id in self.stops else usual
        outcome = super()._answered(received)
        self.answer = usual
        return outcome

    def begin(self) -> None:
        for number in range(2):
            self.create(9_000 + number)
        self.stops.add(self.first().task.task_id)
        self.create(FAR_MS)
        self.world.created(1_000, expires_after_seconds=1.0)
        self.world.dispatch_until(now(self.world) + 9)

    def first(self) -> Any:
        return next(iter(self.told.values()))

    def last(self) -> Any:
        return list(self.told.values())[-1]

    def check(self) -> None:
        super().check()
        check_notices(self.world)

    def act(self) -> None:
        self.deliver()
        self.cancel(self.last())
        self.deliver()


def begun(world: World) -> OutcomeStory:
    story = OutcomeStory(world)
    story.begin()
    return story


@pytest.mark.exhaustive
@pytest.mark.parametrize("end", End)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_whenever_a_process_ends_each_outcome_has_one_notice(
    world: World, end: End, moment: str
) -> None:
    assert sum(1 for _ in at_each_call(partial(begun, world), OutcomeStory.act, end, moment)) > 20


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "by",
    [
        lambda story: story.duplicate(0),
        lambda story: story.cancel(story.last()),
        lambda story: story.echo(-1),
    ],
    ids=["a duplicate", "a cancel", "a late write"],
)
def test_another_process_in_between_makes_no_second_notice(
    world: World, by: Callable[[OutcomeStory], object]
) -> None:
    assert sum(1 for _ in at_each_call(partial(begun, world), OutcomeStory.act, by)) > 20


def test_a_delivery_that_two_notifiers_settle_has_one_notice(world: World) -> None:
    task = world.created(FAR_MS, on_outcome=ALL)
    attempt = lifecycle.attempt_made(task, OK, task.due_ms, task.due_ms + 10)
    record = lifecycle.delivered(task, attempt, task.due_ms, 86_400)
    tell = wheel.tell_outcome()
    first = tell.delivered(record, ALL)
    world.clock.advance_ms(3_000)
    assert first is not None
    assert tell.delivered(record, ALL) is None
    assert notices(world) == [first]
    check_notices(world)


def test_a_delivery_counts_though_another_notifier_has_failed_meanwhile(world: World) -> None:
    task = world.created(FAR_MS, on_outcome=ALL)
    attempt = lifecycle.attempt_made(task, OK, task.due_ms, task.due_ms + 10)
    entry = world.entry_writer.put(task, task.due_ms + 5_000)
    failed = lifecycle.to_be_retried(task, attempt, task.due_ms + 5_000, entry, task.due_ms)
    assert world.tasks.change(task, failed)
    record = lifecycle.delivered(task, attempt, task.due_ms, 86_400)
    assert wheel.tell_outcome().delivered(record, ALL) is not None
    assert world.read(task).status is Status.DELIVERED
    check_notices(world)


def test_a_delivery_whose_write_is_throttled_is_told_by_the_notifier_that_gets_the_rest(
    world: World,
) -> None:
    task = world.created(FAR_MS, on_outcome=ALL)
    message = world.dispatched(task)
    world.clock.set_ms(task.due_ms)
    with conflicts(of_transactions):
        world.handle(message)
    assert world.read(task).status is Status.PENDING
    world.sweep_past(now(world))
    assert [one.url for one in world.receiver.received] == [task.callback.url, HOOK.url]
    assert outcomes_told(world) == [(task.task_id, "delivered")]
    check_notices(world)


@pytest.mark.moto_only(reason="where replies are slow, more of its writes move the clock at once")
def test_told_deliveries_that_wait_behind_throttled_ones_are_passed_on_in_time(
    world: World,
) -> None:
    tasks = [world.created(FAR_MS, on_outcome=ALL) for _ in range(30)]
    message = world.dispatched(tasks[0])
    world.clock.set_ms(tasks[0].due_ms)
    begun_ms: list[int] = []
    write = world.dynamodb.transact_write_items

    def throttled(**request: Any) -> None:
        now_ms = world.clock.now_ms()
        begun_ms.append(now_ms)
        world.clock.reach_ms(now_ms + 3_000)  # writes go side by side
        code = {"Error": {"Code": "ProvisionedThroughputExceededException"}}
        raise ClientError(code, "TransactWriteItems")  # type: ignore[arg-type]

    world.dynamodb.transact_write_items = throttled  # type: ignore[method-assign]
    began_ms = world.clock.now_ms()
    assert isinstance(world.handle(message), PageFinished)
    latest_ms = began_ms + LAMBDA_MS - 2 * TRY_MS_MAX + 3_000  # others may move the clock meanwhile
    late = [at_ms for at_ms in begun_ms if at_ms > latest_ms]
    assert late == []
    world.dynamodb.transact_write_items = write  # type: ignore[method-assign]
    world.sweep_past(now(world))
    calls = Counter(one.url for one in world.receiver.received)
    assert calls == {tasks[0].callback.url: 30, HOOK.url: 30}
    check_notices(world)


def test_a_delivery_that_cannot_be_written_leaves_no_told_one_beside_it_unwritten(
    world: World,
) -> None:
    tasks = [world.created(FAR_MS, on_outcome=ALL) for _ in range(4)]
    untold = world.created(FAR_MS)
    message = world.dispatched(tasks[0])
    world.clock.set_ms(tasks[0].due_ms)
    world.recorder.refuse("BatchWriteItem", code="ValidationException", of=untold.home.place)
    with suppress(ClientError):
        world.handle(message)
    world.recorder.refuse()
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}
    assert world.read(untold).status is Status.PENDING
    check_notices(world)


def test_a_told_delivery_that_cannot_be_written_keeps_no_key_of_another(world: World) -> None:
    keyed = world.created(FAR_MS, key="a", digest="1", on_outcome=ALL)
    broken = world.created(FAR_MS, on_outcome=ALL)
    message = world.dispatched(keyed)
    world.clock.set_ms(keyed.due_ms)
    world.recorder.refuse("TransactWriteItems", code="ValidationException", of=broken.home.place)
    world.recorder.clear()
    with suppress(ClientError):
        world.handle(message)
    world.recorder.refuse()
    assert world.read(keyed).status is Status.DELIVERED
    released = [call for call in world.recorder.calls if "key#" in str(call.request)]
    assert [call.operation for call in released] == ["UpdateItem"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_death_around_the_write_of_any_outcome_loses_no_notice_and_makes_no_second(
    world: World, moment: str
) -> None:
    story = begun(world)
    before = len(world.recorder.calls)
    story.act()
    ends = [n for n, call in enumerate(world.recorder.calls[before:], 1) if is_an_end(call)]
    assert len(ends) == 4
    for number in ends:
        story = begun(world)
        assert story.interrupted(story.act, Interruption(number, End.DEATH, moment))
        story.settle_all()
        story.check()


def is_an_end(call: Call) -> bool:
    return call.operation == "TransactWriteItems" and "notice_of" in str(call.request)


# The runs of a timer


def test_the_outcomes_of_runs_are_told_to_their_timer(world: World) -> None:
    timer = made(world, 200, max_runs=1, on_outcome=OnOutcome((Told.DELIVERED,), HOOK, True))
    world.drain()
    (run,) = occurrences(world, timer)
    world.come_up(run)
    world.sweep_past(now(world))
    (body,) = told(world)
    assert (body["task_id"], body["timer_id"]) == (run.task_id, timer.timer_id)
    assert body["payload"] == {"n": "1"}


def test_a_timer_that_is_changed_tells_of_the_planned_runs_as_it_is_then(world: World) -> None:
    timer = made(world, 200, max_runs=1)
    world.drain()
    (run,) = occurrences(world, timer)
    patched(world, timer, on_outcome=ALL)
    world.come_up(run)
    world.sweep_past(now(world))
    assert outcomes_told(world) == [(run.task_id, "delivered")]


def test_a_cancelled_run_is_told(world: World) -> None:
    timer = made(world, 300, max_runs=1, on_outcome=ALL)
    world.drain()
    (run,) = occurrences(world, timer)
    world.cancel(run.task_id)
    world.drain()
    assert outcomes_told(world) == [(run.task_id, "cancelled")]


def late_runs(world: World, every: int, runs: int, **rules: Any) -> Timer:
    """A timer that nobody plans until its runs are late."""
    story = Story(world)
    timer = made(world, every, **{"max_runs": runs, "grace_seconds": 5, **rules})
    story.idle(every * runs + 300)
    story.settle_all()
    return timer


@pytest.mark.parametrize("misfire", [Misfire.SKIP, Misfire.LATEST])
def test_missed_runs_are_told_one_by_one_or_together_if_they_are_only_counted(
    world: World, misfire: Misfire
) -> None:
    timer = late_runs(world, 10, 60, misfire=misfire, on_outcome=ALL)
    bodies = told(world)
    counts = world.counters.read(timer.timer_id)
    missed = counts[Counted.MISSED] + counts[Counted.SUPERSEDED]
    together = [body["runs"]["count"] for body in bodies if "runs" in body]
    alone = [body for body in bodies if "runs" not in body and body["outcome"] == "missed"]
    assert together
    assert sum(together) + len(alone) == missed
    assert {body["timer_id"] for body in bodies} == {timer.timer_id}
    reason = Reason.MISSED if misfire is Misfire.SKIP else Reason.SUPERSEDED
    assert {body["reason"] for body in bodies if body["outcome"] == "missed"} == {reason}


@pytest.mark.exhaustive
@pytest.mark.parametrize("end", End)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_whenever_a_planner_ends_each_missed_run_is_told_once(
    world: World, end: End, moment: str
) -> None:
    rules = {"max_runs": 40, "grace_seconds": 5, "misfire": Misfire.SKIP, "on_outcome": ALL}
    for number in count(1):
        story = Story(world)
        timer = made(world, 10, **rules)
        story.idle(700)

        def plan(story: Story = story) -> None:
            for _ in range(3):
                story.sweep()
                story.deliver()
                story.idle(130)

        is_interrupted = story.interrupted(plan, Interruption(number, end, moment))
        story.settle_all()
        bodies = [json.loads(notice.payload or "") for notice in notices(world)]
        missed = [body for body in bodies if body["outcome"] == "missed"]
        runs = [run.task_id for run in occurrences(world, timer)]
        assert sorted(body["task_id"] for body in bodies if body["task_id"]) == sorted(runs)
        together = sum(body["runs"]["count"] for body in missed if "runs" in body)
        assert together + len(runs) == 40
        if not is_interrupted:
            assert together
            assert number > 20
            return


def test_a_run_that_is_late_when_it_falls_due_is_told_as_missed(world: World) -> None:
    timer = made(
        world,
        200,
        max_runs=1,
        misfire=Misfire.SKIP,
        grace_seconds=5,
        on_outcome=OnOutcome((Told.MISSED,), HOOK, True),
    )
    world.drain()
    (run,) = occurrences(world, timer)
    world.dispatch_until(run.due_ms // 1000)
    world.clock.advance_ms(20_000)
    world.drain()
    world.sweep_past(now(world))
    (body,) = told(world)
    assert (body["task_id"], body["outcome"], body["reason"]) == (run.task_id, "missed", "missed")
    assert body["payload"] == {"n": "1"}


def test_a_run_that_overlaps_is_told_as_missed(world: World) -> None:
    retry = RetryPolicy(attempts_max=3, delays_seconds=(300.0, 300.0))
    timer = made(
        world,
        200,
        max_runs=2,
        overlap=Overlap.SKIP,
        retry=retry,
        on_outcome=OnOutcome((Told.MISSED,), HOOK),
    )
    world.drain()
    first, second = occurrences(world, timer)
    world.receiver.answer = lambda received: OK if received.url == HOOK.url else BUSY
    world.come_up(first)
    world.come_up(second)
    world.drain()
    (body,) = told(world)
    assert (body["task_id"], body["reason"]) == (second.task_id, "skipped")


def test_runs_that_a_stopped_timer_no_longer_makes_are_told_to_nobody(world: World) -> None:
    timer = made(world, 200, max_runs=1, on_outcome=ALL)
    world.drain()
    (run,) = occurrences(world, timer)
    world.change_timer.disable(timer.timer_id, by="a caller")
    world.come_up(run)
    world.sweep_past(now(world))
    assert notices(world) == []


# What it costs


def settling_calls(world: World, **fields: Any) -> Counter[str]:
    task = world.created(FAR_MS, **fields)
    message = world.dispatched(task)
    world.recorder.clear()
    world.clock.set_ms(task.due_ms)
    world.handle(message)
    return Counter(call.operation for call in world.recorder.calls)


def test_who_asks_for_no_notice_pays_for_none(world: World) -> None:
    assert settling_calls(world)["TransactWriteItems"] == 0
    usual = settling_calls(world)
    told_of = settling_calls(world, on_outcome=ALL)
    assert usual["BatchWriteItem"] == 1
    # The time of AWS is read for a place on the wheel, if it was not lately.
    at_times = Counter({"GetItem": 1})
    assert told_of - usual - at_times == Counter({"TransactWriteItems": 1, "SendMessageBatch": 1})
