"""What the wheel page shows."""

from dataclasses import dataclass

from duewheel.rules.load import MinuteLoad


@dataclass(frozen=True, slots=True)
class WheelState:
    now_ms: int
    profile: str
    buckets: int
    origin_second: int
    time_pointer: int
    sweep_pointer: int
    leader: str | None
    forecast: list[MinuteLoad]  # of minutes from now on of which something is known
