"""What the wheel page shows."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WheelState:
    now_ms: int
    buckets: int
    origin_second: int
    time_pointer: int
    sweep_pointer: int
    leader: str | None
