"""An hour in which something is out of order, by the moved clock, and what follows it.

After each every task has been called, once unless said otherwise, the sweep pointer has
caught up, and catching up has not multiplied the load: as many messages as there were slices,
and a few.
"""

import pytest

from duewheel.rules.tasks.task import Status, Task
from duewheel.stores.wheel import pointers
from tests.support.bounds import quick_first
from tests.support.minutes import DYNAMODB, LAMBDA, SQS, Minute, Minutes
from tests.support.world import World

HOUR = 60


@pytest.fixture
def minutes(world: World) -> Minutes:
    running = Minutes(world)
    running.pass_by(1)
    return running


def tasks_of_the_hour(world: World, length: int = HOUR) -> list[Task]:
    """One every third minute, and in the midst of it some seconds in a row with two in each."""
    sparse = [world.created(in_ms=170_000 + n * 180_000) for n in range(length // 3 - 1)]
    crowd = [
        world.created(in_ms=length * 30_000 + n * 1_000 + 250 * twice)
        for n in range(length // 2)
        for twice in (0, 1)
    ]
    return sparse + crowd


def slices_of(tasks: list[Task]) -> int:
    return len({task.home.second for task in tasks})


def sent(passed: list[Minute]) -> int:
    return sum(minute.sent for minute in passed)


def begun(passed: list[Minute]) -> int:
    return sum(minute.begun for minute in passed)


def assert_all_is_well_again(
    minutes: Minutes, tasks: list[Task], within_minutes: int, *, calls: int = 1
) -> list[Minute]:
    """Everything is back; the sweep passes the outage's last second in so many minutes."""
    world = minutes.world
    ended = max(world.clock.now_ms() // 1000, max(task.home.second for task in tasks))
    passed = minutes.until_swept(ended, within_minutes)
    minutes.pass_by(4)
    counted = {task_id: world.receiver.task_ids.count(task_id) for task_id in set(task_ids(tasks))}
    assert set(counted.values()) == {calls}
    assert all(world.read(task).status is Status.DELIVERED for task in tasks)
    lag_seconds = world.clock.now_ms() // 1000 - world.pointer(pointers.SWEEP).position
    assert lag_seconds <= world.settings.sweep_delay_seconds + 120
    return passed


def task_ids(tasks: list[Task]) -> list[str]:
    return [task.task_id for task in tasks]


@pytest.mark.parametrize("length", quick_first([12, HOUR], pytest.mark.exhaustive))
def test_an_outage_of_the_scheduler(world: World, minutes: Minutes, length: int) -> None:
    tasks = tasks_of_the_hour(world, length)
    minutes.scheduler = False
    minutes.pass_by(length)
    assert world.receiver.received == []

    minutes.scheduler = True
    (first,) = minutes.pass_by(1)
    assert first.called == len(tasks), "all of it in the first minute"
    assert first.sent == first.begun == slices_of(tasks)
    passed = assert_all_is_well_again(minutes, tasks, within_minutes=8)
    assert sent(passed) == begun(passed) == 0


def test_tasks_that_are_created_shortly_before_they_are_due_need_no_scheduler(
    world: World, minutes: Minutes
) -> None:
    """Their writers announce their pages."""
    minutes.scheduler = False
    tasks = [world.created(in_ms=in_ms) for in_ms in range(15_000, 155_000, 14_000)]
    passed = minutes.pass_by(3)
    assert sorted(world.receiver.task_ids) == sorted(task_ids(tasks))
    assert sent(passed) == 0
    assert begun(passed) == slices_of(tasks)

    minutes.scheduler = True
    assert_all_is_well_again(minutes, tasks, within_minutes=8)


def test_tasks_that_are_created_while_neither_link_accepts_messages_are_called_later(
    world: World, minutes: Minutes
) -> None:
    """Their seconds are dispatched before, and the messages of their writers are refused."""
    minutes.refused = SQS | LAMBDA
    tasks = [world.created(in_ms=in_ms) for in_ms in range(1_000, 145_000, 14_000)]
    assert world.pointer().position >= tasks[-1].home.second
    minutes.pass_by(3)
    assert world.receiver.received == []

    minutes.refused = set()
    assert_all_is_well_again(minutes, tasks, within_minutes=8)


@pytest.mark.exhaustive
def test_an_hour_without_notifiers(world: World, minutes: Minutes) -> None:
    """Messages pile up and are kept. The sweep looks after the first second that is not
    finished: a message a minute, and every sixth minute the tasks of the page, which is then
    taken apart."""
    tasks = tasks_of_the_hour(world)
    minutes.notifier = False
    piled_up = minutes.pass_by(HOUR)
    assert world.receiver.received == []
    assert sent(piled_up) <= slices_of(tasks) + HOUR + HOUR / 6

    minutes.notifier = True
    passed = assert_all_is_well_again(minutes, tasks, within_minutes=8)
    assert begun(passed) <= slices_of(tasks)
    assert sent(passed) <= HOUR / 6 + 2, "the tasks of pages that were taken apart, once more"


@pytest.mark.exhaustive
def test_near_tasks_are_not_rescued_all_through_an_hour_without_notifiers(
    world: World, minutes: Minutes
) -> None:
    """Their messages come too late each time; what is late is given to a slice, and stays there for
    some 25 minutes: five new entries at most, where every third minute would make twenty."""
    tasks = [world.created(in_ms=1_000) for _ in range(5)]
    minutes.notifier = False
    minutes.pass_by(HOUR)
    written = max(world.read(task).version for task in tasks) - 1
    assert 2 <= written <= 5

    minutes.notifier = True
    assert_all_is_well_again(minutes, tasks, within_minutes=8)


@pytest.mark.exhaustive
def test_an_hour_without_sqs_is_bridged_by_the_second_link(world: World, minutes: Minutes) -> None:
    tasks = tasks_of_the_hour(world)
    minutes.refused = SQS
    world.receive = lambda *_: []  # type: ignore[method-assign]  # nothing is handed out
    bridged = minutes.pass_by(HOUR)

    assert sorted(world.receiver.task_ids) == sorted(task_ids(tasks))
    assert sent(bridged) == begun(bridged) == slices_of(tasks)
    minutes.refused = set()
    passed = assert_all_is_well_again(minutes, tasks, within_minutes=8)
    assert sent(passed) == 0


@pytest.mark.exhaustive
def test_an_hour_without_either_link(world: World, minutes: Minutes) -> None:
    tasks = tasks_of_the_hour(world)
    minutes.refused = SQS | LAMBDA
    minutes.pass_by(HOUR)
    assert world.receiver.received == []
    assert world.pointer().position == min(task.home.second for task in tasks) - 1

    minutes.refused = set()
    passed = assert_all_is_well_again(minutes, tasks, within_minutes=8)
    assert passed[0].called == len(tasks)
    assert sent(passed) == begun(passed) == slices_of(tasks)


@pytest.mark.exhaustive
def test_an_hour_without_dynamodb(world: World, minutes: Minutes) -> None:
    tasks = tasks_of_the_hour(world)
    minutes.refused = DYNAMODB
    minutes.pass_by(HOUR)
    assert world.receiver.received == []

    minutes.refused = set()
    passed = assert_all_is_well_again(minutes, tasks, within_minutes=8)
    assert passed[0].called == len(tasks)
    assert sent(passed) == begun(passed) == slices_of(tasks)


def test_what_was_called_when_dynamodb_went_away_is_called_again(
    world: World, minutes: Minutes
) -> None:
    """The repeat is explained: the answer of the first call could not be written."""
    task = world.created(in_ms=60_000)
    answers = world.receiver.answer

    def answer_and_lose_dynamodb(received: object) -> object:
        minutes.refused = DYNAMODB
        world.receiver.answer = answers
        return answers(received)  # type: ignore[arg-type]

    world.receiver.answer = answer_and_lose_dynamodb  # type: ignore[assignment]
    minutes.pass_by(10)
    assert world.receiver.task_ids == [task.task_id]

    minutes.refused = set()
    assert_all_is_well_again(minutes, [task], within_minutes=8, calls=2)


@pytest.mark.exhaustive
def test_the_queue_is_purged_after_an_hour_without_notifiers(
    world: World, minutes: Minutes
) -> None:
    """Only the sweep still finds it. The queue is empty, so all that was not begun is lost, and is
    sent again at once; one second a minute would take an hour."""
    tasks = tasks_of_the_hour(world)
    minutes.notifier = False
    minutes.pass_by(HOUR)
    world.sqs.purge_queue(QueueUrl=world.settings.slice_queue_url)

    minutes.notifier = True
    passed = assert_all_is_well_again(minutes, tasks, within_minutes=6)
    assert sent(passed) <= slices_of(tasks) + 6
