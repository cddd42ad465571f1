"""The table of the model's assumptions, each with its source."""

from collections.abc import Iterator

from bench import limits
from bench.cloud import assumed
from bench.cloud.assumed import Knobs, Latency
from bench.cloud.provisioned import SCALED_AFTER_MS, USE_AIMED_AT
from bench.limits import Limit
from duewheel.rules.wheel.timing import AHEAD_SECONDS, RUN_EVERY_SECONDS
from duewheel.workflows.retry_throttled import TRY_MS_MAX

_TEMPLATE = "template.yaml and settings.py, from which the rules take it"
_UPDATE = "assumed: about an UpdateItem by boto3; no processor of Lambda's was measured"
_DELIVERED = "assumed: 1.1 of that; `make bench-cpu` shows 0.54 to 0.68"


def table() -> Iterator[str]:
    yield "\nAssumptions:\n"
    yield "| what | value | from |"
    yield "| --- | --- | --- |"
    for what, value, source in (
        *_of_the_deployment(),
        *_of_aws(),
        *_of_provisioned_units(),
        *_latencies(),
        *_computing(),
    ):
        yield f"| {what} | {value} | {source} |"
    yield (
        "\nNot in the model: creation, but for its writes; limits and pauses of businesses, "
        "breakers, the slow lane; the passing on of calls that a run has no time for; the SDK's "
        "own retry quota; bursts beyond a second, but for those of provisioned units; splitting "
        "for heat; the indexes of deaths and of timers."
    )


def _of_the_deployment() -> Iterator[tuple[str, str, str]]:
    knobs = Knobs()
    yield "page, lead", f"{knobs.page_size} tasks, {knobs.lead_ms} ms", _TEMPLATE
    yield (
        "the message of a lone slice behind others comes before it is due by",
        f"{knobs.wake_ms} ms",
        "rules/wheel/timing.py",
    )
    yield (
        "a slice is expected to hold at most",
        f"{knobs.slice_entries} tasks",
        "rules/wheel/sharding.py",
    )
    yield (
        "the scheduler dispatches",
        f"every {RUN_EVERY_SECONDS} s, {AHEAD_SECONDS} s ahead, by tenths of a second",
        "rules/wheel/timing.py, workflows/wheel/dispatch.py",
    )
    yield "messages a run", f"up to {knobs.messages_per_run}, as many as wait", "template.yaml"
    sizes = f"{knobs.notifier_mb}, {knobs.scheduler_mb}, {knobs.sweeper_mb}"
    yield "memory in MB: notifier, scheduler, sweeper", sizes, "template.yaml"
    yield "leases, visibility, backoff, near entries, sweep's bound", "the rules run", "the service"


def _of_aws() -> Iterator[tuple[str, str, str]]:
    for what, limit in (
        ("a partition key takes", limits.PARTITION_WRITE_UNITS),
        ("and gives", limits.PARTITION_READ_UNITS),
        ("a table takes by default quota", limits.TABLE_WRITE_UNITS),
        ("and gives", limits.TABLE_READ_UNITS),
        ("a new table takes", limits.NEW_TABLE_WRITE_UNITS),
        ("unused provisioned units last", limits.BURST_SECONDS),
        ("their scaling begins after", limits.SCALING_MINUTES),
        ("pollers begin with", limits.POLLERS_AT_FIRST),
        ("and grow by", limits.POLLERS_A_MINUTE),
        ("up to", limits.POLLERS_MOST),
        ("a provisioned poller keeps", limits.PROVISIONED_INVOCATIONS_EACH),
        ("environments", limits.LAMBDA_CONCURRENCY),
        ("they grow by", limits.LAMBDA_ENVIRONMENTS_IN_10_S),
        ("a whole processor needs", limits.LAMBDA_VCPU_MB),
    ):
        yield what, _limit(limit), limit.source + ("" if limit.verified else " (not verified)")


def _of_provisioned_units() -> Iterator[tuple[str, str, str]]:
    yield "use that scaling aims at", f"{USE_AIMED_AT:.0%}", "template.yaml"
    yield (
        "scaled units are there",
        f"{SCALED_AFTER_MS / 60_000:.0f} minutes after these",
        "assumed; AWS says a few minutes for the alarm, and several for the table",
    )
    yield (
        "they are scaled to",
        f"the use of the last minute, by {USE_AIMED_AT:.0%}",
        "assumed; what is throttled is no use, so the units grow by 43 % at a time",
    )
    yield (
        "unused units, before",
        "those of five minutes under the load",
        "assumed: the unfavourable case",
    )
    yield (
        "a provisioned table has",
        "a partition for each 1,000 writes or 3,000 reads a second",
        "assumed: the unfavourable case, a table that never was on demand",
    )


def _latencies() -> Iterator[tuple[str, str, str]]:
    for what, latency in (
        ("a request to DynamoDB", assumed.REQUEST),
        ("a send to SQS, or an invocation", assumed.SEND),
        ("from the queue to the notifier", assumed.QUEUE),
        ("by asynchronous invocation", assumed.ASYNCHRONOUS),
        ("a cold start", assumed.COLD_START),
        ("a callback", assumed.CALLBACK),
    ):
        yield what, _latency(latency), latency.source
    yield "a delayed message appears", "when its delay ends", "assumed; delays are whole seconds"
    yield (
        "a throttled request is retried",
        f"{assumed.SDK_TRIES} times at once",
        "stores/aws_clients.py",
    )
    until = f"until {TRY_MS_MAX / 1000:.0f} s before the run ends"
    yield "and, of notifiers, after a pause", until, "workflows/retry_throttled.py, which runs"


def _computing() -> Iterator[tuple[str, str, str]]:
    whole = assumed.READ_CPU_MS + assumed.CALL_CPU_MS + assumed.SETTLE_CPU_MS
    parts = f"{assumed.READ_CPU_MS}, {assumed.CALL_CPU_MS}, {assumed.SETTLE_CPU_MS}"
    yield "processor time of one small request", f"{assumed.REQUEST_CPU_MS} ms", _UPDATE
    yield "of a delivered task", f"{whole:.2f} ms", _DELIVERED
    yield "of which reading, calling, settling", f"{parts} ms", "assumed"
    yield "of a task swept", f"{assumed.SWEEP_CPU_MS} ms", "assumed"
    yield "of a create, of one process of the api", f"{assumed.CREATE_MS} ms", "`make cost`"
    yield "what a second's worth of units is", "a bucket that refills all the time", "assumed"


def _limit(limit: Limit) -> str:
    return f"{limit.value:,.0f} {limit.unit}"


def _latency(latency: Latency) -> str:
    return f"p50 {latency.p50_ms:.0f} ms, p99 {latency.p99_ms:.0f} ms"
