"""What goes wrong and when: decided by the seed and by virtual time alone."""

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from zlib import crc32

from local.chaos.aws_faults import Fault, possible_faults


@dataclass(frozen=True)
class Rates:
    """Chances of one call, one message, one minute. None: a world in which nothing goes wrong."""

    aws: float = 0.0  # an AWS call meets a fault
    death: float = 0.0  # a process dies at an AWS call, before or after it
    duplicate: float = 0.0  # a batch of messages is handed out twice
    late_copy: float = 0.0  # so is a batch with a direct message, the second time seconds later
    delay: float = 0.0  # a batch of messages arrives late
    network: float = 0.0  # a callback hangs, is dropped, or its reply is lost
    missed_schedule: float = 0.0
    invoked_twice: float = 0.0  # an asynchronous event is handed out twice, under one request id
    lag: float = 0.0  # a read that need not be consistent is behind
    partition_units: float = 0.0  # what a partition key takes of writes; of reads three times that
    skew_ms: int = 0  # what a function's clock may be off by, either way
    freeze: float = 0.0  # an environment is not handed out again at once, but up to minutes later
    retired: float = 0.0  # an environment is not handed out again at all
    latency_ms: float = 0.0  # of an AWS call, at most; none: nobody comes in between


CALM = Rates()
ROUGH = Rates(
    aws=0.05,
    death=0.002,
    duplicate=0.05,
    late_copy=0.3,
    delay=0.05,
    network=0.05,
    missed_schedule=0.1,
    invoked_twice=0.2,
    lag=0.1,
    partition_units=160.0,  # as a second is crowded with fewer tasks than in earnest
    skew_ms=950,
    freeze=0.3,
    retired=0.1,
    latency_ms=80.0,
)


OUTAGE_SECONDS_MAX = 120
BACKLOG_SECONDS_MAX = 300
PARTITION = "partition"
PARTITIONS = 16
LATE = "late"
FLAKY_HOST = "flaky.example"
SLOW_HOST = f"{FLAKY_HOST} slow"
BUT_ONE = "notifiers but one"


@dataclass(frozen=True)
class Outage:
    """From when until when something is down: `dynamodb`, `sqs`, a function's folder, the
    `receiver`, or one of its hosts; a `partition`: every sixteenth key of the tables. Messages for
    a function are `late`: for so long each waits half of that time. A host is `slow`, and quick
    afterwards; all `notifiers but one` are busy elsewhere."""

    what: str
    begins_seconds: float
    ends_seconds: float

    @property
    def seconds(self) -> float:
        return self.ends_seconds - self.begins_seconds


def outages_of(seed: int, seconds: float) -> tuple[Outage, ...]:
    """One of each part within so many seconds, none longer than two minutes or a fifth of that; of
    a partition, of a backlog and with one notifier, than five minutes or a third. A host is slow
    from the beginning, at most five minutes."""
    chance = Random(seed)
    outages = []
    functions = ("notifier", "scheduler", "sweeper", "ingest")
    parts = ("dynamodb", "sqs", *functions, "receiver", FLAKY_HOST, PARTITION)
    late = [f"{queue} {LATE}" for queue in ("main", "slow", "ingest")]
    of_minutes = (PARTITION, *late, BUT_ONE)
    for what in (*parts, *late, BUT_ONE):
        is_of_minutes = what in of_minutes
        most = BACKLOG_SECONDS_MAX if is_of_minutes else OUTAGE_SECONDS_MAX
        longest = min(most, seconds / (3 if is_of_minutes else 5))
        begins = chance.uniform(0, seconds)
        outages.append(Outage(what, begins, begins + chance.uniform(longest / 10, longest)))
    most = min(BACKLOG_SECONDS_MAX, seconds)
    outages.append(Outage(SLOW_HOST, 0.0, chance.uniform(most / 3, most)))
    return tuple(outages)


@dataclass
class Faults:
    seed: int
    rates: Rates = ROUGH
    outages: tuple[Outage, ...] = ()
    injected: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.chance = Random(self.seed)

    def end(self) -> None:
        self.rates, self.outages = CALM, ()

    def is_down(self, what: str, at_seconds: float) -> bool:
        return any(
            outage.what == what and outage.begins_seconds <= at_seconds < outage.ends_seconds
            for outage in self.outages
        )

    def late_seconds(self, queue: str, at_seconds: float) -> float:
        """How long every message of this queue waits in its backlog."""
        return max(
            (
                outage.seconds / 2
                for outage in self.outages
                if outage.what == f"{queue} {LATE}"
                and outage.begins_seconds <= at_seconds < outage.ends_seconds
            ),
            default=0.0,
        )

    def is_partition_down(self, key: str, at_seconds: float) -> bool:
        """None of the pointers' and the wheel's own: those are DynamoDB's outage."""
        if not self.is_down(PARTITION, at_seconds):
            return False
        return crc32(key.encode()) % PARTITIONS == self.seed % PARTITIONS

    def aws_fault(self, operation: str) -> Fault | None:
        if not self.happens(self.rates.aws):
            return None
        return self.note(self.chance.choice(possible_faults(operation)))

    def note(self, fault: Fault) -> Fault:
        self.injected[fault.value] += 1
        return fault

    def strikes(self, name: str, rate: float) -> bool:
        if not self.happens(rate):
            return False
        self.injected[name] += 1
        return True

    def happens(self, rate: float) -> bool:
        return rate > 0 and self.chance.random() < rate

    def latency_seconds(self) -> float:
        return self.chance.random() * self.rates.latency_ms / 1000

    def skew_ms(self) -> int:
        return self.chance.randint(-self.rates.skew_ms, self.rates.skew_ms)
