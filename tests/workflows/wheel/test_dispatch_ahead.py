"""A run a minute dispatches the seconds ahead, and no scheduler works in between."""

import json
import math
from collections import Counter
from collections.abc import Callable

import pytest
from botocore.exceptions import EndpointConnectionError

from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.leader_election import LEASE_MS, POINTER_WRITE_EVERY_MS
from duewheel.rules.wheel.queue_messages import DirectMessage, PageMessage, decode, texts_of_event
from duewheel.rules.wheel.timing import AHEAD_SECONDS, RUN_EVERY_SECONDS
from duewheel.stores.wheel import pointers
from duewheel.workflows.wheel.run_leader import RESERVE_MS
from tests.support.bounds import quick_first
from tests.support.receiver import BUSY, OK
from tests.support.recorder import Call
from tests.support.world import World

FAR_MS = (AHEAD_SECONDS + 60) * 1000  # not dispatched yet when it is created
STEPS_OF_A_RUN = [
    (operation, moment)
    for operation in ("Query", "SendMessageBatch", "UpdateItem")
    for moment in ("before", "after")
]


def run(world: World, me: str = "run", *, for_ms: int = 290_000) -> None:
    """One by schedule, with all the time that its function has."""
    until_ms = world.clock.now_ms() + for_ms
    world.lead.run(me, lambda: max(0, until_ms - world.clock.now_ms()))


def live(world: World, until_ms: int, *, runs: Callable[[int], bool] = lambda minute: True) -> None:
    """Time passes second by second: a run each minute, and notifiers for what falls due."""
    began_ms, minute = world.clock.now_ms(), 0
    while world.clock.now_ms() < until_ms:
        if world.clock.now_ms() >= began_ms + minute * RUN_EVERY_SECONDS * 1000:
            if runs(minute):
                run(world, f"run-{began_ms}-{minute}")
            minute += 1
        world.drain()
        # A run and a notifier that wait move the clock; the next step is a whole second again.
        now_ms = world.clock.now_ms()
        visible_ms = world.emulator.messages_visible_at_ms(world.settings.slice_queue_url)
        steps_ms = [now_ms + 1_000 - now_ms % 1_000, *map(math.ceil, visible_ms)]
        world.clock.set_ms(min(ms for ms in steps_ms if ms > now_ms))


def assert_called_on_time(world: World, *tasks: Task) -> None:
    called = sorted((received.task_id, received.at_ms) for received in world.receiver.received)
    assert called == sorted((task.task_id, task.due_ms) for task in tasks)
    assert all(world.read(task).status is Status.DELIVERED for task in tasks)


def test_a_run_hands_over_what_is_ahead_and_ends(world: World) -> None:
    world.created(in_ms=FAR_MS)
    world.clock.advance_ms(FAR_MS - AHEAD_SECONDS * 1000)
    began_ms = world.clock.now_ms()
    run(world)

    assert world.pointer().position == began_ms // 1000 + AHEAD_SECONDS
    assert world.pointer().owner is None
    assert world.clock.now_ms() < began_ms + 1_000, "it waited for the message's phase alone"
    assert world.receive() == [], "the message is held back"


def test_tasks_are_called_in_their_milliseconds_by_a_run_a_minute(world: World) -> None:
    tasks = [world.created(in_ms=FAR_MS + n * 17_250) for n in range(8)]
    live(world, tasks[-1].due_ms + 1_000)
    assert_called_on_time(world, *tasks)


@pytest.mark.exhaustive
def test_a_run_may_be_missed(world: World) -> None:
    """Then two of them lie two minutes apart."""
    tasks = [world.created(in_ms=FAR_MS + n * 7_250) for n in range(30)]
    live(world, tasks[-1].due_ms + 1_000, runs=lambda minute: minute % 2 == 0)
    assert_called_on_time(world, *tasks)


@pytest.mark.parametrize(
    "in_seconds",
    quick_first([3, AHEAD_SECONDS - 1, 0, 30, AHEAD_SECONDS + 4], pytest.mark.exhaustive, 2),
)
def test_what_is_created_after_its_second_was_handed_over_is_called_on_time(
    world: World, in_seconds: int
) -> None:
    """Its writer announces it: by name, or by a message of its page."""
    run(world)
    world.recorder.clear()
    task = world.created(in_ms=in_seconds * 1000)
    (announced,) = map(decode, sent(world))
    assert isinstance(announced, DirectMessage) == task.home.direct == (in_seconds < 6)
    live(world, task.due_ms + 1_000)
    assert_called_on_time(world, task)


def test_a_page_is_announced_once_and_again_for_a_task_that_is_due_earlier(world: World) -> None:
    run(world)
    second_ms = world.clock.now_ms() + 60_000
    world.recorder.clear()
    tasks = [
        world.created(in_ms=second_ms + ms - world.clock.now_ms()) for ms in (500, 700, 300, 100)
    ]
    page = PageMessage(second_ms // 1000, 0)
    assert [decode(text) for text in sent(world)] == [page, page]
    live(world, second_ms + 2_000)
    assert_called_on_time(world, *tasks)


def test_processes_that_announce_a_page_each_for_itself_have_it_delivered_once(
    world: World,
) -> None:
    run(world)
    tasks = []
    for _ in range(4):
        world.wire()  # a process of its own
        tasks.append(world.created(in_ms=60_250))
    live(world, tasks[0].due_ms + 20_000)
    assert_called_on_time(world, *tasks)


def test_a_task_ahead_of_all_dispatched_seconds_is_not_announced(world: World) -> None:
    run(world)
    world.recorder.clear()
    task = world.created(in_ms=(AHEAD_SECONDS + 10) * 1_000)
    assert sent(world) == []
    live(world, task.due_ms + 1_000)
    assert_called_on_time(world, task)


@pytest.mark.parametrize("known_before", [False, True])
def test_shards_that_were_added_to_a_dispatched_second_are_delivered_on_time(
    world: World, known_before: bool
) -> None:
    """The run of the first shard sends the messages of those that the scheduler did not see."""
    second = world.clock.now_ms() // 1000 + 60
    early = [world.created(in_ms=60_000) for _ in range(2)] if known_before else []
    run(world)
    world.recorder.clear()
    world.headers.raise_to(second, 4)
    world.reserve_shards.known.keep({second: 4})
    tasks = [world.created(in_ms=60_250) for _ in range(20)]
    assert {task.home.shard for task in tasks} == {0, 1, 2, 3}
    assert {decode(text) for text in sent(world)} <= {PageMessage(second, 0)}
    live(world, second * 1000 + 2_000)
    assert_called_on_time(world, *early, *tasks)


def test_shards_whose_messages_the_scheduler_sends_get_no_second_message(world: World) -> None:
    world.clock.advance_ms(1_000)
    second = world.clock.now_ms() // 1000 + AHEAD_SECONDS + 60
    world.headers.raise_to(second, 4)
    world.reserve_shards.known.keep({second: 4})
    tasks = [world.created(in_ms=(AHEAD_SECONDS + 60) * 1_000) for _ in range(20)]
    live(world, second * 1000 + 2_000)
    assert_called_on_time(world, *tasks)
    assert Counter(decode(text) for text in sent(world)) == {
        PageMessage(second, 0, shards=4): 1,
        **{PageMessage(second, shard): 1 for shard in (1, 2, 3)},
    }


def test_what_is_written_while_sqs_refuses_is_called_on_time_once_a_run_stays(world: World) -> None:
    """A run that stays probes a second again when it opens, also one that it dispatched ahead."""
    far = world.created(in_ms=FAR_MS)
    run(world)
    world.clock.set_ms(far.due_ms - 100_000)
    world.recorder.before = refuse_sqs
    near = [world.created(in_ms=n * 2_250) for n in range(4, 20)]
    invoked_ms: dict[int, int] = {}

    def note(call: Call) -> None:
        if call.operation == "Invoke":
            for text in texts_of_event(json.loads(call.request["Payload"])) or []:
                message = decode(text)
                assert isinstance(message, PageMessage)
                invoked_ms.setdefault(message.second, world.clock.now_ms())

    world.recorder.after = note
    run(world, for_ms=60_000 + RESERVE_MS)
    lead_ms = world.settings.lead_ms
    late_ms = [invoked_ms[task.home.second] - (task.due_ms - lead_ms) for task in near]
    assert max(late_ms) == 0
    assert late_ms.count(0) >= len(near) - 1, "found ahead: sent as soon as a link takes it"
    assert far.home.second not in invoked_ms


@pytest.mark.exhaustive
def test_a_retry_and_a_move_within_what_was_handed_over_come_up_on_time(world: World) -> None:
    moved, failing = world.created(in_ms=FAR_MS), world.created(in_ms=FAR_MS + 1_000)
    run(world)
    moved = world.change(moved.task_id, Change(due_ms=world.clock.now_ms() + 20_250))
    answers = iter([BUSY])
    world.receiver.answer = lambda call: (
        next(answers, OK) if call.task_id == failing.task_id else OK
    )
    live(world, failing.due_ms + 120_000)

    assert [r.at_ms for r in world.receiver.received[:2]] == [moved.due_ms, failing.due_ms]
    again = world.read(failing)
    assert again.status is Status.DELIVERED
    assert world.receiver.received[2].at_ms - failing.due_ms < AHEAD_SECONDS * 1000
    assert again.history[-1].lateness_ms == 0


def test_what_was_handed_over_can_be_cancelled_and_moved_until_its_cut_off(world: World) -> None:
    cancelled, moved = world.created(in_ms=FAR_MS), world.created(in_ms=FAR_MS)
    world.clock.advance_ms(FAR_MS - AHEAD_SECONDS * 1000)
    run(world)
    cut_off_ms = timing.cut_off_ms(cancelled.due_ms, world.settings.lead_ms)
    assert cut_off_ms == cancelled.due_ms - world.settings.lead_ms - timing.SKEW_MS
    world.clock.set_ms(cut_off_ms - 1)
    world.cancel(cancelled.task_id)
    moved = world.change(moved.task_id, Change(due_ms=moved.due_ms + 30_250))

    live(world, moved.due_ms + 1_000)
    assert [(r.task_id, r.at_ms) for r in world.receiver.received] == [
        (moved.task_id, moved.due_ms)
    ]


@pytest.mark.exhaustive
def test_two_runs_at_once_do_no_harm(world: World) -> None:
    """The second finds the lease held, waits, sends no message again, and ends."""
    tasks = [world.created(in_ms=FAR_MS + n * 3_250) for n in range(10)]
    world.clock.advance_ms(FAR_MS - 60_000)

    world.recorder.once(
        "Query", lambda: run(world, "another", for_ms=LEASE_MS - 1_000 + RESERVE_MS)
    )
    run(world, "first")
    assert len(sent(world)) == len(tasks)
    assert world.pointer().owner is None
    live(world, tasks[-1].due_ms + 1_000)
    assert_called_on_time(world, *tasks)


@pytest.mark.parametrize(
    ("operation", "moment"), quick_first(STEPS_OF_A_RUN, pytest.mark.exhaustive)
)
def test_nothing_is_late_or_called_twice_when_a_run_dies_at_any_step(
    world: World, operation: str, moment: str
) -> None:
    """The next one takes over, a minute later, and before anything is due that it left out."""
    tasks = [world.created(in_ms=FAR_MS + n * 23_250) for n in range(8)]
    run(world)
    world.clock.advance_ms(60_000)

    def is_step(call: Call) -> bool:
        return call.operation == operation and "slot" not in call.request.get("Key", {})

    number = 1 if operation == "SendMessageBatch" else 2
    assert world.dies(lambda: run(world, "dies"), number, moment, is_step)
    world.clock.advance_ms(60_000)
    live(world, tasks[-1].due_ms + 1_000)
    assert_called_on_time(world, *tasks)


def refuse_sqs(call: Call) -> None:
    if call.operation == "SendMessageBatch":
        raise EndpointConnectionError(endpoint_url="https://sqs")


def test_while_sqs_refuses_a_run_goes_on_and_hands_over_what_comes_up(world: World) -> None:
    """By the second link, which holds nothing back, so second by second."""
    first, second = world.created(in_ms=FAR_MS), world.created(in_ms=FAR_MS + 30_250)
    world.clock.advance_ms(FAR_MS - 20_000)
    world.recorder.before = refuse_sqs
    run(world, for_ms=18_000 + RESERVE_MS)
    assert world.pointer().position == second.due_ms // 1000 - 1
    world.drain()
    world.recorder.before = None
    began_ms = world.clock.now_ms()
    run(world)
    assert world.pointer().position >= began_ms // 1000 + AHEAD_SECONDS
    live(world, second.due_ms + 1_000)
    assert_called_on_time(world, first, second)


def test_a_run_ends_as_soon_as_sqs_takes_messages_again(world: World) -> None:
    task = world.created(in_ms=FAR_MS)
    world.clock.advance_ms(FAR_MS - 60_000)
    began_ms = world.clock.now_ms()

    def refuse_for_a_while(call: Call) -> None:
        if world.clock.now_ms() < began_ms + 17_000:
            refuse_sqs(call)

    world.recorder.before = refuse_for_a_while
    run(world)
    assert world.pointer().position >= world.clock.now_ms() // 1000 + AHEAD_SECONDS - 1
    assert world.clock.now_ms() - began_ms <= 17_000 + POINTER_WRITE_EVERY_MS + 1_000
    live(world, task.due_ms + 1_000)
    assert_called_on_time(world, task)


@pytest.mark.exhaustive
def test_far_behind_a_run_catches_up_in_strides_and_gets_ahead(world: World) -> None:
    late = [world.created(in_ms=FAR_MS + n * 100_000) for n in range(20)]
    ahead = world.created(in_ms=FAR_MS + 2_060_250)
    world.clock.set_ms(ahead.due_ms - 60_250)
    began_ms = world.clock.now_ms()
    run(world)
    assert world.pointer().position == began_ms // 1000 + AHEAD_SECONDS
    assert world.clock.now_ms() < began_ms + 1_000
    world.drain()
    called = Counter(world.receiver.task_ids)
    assert called == Counter(task.task_id for task in late)
    live(world, ahead.due_ms + 1_000)
    assert world.receiver.received[-1].at_ms == ahead.due_ms
    assert len(world.receiver.received) == len(late) + 1


def test_an_idle_minute_costs_a_probe_a_second_and_two_pointer_writes(world: World) -> None:
    run(world)
    world.clock.advance_ms(60_000)
    world.recorder.clear()
    run(world)

    assert Counter(world.recorder.operations()) == {"GetItem": 1, "UpdateItem": 2, "Query": 60}


def test_what_a_run_left_out_the_sweep_finds(world: World) -> None:
    """It follows the time, not the time pointer that is ahead of it."""
    task = world.created(in_ms=30_250)
    world.sqs.purge_queue(QueueUrl=world.settings.slice_queue_url)
    run(world)
    for _ in range(3):
        world.clock.advance_ms(60_000)
        world.sweep_once()
        swept = world.pointer(pointers.SWEEP).position
        assert swept <= max(world.origin, world.clock.now_ms() // 1000 - 120)
    world.sweep_past(task.due_ms // 1000)
    live(world, world.clock.now_ms() + 10_000)
    assert world.receiver.task_ids == [task.task_id]


def sent(world: World) -> list[str]:
    return [
        entry["MessageBody"]
        for call in world.recorder.calls
        if call.operation == "SendMessageBatch"
        for entry in call.request["Entries"]
    ]
