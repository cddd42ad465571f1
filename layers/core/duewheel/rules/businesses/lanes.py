"""Which lane a business's calls are made in: its own setting decides, then what was observed."""

from enum import StrEnum

from msgspec import Struct

from duewheel.rules.wheel.lane import Lane


class ChosenBy(StrEnum):
    """Stable words: part of the interface."""

    SETTING = "setting"
    OBSERVED = "observed"
    DEFAULT = "default"


class LaneChoice(Struct, frozen=True):
    lane: Lane
    by: ChosenBy


def lane_choice(setting: Lane | None, slow_until_ms: int, now_ms: int) -> LaneChoice:
    """`slow_until_ms`: up to when its calls are known to be slow; 0 when they never were."""
    if setting is not None:
        return LaneChoice(setting, ChosenBy.SETTING)
    if now_ms < slow_until_ms:
        return LaneChoice(Lane.SLOW, ChosenBy.OBSERVED)
    return LaneChoice(Lane.MAIN, ChosenBy.DEFAULT)
