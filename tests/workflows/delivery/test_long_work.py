"""Work that goes on after its call: the receiver answers 202, and reports the end."""

from collections.abc import Callable

import pytest

from duewheel.rules.businesses.flow import Flow, FlowLimits
from duewheel.rules.callbacks.completion import WITHIN_HEADER, name_in
from duewheel.rules.callbacks.outcome import Outcome, Verdict, outcome_of_answer
from duewheel.rules.callbacks.payload_encoding import TOKEN_HEADER, AttemptName
from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.delivery.waiting import Reason
from duewheel.rules.refusals import NotRunning, TooLate
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.wiring import process
from duewheel.wiring.long_work import reported_work
from tests.support.receiver import OK, Received
from tests.support.world import FAR_MS, World

WITHIN = 600
FAILED = Outcome(Verdict.RETRY, "no disk")
REFUSED = Outcome(Verdict.STOP, "no such file", stopped_by_receiver=True)
FIRST = AttemptName(0, 1)


def accepted(seconds: int = WITHIN) -> Outcome:
    return outcome_of_answer(202, {WITHIN_HEADER: str(seconds)}, b"begun", 0)


def begun(world: World, seconds: int = WITHIN, **fields: object) -> Task:
    """A task whose receiver works on it."""
    world.receiver.answer = lambda received: accepted(seconds)
    task = world.created(FAR_MS, **fields)
    world.come_up(task)
    return world.read(task)


def name_of(received: Received) -> AttemptName:
    name = name_in(received.headers[TOKEN_HEADER], received.task_id, process.completion_secret())
    assert name is not None
    return name


def reach(world: World, instant_ms: int) -> None:
    world.dispatch_until(instant_ms // 1000)
    world.clock.set_ms(max(world.clock.now_ms(), instant_ms))
    world.drain()


def complete(task: Task, result: str | None = None, name: AttemptName = FIRST) -> Task:
    return reported_work().complete(task.home, name, result)


def fail(task: Task, outcome: Outcome = FAILED, name: AttemptName = FIRST) -> Task:
    return reported_work().fail(task.home, name, outcome)


def progress(task: Task, note: str | None = None, seconds: int | None = None) -> Task:
    return reported_work().progress(task.home, FIRST, note, seconds)


def test_a_task_whose_receiver_works_on_is_not_called_again_before_its_deadline(
    world: World,
) -> None:
    task = begun(world)
    assert task.running is not None
    assert (task.status, task.attempts) == (Status.PENDING, 0)
    assert task.next_ms == task.running.until_ms == world.clock.now_ms() + WITHIN * 1000
    reach(world, task.next_ms - 2_000)
    assert len(world.receiver.received) == 1
    waiting = world.why_waiting(world.read(task))
    assert waiting is not None
    assert (waiting.reason, waiting.until_ms) == (Reason.RUNNING, task.next_ms)


def test_a_reported_end_settles_the_task_with_its_result(world: World) -> None:
    task = begun(world, key="order-17")
    assert name_of(world.receiver.received[0]) == FIRST
    world.clock.advance_ms(30_000)
    complete(task, "40 pages")
    ended = world.read(task)
    assert (ended.status, ended.result, ended.attempts) == (Status.DELIVERED, "40 pages", 1)
    assert ended.running is None
    assert ended.expires_at is not None
    assert ended.history[-1].outcome == "delivered"
    assert ended.history[-1].duration_ms >= 30_000
    reach(world, task.next_ms + 5_000)
    assert len(world.receiver.received) == 1


def test_silence_counts_as_a_failed_attempt_and_is_retried_by_the_ladder(world: World) -> None:
    policy = RetryPolicy(attempts_max=2, delays_seconds=(10.0,))
    task = begun(world, retry=policy)
    progress(task, "half", WITHIN)
    task = world.read(task)
    reach(world, task.next_ms)
    silent = world.read(task)
    assert (silent.status, silent.attempts, silent.running) == (Status.PENDING, 1, None)
    assert silent.last_error == "not completed within 600 s; last progress: half"
    assert 9_000 <= silent.next_ms - task.next_ms <= 12_000
    world.receiver.answer = lambda received: OK
    reach(world, silent.next_ms)
    assert world.read(task).status is Status.DELIVERED
    assert [name_of(received).number for received in world.receiver.received] == [1, 2]


def test_progress_within_the_second_of_the_deadline_is_waited_for(world: World) -> None:
    """The notifier has read the task before the report."""
    as_read = task = begun(world)
    world.clock.set_ms(as_read.next_ms - 900)
    moved = progress(task, seconds=1)
    assert moved.next_ms // 1000 == as_read.next_ms // 1000
    world.clock.set_ms(as_read.next_ms)
    reported_work().lapse(as_read.entry, as_read)
    assert world.read(task).running is not None
    reach(world, moved.next_ms)
    assert world.read(task).last_error == "not completed within 1 s"


def test_the_last_attempt_that_lapses_ends_the_task(world: World) -> None:
    task = begun(world, retry=RetryPolicy(attempts_max=1))
    reach(world, task.next_ms)
    dead = world.read(task)
    assert (dead.status, dead.last_error) == (Status.DEAD, "not completed within 600 s")


def test_a_reported_failure_is_retried_from_now(world: World) -> None:
    task = begun(world, retry=RetryPolicy(delays_seconds=(10.0,)))
    world.clock.advance_ms(5_000)
    now_ms = world.clock.now_ms()
    again = fail(task)
    assert (again.attempts, again.last_error, again.running) == (1, "no disk", None)
    assert now_ms + 9_000 <= again.next_ms <= now_ms + 12_000
    world.receiver.answer = lambda received: OK
    reach(world, again.next_ms)
    assert world.read(task).status is Status.DELIVERED


def test_a_failure_that_is_final_ends_the_task(world: World) -> None:
    task = begun(world)
    assert fail(task, REFUSED).status is Status.DEAD
    assert fail(task, REFUSED).status is Status.DEAD  # repeated
    with pytest.raises(NotRunning, match="dead"):
        complete(task)


def test_progress_moves_the_deadline_by_one_write_and_never_to_earlier(world: World) -> None:
    task = begun(world)
    world.clock.advance_ms(60_000)
    world.recorder.clear()
    moved = progress(task, "a third")
    assert [call.operation for call in world.recorder.calls] == ["GetItem", "UpdateItem"]
    assert moved.next_ms == world.clock.now_ms() + WITHIN * 1000
    assert progress(task, seconds=1).next_ms == moved.next_ms
    reach(world, task.next_ms + 1_000)  # the entry of the first deadline fires
    kept = world.read(task)
    assert kept.running is not None
    assert (kept.attempts, kept.running.note) == (0, "a third")
    reach(world, moved.next_ms + 1_000)
    assert world.read(task).attempts == 1


def test_a_repeated_end_is_answered_again_and_a_late_one_says_what_happened(world: World) -> None:
    task = begun(world, retry=RetryPolicy(delays_seconds=(10.0,)))
    complete(task, "done")
    assert complete(task, "again").result == "done"
    with pytest.raises(NotRunning, match="delivered"):
        fail(task)
    other = begun(world, retry=RetryPolicy(delays_seconds=(10.0,)))
    reach(world, other.next_ms)
    with pytest.raises(NotRunning, match="Attempt 1 has failed: not completed within 600 s"):
        complete(other)
    assert fail(other).attempts == 1  # it counts as failed already
    with pytest.raises(NotRunning):
        fail(other, REFUSED)


def test_a_cancelled_task_ends_and_its_worker_is_told(world: World) -> None:
    task = begun(world)
    with pytest.raises(TooLate, match="works on it"):
        world.change(task.task_id, Change(due_ms=task.next_ms + FAR_MS))
    with pytest.raises(TooLate, match="works on it"):
        world.change.run(task.task_id)
    assert world.cancel(task.task_id).status is Status.CANCELLED
    for report in (complete, progress, fail):
        with pytest.raises(NotRunning, match="cancelled"):
            report(task)
    reach(world, task.next_ms + 1_000)
    assert len(world.receiver.received) == 1


def test_an_end_that_comes_before_the_answer_is_written_wins(world: World) -> None:
    def answer(received: Received) -> Outcome:
        complete(task, "at once")
        return accepted()

    world.receiver.answer = answer
    task = world.created(FAR_MS)
    world.come_up(task)
    assert (world.read(task).status, world.read(task).result) == (Status.DELIVERED, "at once")


@pytest.mark.parametrize(
    "report",
    [lambda task: complete(task, "at once"), lambda task: fail(task, REFUSED)],
    ids=["complete", "fail"],
)
def test_a_plain_2xx_delivers_whatever_was_reported_during_its_call(
    world: World, report: Callable[[Task], object]
) -> None:
    def answer(received: Received) -> Outcome:
        report(task)
        return OK

    world.receiver.answer = answer
    task = world.created(FAR_MS)
    world.come_up(task)
    ended = world.read(task)
    assert (ended.status, ended.result, ended.attempts) == (Status.DELIVERED, None, 1)


def test_the_next_task_of_a_flow_key_waits_for_the_end_of_the_work(world: World) -> None:
    world.configured("orders", flow=Flow(FlowLimits(in_order=True), {}))
    task = begun(world, flow_key="ada")
    follower = world.created(FAR_MS, flow_key="ada")
    world.come_up(follower)
    assert len(world.receiver.received) == 1
    world.receiver.answer = lambda received: OK
    complete(task)
    reach(world, world.read(follower).next_ms)
    assert world.read(follower).status is Status.DELIVERED


def test_a_202_without_the_header_is_a_delivery_and_a_wrong_header_is_a_failure(
    world: World,
) -> None:
    assert outcome_of_answer(202, {}, b"", 0) == Outcome(Verdict.DELIVERED, "", 202)
    assert outcome_of_answer(200, {WITHIN_HEADER: "9"}, b"", 0).complete_within_seconds is None
    for text in ("", "0", "86401", "1.5", "-1", "soon", "٣"):
        outcome = outcome_of_answer(202, {WITHIN_HEADER: text}, b"", 0)
        assert outcome.verdict is Verdict.RETRY, text


def test_a_task_that_is_delivered_by_its_answer_makes_no_request_more(world: World) -> None:
    task = world.created(FAR_MS)
    world.dispatch_until(task.due_ms // 1000)
    world.recorder.clear()
    world.drain()
    assert not any("completion" in str(call.request) for call in world.recorder.calls)
