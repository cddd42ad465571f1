"""From counted units to a month's bill: list prices, and assumed durations."""

import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bench import capacity, limits
from bench.cost.counted import (
    TASKS_PER_BATCH,
    Means,
    Units,
    count_announcement,
    count_creation,
    count_delivery,
    count_idle,
    count_repeat,
    count_sends,
    new_world,
    shared_seconds,
)
from bench.cost.log_cost import LogCost, change_bytes, count_log_cost
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.sharding import (
    LOOKED_AT_ONE_IN,
    SAMPLED_ONE_IN,
    SLICE_ENTRIES,
    shards_for,
)
from duewheel.wiring.process import CARRIED_MS
from duewheel.workflows.wheel.dispatch import PHASE_MS
from tests.support.alarms import alarms_of, observability, with_observability

DENSITIES = (1, 10, 100, 1_000)
PLAYED_MOST = 100  # tasks of one second that are counted with transactions
MONTH_SECONDS = 30 * 86_400
MONTH_MINUTES = MONTH_SECONDS / 60
LEASES_KEPT_SECONDS = 7 * 86_400

PRICES: dict[str, Any] = json.loads((Path(__file__).parent / "prices.json").read_text())


def price(name: str) -> float:
    return float(PRICES[name])


@dataclass(frozen=True)
class Assumptions:
    callback_ms: int = 100
    settle_ms: int = 50  # after the last callback of a page
    settle_lone_ms: int = 25  # and of a lone task, which waits for no others, and leaves no mark
    api_wait_ms: float = 8  # a request to DynamoDB, and Lambda's own part
    planning_ms_per_run: float = 3  # of a timer, in the notifier
    sweeper_ms_per_second: float = 20
    sweeper_cpu_ms_per_task: float = 0.2  # of a whole processor; the function has a share of one
    access_log_bytes: int = 450
    scheduler_log_bytes: int = 400  # a minute: two records
    short_run_seconds: float = 3  # of a scheduler, each minute
    phases_seconds: float = 1  # of a scheduler at work, to send each message in its phase
    early_ms: int = PHASE_MS // 2  # by which a message of a scheduler is early, on average
    announced_early_ms: int = 500  # and one of a writer, which is delayed by whole seconds
    repeat_ms: int = 20  # a run of the notifier that meets a lease, or a finished page
    businesses: int = 1  # that have tasks in a minute
    poll_seconds: int = 20  # a long poll
    delivered_cpu_ms: float = 0.77  # of a whole processor, as in the model of a run on AWS


# Of a whole processor, of which a function has a share: `make bench-cpu`, docs/performance.md.
CREATE_CPU_MS = 2.1
BATCHED_CREATE_CPU_MS = 0.19


@dataclass
class Bill:
    """US dollars a month."""

    dynamodb: float = 0
    storage_and_backups: float = 0
    sqs: float = 0
    scheduler: float = 0
    notifier: float = 0
    sweeper: float = 0
    api_function: float = 0
    http_api: float = 0
    logs: float = 0
    metrics: float = 0
    alarms: float = 0

    @property
    def total(self) -> float:
        return float(sum(asdict(self).values()))

    @property
    def at_work(self) -> float:
        """All functions, and their requests to other services."""
        return self.total - self.alarms


@dataclass(frozen=True)
class Load:
    """The number of tasks due in every second of the month; 0: the service is idle."""

    per_second: int = 0
    means: Means = Means.SINGLE
    list_index: bool = True
    is_announced: bool = False  # known a minute before: by its writers, not by the scheduler
    is_provisioned: bool = False  # the Wheel, for this load
    tolerance: int = 0  # in seconds

    @property
    def requests(self) -> float:
        """Requests to the API in a second."""
        if self.means is Means.TIMER:
            return 0
        return self.per_second / self.tasks_of_a_request

    @property
    def tasks_of_a_request(self) -> int:
        return TASKS_PER_BATCH if self.means is Means.BATCH else 1


IDLE = Load()


class CostModel:
    def __init__(self) -> None:
        self.assumed = Assumptions()
        self._counted: dict[object, Units] = {}
        with new_world() as (world, resources):
            self.settings = world.settings
            mappings = resources.template.of_type("AWS::Lambda::EventSourceMapping")
            self.queues = len(mappings)
            self.pollers = sum(
                pollers_of(resources.resolve(mapping.properties)) for mapping in mappings
            )
            self.alarms = len(resources.template.of_type("AWS::CloudWatch::Alarm"))
            self.memory_gb = {
                resources.template.code_folders[function.logical_id].name: int(
                    resources.resolve(function.properties)["MemorySize"]
                )
                / 1024
                for function in resources.template.functions()
            }
            self.watching = alarms_of(observability(with_observability()))

    @cached_property
    def idle(self) -> tuple[Units, Units]:
        return count_idle()

    @cached_property
    def announcement(self) -> Units:
        return count_announcement()

    def repeat(self, load: Load) -> Units:
        key = "repeated", load.per_second
        if key not in self._counted:
            self._counted[key] = count_repeat(load.per_second)
        return self._counted[key]

    @cached_property
    def sends(self) -> float:
        return count_sends()

    @cached_property
    def log_cost(self) -> LogCost:
        return count_log_cost()

    def creation(self, load: Load) -> Units:
        """Of one task. The forecast counts a single task with a probability, a batch always. A task
        that it does not count reads the header with a probability."""
        reaches = load.per_second if load.means is Means.BATCH else 1
        key = "created", load.means, reaches, load.list_index, load.tolerance
        if key not in self._counted:
            self._counted[key] = count_creation(
                load.means, reaches, list_index=load.list_index, tolerance=load.tolerance
            )
        by_chance = load.means in (Means.SINGLE, Means.KEYED)
        noted, looked = by_chance / SAMPLED_ONE_IN, 0.5 * by_chance / LOOKED_AT_ONE_IN
        return self._counted[key] + Units(write=noted, read=looked)

    def delivery(self, load: Load) -> Units:
        """Of all tasks of one second. Single tasks are delivered like batches. Transactions are
        slow on moto, so they are counted for fewer tasks and scaled."""
        if load.tolerance:
            return self._shared_delivery(load)
        means = Means.BATCH if load.means is Means.SINGLE else load.means
        number = load.per_second if means is Means.BATCH else min(load.per_second, PLAYED_MOST)
        key = "delivered", means, number, load.is_announced
        if key not in self._counted:
            self._counted[key] = count_delivery(means, number, announced=load.is_announced)
        return self._counted[key] / (number / load.per_second)

    def _shared_delivery(self, load: Load) -> Units:
        """A second's share of the seconds that the tasks of a minute share. The others are empty.
        What is crowded all the same is delivered like a batch of that second."""
        shared = shared_seconds(load.per_second, load.tolerance)
        tolerance = load.tolerance if shared.tasks <= SLICE_ENTRIES else 0
        key = "delivered", Means.SINGLE, shared.tasks, tolerance
        if key not in self._counted:
            means = Means.SINGLE if tolerance else Means.BATCH
            self._counted[key] = count_delivery(means, shared.tasks, tolerance=tolerance)
        share, (empty_second, _) = shared.seconds / load.tolerance, self.idle
        return (self._counted[key] / (1 / share)).plus(empty_second, 1 - share)

    def per_task(self, load: Load) -> Units:
        return self.creation(load) + self.delivery(load) / load.per_second

    def bill(self, load: Load) -> Bill:
        units, assumed = self._in_a_second(load), self.assumed
        polls = self.pollers / assumed.poll_seconds
        sweeping_ms = assumed.sweeper_ms_per_second + load.per_second * self.sweeper_ms_per_task
        return Bill(
            dynamodb=self._dynamodb(load, units),
            storage_and_backups=self._storage(units, load),
            sqs=_month("sqs_requests", units.sqs_requests + polls),
            scheduler=self._scheduler(load),
            notifier=self._notifier(load, units),
            sweeper=self._function("sweeper", 1 / 60, sweeping_ms / 1000),
            api_function=self._api(load),
            http_api=_month("http_api_requests", load.requests),
            logs=self._logs(load, units),
            metrics=self._metrics(load),
            alarms=self.alarms * price("alarm_month"),
        )

    def _dynamodb(self, load: Load, units: Units) -> float:
        if not load.is_provisioned:
            writes = _month("dynamodb_write_units", units.write)
            return writes + _month("dynamodb_read_units", units.read)
        registry = _month("dynamodb_write_units", units.registry_write) + _month(
            "dynamodb_read_units", units.registry_read
        )
        return registry + self.least(load)

    def wheel_use(self, load: Load) -> float:
        """Of the table's least writes, without its indexes."""
        bare = self._in_a_second(replace(load, list_index=False))
        least = capacity.least(load.per_second, list_index=load.list_index)
        return (bare.write - bare.registry_write) / least.table_writes

    def list_use(self, load: Load) -> float:
        """Of the list index's least writes."""
        listed, bare = (
            self._in_a_second(replace(load, list_index=is_on)).write for is_on in (True, False)
        )
        least = capacity.least(load.per_second, list_index=True)
        return (listed - bare) / least.index_writes["by_business"]

    def read_use(self, load: Load) -> float:
        """Of the table's least reads."""
        units = self._in_a_second(load)
        least = capacity.least(load.per_second, list_index=load.list_index)
        return (units.read - units.registry_read) / least.table_reads

    def least(self, load: Load) -> float:
        """A month of the least capacity for this load, whether it is used or not."""
        least = capacity.least(load.per_second, list_index=load.list_index)
        hours = MONTH_SECONDS / 3_600
        units = least.writes * price("dynamodb_write_unit_hour")
        units += least.reads * price("dynamodb_read_unit_hour")
        return hours * units + least.alarms * price("alarm_month")

    @property
    def sweeper_ms_per_task(self) -> float:
        return self.assumed.sweeper_cpu_ms_per_task / self._share("sweeper")

    def api_ms(self, tasks: int) -> float:
        """Of a request that creates so many."""
        cpu_ms = CREATE_CPU_MS + (tasks > 1) * tasks * BATCHED_CREATE_CPU_MS
        return self.assumed.api_wait_ms + cpu_ms / self._share("api")

    def _share(self, function: str) -> float:
        """Of a whole processor."""
        return min(1, self.memory_gb[function] * 1024 / limits.LAMBDA_VCPU_MB.value)

    def per_million(self, load: Load) -> float:
        """Without the cost of the idle month."""
        added = self.bill(load).total - self.bill(IDLE).total
        return added / (load.per_second * MONTH_SECONDS / 1e6)

    def _in_a_second(self, load: Load) -> Units:
        empty_second, pointers = self.idle
        if not load.per_second:
            return empty_second + pointers
        # A run of the sweep touches two minutes.
        sheets = 2 * self.assumed.businesses / 60
        books = Units(write=sheets, read=sheets, registry_write=sheets, registry_read=sheets)
        each_second = self.delivery(load) + pointers + books
        if load.is_announced:
            each_second = each_second.plus(self.announcement, self.processes(load))
            each_second = each_second.plus(self.repeat(load), self.repeats(load))
        elif shards_for(load.per_second) == 1:
            # A second was counted by itself; the messages of a minute share requests.
            each_second = each_second.plus(Units(sqs_requests=1), self.sends - 1)
        return each_second.plus(self.creation(load), load.per_second)

    def processes(self, load: Load) -> float:
        """Of the api, that create the tasks of one second."""
        at_once = 1 + load.requests * self.api_ms(load.tasks_of_a_request) / 1000
        return min(load.requests, at_once)

    def repeats(self, load: Load) -> float:
        """Messages of a second beyond one a page: each process announces what it has written."""
        return load.is_announced * max(0, self.processes(load) - 1)

    def notifier_ms(self, load: Load) -> float:
        """Billed for one page: the wait for the first task of its slice, from there to its own last
        task, its callback, and the writes afterwards. Instants are spread over the second, and
        pages follow each other. If there are several slices, all are read from the start of
        their second. Tasks that share a second by their tolerance begin together, at its first
        millisecond, and the processor takes one after the other."""
        pages = self.delivery(load).pages
        if load.tolerance:
            of_a_page = load.per_second / pages
            cpu_ms = of_a_page * self.assumed.delivered_cpu_ms / self._share("notifier")
            after_ms = self.assumed.callback_ms + self.assumed.settle_ms
            return self.settings.lead_ms + self.assumed.early_ms + cpu_ms + after_ms
        first, last = 1 / (load.per_second + 1), load.per_second / (load.per_second + 1)
        is_crowded = shards_for(load.per_second) > 1
        first *= not is_crowded
        waited = last * (pages + 1) / (2 * pages) - first
        assumed = self.assumed
        settle_ms = assumed.settle_lone_ms if load.per_second == 1 else assumed.settle_ms
        after_ms = assumed.callback_ms + settle_ms
        # The pages behind the first one are announced when that is read.
        announced_ms = assumed.announced_early_ms / pages
        early_ms = announced_ms if load.is_announced else assumed.early_ms
        is_led = is_crowded or load.is_announced
        return self.before_ms(is_led=is_led) + early_ms + 1_000 * waited + after_ms

    def before_ms(self, *, is_led: bool) -> float:
        """How long before its first task a message is to arrive. The first of a scheduler's run has
        the lead, too."""
        lead_ms = self.settings.lead_ms
        first_of_run = 1 / timing.RUN_EVERY_SECONDS
        return lead_ms if is_led else timing.WAKE_MS + (lead_ms - timing.WAKE_MS) * first_of_run

    def _scheduler(self, load: Load) -> float:
        """A run in each minute."""
        run_seconds = self.assumed.short_run_seconds
        run_seconds += bool(load.per_second) * self.assumed.phases_seconds
        return self._function("scheduler", 1 / 60, run_seconds / 60)

    def _notifier(self, load: Load, units: Units) -> float:
        """A run for each page: with idle pollers, Lambda puts one message into a batch. A repeated
        message has two."""
        busy_ms = units.pages * self.notifier_ms(load) if load.per_second else 0
        if load.means is Means.TIMER:
            busy_ms += load.per_second * self.assumed.planning_ms_per_run
        repeated = 2 * self.repeats(load)
        busy_ms += repeated * self.assumed.repeat_ms
        return self._function("notifier", units.pages + repeated, busy_ms / 1000)

    def _api(self, load: Load) -> float:
        busy_ms = load.requests * self.api_ms(load.tasks_of_a_request)
        return self._function("api", load.requests, busy_ms / 1000)

    def _storage(self, units: Units, load: Load) -> float:
        """Point-in-time recovery is billed by the table, without its global indexes."""
        retention_seconds = self.settings.retention_seconds
        table = units.task_bytes * retention_seconds + units.lease_bytes * LEASES_KEPT_SECONDS
        index = load.list_index * units.listed_bytes * retention_seconds
        stored = (table + index) * price("dynamodb_storage_gb_month")
        return (stored + table * price("dynamodb_backup_gb_month")) / 1e9

    def _logs(self, load: Load, units: Units) -> float:
        monthly = load.requests * MONTH_SECONDS * self.assumed.access_log_bytes
        monthly += MONTH_MINUTES * self.assumed.scheduler_log_bytes
        monthly += load.requests * MONTH_SECONDS * change_bytes(load.tasks_of_a_request)
        monthly += self._metric_bytes(load, units)
        return monthly / 1e9 * price("logs_gb")

    def _metric_bytes(self, load: Load, units: Units) -> float:
        """A line for each page, and one in ten seconds of each process of the api."""
        if not load.per_second:
            return 0
        processes = 1 + load.requests * self.api_ms(load.tasks_of_a_request) / 1000
        lines = min(load.requests, processes * 1000 / CARRIED_MS)
        of_a_page = self.log_cost.bytes_per_page(load.per_second / units.pages)
        bytes_a_second = lines * self.log_cost.bytes_of_creates + units.pages * of_a_page
        return bytes_a_second * MONTH_SECONDS

    @property
    def observability(self) -> float:
        """A month of the parts that are off by default. An alarm costs by the metrics that it
        reads."""
        looked_at = sum(len(alarm.watched) for alarm in self.watching)
        return looked_at * price("alarm_month") + price("dashboard_month")

    def _metrics(self, load: Load) -> float:
        """Without failures: a metric without values costs nothing."""
        return self.log_cost.when_busy * price("metric_month") if load.per_second else 0

    def _function(self, name: str, runs: float, seconds: float) -> float:
        """Runs, and their billed seconds, in a second of the month."""
        gb_seconds = seconds * self.memory_gb[name]
        return _month("lambda_requests", runs) + _month("lambda_arm_gb_seconds", gb_seconds)


def pollers_of(mapping: dict[str, Any]) -> float:
    """Of an idle queue: Lambda keeps fewer where nothing bounds their concurrency."""
    return (limits.POLLERS_AT_FIRST if mapping["ScalingConfig"] else limits.POLLERS_LEAST).value


def _month(name: str, in_a_second: float) -> float:
    return in_a_second * MONTH_SECONDS / 1e6 * price(f"{name}_million")
