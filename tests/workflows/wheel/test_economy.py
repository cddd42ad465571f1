"""The economy profile: a run a minute hands over what is ahead, and nothing works in between."""

import math
from collections import Counter
from collections.abc import Callable

import pytest
from botocore.exceptions import EndpointConnectionError

from duewheel.rules.tasks.task import Made, Status, Task
from duewheel.rules.tasks.updates import Change
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.leader_election import KNOWN_BY_ALL_MS, LEASE_MS, POINTER_WRITE_EVERY_MS
from duewheel.rules.wheel.profile import ECONOMY, PRECISE, RUN_EVERY_SECONDS
from duewheel.stores.wheel import pointers
from duewheel.workflows.wheel.run_leader import RESERVE_MS
from tests.support.bounds import quick_first
from tests.support.receiver import BUSY, OK
from tests.support.recorder import Call
from tests.support.world import World

AHEAD = ECONOMY.ahead_seconds
FAR_MS = (AHEAD + 60) * 1000  # nobody has handed it over when it is created
STEPS_OF_A_RUN = [
    (operation, moment)
    for operation in ("Query", "SendMessageBatch", "UpdateItem")
    for moment in ("before", "after")
]


class Crash(BaseException):
    """The process is gone: nothing catches this, and nothing is cleaned up."""


@pytest.fixture(autouse=True)
def _economy(world: World) -> None:
    world.wire(profile=ECONOMY)


def run(world: World, me: str = "run", *, for_ms: int = 290_000) -> None:
    """One by schedule, with all the time that its function has."""
    until_ms = world.clock.now_ms() + for_ms
    world.lead.run(me, lambda: max(0, until_ms - world.clock.now_ms()))


def live(world: World, until_ms: int, *, runs: Callable[[int], bool] = lambda minute: True) -> None:
    """Time passes second by second: a run each minute, and notifiers for whatever comes up."""
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
    world.clock.advance_ms(FAR_MS - AHEAD * 1000)
    began_ms = world.clock.now_ms()
    run(world)

    assert world.pointer().position == began_ms // 1000 + AHEAD
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
    "in_seconds", quick_first([3, AHEAD - 1, 0, 30, AHEAD + 4], pytest.mark.exhaustive, 2)
)
def test_what_is_created_after_its_second_was_handed_over_is_called_on_time(
    world: World, in_seconds: int
) -> None:
    """It is announced by a message of its own, and by no other."""
    run(world)
    world.recorder.clear()
    task = world.created(in_ms=in_seconds * 1000)
    assert task.home.direct
    live(world, task.due_ms + 1_000)
    assert_called_on_time(world, task)
    assert len(sent(world)) == 1


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
    assert world.receiver.received[2].at_ms - failing.due_ms < AHEAD * 1000
    assert again.history[-1].lateness_ms == 0


def test_what_was_handed_over_can_be_cancelled_and_moved_until_its_cut_off(world: World) -> None:
    cancelled, moved = world.created(in_ms=FAR_MS), world.created(in_ms=FAR_MS)
    world.clock.advance_ms(FAR_MS - AHEAD * 1000)
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
    """The second finds the lease held, waits, hands over nothing twice, and ends."""
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
    seen = 0

    def die(call: Call) -> None:
        nonlocal seen
        if call.operation == operation and "slot" not in call.request.get("Key", {}):
            seen += 1
            if seen == (1 if operation == "SendMessageBatch" else 2):
                setattr(world.recorder, moment, None)
                raise Crash

    setattr(world.recorder, moment, die)
    with pytest.raises(Crash):
        run(world, "dies")
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
    assert world.pointer().position >= began_ms // 1000 + AHEAD
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
    assert world.pointer().position >= world.clock.now_ms() // 1000 + AHEAD - 1
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
    assert world.pointer().position == began_ms // 1000 + AHEAD
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


def test_after_a_change_to_precise_nothing_waits_for_the_pointer_to_be_overtaken(
    world: World,
) -> None:
    run(world)
    world.wire(profile=PRECISE)
    at_once, later = world.created(in_ms=0), world.created(in_ms=60_250)
    assert later.home.direct, "its second was handed over already"
    assert at_once.home.instant_ms == at_once.due_ms
    live(world, later.due_ms + 1_000, runs=lambda minute: False)
    assert_called_on_time(world, at_once, later)


def sent(world: World) -> list[str]:
    return [
        entry["MessageBody"]
        for call in world.recorder.calls
        if call.operation == "SendMessageBatch"
        for entry in call.request["Entries"]
    ]


def led_precisely(world: World) -> None:
    """By a scheduler that has just ended, before the profile was changed."""
    world.wire(profile=PRECISE)
    world.lead_once()


@pytest.mark.exhaustive
def test_functions_of_the_precise_profile_write_nothing_into_what_economy_has_handed_over(
    world: World,
) -> None:
    """Both are at work for the minutes of a deployment: at every call of the first runs, a
    function of the old environment creates a task that is due within what is handed over."""
    led_precisely(world)
    create, tasks = world.create, list[Task]()

    def made(in_ms: int) -> Task:
        (task,) = create.entry_writer.placed([world.new(in_ms)])
        assert create.store([task]) == [Made(task)]
        return task

    made(FAR_MS * 10)  # it knows where the time pointer stands
    world.wire(profile=ECONOMY)

    def created(_: Call) -> None:
        world.recorder.after = None
        due_in_ms = 60_000 + 337 * len(tasks)
        tasks.append(made(due_in_ms))
        world.recorder.after = created

    world.recorder.after = created
    run(world)
    world.recorder.after = None
    assert len(tasks) > 10
    assert world.pointer().position > world.clock.now_ms() // 1000 + AHEAD - 5
    tasks += [made(60_000 + 401 * n) for n in range(20)]
    live(world, max(task.due_ms for task in tasks) + 2_000, runs=lambda minute: minute > 0)
    called = {received.task_id: received.at_ms for received in world.receiver.received}
    assert len(world.receiver.received) == len(tasks)
    # A notifier or a scheduler of this world that waits for one call is late for another.
    assert all(0 <= called[task.task_id] - task.due_ms < 2_000 for task in tasks)


def test_a_run_after_the_precise_profile_gets_ahead_when_every_function_knows_of_it(
    world: World,
) -> None:
    led_precisely(world)
    world.wire(profile=ECONOMY)
    began_ms = world.clock.now_ms()
    run(world)
    assert world.clock.now_ms() >= began_ms + KNOWN_BY_ALL_MS
    assert world.pointer().position >= world.clock.now_ms() // 1000 + AHEAD - 1
    began_ms = world.clock.now_ms()
    run(world, "next")
    assert world.clock.now_ms() == began_ms, "known since the run before"


def test_under_a_precise_leader_a_plain_entry_stays_plain(world: World) -> None:
    run(world)
    world.wire(profile=PRECISE)
    world.clock.advance_ms((AHEAD + 20) * 1000)
    world.lead_once()
    world.clock.advance_ms(20_000)
    world.lead_once()
    assert not world.created(in_ms=60_000).entry.direct
