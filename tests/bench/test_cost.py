"""The figures of `make cost` that are promised, and its arithmetic by an example."""

import pytest

from bench import capacity
from bench.cost import create_cost
from bench.cost.bill import DENSITIES, IDLE, MONTH_SECONDS, CostModel, Load, price
from bench.cost.competitors import competitors
from bench.cost.counted import (
    TASKS_PER_BATCH,
    TEMPLATE,
    TOLERANCE_SECONDS,
    Means,
    SharedSeconds,
    Units,
    count_delivery,
    shared_seconds,
)
from bench.cost.log_cost import change_bytes
from duewheel.rules.wheel.sharding import SAMPLED_ONE_IN
from local.aws.template import load_template

INGEST_PAGE = TEMPLATE.parent / "docs" / "ingest.md"


@pytest.fixture(scope="module")
def model() -> CostModel:
    return CostModel()


@pytest.mark.soak
def test_an_idle_month_stays_within_two_dollars(model: CostModel) -> None:
    assert 0 < model.bill(IDLE).at_work <= 2


@pytest.mark.soak
def test_a_lone_task_is_billed_by_its_units_and_the_wait_of_its_notifier(model: CostModel) -> None:
    load = Load(per_second=1, list_index=False)
    created = model.creation(load)
    delivered = model.delivery(load)
    bill, idle = model.bill(load), model.bill(IDLE)

    assert created.write == pytest.approx(1 + 1 / SAMPLED_ONE_IN)
    assert (delivered.write, delivered.pages) == (2, 1)  # its lease, and its end
    # A quarter of a second to wake it, and as much again once a minute; half a tenth of a second
    # too early; a callback of 100 ms; 25 ms to settle.
    billed_ms = 250 + 250 / 60 + 50 + 100 + 25
    assert model.notifier_ms(load) == pytest.approx(billed_ms)
    gb_seconds = billed_ms / 1000 * 0.5 * MONTH_SECONDS
    assert bill.notifier == pytest.approx(
        gb_seconds * 13.33 / 1e6 + MONTH_SECONDS * 0.2 / 1e6, rel=1e-6
    )
    # A second more in each minute, for the phases of its messages.
    gb_seconds = MONTH_SECONDS / 60 / 8
    assert bill.scheduler - idle.scheduler == pytest.approx(gb_seconds * 13.33 / 1e6)


@pytest.mark.soak
def test_a_page_known_a_minute_before_is_sent_by_its_writer_and_not_by_the_scheduler(
    model: CostModel,
) -> None:
    known, announced = Load(per_second=1), Load(per_second=1, is_announced=True)
    assert model.announcement == Units(sqs_requests=1)
    by_scheduler, by_writer = model.delivery(known), model.delivery(announced)
    assert by_writer.plus(model.announcement, 1) == by_scheduler
    assert (model.processes(announced), model.repeats(announced)) == (1, 0)
    # With the lead, and half a second too early, in place of half a tenth.
    earlier_ms = 500 + 500 - (250 + 250 / 60 + 50)
    earlier = earlier_ms / 1000 * 0.5 * MONTH_SECONDS * 13.33 / 1e6
    # Each message is a request, where a scheduler sends six in one.
    requests = (1 - model.sends) * MONTH_SECONDS * 0.4 / 1e6
    difference = model.bill(announced).total - model.bill(known).total
    assert difference == pytest.approx(earlier + requests)


@pytest.mark.soak
def test_the_messages_of_a_minute_share_requests_by_tenths_of_a_second(model: CostModel) -> None:
    assert model.sends == pytest.approx(10 / 60)


@pytest.mark.soak
def test_tasks_of_a_minute_that_share_a_second_share_its_page(model: CostModel) -> None:
    lone, tolerant = Load(1), Load(1, tolerance=TOLERANCE_SECONDS)
    assert shared_seconds(1, TOLERANCE_SECONDS) == SharedSeconds(seconds=1, tasks=60)
    assert model.creation(tolerant) == model.creation(lone)
    page = count_delivery(Means.SINGLE, 60, tolerance=TOLERANCE_SECONDS)
    # Each task is settled; the lease of the page is taken, and marked as done.
    assert (page.write, page.pages) == (60 + 2, 1)
    # Sent, received, hidden for seconds, deleted.
    assert page.sqs_requests == model.delivery(lone).sqs_requests
    delivered = model.delivery(tolerant)
    assert (delivered.write, delivered.pages) == pytest.approx((62 / 60, 1 / 60))
    empty_second, _ = model.idle
    assert delivered.read == pytest.approx((page.read + 59 * empty_second.read) / 60)
    assert model.per_million(tolerant) < 5
    assert model.per_million(Load(1, Means.BATCH, tolerance=TOLERANCE_SECONDS)) < 3.2


def test_a_crowd_that_shares_seconds_is_spread_until_pages_are_full() -> None:
    shared = [shared_seconds(n, TOLERANCE_SECONDS) for n in DENSITIES]
    assert [one.seconds for one in shared] == [1, 6, 60, 60]
    assert [one.tasks for one in shared] == [60, 100, 100, 1_000]


@pytest.mark.soak
def test_a_repeated_message_of_a_page_meets_the_lease_and_then_its_end(model: CostModel) -> None:
    # Refused writes of the lease; received and hidden twice, hidden until the lease ends, deleted.
    repeat = model.repeat(Load(per_second=100))
    assert (repeat.write, repeat.read, repeat.sqs_requests) == (2, 0, 6)
    # A page without a mark is begun again, read, and marked.
    repeat = model.repeat(Load(per_second=1))
    assert (repeat.write, repeat.read, repeat.sqs_requests) == (3, 1, 6)


@pytest.mark.soak
def test_metrics_cost_what_is_stated(model: CostModel) -> None:
    """docs/observability.md and the template say so."""
    log_cost = model.log_cost
    dollars = [n * price("metric_month") for n in (log_cost.when_busy, log_cost.at_most)]
    assert dollars == pytest.approx([1.50, 6.30])
    assert model.bill(IDLE).metrics == 0
    assert model.bill(Load(1)).metrics == dollars[0]


def test_the_record_of_who_created_is_counted_as_it_is_written() -> None:
    one, hundred = change_bytes(1), change_bytes(TASKS_PER_BATCH)
    assert 200 < one < 320
    assert hundred - one == pytest.approx(99 * len('"AQG5dxdnQAAA0tduNy2QgXjEA4x3",'), abs=20)


def test_observability_costs_what_is_stated(model: CostModel) -> None:
    """docs/operations.md and the template say so."""
    assert model.observability == pytest.approx(5.20)


def test_a_create_is_billed_for_its_share_of_a_processor_and_its_waiting(model: CostModel) -> None:
    """2.1 ms of a whole processor, of which 512 MB have 512 / 1,769, and 8 ms."""
    assert model.api_ms(1) == pytest.approx(2.1 * 1_769 / 512 + 8)
    assert model.api_ms(100) == pytest.approx((2.1 + 100 * 0.19) * 1_769 / 512 + 8)


def test_a_provisioned_wheel_is_billed_by_the_hour_and_the_registry_by_the_request(
    model: CostModel,
) -> None:
    load = Load(10, is_provisioned=True)
    on_demand = model.bill(Load(10))
    writes, reads, targets = 32 + 15 + 2 + 2, 6 + 3 * 5, 8
    by_the_hour = 720 * (writes * 0.00065 + reads * 0.00013)
    assert model.least(load) == pytest.approx(by_the_hour + targets * 4 * 0.10)
    registry = model.bill(load).dynamodb - model.least(load)
    assert 0 < registry < 0.1 * on_demand.dynamodb
    assert model.bill(load).total - model.bill(load).dynamodb == pytest.approx(
        on_demand.total - on_demand.dynamodb
    )


def least_capacity_in_use(model: CostModel, per_second: int) -> None:
    load = Load(per_second, is_provisioned=True)
    for use in (model.wheel_use(load), model.list_use(load)):
        assert 0.65 < use <= 0.70, load
    assert 0.5 < model.read_use(load) <= 0.70, load


def test_a_load_uses_to_seventy_percent_what_the_template_provisions_for_it(
    model: CostModel,
) -> None:
    least_capacity_in_use(model, 10)


@pytest.mark.soak
def test_each_load_uses_to_seventy_percent_what_the_template_provisions_for_it(
    model: CostModel,
) -> None:
    for per_second in capacity.SIZES:
        least_capacity_in_use(model, per_second)


@pytest.mark.soak
def test_provisioned_capacity_costs_less_than_half_of_the_same_units_on_demand(
    model: CostModel,
) -> None:
    """docs/performance.md and the template say so."""
    for per_second in (100, 1_000):
        of_dynamodb = model.bill(Load(per_second)).dynamodb
        assert model.bill(Load(per_second, is_provisioned=True)).dynamodb < 0.52 * of_dynamodb
    ten = model.bill(Load(10, is_provisioned=True)).dynamodb
    assert ten < 0.6 * model.bill(Load(10)).dynamodb


@pytest.mark.soak
def test_the_list_index_is_stored_and_not_backed_up(model: CostModel) -> None:
    with_it, without = (
        model.bill(Load(1, list_index=listed)).storage_and_backups for listed in (True, False)
    )
    kept_bytes = model.delivery(Load(1)).listed_bytes * model.settings.retention_seconds
    assert with_it - without == pytest.approx(kept_bytes / 1e9 * price("dynamodb_storage_gb_month"))


def test_a_message_costs_what_its_page_says(model: CostModel) -> None:
    alone = {way.name: way for way in create_cost.ways(model, 1)}
    writes = {name: way.more.write for name, way in alone.items()}
    assert writes.pop("a call") == 0
    assert writes.pop("a call with `Idempotency-Key`") == 1
    assert {*writes.values()} == {2}, "of messages"
    page = INGEST_PAGE.read_text()
    for way in alone.values():
        assert f"${create_cost.per_million(model, way):.2f}" in page, way.name
    batch = {way.name: way for way in create_cost.ways(model, TASKS_PER_BATCH)}
    by_batch = batch[f"a message, {create_cost.MESSAGES_OF_A_RUN} a run"]
    assert f"${create_cost.per_million(model, by_batch) / TASKS_PER_BATCH:.2f}" in page
    idle = create_cost.idle_queue(model)
    assert f"{idle.polls:,.0f}" in page
    assert f"${idle.dollars:.2f}" in page


def test_the_ingest_function_has_the_memory_that_its_bill_counts(model: CostModel) -> None:
    template = load_template(TEMPLATE, {"IngestBusinesses": "*"})
    (function,) = [
        resource
        for resource in template.functions()
        if template.code_folders[resource.logical_id].name == "ingest"
    ]
    assert function.properties["MemorySize"] == model.memory_gb["api"] * 1024


def test_sqs_bills_a_message_by_the_64_kb_begun() -> None:
    assert create_cost.sqs_requests(500, together=1) == 3
    assert create_cost.sqs_requests(500, together=10) == pytest.approx(1.2)
    assert create_cost.sqs_requests(65_537, together=1) == 2 + 2 + 1


def test_units_add_up_and_scale() -> None:
    assert (Units(write=1, read=2) + Units(write=3)) / 2 == Units(write=2, read=1)
    assert Units(write=1).plus(Units(write=2, pages=1), 3) == Units(write=7, pages=3)


def test_a_schedule_with_a_function_costs_what_is_published() -> None:
    scheduler = competitors()[0]
    assert scheduler.per_million == pytest.approx(1.00 + 0.20 + 0.0125 * 13.33)
