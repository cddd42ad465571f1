"""How entries are announced that the scheduler may have missed: those that it dispatches ahead get
a message of their page from their writer."""

import pytest
from botocore.exceptions import ClientError

from duewheel.rules.delivery.page_lease import LEASE_MS
from duewheel.rules.tasks.updates import Change
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.queue_messages import DirectMessage, Message, PageMessage, decode
from tests.support.recorder import Call
from tests.support.world import FAR_MS, World

SOON_MS = 60_000
ANNOUNCED_AHEAD_MS = timing.AHEAD_MS + timing.NEAR_MARGIN_MS


def sent(world: World) -> list[tuple[Message, int]]:
    """The messages that were sent, with their delays in seconds."""
    return [
        (decode(entry["MessageBody"]), entry["DelaySeconds"])
        for call in world.recorder.calls
        if call.operation == "SendMessageBatch"
        for entry in call.request["Entries"]
    ]


def refuse_messages(world: World) -> None:
    def refuse(call: Call) -> None:
        if call.operation in ("SendMessageBatch", "Invoke"):
            raise ClientError({"Error": {"Code": "ServiceUnavailable"}}, call.operation)

    world.recorder.before = refuse


@pytest.mark.parametrize(
    ("in_ms", "kinds"),
    [
        (5_400, [DirectMessage]),
        (7_000, [PageMessage]),
        (ANNOUNCED_AHEAD_MS - 1_000, [PageMessage]),
        (ANNOUNCED_AHEAD_MS + 2_000, []),
    ],
)
def test_the_distance_of_an_entry_decides_who_announces_it(
    world: World, in_ms: int, kinds: list[type[Message]]
) -> None:
    task = world.created(in_ms=in_ms)
    assert [type(message) for message, _ in sent(world)] == kinds
    assert task.home.direct is (kinds == [DirectMessage])
    world.come_up(task)
    assert [received.at_ms for received in world.receiver.received] == [task.due_ms]


def test_the_message_of_a_page_is_delayed_to_one_lead_before_its_entry(world: World) -> None:
    task = world.created(in_ms=SOON_MS + 900)
    delay = (SOON_MS + 900 - world.settings.lead_ms) // 1000
    assert sent(world) == [(PageMessage(task.home.second, 0), delay)]


def test_a_process_announces_a_page_once(world: World) -> None:
    tasks = [world.created(in_ms=SOON_MS + n) for n in (0, 100, 900)]
    assert len(sent(world)) == 1
    world.come_up(tasks[-1])
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


def test_a_page_is_announced_again_for_the_first_entry_that_is_due_earlier(world: World) -> None:
    """The second message comes for the start of the second, so no third one is needed."""
    second_ms = (world.clock.now_ms() + SOON_MS) // 1000 * 1000
    for ms in (900, 500, 100):
        world.created(in_ms=second_ms + ms - world.clock.now_ms())
    page = PageMessage(second_ms // 1000, 0)
    lead_ms, now_ms = world.settings.lead_ms, world.clock.now_ms()
    delays = [(at - lead_ms - now_ms) // 1000 for at in (second_ms + 900, second_ms)]
    assert sent(world) == [(page, delay) for delay in delays]


def test_each_process_announces_the_pages_of_its_own_entries(world: World) -> None:
    """The second message, and that of the scheduler, find it finished, when its lease is over."""
    tasks = [world.created(in_ms=SOON_MS)]
    world.entry_writer.announced.clear()
    tasks.append(world.created(in_ms=SOON_MS))
    world.lead_once()
    assert len(sent(world)) == 3
    world.come_up(tasks[0])
    world.clock.advance_ms(LEASE_MS + 2_000)
    world.drain()
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)
    assert world.messages_waiting() == 0


def test_a_page_whose_message_was_refused_is_announced_with_the_next_entry(world: World) -> None:
    refuse_messages(world)
    first = world.created(in_ms=SOON_MS)
    world.recorder.before = None
    world.recorder.clear()
    second = world.created(in_ms=SOON_MS)
    assert [message for message, _ in sent(world)] == [PageMessage(first.home.second, 0)]
    world.clock.set_ms(first.due_ms)
    world.drain()
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in (first, second))


def test_a_task_whose_writer_could_not_announce_it_is_called_by_the_scheduler(world: World) -> None:
    refuse_messages(world)
    task = world.created(in_ms=SOON_MS)
    world.recorder.before = None
    world.come_up(task)
    assert [received.at_ms for received in world.receiver.received] == [task.due_ms]


def test_a_page_that_was_dispatched_before_its_entry_was_written_is_called_on_time(
    world: World,
) -> None:
    """Only the writer announces it: the time pointer is past its second."""
    world.lead_once()
    second = (world.clock.now_ms() + SOON_MS) // 1000
    assert world.pointer().position > second
    task = world.created(in_ms=SOON_MS)
    world.clock.set_ms(task.due_ms)
    world.drain()
    assert [received.at_ms for received in world.receiver.received] == [task.due_ms]


def test_a_task_that_is_moved_behind_the_time_pointer_is_called_on_time(world: World) -> None:
    task = world.created(in_ms=FAR_MS)
    world.lead_once()
    moved = world.change(task.task_id, Change(due_ms=world.clock.now_ms() + SOON_MS))
    assert world.pointer().position > moved.entry.second
    world.clock.set_ms(moved.due_ms)
    world.drain()
    assert [received.at_ms for received in world.receiver.received] == [moved.due_ms]


def test_pages_whose_second_is_over_are_forgotten(world: World) -> None:
    for _ in range(3):
        world.created(in_ms=SOON_MS)
        world.clock.advance_ms(SOON_MS + 1_000)
    world.created(in_ms=SOON_MS)
    assert len(world.entry_writer.announced) == 1
