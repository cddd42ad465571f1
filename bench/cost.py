"""What a deployment costs a month: units counted on moto, times the list prices in prices.json.

Counted are the calls of one second with so many tasks, created to swept, and of minutes in
which nothing is due; memory, lead and retention come from `template.yaml`. What cannot be
counted on one machine is assumed, and printed with the result.

    make cost
"""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from bench.counted import PAYLOAD, Units, count_idle, count_second, new_world
from duewheel.rules.load import SAMPLED_ONE_IN

HERE = Path(__file__).resolve().parent
DENSITIES = (1, 10, 100)
MONTH_SECONDS = 30 * 86_400
LEASES_KEPT_SECONDS = 7 * 86_400


@dataclass(frozen=True)
class Assumptions:
    tasks_per_batch: int = 100
    callback_ms: int = 100
    settle_ms: int = 50  # after the last callback of a page
    api_ms: int = 25  # one request that creates one task
    api_ms_per_batched_task: float = 0.6
    sweeper_ms_per_second: int = 20
    access_log_bytes: int = 450
    scheduler_log_bytes: int = 1_500  # a minute, leader and standby
    businesses: int = 1  # that have tasks in a minute
    pollers: int = 5  # what Lambda keeps at each queue, each with a long poll of 20 s


@dataclass
class Bill:
    """US dollars a month."""

    dynamodb: float = 0
    storage: float = 0
    sqs: float = 0
    scheduler: float = 0
    notifier: float = 0
    other_functions: float = 0
    http_api: float = 0
    logs: float = 0
    signing_key: float = 0

    @property
    def total(self) -> float:
        return float(sum(asdict(self).values()))


class Model:
    def __init__(self) -> None:
        self.prices: dict[str, Any] = json.loads((HERE / "prices.json").read_text())
        self.assumed = Assumptions()
        self.empty_second, self.pointers = count_idle()
        self.seconds = {tasks: count_second(tasks) for tasks in DENSITIES}
        self.unlisted = {tasks: count_second(tasks, list_index=False) for tasks in DENSITIES}
        with new_world() as (world, resources):
            self.settings = world.settings
            self.queues = len(resources.template.of_type("AWS::Lambda::EventSourceMapping"))
            self.memory_gb = {
                resources.template.code_folders[function.logical_id].name: int(
                    resources.resolve(function.properties)["MemorySize"]
                )
                / 1024
                for function in resources.template.of_type("AWS::Lambda::Function")
            }

    def bill(self, tasks: int, *, batched: bool = False, listed: bool = True) -> Bill:
        """The month in which every second has so many tasks; 0: none at all."""
        seconds = self.seconds if listed else self.unlisted
        units = seconds[tasks] if tasks else self.empty_second
        requests = tasks / (self.assumed.tasks_per_batch if batched else 1)
        minutes = MONTH_SECONDS / 60
        sweeper_seconds = 60 * self.assumed.sweeper_ms_per_second / 1000
        polls = MONTH_SECONDS / 20 * self.assumed.pollers * self.queues
        log_gb = (
            requests * MONTH_SECONDS * self.assumed.access_log_bytes
            + minutes * self.assumed.scheduler_log_bytes
        ) / 1e9
        return Bill(
            dynamodb=self._dynamodb(units)
            + self._dynamodb(self.pointers)
            + self._dynamodb(self._statistics(tasks, batched=batched)),
            storage=self._storage(units),
            sqs=self._million("sqs_requests", units.sqs_requests * MONTH_SECONDS + polls),
            scheduler=self._function("scheduler", minutes, 2 * MONTH_SECONDS),
            notifier=self._notifier(tasks),
            other_functions=self._function("sweeper", minutes, minutes * sweeper_seconds)
            + self._api(tasks, requests, batched=batched),
            http_api=self._million("http_api_requests", requests * MONTH_SECONDS),
            logs=log_gb * float(self.prices["logs_gb"]),
            signing_key=float(self.prices["kms_key_month"]),
        )

    def notifier_seconds(self, tasks: int) -> float:
        """Billed for one page: the lead, the wait for the last of its tasks, its callback, and
        what is written afterwards. The tasks' instants are spread over their second."""
        after_ms = self.assumed.callback_ms + self.assumed.settle_ms
        return (self.settings.lead_ms + after_ms) / 1000 + tasks / (tasks + 1)

    def _statistics(self, tasks: int, *, batched: bool) -> Units:
        """A run of the sweep touches two minutes; a create is noted in the forecast by chance,
        a batch always."""
        if tasks == 0:
            return Units()
        sheets = 2 * self.assumed.businesses / 60
        noted = tasks / (self.assumed.tasks_per_batch if batched else SAMPLED_ONE_IN)
        return Units(write=sheets + noted, read=sheets)

    def _notifier(self, tasks: int) -> float:
        if tasks == 0:
            return 0
        runs = MONTH_SECONDS
        return self._function("notifier", runs, runs * self.notifier_seconds(tasks))

    def _api(self, tasks: int, requests: float, *, batched: bool) -> float:
        busy_ms = requests * self.assumed.api_ms
        if batched:
            busy_ms += tasks * self.assumed.api_ms_per_batched_task
        return self._function("api", requests * MONTH_SECONDS, busy_ms / 1000 * MONTH_SECONDS)

    def _dynamodb(self, units: Units) -> float:
        return self._million("dynamodb_write_units", units.write * MONTH_SECONDS) + self._million(
            "dynamodb_read_units", units.read * MONTH_SECONDS
        )

    def _storage(self, units: Units) -> float:
        kept = units.stored_bytes * self.settings.retention_seconds
        kept += units.lease_bytes * LEASES_KEPT_SECONDS
        return kept / 1e9 * float(self.prices["dynamodb_storage_gb_month"])

    def _function(self, name: str, requests: float, seconds: float) -> float:
        gb_seconds = seconds * self.memory_gb[name]
        return self._million("lambda_requests", requests) + self._million(
            "lambda_arm_gb_seconds", gb_seconds
        )

    def _million(self, name: str, number: float) -> float:
        return number / 1e6 * float(self.prices[f"{name}_million"])


def print_counted(model: Model) -> None:
    print(f"Counted, per task from created to swept ({len(PAYLOAD)} bytes of payload, no retry):\n")
    _row("", *(f"{tasks} a second" for tasks in DENSITIES))
    _row(*["---"] * (1 + len(DENSITIES)))
    for name, title in (
        ("write", "write units, list index on"),
        ("read", "read units"),
        ("dynamodb_requests", "DynamoDB requests"),
        ("sqs_requests", "SQS requests"),
        ("stored_bytes", "bytes stored, index included"),
    ):
        per_task = (getattr(model.seconds[tasks], name) / tasks for tasks in DENSITIES)
        _row(title, *(f"{value:.2f}" if value < 100 else f"{value:.0f}" for value in per_task))
        if name == "write":
            unlisted = (model.unlisted[tasks].write / tasks for tasks in DENSITIES)
            _row("write units, list index off", *(f"{value:.2f}" for value in unlisted))
    empty, pointers = model.empty_second, model.pointers
    print(
        f"\nAn empty second: {empty.read:.2f} read units in {empty.dynamodb_requests:.0f} "
        f"requests. Pointers and leases, in any second: {pointers.write:.2f} write and "
        f"{pointers.read:.2f} read units.\n"
    )


def print_bills(model: Model) -> None:
    prices = model.prices
    print(f"US dollars a month of 30 days, list prices of {prices['as_of']}, {prices['region']}:\n")
    most = DENSITIES[-1]
    numbers = [0, *DENSITIES, most]
    bills = [model.bill(tasks) for tasks in (0, *DENSITIES)]
    bills.append(model.bill(most, batched=True, listed=False))
    batches = f"{most}/s in batches of {model.assumed.tasks_per_batch}, list index off"
    _row("", "idle", *(f"{tasks}/s" for tasks in DENSITIES), batches)
    _row(*["---"] * (1 + len(bills)))
    for field in fields(Bill):
        title = field.name.replace("_", " ")
        _row(title, *(f"{getattr(bill, field.name):,.2f}" for bill in bills))
    _row("**total**", *(f"**{bill.total:,.2f}**" for bill in bills))
    idle = bills[0].total
    _row(
        "per million tasks, idle part left out",
        *(
            f"{(bill.total - idle) / _millions(tasks):.2f}" if tasks else ""
            for tasks, bill in zip(numbers, bills, strict=True)
        ),
    )
    scheduler = float(prices["eventbridge_scheduler_invocations_million"])
    _row(
        "EventBridge Scheduler, its target left out",
        *(f"{_millions(tasks) * scheduler:,.2f}" for tasks in numbers),
    )


def _millions(tasks: int) -> float:
    return tasks * MONTH_SECONDS / 1e6


def print_assumed(model: Model) -> None:
    assumed, memory, settings = model.assumed, model.memory_gb, model.settings
    sizes = ", ".join(f"{name} {memory[name] * 1024:.0f}" for name in sorted(memory))
    billed = ", ".join(f"{model.notifier_seconds(tasks):.2f}" for tasks in DENSITIES)
    batch_ms = assumed.api_ms + assumed.api_ms_per_batched_task * assumed.tasks_per_batch
    rows = (
        ("memory in MB", sizes, "template"),
        ("lead", f"{settings.lead_ms} ms", "template"),
        ("settled tasks are kept", f"{settings.retention_days} days", "template"),
        ("a callback takes", f"{assumed.callback_ms} ms", "assumed"),
        ("settling a page's last task takes", f"{assumed.settle_ms} ms", "assumed"),
        ("due instants", "evenly over their second, known a minute before", "assumed"),
        ("so a run of the notifier takes, at 1, 10, 100/s", f"{billed} s", "computed"),
        ("one create takes the api function", f"{assumed.api_ms} ms", "assumed"),
        (f"a batch of {assumed.tasks_per_batch} takes it", f"{batch_ms:.0f} ms", "assumed"),
        ("the scheduler runs", "twice at any time, leader and standby", "by design"),
        ("a second takes the sweeper", f"{assumed.sweeper_ms_per_second} ms", "assumed"),
        ("businesses with tasks in a minute", str(assumed.businesses), "assumed"),
        ("polls of each idle queue", f"{assumed.pollers} long polls of 20 s", "assumed"),
        ("queues, one for each lane", str(model.queues), "template"),
        ("access log", f"{assumed.access_log_bytes} bytes a request", "assumed"),
        ("scheduler log", f"{assumed.scheduler_log_bytes} bytes a minute", "assumed"),
    )
    print("\nWhat this rests on:\n")
    _row("what", "value", "from")
    _row("---", "---", "---")
    for row in rows:
        _row(*row)
    print(
        "\nLeft out: cold starts, data transfer, point-in-time recovery, KMS requests, alarms, "
        "retries, reads by callers, the storage of tasks not yet due, free tiers."
    )


def _row(*cells: str) -> None:
    print("| " + " | ".join(cells) + " |")


def main() -> None:
    model = Model()
    print_counted(model)
    print_bills(model)
    print_assumed(model)


if __name__ == "__main__":
    main()
