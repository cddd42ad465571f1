"""Messages that go by asynchronous invocation while the queue refuses."""

import pytest
from botocore.exceptions import ReadTimeoutError

from duewheel.rules.delivery.page_lease import PageLease
from duewheel.rules.wheel.queue_messages import PageMessage, decode, texts_of_event
from duewheel.workflows.wheel.send_messages import SendRefused
from tests.support.recorder import Call
from tests.support.world import World, time_for

SENDING = ("SendMessageBatch",)
BOTH_LINKS = ("SendMessageBatch", "Invoke")


def count(world: World, operation: str) -> int:
    return world.recorder.operations().count(operation)


def test_the_pointer_passes_a_second_that_the_second_link_has_accepted(world: World) -> None:
    task = world.created(in_ms=200_000)
    world.recorder.refuse(*SENDING)
    world.dispatch_until(task.due_ms // 1000)

    assert world.pointer().position >= task.due_ms // 1000
    assert world.messages_waiting() == 0
    world.drain()
    assert world.receiver.task_ids == [task.task_id]
    assert world.receiver.received[0].at_ms == task.due_ms


def test_one_refusal_is_tried_again_and_needs_no_second_link(world: World) -> None:
    task = world.created(in_ms=200_000)
    world.recorder.refuse(*SENDING, times=1)
    world.dispatch_until(task.due_ms // 1000)

    assert world.messages_waiting() == 1
    assert count(world, "Invoke") == 0


def test_sqs_has_the_messages_again_as_soon_as_it_takes_them(world: World) -> None:
    first, second = world.created(in_ms=200_000), world.created(in_ms=210_000)
    world.recorder.refuse(*SENDING)
    world.dispatch_until(first.due_ms // 1000)
    world.recorder.before = None
    world.dispatch_until(second.due_ms // 1000)

    assert (len(world.invocations), world.messages_waiting()) == (1, 1)


@pytest.mark.exhaustive
def test_a_queue_that_hangs_gets_one_request_a_tick(world: World) -> None:
    """Each try costs its timeout, a second; many batches of a tick must not cost as many."""
    requested_ms: list[int] = []

    def hang(call: Call) -> None:
        if call.operation in SENDING:
            requested_ms.append(world.clock.now_ms())
            world.clock.advance_ms(1_000)
            raise ReadTimeoutError(endpoint_url="https://sqs")

    tasks = [world.created(in_ms=200_000 + n * 1_000) for n in range(35)]
    world.clock.set_ms(tasks[-1].due_ms)
    world.recorder.before = hang
    world.lead.run("leader", time_for(1))
    assert len(requested_ms) == 2, "one tick behind by four batches: tried, and tried again"
    assert world.pointer().position >= tasks[-1].due_ms // 1000

    later = [world.created(in_ms=200_000 + n * 1_000) for n in range(3)]
    world.clock.set_ms(later[0].due_ms - 500)
    requested_ms.clear()
    world.lead.run("leader", time_for(4))
    assert len(requested_ms) <= len(later)
    assert world.pointer().position >= later[-1].due_ms // 1000
    world.drain()
    called = sorted(world.receiver.task_ids)
    assert called == sorted(task.task_id for task in [*tasks, *later])


def test_what_comes_by_both_links_is_delivered_once(world: World) -> None:
    tasks = [world.created(in_ms=200_000) for _ in range(3)]
    second = tasks[0].due_ms // 1000

    def lose_the_answer(call: Call) -> None:
        if call.operation in SENDING:
            raise ReadTimeoutError(endpoint_url="https://sqs")

    world.recorder.after = lose_the_answer
    world.dispatch_until(second)
    world.recorder.after = None
    assert world.messages_waiting() == 2, "SQS took both tries, and answered neither"
    assert len(world.invocations) == 1

    world.drain()
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


def test_an_invocation_that_finds_its_page_held_is_tried_again_until_it_is_done(
    world: World,
) -> None:
    """The other link's notifier took the page and died; nobody hears a report past the queue."""
    task = world.created(in_ms=200_000)
    world.recorder.refuse(*SENDING)
    world.dispatch_until(task.due_ms // 1000)
    world.recorder.before = None
    (invocation,) = world.invocations
    page = decode((texts_of_event(invocation.event) or [""])[0])
    assert isinstance(page, PageMessage)
    take_and_die(world, page)

    for minutes, received in ((0, 0), (1, 1)):
        world.clock.advance_ms(minutes * 60_000)
        world.drain_invocations()
        assert len(world.receiver.received) == received
    assert world.invocations == []


def take_and_die(world: World, page: PageMessage) -> None:
    lease = PageLease(page.second, page.shard)
    world.pages.take(lease, "dead", world.clock.now_ms(), world.settings.page_lease_ms)


def test_a_run_that_lambda_repeats_goes_on_with_its_pages(world: World) -> None:
    """The repeat is another run; the lease of the first is over by then."""
    task = world.created(in_ms=200_000)
    world.recorder.refuse(*SENDING)
    world.dispatch_until(task.due_ms // 1000)
    world.recorder.refuse("BatchWriteItem", *SENDING)
    world.drain_invocations()
    assert world.receiver.task_ids == [task.task_id], "called, and not settled"

    world.recorder.before = None
    world.clock.advance_ms(60_000)
    world.drain_invocations()
    assert world.invocations == []
    assert world.read(task).status == "delivered"
    assert world.receiver.task_ids == [task.task_id] * 2, "explained: its settling failed"


@pytest.mark.parametrize("page_size", [2, 100])
def test_a_crowded_second_goes_all_its_way_past_the_queue(world: World, page_size: int) -> None:
    world.wire(page_size=page_size)
    tasks = [world.created(in_ms=200_000) for _ in range(7)]
    world.recorder.refuse(*SENDING)
    world.come_up(tasks[0])

    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


def test_what_a_page_passes_on_goes_past_the_queue(world: World) -> None:
    task = world.created(in_ms=200_000)
    world.recorder.refuse(*SENDING)
    world.dispatch_until(task.due_ms // 1000)
    (first,) = world.invocations
    world.invocations.clear()
    assert world.carry_out(first, lambda_ms=0)
    assert world.receiver.received == []
    world.drain()

    assert world.receiver.task_ids == [task.task_id]


@pytest.mark.parametrize("in_ms", [0, 4_000])
def test_a_near_task_goes_past_the_queue_and_is_called_on_time(world: World, in_ms: int) -> None:
    world.recorder.refuse(*SENDING)
    task = world.created(in_ms=in_ms)
    world.drain()

    assert world.receiver.task_ids == [task.task_id]
    assert world.receiver.received[0].at_ms == task.due_ms


def test_a_page_whose_next_page_neither_link_takes_comes_back(world: World) -> None:
    world.wire(page_size=2)
    tasks = [world.created(in_ms=200_000) for _ in range(3)]
    world.dispatch_until(tasks[0].due_ms // 1000)
    world.recorder.refuse(*BOTH_LINKS)
    (message,) = world.receive()
    with pytest.raises(SendRefused):
        world.handle(message)

    world.recorder.before = None
    world.clock.advance_ms(91_000)
    world.drain()
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


def test_a_held_message_that_cannot_be_hidden_comes_back_after_its_visibility(world: World) -> None:
    task = world.created(in_ms=200_000)
    world.dispatch_until(task.due_ms // 1000)
    take_and_die(world, PageMessage(task.home.second, 0))
    world.recorder.refuse("ChangeMessageVisibility")
    world.drain()
    assert world.receiver.received == []

    world.clock.advance_ms(90_001)
    world.drain()
    assert world.receiver.task_ids == [task.task_id]
