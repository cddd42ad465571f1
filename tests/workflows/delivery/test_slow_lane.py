"""Tasks of a slow business are passed by id to the slow lane, and none is lost."""

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.delivery.page_lease import LEASE_MS, TRIES_MAX
from duewheel.rules.sweep.audit import AuditRequest
from duewheel.rules.tasks.lifecycle import WAIT_MS_MAX, WAIT_MS_MIN
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import direct_page, slow_page
from duewheel.rules.wheel.queue_messages import DirectMessage, Lane, PageMessage, decode
from duewheel.stores.wheel import pointers
from tests.support.bounds import quick_first
from tests.support.receiver import OK, Received
from tests.support.recorder import Call, Death
from tests.support.world import FAR_MS, LAMBDA_MS, World


def slow_and_quick(
    world: World, number: int = 2, in_ms: int = FAR_MS, slow_for_ms: int = 86_400_000
) -> tuple[list[Task], ...]:
    """`number` tasks of each kind in one second."""
    world.found_slow("slow", slow_for_ms)
    slow = [world.created(in_ms=in_ms, biz_type="slow") for _ in range(number)]
    quick = [world.created(in_ms=in_ms, biz_type="quick") for _ in range(number)]
    return slow, quick


def ids(tasks: list[Task]) -> Counter[str]:
    return Counter(task.task_id for task in tasks)


def called(world: World) -> Counter[str]:
    return Counter(world.receiver.task_ids)


def audited(world: World, task: Task) -> list[Any]:
    second = task.due_ms // 1000
    return world.audit(AuditRequest(second - 10, second + 1_000)).findings


def test_a_page_passes_slow_tasks_on_before_it_waits_and_calls_the_others(world: World) -> None:
    slow, quick = slow_and_quick(world)
    message = world.dispatched(slow[0])
    passed_at: list[int] = []

    def note(call: Call) -> None:
        if call.operation == "SendMessageBatch" and "0s" in str(call.request):
            passed_at.append(world.clock.now_ms())

    world.recorder.before = note
    world.handle(message)
    assert called(world) == ids(quick)
    assert passed_at == [slow[0].due_ms // 1000 * 1000], "no later than the read of the page"

    (passed,) = world.receive(Lane.SLOW)
    assert decode(passed["Body"]) == PageMessage(
        slow[0].home.second, 0, page="0s", places=tuple(sorted(task.home.place for task in slow))
    )
    world.handle(passed)
    assert called(world) == ids(slow) + ids(quick)
    assert {world.read(task).status for task in slow + quick} == {Status.DELIVERED}


def test_a_business_that_is_not_slow_is_not_passed_on(world: World) -> None:
    world.found_slow("orders", FAR_MS - 1)
    tasks = [world.created(in_ms=FAR_MS, biz_type=biz_type) for biz_type in ("orders", "invoices")]
    world.handle(world.dispatched(tasks[0]))
    assert called(world) == ids(tasks)
    assert world.receive(Lane.SLOW) == []


def test_the_slow_lane_takes_three_requests_and_a_message_more_up_to_the_call(world: World) -> None:
    """This is the greatest delay of a slow business while the lane has a free notifier; the lead
    covers it."""
    found: dict[Lane, Counter[str]] = {}
    for lane in (Lane.MAIN, Lane.SLOW):
        if lane is Lane.SLOW:
            world.found_slow("orders")
        world.clock.advance_ms(60_000)
        task = world.created(in_ms=FAR_MS + 400)
        message = world.dispatched(task)
        world.recorder.clear()
        before: list[list[str]] = []
        world.receiver.answer = lambda _, to=before: to.append(world.recorder.operations()) or OK
        world.handle(message)
        if lane is Lane.SLOW:
            world.handle(world.receive(Lane.SLOW)[0])
        (operations,) = before
        found[lane] = Counter(operations)
        assert world.receiver.received[-1].at_ms == task.due_ms
    by_poller_and_first_run = Counter(
        ReceiveMessage=1, ChangeMessageVisibilityBatch=1, DeleteMessage=1, UpdateItem=1
    )
    assert found[Lane.SLOW] - found[Lane.MAIN] - by_poller_and_first_run == Counter(
        UpdateItem=2,  # the slow page is recorded, and its lease is taken
        BatchGetItem=1,
        SendMessageBatch=1,
    )


def test_a_slow_page_is_called_in_the_slow_lane_although_its_business_is_not_slow_any_more(
    world: World,
) -> None:
    slow, _ = slow_and_quick(world, slow_for_ms=FAR_MS + 5_000)
    world.handle(world.dispatched(slow[0]))
    world.clock.advance_ms(10_000)
    (passed,) = world.receive(Lane.SLOW)
    world.handle(passed)
    assert ids(slow) <= called(world)
    assert world.receive(Lane.SLOW) == []


def test_only_tasks_that_would_be_called_are_passed_on(world: World) -> None:
    """A cancelled task is dropped and a task that is due later gets its entry there, without delay
    to the page."""
    slow, _ = slow_and_quick(world, number=3)
    world.cancel(slow[0].task_id)
    later_ms = slow[1].due_ms + 600_000
    moved = replace(slow[1], due_ms=later_ms, next_ms=later_ms, version=slow[1].version + 1)
    assert world.tasks.change(slow[1], moved)
    world.handle(world.dispatched(slow[0]))
    (passed,) = world.receive(Lane.SLOW)
    message = decode(passed["Body"])
    assert isinstance(message, PageMessage)
    assert message.places == (slow[2].home.place,)
    assert world.read(slow[1]).entry.instant_ms == later_ms


@pytest.mark.parametrize(
    ("moment", "operation", "mark"),
    quick_first(
        [
            ("after", "UpdateItem", "#slow = :value"),  # recorded, and not sent
            ("before", "UpdateItem", "#slow = :value"),  # not recorded
            ("after", "SendMessageBatch", '"0s"'),  # sent, before the page is called
            ("before", "UpdateItem", "#done = :value"),  # called, before the page is finished
        ],
        pytest.mark.exhaustive,
    ),
)
def test_all_tasks_are_called_wherever_the_passing_page_dies(
    world: World, moment: str, operation: str, mark: str
) -> None:
    slow, quick = slow_and_quick(world)
    message = world.dispatched(slow[0])
    world.recorder.die(operation, moment, of=mark)
    with pytest.raises(Death):
        world.handle(message)
    world.drain()
    world.clock.advance_ms(world.settings.page_lease_ms + 16_000)
    world.drain()
    assert called(world) == ids(slow) + ids(quick), "called once: the calls had not begun"
    assert audited(world, slow[0]) == []


def test_a_second_run_of_a_page_passes_on_the_same_slow_page(world: World) -> None:
    """Also when the business is not slow any more: the slow page may be in work already."""
    slow, quick = slow_and_quick(world, slow_for_ms=FAR_MS + 5_000)
    message = world.dispatched(slow[0])
    world.recorder.die("SendMessageBatch", "after", of='"0s"')
    with pytest.raises(Death):
        world.handle(message)
    world.found_slow("quick")
    world.clock.advance_ms(world.settings.page_lease_ms + 16_000)
    world.drain(Lane.MAIN)
    assert called(world) == ids(quick)
    world.drain()
    assert called(world) == ids(slow) + ids(quick)


def test_a_death_in_the_slow_lane_before_settling_repeats_only_its_own_calls(world: World) -> None:
    slow, quick = slow_and_quick(world)
    world.handle(world.dispatched(slow[0]))
    (passed,) = world.receive(Lane.SLOW)
    world.recorder.die("BatchWriteItem", "before", of="delivered")
    with pytest.raises(Death):
        world.handle(passed)
    world.clock.advance_ms(world.settings.page_lease_ms + 16_000)
    world.drain()
    assert called(world) == ids(slow) + ids(slow) + ids(quick)
    assert {world.read(task).status for task in slow} == {Status.DELIVERED}


def throttled_after_calls(world: World) -> list[str]:
    """Nothing of the tables in the list is written once a call is answered."""
    tables = [world.settings.wheel_table]
    write_batch = world.dynamodb.batch_write_item

    def batch_write_item(RequestItems: dict[str, Any]) -> Any:
        left = {name: some for name, some in RequestItems.items() if name in tables}
        return {"UnprocessedItems": left} if left else write_batch(RequestItems=RequestItems)

    def answer(_: Received) -> Any:
        if tables:
            code = "ProvisionedThroughputExceededException"
            world.recorder.refuse("UpdateItem", "PutItem", code=code, of=tables[0])
        return OK

    world.dynamodb.batch_write_item = batch_write_item
    world.receiver.answer = answer
    return tables


def test_a_page_that_is_begun_again_with_records_passes_its_slow_tasks_on_once(
    world: World,
) -> None:
    """A second message of the slow page may precede the one that has the records of its calls."""
    slow, quick = slow_and_quick(world)
    message = world.dispatched(slow[0])
    tables = throttled_after_calls(world)
    world.handle(message)
    world.recorder.before = lambda _: None
    (passed,) = world.receive(Lane.SLOW)
    world.handle(passed)
    assert called(world) == ids(slow) + ids(quick)

    tables.clear()
    world.recorder.before = lambda _: None
    world.clock.advance_ms(LEASE_MS + 2_000)
    (again,) = world.receive()
    world.handle(again)
    (passed_again,) = world.receive(Lane.SLOW)
    world.handle(passed_again)
    assert called(world) == ids(slow) + ids(quick)
    assert {world.read(task).status for task in slow + quick} == {Status.DELIVERED}


def test_a_slow_page_that_runs_out_of_time_passes_its_rest_on_within_its_lane(world: World) -> None:
    world.found_slow("slow")
    world.configured("slow", calls_in_flight=1)
    slow = [world.created(in_ms=FAR_MS, biz_type="slow") for _ in range(6)]
    world.handle(world.dispatched(slow[0]))
    (passed,) = world.receive(Lane.SLOW)

    def takes_its_time(_: Received) -> Any:
        world.clock.advance_ms(15_000)
        return OK

    world.receiver.answer = takes_its_time
    world.handle(passed, lambda_ms=LAMBDA_MS)
    begun = len(world.receiver.received)
    assert 0 < begun < len(slow)

    assert world.receive() == []
    (rest,) = world.receive(Lane.SLOW)
    message = decode(rest["Body"])
    assert isinstance(message, PageMessage)
    assert (message.page, len(message.places)) == ("0sr", len(slow) - begun)
    world.receiver.answer = lambda received: OK
    world.handle(rest)
    assert called(world) == ids(slow)


# Direct entries


def test_direct_entries_are_passed_on_as_a_page_with_a_lease(world: World) -> None:
    """A message without a lease would be dropped when it is half a minute late."""
    slow, quick = slow_and_quick(world, number=1, in_ms=0)
    for message in world.receive():
        world.handle(message)
    assert called(world) == ids(quick)

    world.clock.advance_ms(40_000)
    (passed,) = world.receive(Lane.SLOW)
    message = decode(passed["Body"])
    assert isinstance(message, PageMessage)
    assert message.page == slow_page(direct_page([slow[0].home.name]))
    world.handle(passed)
    assert called(world) == ids(slow) + ids(quick)


def test_a_direct_message_that_comes_twice_is_passed_on_as_the_same_page(world: World) -> None:
    slow, _ = slow_and_quick(world, number=1, in_ms=0)
    for _ in range(2):
        world.queue.send([DirectMessage(slow[0].home.second, (slow[0].home.name,))])
    world.drain()
    assert called(world)[slow[0].task_id] == 1


@pytest.mark.parametrize("sent", quick_first([False, True], pytest.mark.exhaustive))
def test_a_run_of_a_direct_message_that_dies_after_recording_a_slow_page_loses_no_task(
    world: World, sent: bool
) -> None:
    slow, _ = slow_and_quick(world, number=1, in_ms=0)
    if sent:
        world.recorder.die("SendMessageBatch", "after", of='"places"')
    else:
        world.recorder.die("UpdateItem", "after", of="if_not_exists(#slow")
    with pytest.raises(Death):
        world.drain(Lane.MAIN)
    world.drain()
    world.sweep_past(slow[0].home.second)
    world.dispatch_until(world.clock.now_ms() // 1000 + WAIT_MS_MAX // 1000)
    world.drain()
    assert called(world)[slow[0].task_id] == 1
    assert audited(world, slow[0]) == []


# The sweep


@pytest.mark.exhaustive
def test_tasks_that_the_slow_lane_has_not_begun_are_rescheduled_and_the_sweep_moves_on(
    world: World,
) -> None:
    slow, quick = slow_and_quick(world)
    world.handle(world.dispatched(slow[0]))
    second = slow[0].home.second
    for _ in range(4):  # the slow lane has no notifier
        world.dispatch_until(world.clock.now_ms() // 1000 + 60)
        world.drain(Lane.MAIN)
        world.sweep_once()
    assert world.pointer(pointers.SWEEP).position > second
    found = [world.read(task) for task in slow]
    assert {task.attempts for task in found} == {0}
    now_ms = world.clock.now_ms()
    assert all(now_ms < task.next_ms <= now_ms + 2 * WAIT_MS_MIN + 60_000 for task in found)
    assert audited(world, slow[0]) == []

    (stale,) = world.receive(Lane.SLOW)
    world.handle(stale)
    assert called(world) == ids(quick), "its page was closed before the tasks were rescheduled"

    world.dispatch_until(max(task.next_ms for task in found) // 1000)
    world.drain()
    assert called(world) == ids(slow) + ids(quick)
    assert audited(world, slow[0]) == []


@pytest.mark.exhaustive
def test_a_rescheduled_task_of_the_slow_lane_can_be_cancelled(world: World) -> None:
    slow, _ = slow_and_quick(world, number=1)
    world.handle(world.dispatched(slow[0]))
    world.clock.advance_ms(125_000)
    assert world.sweep_second_once(slow[0].home.second)
    assert world.cancel(slow[0].task_id).status is Status.CANCELLED
    world.sweep_past(slow[0].home.second + 600)
    assert slow[0].task_id not in called(world)


def test_the_sweep_waits_for_a_page_that_the_slow_lane_begins_first(world: World) -> None:
    """A notifier takes the page between the sweep's read and its write."""
    slow, _ = slow_and_quick(world, number=1)
    world.handle(world.dispatched(slow[0]))
    world.clock.advance_ms(125_000)
    (passed,) = world.receive(Lane.SLOW)
    world.recorder.once("UpdateItem", lambda: world.handle(passed), of=":done")
    assert not world.sweep_second_once(slow[0].home.second)
    assert world.sweep_second_once(slow[0].home.second)
    assert called(world)[slow[0].task_id] == 1
    assert world.entries_elsewhere() == []


def test_the_sweep_reads_a_task_again_that_changed_after_its_read(world: World) -> None:
    slow, _ = slow_and_quick(world, number=1)
    world.handle(world.dispatched(slow[0]))
    world.clock.advance_ms(125_000)
    later_ms = world.clock.now_ms() + 600_000
    moved = replace(slow[0], due_ms=later_ms, next_ms=later_ms, version=slow[0].version + 1)
    world.recorder.once("UpdateItem", lambda: world.tasks.change(slow[0], moved), of=":done")
    assert not world.sweep_second_once(slow[0].home.second)
    assert world.read(slow[0]) == moved


@pytest.mark.exhaustive
def test_tasks_that_wait_in_the_slow_lane_behind_a_called_page_are_rescheduled(
    world: World,
) -> None:
    """Otherwise the sweep would wait there for as long as the lane has too much work."""
    world.found_slow("slow")
    tasks = [world.created(in_ms=FAR_MS + n * 1_000, biz_type="slow") for n in range(4)]
    world.dispatch_until(tasks[-1].due_ms // 1000)
    world.drain(Lane.MAIN)
    world.sweep_once()
    world.clock.advance_ms(119_000)
    held, *_ = world.receive(Lane.SLOW)
    world.receiver.answer = lambda received: sweep_during_the_call(world, received)

    def sweep_during_the_call(world: World, _: Received) -> Any:
        world.lead_once()
        world.clock.advance_ms(8_000)
        world.sweep_once()
        return OK

    world.handle(held)
    assert world.swept_second == tasks[0].home.second - 1
    assert [world.read(task).entry == task.home for task in tasks] == [True, False, False, False]

    world.sweep_once()
    assert world.swept_second >= tasks[-1].home.second
    assert audited(world, tasks[-1]) == []


def test_a_slow_page_that_was_just_passed_on_is_not_rescheduled(world: World) -> None:
    """After an outage, a page is begun minutes late."""
    slow, _ = slow_and_quick(world, number=1)
    message = world.dispatched(slow[0])
    world.clock.advance_ms(125_000)
    world.handle(message)
    assert not world.sweep_second_once(slow[0].home.second)
    world.drain()
    assert world.sweep_second_once(slow[0].home.second)
    assert called(world)[slow[0].task_id] == 1


def test_a_slow_page_that_was_begun_and_lost_is_sent_again_to_the_slow_queue(world: World) -> None:
    slow, _ = slow_and_quick(world, number=1)
    world.handle(world.dispatched(slow[0]))
    (passed,) = world.receive(Lane.SLOW)
    world.recorder.die("BatchWriteItem", "before", of="delivered")
    with pytest.raises(Death):
        world.handle(passed)
    world.sqs.purge_queue(QueueUrl=world.slow_queue.url)
    world.clock.advance_ms(125_000)
    assert not world.sweep_second_once(slow[0].home.second)
    assert world.receive() == []
    (again,) = world.receive(Lane.SLOW)
    world.handle(again)
    assert called(world)[slow[0].task_id] == 2
    assert world.sweep_second_once(slow[0].home.second)


def test_a_slow_page_whose_notifiers_keep_dying_is_taken_apart(world: World) -> None:
    slow, _ = slow_and_quick(world, number=3)
    world.handle(world.dispatched(slow[0]))
    world.receiver.received.clear()
    poison = slow[1].task_id

    def die(received: Received) -> Any:
        if received.task_id == poison:
            raise Death
        return OK

    world.receiver.answer = die
    (passed,) = world.receive(Lane.SLOW)
    for _ in range(TRIES_MAX):
        with pytest.raises(Death):
            world.handle(passed)
        world.clock.advance_ms(world.settings.page_lease_ms + 1)
    assert not world.sweep_second_once(slow[0].home.second)
    assert world.sweep_second_once(slow[0].home.second)
    world.drain(Lane.MAIN)
    messages = [decode(message["Body"]) for message in world.receive(Lane.SLOW)]
    alone = world.read(slow[1]).entry
    assert (
        PageMessage(
            alone.second, 0, page=slow_page(direct_page([alone.name])), places=(alone.place,)
        )
        in messages
    )
    assert {world.read(task).status for task in (slow[0], slow[2])} == {Status.DELIVERED}


# The second link


def test_slow_pages_take_the_second_link_while_the_slow_queue_refuses_messages(
    world: World,
) -> None:
    slow, quick = slow_and_quick(world)
    message = world.dispatched(slow[0])

    def refuse(call: Call) -> None:
        if call.request.get("QueueUrl") == world.slow_queue.url:
            raise world.sqs.exceptions.ClientError({"Error": {}}, call.operation)

    world.recorder.before = refuse
    world.handle(message)
    assert called(world) == ids(quick)
    world.drain_invocations()
    assert called(world) == ids(slow) + ids(quick)


def test_a_page_calls_its_other_tasks_when_both_links_refuse_its_slow_page(world: World) -> None:
    slow, quick = slow_and_quick(world)
    message = world.dispatched(slow[0])

    def refuse(call: Call) -> None:
        if call.operation in ("SendMessageBatch", "Invoke"):
            raise world.sqs.exceptions.ClientError({"Error": {}}, call.operation)

    world.recorder.before = refuse
    world.handle(message)
    assert called(world) == ids(quick)
    world.recorder.before = None
    world.sweep_past(slow[0].home.second)
    world.dispatch_until(world.clock.now_ms() // 1000 + WAIT_MS_MAX // 1000)
    world.drain()
    assert called(world) == ids(slow) + ids(quick)
