"""What the wheel page shows."""

from msgspec import Struct

from duewheel.rules.load import MinuteLoad
from duewheel.rules.open_places import OpenPlace


class WheelState(Struct, frozen=True):
    now_ms: int
    profile: str
    buckets: int
    origin_second: int
    time_pointer: int
    sweep_pointer: int
    open_places: tuple[OpenPlace, ...]
    leader: str | None
    forecast: list[MinuteLoad]  # of minutes from now on of which something is known
