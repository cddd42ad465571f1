"""The assumptions and parameters of the model: of a deployment, and of its environment.

Limits are in bench/limits.py. Undocumented values are here, each with its reason.
"""

import math
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from random import Random

from bench import limits
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.sharding import SLICE_ENTRIES
from duewheel.settings import Settings

_ENVIRONMENT = Settings(
    wheel_table="wheel",
    registry_table="registry",
    slice_queue_url="slices",
    slow_queue_url="slow",
    notifier_function="notifier",
    secrets_table="secrets",
    stack_id="stack",
)


@dataclass(frozen=True)
class Latency:
    """Lognormal: the latency is a product of many small factors."""

    p50_ms: float
    p99_ms: float
    source: str

    @cached_property
    def _spread(self) -> float:
        return math.log(self.p99_ms / self.p50_ms) / 2.326

    def drawn(self, random: Random) -> float:
        return self.p50_ms * math.exp(random.gauss(0, self._spread))


REQUEST = Latency(5, 20, "assumed; AWS promises single-digit milliseconds for DynamoDB")
SEND = Latency(6, 25, "assumed, as for DynamoDB")
QUEUE = Latency(
    limits.QUEUE_TO_LAMBDA_P50_MS.value,
    limits.QUEUE_TO_LAMBDA_P99_MS.value,
    limits.QUEUE_TO_LAMBDA_P50_MS.source,
)
ASYNCHRONOUS = Latency(
    limits.PUSH_TO_LAMBDA_P50_MS.value,
    limits.PUSH_TO_LAMBDA_P99_MS.value,
    limits.PUSH_TO_LAMBDA_P50_MS.source,
)
COLD_START = Latency(600, 1_200, "assumed; imports are measured under Cold starts and CPU")
CALLBACK = Latency(100, 400, "assumed; the receiver's")

# Milliseconds of one whole processor. A delivered task costs 1.1 of an UpdateItem here, more than
# the 0.54 to 0.68 that `make bench-cpu` shows.
REQUEST_CPU_MS = 0.7  # of one small request
READ_CPU_MS = 0.15  # an entry of a page: parsed and decided
CALL_CPU_MS = 0.4  # a callback with its checks
SETTLE_CPU_MS = 0.22  # an item of a BatchWriteItem
SWEEP_CPU_MS = 0.2  # an entry that is read again
CREATE_MS = 15  # of the api function, as the cost model assumes
VCPU_MB = limits.LAMBDA_VCPU_MB.value

TASK_UNITS_READ = 0.25  # strongly consistent, of a task of 1 KB in a page
SDK_TRIES = 4  # stores/aws_clients.py
SWEEPER_TIMEOUT_MS = 900_000  # template.yaml
INVOKED_AGAIN_MS = 60_000  # Lambda, of an asynchronous invocation that failed
RAMP_STEP_MS = 200  # the step in which the model lets pollers grow


class Link(Enum):
    QUEUE = "queue"
    DIRECT = "asynchronous invocation"


@dataclass(frozen=True)
class Knobs:
    """A deployment, by default with the values of template.yaml and the settings."""

    page_size: int = _ENVIRONMENT.page_size
    lead_ms: int = _ENVIRONMENT.lead_ms
    wake_ms: int = timing.WAKE_MS
    slice_entries: int = SLICE_ENTRIES
    messages_per_run: int = 2  # BatchSize
    notifiers_max: int = int(limits.POLLERS_MOST.value)  # NotifierConcurrency sets fewer
    slow_notifiers_max: int = int(limits.POLLERS_MOST.value)
    notifier_mb: int = 512
    scheduler_mb: int = 128
    sweeper_mb: int = 512
    provisioned_pollers: int = 0
    link: Link = Link.QUEUE
    table_write_units: float = limits.TABLE_WRITE_UNITS.value
    table_read_units: float = limits.TABLE_READ_UNITS.value
    provisioned: int = 0  # tasks a second: Capacity; 0: on demand
    account_concurrency: int = int(limits.LAMBDA_CONCURRENCY.value)
    is_warm: bool = False  # the maximum of pollers and environments runs from the start
    lost_messages: float = 0  # probability, of each message that is sent
    dying_notifiers: float = 0  # probability, of each run of a page, right before its calls
    failing_callbacks: float = 0
    has_priorities: bool = True  # False: tasks are served in the order of their instants

    @property
    def page_lease_ms(self) -> int:
        return _ENVIRONMENT.page_lease_ms

    @property
    def sweep_lag_ms(self) -> int:
        return _ENVIRONMENT.sweep_delay_seconds * 1000

    @property
    def notifier_timeout_ms(self) -> int:
        return _ENVIRONMENT.notifier_timeout_seconds * 1000
