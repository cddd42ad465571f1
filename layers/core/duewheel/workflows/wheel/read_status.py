"""Read the state of the wheel: its pointers, the leader, and the load of the next hour."""

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.wheel.open_places import OpenPlace
from duewheel.rules.wheel.sharding import FORECAST_MINUTES, MinuteLoad
from duewheel.stores.wheel import pointers
from duewheel.stores.wheel.pointers import PointerStore
from duewheel.stores.wheel.sharding import LoadStore


class WheelState(Struct, frozen=True, kw_only=True):
    now_ms: int
    buckets: int
    origin_second: int
    time_pointer: int
    sweep_pointer: int
    open_places: tuple[OpenPlace, ...]
    leader: str | None
    forecast: list[MinuteLoad]  # of the minutes from now on that have estimates


class ReadWheel(Struct, frozen=True, kw_only=True):
    clock: Clock
    pointers: PointerStore
    loads: LoadStore
    origin: int
    buckets: int

    def __call__(self) -> WheelState:
        time_pointer = self.pointers.read(pointers.TIME, self.origin)
        sweep_pointer = self.pointers.read(pointers.SWEEP, self.origin)
        now_ms = self.clock.now_ms()
        minute = now_ms // 60_000
        is_led = time_pointer.owner is not None and time_pointer.lease_until_ms > now_ms
        return WheelState(
            now_ms=now_ms,
            buckets=self.buckets,
            origin_second=self.origin,
            time_pointer=time_pointer.position,
            sweep_pointer=sweep_pointer.position,
            open_places=sweep_pointer.open_places,
            leader=time_pointer.owner if is_led else None,
            forecast=self.loads.between(minute, minute + FORECAST_MINUTES),
        )
