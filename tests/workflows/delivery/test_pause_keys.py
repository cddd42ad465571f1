"""Pause and resume of one flow key: its tasks alone wait, and each is called once afterwards."""

import pytest
from msgspec.structs import replace

from duewheel.rules.businesses.flow import Flow, FlowLimits
from duewheel.rules.businesses.requests import DeleteQuery
from duewheel.rules.preconditions import Precondition
from duewheel.rules.sweep.audit import AuditRequest
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.queue_messages import Lane, ReleaseMessage, decode, encode
from duewheel.stores.businesses.cache import KEPT_MS
from tests.support.recorder import Call
from tests.support.world import CALLER, World
from tests.workflows.delivery.test_pause_while_waiting import slow_calls
from tests.workflows.timers.test_fire import dispatched, first_of, planned

FORGOTTEN_MS = KEPT_MS + 1_000


def pause_keys(world: World, *keys: str) -> None:
    world.configured("orders", paused_flow_keys=dict.fromkeys(keys, True))
    world.clock.advance_ms(FORGOTTEN_MS)


def resume_keys(world: World, *keys: str) -> None:
    world.configured("orders", paused_flow_keys=dict.fromkeys(keys))
    world.drain()


def pause(world: World, *, paused: bool) -> None:
    world.configure_business.pause("orders", Precondition(), paused=paused, by=CALLER)
    if paused:
        world.clock.advance_ms(FORGOTTEN_MS)
    else:
        world.drain()


def sweep_for(world: World, minutes: int) -> None:
    for _ in range(minutes):
        world.let_pass(60, 10)
        world.sweep_once()
        world.drain()


def created(world: World, *keys: str | None, in_ms: int = 60_000) -> list[Task]:
    return [world.created(in_ms + 40 * n, flow_key=key) for n, key in enumerate(keys)]


def state(world: World, tasks: list[Task]) -> list[str]:
    return ["parked" if t.parked else t.status.value for t in map(world.read, tasks)]


def attempts(world: World, tasks: list[Task]) -> list[int]:
    return [task.attempts for task in map(world.read, tasks)]


def called_order(world: World, tasks: list[Task]) -> list[str]:
    found = map(world.read, tasks)
    return [one.task_id for one in sorted(found, key=lambda task: task.history[0].at_ms)]


def is_clean(world: World, tasks: list[Task]) -> bool:
    seconds = {task.home.second for task in tasks}
    return not any(world.audit(AuditRequest(one, one)).findings for one in seconds)


def test_tasks_of_a_paused_key_wait_and_the_others_are_called_on_time(world: World) -> None:
    pause_keys(world, "a")
    tasks = created(world, "a", "b", None, "a")
    world.let_pass(65)
    assert state(world, tasks) == ["parked", "delivered", "delivered", "parked"]
    assert [world.read(tasks[n]).history[0].at_ms for n in (1, 2)] == [
        tasks[1].due_ms,
        tasks[2].due_ms,
    ]
    assert is_clean(world, tasks)


def test_after_the_pause_each_is_called_once_in_due_order(world: World) -> None:
    pause_keys(world, "a", "b")
    tasks = created(world, *["a"] * 6)
    others = created(world, "b")
    world.let_pass(65)
    resume_keys(world, "a")
    world.let_pass(10)
    assert attempts(world, tasks) == [1] * 6
    assert called_order(world, tasks) == [task.task_id for task in tasks]
    assert state(world, others) == ["parked"]


def test_resuming_all_keys_at_once_releases_them(world: World) -> None:
    pause_keys(world, "a", "b")
    tasks = created(world, "a", "b")
    world.let_pass(65)
    world.configured("orders", paused_flow_keys=None)
    world.drain()
    world.let_pass(10)
    assert attempts(world, tasks) == [1, 1]


def test_released_tasks_of_a_limited_key_are_called_at_its_rate(world: World) -> None:
    world.configured("orders", flow=Flow(FlowLimits(calls_per_second=2.0)))
    pause_keys(world, "a")
    tasks = created(world, *["a"] * 5)
    world.let_pass(65)
    resume_keys(world, "a")
    world.let_pass(20)
    instants = [world.read(task).history[0].at_ms for task in tasks]
    assert all(b - a >= 499 for a, b in zip(instants, instants[2:], strict=False))
    assert instants == sorted(instants)


@pytest.mark.parametrize("is_key_first", [True, False])
@pytest.mark.parametrize("is_key_resumed_first", [True, False])
def test_a_pause_of_the_business_and_one_of_the_key_end_in_any_order(
    world: World, *, is_key_first: bool, is_key_resumed_first: bool
) -> None:
    begin = [lambda: pause_keys(world, "a"), lambda: pause(world, paused=True)]
    end = [lambda: resume_keys(world, "a"), lambda: pause(world, paused=False)]
    tasks: list[Task] = []
    for one in begin if is_key_first else reversed(begin):
        one()
        tasks += created(world, "a", "b")
        world.let_pass(62)
    for one in end if is_key_resumed_first else reversed(end):
        assert "parked" in state(world, [tasks[0], tasks[2]])
        one()
        world.let_pass(10)
    sweep_for(world, 2)
    assert attempts(world, tasks) == [1] * 4
    assert is_clean(world, tasks)


@pytest.mark.exhaustive
def test_the_sweeper_releases_a_key_whose_messages_were_lost_and_then_forgets_it(
    world: World,
) -> None:
    pause_keys(world, "a")
    tasks = created(world, "a")
    world.let_pass(65)
    world.configured("orders", paused_flow_keys={"a": None})
    for message in world.receive():  # lost
        world.sqs.delete_message(
            QueueUrl=world.queues[Lane.MAIN].url, ReceiptHandle=message["ReceiptHandle"]
        )
    sweep_for(world, 4)
    assert attempts(world, tasks) == [1]
    sweep_for(world, 16)
    assert world.parking_records.scopes() == []


def test_a_run_that_crashes_between_parked_item_and_home_parks_the_task_once(world: World) -> None:
    pause_keys(world, "a")
    (task,) = created(world, "a")
    world.dispatch_until(task.due_ms // 1000)

    def crash(call: Call) -> None:
        if "parked#" in str(call.request) and call.operation == "BatchWriteItem":
            world.recorder.after = None
            raise ConnectionError("crashed")

    world.recorder.after = crash
    with pytest.raises(ConnectionError):
        world.drain()
    sweep_for(world, 3)
    assert state(world, [task]) == ["parked"]
    resume_keys(world, "a")
    world.let_pass(10)
    assert attempts(world, [task]) == [1]


def test_an_item_of_another_pause_is_dropped_and_does_not_end_this_one(world: World) -> None:
    """The run that left it found the business paused, and crashed; the next one found the key
    paused."""
    pause_keys(world, "a")
    (task,) = created(world, "a")
    world.let_pass(65)
    parked = world.read(task)
    world.release.parked.put([replace(parked, parked_key=None)])
    pause(world, paused=True)
    pause(world, paused=False)
    world.let_pass(10)
    assert state(world, [task]) == ["parked"]
    resume_keys(world, "a")
    world.let_pass(10)
    assert attempts(world, [task]) == [1]


def test_a_task_that_waits_for_its_turn_is_parked_if_its_key_is_paused_meanwhile(
    world: World,
) -> None:
    world.configured("orders", calls_per_second=0.05)
    pause_keys(world, "other")
    tasks = created(world, *["a"] * 6)
    world.let_pass(61)
    pause_keys(world, "a")
    world.let_pass(30)
    assert state(world, tasks).count("parked") == 1
    resume_keys(world, "a", "other")
    world.let_pass(200, 10)
    assert attempts(world, tasks) == [1] * 6


def test_tasks_of_a_key_are_released_when_its_business_is_deleted(world: World) -> None:
    pause_keys(world, "a")
    tasks = created(world, "a")
    world.let_pass(65)
    deleted = world.delete_business(
        "orders", DeleteQuery(cancel_pending="true"), Precondition(), by=CALLER
    )
    assert deleted.done
    assert world.read(tasks[0]).status is Status.CANCELLED
    sweep_for(world, 16)
    assert world.parking_records.scopes() == []


def test_a_message_of_a_release_names_the_key() -> None:
    message = ReleaseMessage("orders", 3, "eu/7")
    assert decode(encode(message)) == message


def test_a_release_of_the_business_leaves_tasks_of_a_paused_key_parked(world: World) -> None:
    pause_keys(world, "a")
    tasks = created(world, "a")
    world.let_pass(65)
    world.release(ReleaseMessage("orders"), "me", world.clock.now_ms() + 60_000)
    assert state(world, tasks) == ["parked"]


def test_a_repeated_pause_of_a_key_does_not_lose_its_tasks(world: World) -> None:
    tasks: list[Task] = []
    for _ in range(3):
        pause_keys(world, "a")
        tasks += created(world, "a")
        world.let_pass(62, 31)
        world.configured("orders", paused_flow_keys={"a": None})  # its messages come later
        pause_keys(world, "a")
        world.drain()
    assert state(world, tasks).count("parked") >= 1
    resume_keys(world, "a")
    sweep_for(world, 2)
    assert attempts(world, tasks) == [1] * 3


def test_a_task_that_waits_in_a_notifier_is_parked_if_its_key_is_paused_meanwhile(
    world: World,
) -> None:
    """Tasks with late messages are called at turns up to seconds ahead."""
    world.configured("orders", calls_per_second=0.6, paused_flow_keys={"other": True})
    tasks = [task for _ in range(3) for task in created(world, "a")]
    world.dispatch_until(tasks[0].due_ms // 1000)
    world.clock.advance_ms(20_000)
    paused_at = slow_calls(
        world, lambda world: world.configured("orders", paused_flow_keys={"a": True})
    )
    world.drain()
    world.let_pass(10)
    assert max(one.at_ms for one in world.receiver.received) <= paused_at[0] + KEPT_MS
    assert "parked" in state(world, tasks)
    assert is_clean(world, tasks)


def test_an_occurrence_is_parked_by_the_key_of_its_timer(world: World) -> None:
    pause_keys(world, "a")
    timer = planned(world, flow_key="a")
    first = first_of(world, timer)
    world.handle(dispatched(world, timer))
    parked = world.read(first)
    assert (parked.parked, parked.parked_key) == (True, "a")
    resume_keys(world, "a")
    world.let_pass(20)
    assert attempts(world, [first]) == [1]
