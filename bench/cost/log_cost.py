"""Counts the metrics that the functions write, and the length of their lines.

The workflows run on moto, as for the units; each line is that of one run.
"""

from dataclasses import dataclass

from bench.cost.counted import TEMPLATE, Means, create, idle_minute, new_world
from duewheel import __version__
from duewheel.metrics import LATENESS, METRICS, Counted, Source, counts, metric_lines
from duewheel.rules.wheel.profile import Profile
from local.aws.metrics import filters_of
from local.aws.template import load_template

_SOURCE = Source("duewheel", __version__, "INFO")
_BYTES_PER_VALUE = 3  # a lateness of two digits, and a comma


@dataclass(frozen=True)
class LogCost:
    """`idle_minute`: the counts of scheduler and sweeper in one; `created`, `delivered`, `swept`:
    those of one task each."""

    idle_minute: tuple[Counted, ...]
    created: Counted
    delivered: Counted
    swept: Counted
    filters: int  # metrics that the template makes from logs, of errors

    @property
    def when_idle(self) -> int:
        return len(_names(*self.idle_minute))

    @property
    def when_busy(self) -> int:
        """And nothing fails."""
        return len(_names(*self.idle_minute, self.created, self.delivered, self.swept))

    @property
    def at_most(self) -> int:
        return len(METRICS) + self.filters

    @property
    def bytes_per_minute(self) -> int:
        return sum(map(_size, self.idle_minute))

    @property
    def bytes_per_create(self) -> int:
        return _size(self.created)

    def bytes_per_page(self, tasks: float) -> float:
        return _size(self.delivered) + (tasks - 1) * _BYTES_PER_VALUE


def count_log_cost() -> LogCost:
    with new_world() as (world, resources):
        filters = len({each.metric for each in filters_of(resources)})
        idle_minute(world)
        counts.take()
        idle_minute(world)
        idle = counts.take()
        # Two runs: both write the lag of the time pointer.
        sweeper = {m: v for m, v in idle.values.items() if m.unit == "Seconds"}
        scheduler = Counted(idle.counts, {m: v[:1] for m, v in sweeper.items()})
        (task,) = create(world, Means.SINGLE, [60_000])
        created = counts.take()
        world.dispatch_until(task.due_ms // 1000)
        counts.take()
        world.drain()
        delivered = counts.take()
        world.sweep_past(task.due_ms // 1000)
        swept = counts.take()
    if set(delivered.values) != {LATENESS}:
        raise AssertionError("a delivery writes its lateness")
    return LogCost((scheduler, Counted({}, sweeper)), created, delivered, swept, filters)


def metrics_are_on(profile: Profile) -> bool:
    """The default of the profile."""
    return load_template(TEMPLATE, {"Profile": profile.name}).intrinsics.holds("HasMetrics")


def _names(*counted: Counted) -> set[str]:
    return {metric.name for one in counted for metric in (*one.counts, *one.values)}


def _size(counted: Counted) -> int:
    return sum(len(line) + 1 for line in metric_lines(counted, _SOURCE, 1_800_000_000_000))
