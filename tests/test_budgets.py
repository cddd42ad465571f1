"""The budgets of a task's life, counted from real calls, not timed.

Per task from created to settled, items up to 1 KB, no key and no retry. The cost of an idle second
is counted separately.
"""

import json
from collections import Counter
from dataclasses import dataclass

import pytest

from duewheel.rules.access.grants import Access, Grant, Permit, Right
from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.callbacks.payload_encoding import AttemptName
from duewheel.rules.callbacks.types import HttpCallback, OnOutcome, Told
from duewheel.rules.ingest.message import IngestMessage
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.timers.planning import PLANNED_MAX
from duewheel.rules.timers.timer import Timer
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.timing import AHEAD_MS, AHEAD_SECONDS
from duewheel.stores.ingest.queue import IngestQueue
from duewheel.wiring.long_work import reported_work
from duewheel.workflows.ingest.ingest import Ingest, Ingested
from local.aws.patches.item_sizes import size_of
from tests.support.receiver import BUSY, OK, WORKS_ON
from tests.support.recorder import Call
from tests.support.timers import chain_of, fates, made, occurrences
from tests.support.units import Meter
from tests.support.world import FAR_MS, LAMBDA_MS, World


@dataclass(frozen=True)
class Budget:
    write_units: float
    read_units: float
    dynamodb_requests: float
    sqs_requests: float


ALONE = Budget(3.1, 3, 5, 4)
HUNDRED = Budget(2.1, 0.35, 0.2, 0.05)
THOUSAND = Budget(2.05, 0.3, 0.15, 0.04)

NEARLY_A_KILOBYTE = '{"order": "' + "x" * 380 + '"}'


def metered(world: World) -> Meter:
    meter = Meter(world.settings.wheel_table)
    world.recorder.after = meter
    return meter


def dispatch_second(world: World, second: int) -> None:
    """By a run that has just read AWS's time with the pointer's record; then its slice opens."""
    world.clock.set_ms(second * 1000 - AHEAD_MS)
    world.pointer()
    assert world.dispatch.tick(second - 1, AHEAD_MS) == second
    world.clock.set_ms(timing.opens_ms(second, world.settings.lead_ms))


def tasks_in_one_second(world: World, number: int) -> list[Task]:
    news = [world.new(in_ms=FAR_MS + n % 1000, payload=NEARLY_A_KILOBYTE) for n in range(number)]
    made = [
        task
        for start in range(0, number, 500)
        for task in world.created_many(news[start : start + 500])
    ]
    return [task for task in made if isinstance(task, Task)]


@pytest.mark.parametrize(
    ("number", "budget", "list_index"),
    [
        (1, ALONE, False),
        (1, ALONE, True),
        (100, HUNDRED, False),
        (100, HUNDRED, True),
        pytest.param(1_000, THOUSAND, False, marks=pytest.mark.exhaustive),
    ],
)
def test_a_task_stays_within_its_budget_of_requests_and_units(
    world: World, number: int, budget: Budget, list_index: bool
) -> None:
    world.wire(list_index=list_index)
    meter = metered(world)
    if number == 1:
        tasks = [world.created(FAR_MS, payload=NEARLY_A_KILOBYTE)]
    else:
        tasks = tasks_in_one_second(world, number)
    second = tasks[0].due_ms // 1000
    dispatch_second(world, second)
    world.drain()
    world.recorder.after = None

    settled = world.tasks.get_many(task.home for task in tasks).values()
    assert {task.status for task in settled} == {Status.DELIVERED}
    assert len(settled) == number
    per_task = Budget(
        meter.write_units / number,
        meter.read_units / number,
        meter.dynamodb_requests / number,
        meter.sqs_requests / number,
    )
    assert per_task.write_units <= budget.write_units + list_index
    assert per_task.read_units <= budget.read_units
    assert per_task.dynamodb_requests <= budget.dynamodb_requests
    assert per_task.sqs_requests <= budget.sqs_requests


def test_a_lone_task_stays_within_its_read_units_with_the_reads_of_its_business(
    world: World,
) -> None:
    """With cold caches, and so with one read in each of two functions: of the settings, and for the
    call of the health, too. Each record is half a unit, found or not."""
    meter, readings = metered(world), []

    def note(call: Call) -> None:
        meter(call)
        request = call.request.get("RequestItems", {}).get(world.settings.registry_table)
        if request is not None:
            readings.append((call.operation, len(request["Keys"]), request["ConsistentRead"]))

    world.recorder.after = note
    task = world.created(FAR_MS, payload=NEARLY_A_KILOBYTE)
    second = task.due_ms // 1000
    dispatch_second(world, second)
    world.drain()
    world.recorder.after = None

    assert world.read(task).status is Status.DELIVERED
    assert readings == [("BatchGetItem", 1, False), ("BatchGetItem", 2, False)]
    records = sum(number for _, number, _ in readings)
    assert meter.read_units + 0.5 * records <= ALONE.read_units


def test_a_delivered_task_with_half_a_kilobyte_of_content_stays_under_one_kilobyte(
    world: World,
) -> None:
    headers = (("authorization", "Bearer " + "x" * 40),)
    callback = HttpCallback(
        "https://receiver.example/a/path/of/some/length?with=a&query=too", "POST", headers
    )
    task = world.created(in_ms=0, callback=callback, payload='{"order": "' + "x" * 300 + '"}')
    world.drain()

    (item,) = [item for item in world.items() if "status" in item]
    assert world.read(task).status is Status.DELIVERED
    assert size_of(item) <= 1024


def test_the_index_keys_of_a_task_never_change(world: World) -> None:
    """Otherwise a settlement would cost two more units when the list index is on."""
    task = world.created(in_ms=0)
    before = [item for item in world.items() if "status" in item]
    world.drain()
    after = [item for item in world.items() if "status" in item]

    assert world.read(task).status is Status.DELIVERED
    for name in ("biz_part", "due_ms"):
        assert [item[name] for item in before] == [item[name] for item in after]


def test_no_request_is_made_between_due_instant_and_callback(world: World) -> None:
    task = world.created(in_ms=FAR_MS)
    dispatch_second(world, task.due_ms // 1000)
    (message,) = world.receive()
    world.recorder.clear()
    requests_before_call: list[int] = []
    moments: list[int] = []
    world.recorder.before = lambda call: moments.append(world.clock.now_ms())
    answer = world.receiver.answer

    def called(received):  # type: ignore[no-untyped-def]
        requests_before_call.append(len([m for m in moments if m >= task.due_ms]))
        return answer(received)

    world.receiver.answer = called
    world.handle(message)

    assert requests_before_call == [0]
    assert world.receiver.received[0].at_ms == task.due_ms


def test_an_empty_second_costs_half_a_read_unit_to_probe_and_half_to_sweep(world: World) -> None:
    meter = metered(world)
    second = world.clock.now_ms() // 1000 + AHEAD_SECONDS + 1
    dispatch_second(world, second)
    assert (meter.read_units, meter.write_units, meter.sqs_requests) == (0.5, 0, 0)

    assert world.sweep_second_once(second) is True
    assert (meter.read_units, meter.write_units, meter.sqs_requests) == (1.0, 0, 0)
    assert meter.dynamodb_requests == 2


def test_the_sweep_reads_at_most_as_much_as_the_delivery(world: World) -> None:
    meter = metered(world)
    tasks = tasks_in_one_second(world, 100)
    world.dispatch_until(tasks[0].due_ms // 1000)
    world.drain()
    delivery = meter.read_units - 0.5 * meter.empty_probes
    before = meter.read_units
    world.clock.advance_ms(world.settings.sweep_delay_seconds * 1000)
    assert world.sweep_second_once(tasks[0].due_ms // 1000) is True

    assert meter.read_units - before <= delivery


def test_a_retry_that_shares_a_page_costs_four_more_write_units(world: World) -> None:
    world.wire(list_index=False)
    meter = metered(world)
    tasks = tasks_in_one_second(world, 50)
    world.receiver.answer = lambda r: OK if r.headers["duewheel-attempt"] == "2" else BUSY
    world.dispatch_until(tasks[0].due_ms // 1000)
    world.drain()
    for _ in range(3):
        world.dispatch_until(world.clock.now_ms() // 1000 + 30)
        world.drain()
    for entry in world.entries_elsewhere():
        assert world.sweep_second_once(entry.second) is True  # it deletes the entries

    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}
    assert meter.write_units / len(tasks) <= HUNDRED.write_units + 4


@pytest.mark.exhaustive
def test_statistics_cost_writes_by_the_minute_and_the_forecast_by_the_batch(world: World) -> None:
    """In the Registry, besides the budget of a task: never one write for each task."""
    writes: list[str] = []

    def note(call: Call) -> None:
        key = call.request.get("Item") or call.request.get("Key") or {}
        if call.operation in ("PutItem", "UpdateItem") and "kind" in key:
            writes.append(key["kind"]["S"].partition("#")[0])

    world.recorder.after = note
    tasks = tasks_in_one_second(world, 1_000)
    world.created(in_ms=FAR_MS)
    second = tasks[0].due_ms // 1000
    dispatch_second(world, second)
    world.drain()
    world.clock.advance_ms(world.settings.sweep_delay_seconds * 1000)
    assert world.sweep_second_once(second) is True

    # `seen` once a day and process: that this business had tasks.
    assert Counter(writes) == {"load": 2, "statistics": 1, "seen": 1}


def test_a_near_task_costs_one_queue_message(world: World) -> None:
    world.wire(list_index=False)
    meter = metered(world)
    world.created(in_ms=0)
    world.drain()

    assert meter.requests["SendMessageBatch"] == 1
    assert meter.requests["DeleteMessage"] == 1
    assert meter.write_units == 2


def test_a_key_costs_two_more_write_units(world: World) -> None:
    world.wire(list_index=False)
    meter = metered(world)
    world.created_by_key(world.new(FAR_MS, key="order-17", digest="d", payload=NEARLY_A_KILOBYTE))
    second = (world.clock.now_ms() + FAR_MS) // 1000
    dispatch_second(world, second)
    world.drain()

    assert world.keyed.read("orders", "order-17").status is Status.DELIVERED
    assert meter.write_units <= ALONE.write_units + 2


def test_a_told_outcome_costs_three_write_units_a_message_and_the_life_of_its_notice(
    world: World,
) -> None:
    def units_of(on_outcome: OnOutcome | None) -> tuple[float, int]:
        meter = metered(world)
        world.created(in_ms=0, on_outcome=on_outcome)
        world.drain()
        world.recorder.after = None
        return meter.write_units, meter.requests["SendMessageBatch"]

    world.wire(list_index=False)
    units, messages = units_of(None)
    told = OnOutcome((Told.DELIVERED,), HttpCallback("https://receiver.example/told"))
    # The end and the notice are a transaction, and the notice is settled as any task.
    assert units_of(told) == (units + 1 + 2 + 1, messages + 1)
    assert len(world.receiver.received) == 3


@pytest.mark.parametrize("list_index", [False, True])
def test_a_beat_costs_one_write_unit_and_three_with_the_index(
    world: World, list_index: bool
) -> None:
    world.wire(list_index=list_index)
    world.keyed.upsert(world.new(in_ms=600_000, key="dog", digest="d"))
    before = [item for item in world.items() if "status" in item]
    meter = metered(world)
    world.clock.advance_ms(1_000)
    world.keyed.upsert(world.new(in_ms=600_000, key="dog", digest="d"))
    world.recorder.after = None
    after = [item for item in world.items() if "status" in item]

    assert meter.write_units == 1
    # The index deletes the entry at the old due instant and puts one at the new.
    moved_in_index = list_index and before[0]["due_ms"] != after[0]["due_ms"]
    assert meter.write_units + 2 * moved_in_index == (3 if list_index else 1)


def test_parking_a_page_costs_batches_and_an_update_each_and_its_release_four_units(
    world: World,
) -> None:
    world.wire(list_index=False)
    number = 50
    tasks = tasks_in_one_second(world, number)
    world.configured("orders", paused=True)
    second = tasks[0].due_ms // 1000
    dispatch_second(world, second)
    meter = metered(world)
    world.drain()
    assert all(world.read(task).parked for task in tasks)
    assert meter.requests["BatchWriteItem"] == number // 25
    assert meter.requests["UpdateItem"] <= number + 3  # for the page's lease, and its end
    assert meter.write_units <= 2 * number + 3

    world.clock.advance_ms(1_000)
    world.configured("orders", paused=None)
    meter = metered(world)
    world.drain()
    entries = world.entries_elsewhere()
    assert meter.requests["BatchWriteItem"] == 2 * (number // 25)
    world.recorder.after = None
    world.dispatch_until(entries[0].second + 1)
    world.drain()
    assert {world.read(task).status for task in tasks} == {Status.DELIVERED}
    world.recorder.after = meter
    for entry_second in {entry.second for entry in entries}:
        assert world.sweep_second_once(entry_second) is True
    assert meter.write_units / number <= 4


@pytest.mark.parametrize("every", [1, 60, 600])
def test_a_planned_run_costs_its_put_its_index_entry_and_a_small_part_of_a_step(
    world: World, every: int
) -> None:
    """Planned far enough ahead that no run has an entry of its own. A step writes its chain twice
    and puts the next entry."""
    world.wire(list_index=False)
    timer = made(world, every, payload=NEARLY_A_KILOBYTE)
    plan(world, timer)
    before = len(occurrences(world, timer))
    chain = chain_of(world, timer)
    assert chain is not None
    world.clock.set_ms(chain.next_ms)
    wheel, registry = Meter(world.settings.wheel_table), Meter(world.settings.registry_table)

    def bill(call: Call) -> None:
        wheel(call)
        registry(call)

    world.recorder.after = bill
    plan(world, timer)
    world.recorder.after = None
    runs = len(occurrences(world, timer)) - before
    assert runs >= min(PLANNED_MAX // 2, 3_600 // every)
    assert wheel.write_units == 2 * runs + 3
    assert registry.write_units <= 1, "the forecast of the load"


def plan(world: World, timer: Timer) -> None:
    chain = chain_of(world, timer)
    assert chain is not None
    assert chain.plan is not None
    deadline_ms = world.clock.now_ms() + LAMBDA_MS
    world.deliver.deliver_entries.plan_timers([(chain, chain.plan)], deadline_ms)


def test_an_occurrence_costs_its_put_its_index_entry_and_a_share_of_its_page(world: World) -> None:
    """Planned, called and settled: it costs no more than any other task, except for its index
    entry."""
    world.wire(list_index=False)
    number = 20
    timers = [made(world, 60, payload=NEARLY_A_KILOBYTE, max_runs=1) for _ in range(number)]
    meter = metered(world)
    planning = Counter[str]()
    world.drain()
    planning.update(meter.requests)
    chains_alone = number * 3  # records the places, puts its next entry, names it
    assert planning["PutItem"] == number + number
    assert planning["UpdateItem"] == 2 * number
    per_occurrence = (meter.write_units - chains_alone) / number
    assert per_occurrence <= 2

    second = occurrences(world, timers[0])[0].due_ms // 1000
    counted: list[str] = []

    def note(call: Call) -> None:
        meter(call)
        if call.request.get("TableName") == world.settings.registry_table and "ADD" in str(
            call.request.get("UpdateExpression")
        ):
            counted.append(call.request["Key"]["record"]["S"])

    before = meter.write_units
    world.recorder.after = note
    dispatch_second(world, second)
    world.drain()
    world.recorder.after = None
    assert [fates(world, timer) for timer in timers] == [{"delivered": 1}] * number
    chains_ended = number  # in the second behind it
    assert (meter.write_units - before - chains_ended) / number <= 1.2
    assert counted == ["counters"] * number


def ingested(world: World, tasks: int, message_id: str = "m-1") -> tuple[Ingested, Budget]:
    """The result of the ingest function for one message, and its requests."""
    one = {
        "biz_type": "orders",
        "delay_seconds": 60,
        "payload": json.loads(NEARLY_A_KILOBYTE),
        "callback": {"url": "https://receiver.example/"},
    }
    body = json.dumps(one if tasks == 1 else {"tasks": [one] * tasks})
    now_ms = world.clock.now_ms()
    ingest = Ingest(
        clock=world.clock,
        create_idempotent=world.create_idempotent,
        queue=IngestQueue(
            world.sqs, world.settings.slice_queue_url, world.settings.slice_queue_url
        ),
        permit=Permit(Access("ingest", (Grant(Right.WRITE, "*"),)), Right.WRITE),
        allowed=world.settings.allowed_targets,
        random_unit=lambda: 0.5,
    )
    meters = [Meter(world.settings.wheel_table), Meter(world.settings.registry_table)]

    def bill(call: Call) -> None:
        for meter in meters:
            meter(call)

    world.recorder.after = bill
    came = ingest(
        IngestMessage(
            message_id=message_id,
            receipt_handle="handle",
            body=body,
            sender="me",
            sent_ms=now_ms,
            first_received_ms=now_ms,
            receives=1,
            attributes={},
        ),
        "run",
    )
    world.recorder.after = None
    return came, Budget(
        sum(meter.write_units for meter in meters),
        sum(meter.read_units for meter in meters),
        sum(meter.dynamodb_requests for meter in meters),
        meters[0].sqs_requests,
    )


@pytest.mark.parametrize(("tasks", "requests"), [(1, 1), (100, 4)])
def test_a_message_costs_two_writes_besides_its_tasks_and_no_request_of_sqs(
    world: World, tasks: int, requests: int
) -> None:
    """Lambda's poller receives and deletes the message."""
    world.wire(list_index=False)
    ingested(world, 1, "m-0")  # reads the business and the wheel into the caches
    came, cost = ingested(world, tasks)
    assert len(came.task_ids) == tasks
    by_forecast = 1 if tasks > 1 else 0  # always for a batch, by chance for a single task
    assert cost.write_units == tasks + 2 + by_forecast
    assert cost.dynamodb_requests == requests + 2 + by_forecast
    assert cost.sqs_requests == 0


WRITES = {"PutItem", "UpdateItem", "BatchWriteItem", "TransactWriteItems", "DeleteItem"}


@pytest.mark.parametrize(("tasks", "by_forecast"), [(1, 0), (100, 1)])
def test_a_repeated_message_costs_one_write(world: World, tasks: int, by_forecast: int) -> None:
    """The write is refused, since the record exists, which shows the created tasks. A batch is
    counted in the forecast again."""
    first, _ = ingested(world, tasks)
    world.recorder.clear()
    again, _ = ingested(world, tasks)
    assert again.task_ids == first.task_ids
    assert world.recorder.operations() == ["UpdateItem"] * by_forecast + ["PutItem"]


def test_a_message_that_a_limit_delays_costs_three_writes_and_then_four_for_each_try(
    world: World,
) -> None:
    """Its record before and after, the state of the limit, and for a repeat the refused claim."""
    world.configured("orders", creates_per_second=1)
    ingested(world, 1, "m-0")
    writes = []
    for _ in range(3):
        world.recorder.clear()
        came, _ = ingested(world, 1)
        assert came.is_left
        writes.append(sum(name in WRITES for name in world.recorder.operations()))
    assert writes == [3, 4, 4]


@pytest.mark.parametrize(("outcome", "writes"), [(OK, 1), (WORKS_ON, 4)])
def test_work_that_goes_on_after_its_call_costs_three_writes_more_than_an_answer(
    world: World, outcome: Outcome, writes: int
) -> None:
    """An entry at the deadline and one at the end, and two updates in place of a put. The sweep
    deletes the two entries. Who answers otherwise pays nothing."""
    world.receiver.answer = lambda received: outcome
    task = world.created(FAR_MS)
    world.dispatch_until(task.due_ms // 1000)
    (message,) = world.receive()
    world.recorder.clear()
    world.handle(message)
    if outcome is WORKS_ON:
        reported_work().complete(task.home, AttemptName(0, 1), "done")
    of_the_wheel = [
        call
        for call in world.recorder.calls
        if call.operation in WRITES and "~" not in str(call.request)  # no lease
    ]
    in_wheel = [call for call in of_the_wheel if world.settings.wheel_table in str(call.request)]
    assert len(in_wheel) == writes
    assert world.read(task).status is Status.DELIVERED
