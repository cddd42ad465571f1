"""The results of the cost model, as Markdown tables."""

from collections.abc import Iterable
from dataclasses import fields, replace

from bench import capacity
from bench.cost import create_cost
from bench.cost.bill import (
    BATCHED_CREATE_CPU_MS,
    CREATE_CPU_MS,
    DENSITIES,
    IDLE,
    MONTH_SECONDS,
    PRICES,
    Bill,
    CostModel,
    Load,
    price,
)
from bench.cost.competitors import competitors
from bench.cost.counted import (
    ANNOUNCED_MS,
    KNOWN_MS,
    PAYLOAD,
    TASKS_PER_BATCH,
    TOLERANCE_SECONDS,
    Means,
    shared_seconds,
)
from bench.cost.log_cost import change_bytes
from duewheel.rules.wheel import timing

PROVISIONED = [n for n in DENSITIES if n in capacity.SIZES]
BUSIEST = DENSITIES[-1]
AT_BEST = Load(BUSIEST, Means.BATCH, list_index=False)


def counted(model: CostModel) -> Iterable[str]:
    yield f"Counted, per task from created to swept ({len(PAYLOAD)} bytes of payload, no retry):\n"
    yield from _head("", *(f"{n:,} a second" for n in DENSITIES))
    for means in Means:
        for listed in (True, False):
            if means is Means.TIMER and not listed:
                continue
            loads = [Load(n, means, listed) for n in DENSITIES]
            title = f"write units, {means.value}" + ("" if listed else ", list index off")
            yield _row(title, *(f"{model.per_task(load).write:.2f}" for load in loads))
    for name, title in (
        ("read", "read units"),
        ("dynamodb_requests", "DynamoDB requests"),
        ("sqs_requests", "SQS requests"),
        ("pages", "pages"),
    ):
        loads = [Load(n) for n in DENSITIES]
        values = (getattr(model.per_task(load), name) for load in loads)
        yield _row(f"{title}, {Means.SINGLE.value}", *(f"{value:.3g}" for value in values))
    delivered = model.delivery(Load(100))
    yield (
        f"\nKept of each: {delivered.task_bytes / 100:.0f} bytes, and "
        f"{delivered.listed_bytes / 100:.0f} in the list index."
    )
    empty_second, pointers = model.idle
    yield (
        f"An empty second: {empty_second.read:.2f} read units in "
        f"{empty_second.dynamodb_requests:.0f} requests; pointers and leases, in any second: "
        f"{pointers.write:.2f} write and {pointers.read:.2f} read units."
    )


def per_million(model: CostModel) -> Iterable[str]:
    yield "\nUS dollars per million tasks, the idle month left out:\n"
    yield from _head("", *(f"{n:,} a second" for n in DENSITIES))
    for means in Means:
        for listed in (True, False):
            loads = [Load(n, means, listed) for n in DENSITIES]
            title = f"{means.value}, list index {'on' if listed else 'off'}"
            yield _row(title, *(f"{model.per_million(load):.2f}" for load in loads))
    for means in (Means.SINGLE, Means.BATCH):
        loads = [Load(n, means, tolerance=TOLERANCE_SECONDS) for n in DENSITIES]
        title = f"{means.value}, list index on, tolerance {TOLERANCE_SECONDS} s"
        yield _row(title, *(f"{model.per_million(load):.2f}" for load in loads))
    title = f"{Means.SINGLE.value}, list index on, known a minute before"
    yield _row(title, *(_announced(model, n) for n in DENSITIES))


def provisioned(model: CostModel) -> Iterable[str]:
    """Of loads for which the template has a size."""
    yield (
        "\nWith a number for `Capacity`, US dollars per million tasks of a load that never "
        "changes, the idle month left out; in brackets on demand:\n"
    )
    yield from _head("", *(f"{n:,} a second" for n in PROVISIONED))
    for means in (Means.SINGLE, Means.BATCH):
        for listed in (True, False):
            loads = [Load(n, means, listed, is_provisioned=True) for n in PROVISIONED]
            title = f"{means.value}, list index {'on' if listed else 'off'}"
            yield _row(title, *(_beside_demand(model, load) for load in loads))
    loads = [Load(n, is_provisioned=True) for n in PROVISIONED]
    for title, share in (
        ("the Wheel's least writes in use", model.wheel_use),
        ("those of the list index", model.list_use),
        ("the Wheel's least reads in use", model.read_use),
    ):
        yield _row(title, *(f"{share(load):.0%}" for load in loads))
    least = (f"{model.least(load):,.2f}" for load in loads)
    yield _row("a month of the least capacity, with or without tasks", *least)
    yield (
        "\nThe load is the number, so the least capacity is the bill. "
        "Deaths, tasks of timers, reads by callers and bursts use the rest of it, or AWS adds "
        "capacity, which is left out. The least capacity includes "
        f"{capacity.ALARMS_OF_A_POLICY} alarms of AWS's scaling for each kind of units of the "
        "table and of each index."
    )


def _beside_demand(model: CostModel, load: Load) -> str:
    on_demand = model.per_million(replace(load, is_provisioned=False))
    return f"{model.per_million(load):.2f} ({on_demand:.2f})"


def _announced(model: CostModel, per_second: int) -> str:
    """With the difference to a task that is known earlier."""
    announced = model.per_million(Load(per_second, is_announced=True))
    return f"{announced:.2f} ({announced - model.per_million(Load(per_second)):+.2f})"


def beside_others(model: CostModel) -> Iterable[str]:
    yield (
        "\nOthers, US dollars per million at any density, and the cost of Duewheel relative to "
        "them:\n"
    )
    dearest, cheapest = Load(1), AT_BEST
    yield from _head(
        "",
        "per million",
        "Duewheel, one task a second",
        f"Duewheel, {BUSIEST:,} a second in batches, no list index",
        "in it",
        "limits",
    )
    for competitor in competitors():
        beside = (model.per_million(load) / competitor.per_million for load in (dearest, cheapest))
        yield _row(
            competitor.name,
            f"{competitor.per_million:.2f}",
            *(f"{ratio:.2g} times" for ratio in beside),
            competitor.included,
            competitor.limits,
        )


def create_costs(model: CostModel) -> Iterable[str]:
    yield "\nThe cost of requests for tasks, without the tasks themselves:\n"
    yield from _head(
        "",
        "write units",
        "DynamoDB requests",
        "SQS requests",
        "runs",
        "ms",
        "US dollars per million of them",
        "per million tasks",
    )
    for way in (way for tasks in create_cost.SIZES for way in create_cost.ways(model, tasks)):
        dollars = create_cost.per_million(model, way)
        yield _row(
            f"{way.name}, {'one task' if way.tasks == 1 else f'{way.tasks} tasks'}",
            f"{way.more.write:g}",
            f"{way.more.dynamodb_requests:g}",
            f"{way.sqs_requests:g}",
            f"{way.runs:g}",
            f"{way.busy_ms:.0f}",
            f"{dollars:.2f}",
            f"{dollars / way.tasks:.3f}",
        )
    idle = create_cost.idle_queue(model)
    yield (
        f"\nWith `IngestBusinesses=*` an idle month costs {idle.dollars:.2f} dollars more: "
        f"{idle.polls:,.0f} polls, and {idle.alarms} alarm."
    )


def bills(model: CostModel) -> Iterable[str]:
    yield (
        f"\nUS dollars a month of 30 days, list prices of {PRICES['as_of']}, "
        f"{PRICES['region']}; created one by one, list index on, but for the last column:\n"
    )
    loads = [IDLE, *(Load(n) for n in DENSITIES), AT_BEST]
    named = [model.bill(load) for load in loads]
    best = f"{BUSIEST:,}/s in batches, no list index"
    yield from _head("", "idle", *(f"{n:,}/s" for n in DENSITIES), best)
    for field in fields(Bill):
        title = field.name.replace("_", " ")
        yield _row(title, *(f"{getattr(bill, field.name):,.2f}" for bill in named))
    yield _row("**total**", *(f"**{bill.total:,.2f}**" for bill in named))
    yield _row("of it without alarms", *(f"{bill.at_work:,.2f}" for bill in named))
    yield _row("tasks, millions", *(f"{n.per_second * MONTH_SECONDS / 1e6:,.0f}" for n in loads))


def assumptions(model: CostModel) -> Iterable[str]:
    assumed, memory, settings = model.assumed, model.memory_gb, model.settings
    log_cost = model.log_cost
    sizes = ", ".join(f"{name} {memory[name] * 1024:.0f}" for name in sorted(memory))
    billed = ", ".join(f"{model.notifier_ms(Load(n)) / 1000:.2f}" for n in DENSITIES)
    announced = [Load(n, is_announced=True) for n in DENSITIES]
    announcing = ", ".join(f"{model.processes(load):.3g}" for load in announced)
    repeat = model.repeat(Load(10))
    densities = ", ".join(f"{n:,}" for n in DENSITIES)
    sharing = ", ".join(str(shared_seconds(n, TOLERANCE_SECONDS).seconds) for n in DENSITIES)
    yield "\nAssumptions:\n"
    yield from _head("what", "value", "from")
    for row in (
        ("memory in MB", sizes, "template"),
        ("lead", f"{settings.lead_ms} ms", "template"),
        (
            "the message of a lone slice behind others is to arrive before it is due by",
            f"{timing.WAKE_MS} ms",
            "rules/wheel/timing.py",
        ),
        ("settled tasks are kept", f"{settings.retention_days} days", "template"),
        ("alarms", str(model.alarms), "template"),
        (
            "with `Observability=full`",
            f"{len(model.watching)} alarms more, and a dashboard: "
            f"{model.observability:.2f} dollars a month",
            "template",
        ),
        ("queues, one for each lane", str(model.queues), "template"),
        ("a callback takes", f"{assumed.callback_ms} ms", "assumed"),
        (
            "settling a page's last task takes",
            f"{assumed.settle_ms} ms, and a lone one {assumed.settle_lone_ms}",
            "assumed",
        ),
        (
            "due instants",
            f"evenly over their second, known {KNOWN_MS // 60_000} minutes before or earlier, so "
            "that the scheduler sends the messages of their pages",
            "assumed",
        ),
        (
            f"the messages of pages known {ANNOUNCED_MS // 60_000} minute before",
            f"{model.announcement.sqs_requests:.0f} a second of each process of the api that "
            f"creates for it: {announcing}, at {densities} a second",
            "counted; the processes computed",
        ),
        (
            "each but the first costs",
            f"at 10 a second {repeat.write:.0f} write units, {repeat.read:.1f} read units, "
            f"{repeat.sqs_requests:.0f} requests of SQS besides its own, and two runs of "
            f"{assumed.repeat_ms} ms",
            "counted; the time assumed",
        ),
        (
            "a message of the scheduler, where it sends one for each second, is",
            f"{model.sends:.2f} requests of SQS",
            "counted",
        ),
        (
            f"with a tolerance of {TOLERANCE_SECONDS} s the tasks of a minute share",
            f"{sharing} seconds, at {densities} a second, and all of a second are called at its "
            f"first millisecond: {assumed.delivered_cpu_ms} ms of a processor each",
            "computed, for one business; the processor's time assumed",
        ),
        ("runs of the notifier", "one for each page", "assumed"),
        (f"so one takes, at {densities} a second", f"{billed} s", "computed"),
        (
            "one create takes the api function",
            f"{model.api_ms(1):.0f} ms, a batch of {TASKS_PER_BATCH} {model.api_ms(100):.0f} ms",
            f"{CREATE_CPU_MS} ms of a processor, {BATCHED_CREATE_CPU_MS} a task of a batch, by "
            f"`make bench-cpu`, and {assumed.api_wait_ms} ms of waiting, assumed",
        ),
        ("point-in-time recovery", "of the table, not of its global indexes", "AWS documents it"),
        ("planning one run of a timer", f"{assumed.planning_ms_per_run} ms", "assumed"),
        (
            "the scheduler runs",
            f"{assumed.short_run_seconds} s a minute, and {assumed.phases_seconds} s at work",
            "assumed",
        ),
        (
            "its messages come too early",
            f"{assumed.early_ms} ms on average: sent by tenths of a second",
            "computed",
        ),
        (
            "those of writers",
            f"{assumed.announced_early_ms} ms on average: delayed by whole seconds",
            "computed",
        ),
        (
            "a second takes the sweeper",
            f"{assumed.sweeper_ms_per_second} ms, and {model.sweeper_ms_per_task:.2f} a task",
            "assumed",
        ),
        ("businesses with tasks in a minute", str(assumed.businesses), "assumed"),
        (
            "polls of all idle queues, without a bound of their notifiers",
            f"{model.pollers:.0f} long polls of {assumed.poll_seconds} s at a time",
            "as few as AWS documents",
        ),
        (
            "a poller that is provisioned, of which there is none by default",
            f"{price('lambda_sqs_poller_hour') * MONTH_SECONDS / 3_600:.2f} dollars a month",
            "list price",
        ),
        ("access log", f"{assumed.access_log_bytes} bytes a request", "assumed"),
        ("scheduler log", f"{assumed.scheduler_log_bytes} bytes a minute", "assumed"),
        (
            "metrics that come to be",
            f"none while idle, {log_cost.when_busy} at work, "
            f"{log_cost.at_most} when everything fails, at {price('metric_month'):.2f} dollars "
            "each",
            "counted",
        ),
        (
            "lines of metrics",
            f"{log_cost.bytes_of_creates} bytes in ten seconds of each process of the api, "
            f"{log_cost.bytes_per_page(1):.0f} a page and 3 for each more of its tasks",
            "counted",
        ),
        (
            "the record of who created",
            f"{change_bytes(1)} bytes a task, {change_bytes(TASKS_PER_BATCH):,} a batch of "
            f"{TASKS_PER_BATCH}",
            "counted",
        ),
    ):
        yield _row(*row)
    yield (
        "\nLeft out: cold starts, data transfer, KMS requests, retries, reads by callers, the "
        "storage of tasks not yet due, free tiers. The filters behind the alarms publish "
        "only what they find: on a healthy stack nothing."
    )


def _head(*cells: str) -> Iterable[str]:
    yield _row(*cells)
    yield _row(*["---"] * len(cells))


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
