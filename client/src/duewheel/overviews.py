"""What `overview` returns: a page of businesses, what holds them back and what tasks died of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from duewheel.instants import instant_from
from duewheel.members import INSTANT, Value, many, read_by
from duewheel.values import Breaker, Counts, Usage


@dataclass(frozen=True, kw_only=True)
class BusinessNow(Value):
    """`hour`: its tasks of the minutes of the overview; `died_since`: deaths found after these.
    `paused_flow_keys`: how many there are."""

    biz_type: str
    paused: bool = False
    paused_flow_keys: int = 0
    lane: str = "main"
    breakers: tuple[Breaker, ...] = field(default=(), metadata=read_by(many(Breaker.read)))
    calls_per_second: float | None = None
    calls_in_flight: int | None = None
    usage: Usage | None = field(default=None, metadata=read_by(Usage.read))
    hour: Counts = field(metadata=read_by(Counts.read))
    died_since: int = 0


@dataclass(frozen=True, kw_only=True)
class DeathGroup(Value):
    """Dead tasks with the same error. `businesses`: how many tasks of each."""

    last_error: str | None = None
    reason: str | None = None
    tasks: int
    businesses: tuple[Mapping[str, str | int], ...] = field(default=(), metadata=read_by(tuple))
    last_died_at: datetime = field(metadata=INSTANT)
    last_task_id: str


@dataclass(frozen=True, kw_only=True)
class Deaths(Value):
    """`businesses`, `tasks`: in how many it looked; `more`: there are others."""

    since: datetime = field(metadata=INSTANT)
    businesses: int
    tasks: int
    more: bool = False
    groups: tuple[DeathGroup, ...] = field(default=(), metadata=read_by(many(DeathGroup.read)))


@dataclass(frozen=True, kw_only=True)
class Overview(Value):
    """A page. `minutes`: of all businesses that it looked at, up to `end`."""

    now: datetime = field(metadata=INSTANT)
    begin: datetime = field(metadata=read_by(instant_from, "from"))
    end: datetime = field(metadata=read_by(instant_from, "to"))
    minutes: tuple[Counts, ...] = field(repr=False, metadata=read_by(many(Counts.read)))
    businesses: tuple[BusinessNow, ...] = field(metadata=read_by(many(BusinessNow.read)))
    deaths: Deaths = field(metadata=read_by(Deaths.read))
    operations: tuple[Mapping[str, Any], ...] = field(default=(), metadata=read_by(tuple))
    looked_at: Mapping[str, int] = field(default_factory=dict)
