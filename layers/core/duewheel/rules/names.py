"""Names that callers give: businesses, keys, timers; how far ahead an instant may be.

All of them are checked here.
"""

import re
from typing import Annotated

from msgspec import Meta

from duewheel.rules.fields import PRINTABLE, invalid, says, whole_text

BIZ_TYPE = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")

KEY = re.compile(r"[A-Za-z0-9._:~-]{1,128}")

FLOW_KEY = re.compile(r"[!-~]{1,128}")

TIMER_ID = re.compile(r"[1-9][0-9]{0,15}")
TimerId = Annotated[str, says(pattern=whole_text(TIMER_ID))]

TIMER_ID_IS = "the id of a timer: 1 to 16 digits, not beginning with 0"
WantedTimerId = Annotated[str, Meta(pattern=whole_text(TIMER_ID), description=TIMER_ID_IS)]

AHEAD_DAYS_MAX = 3_653  # ten years with up to three leap days

AHEAD_SECONDS_MAX = AHEAD_DAYS_MAX * 86_400

KEY_IS = "1 to 128 of A-Z, a-z, 0-9, '.', '_', ':', '~' and '-'"

FLOW_KEY_IS = "1 to 128 visible characters of ASCII"

BIZ_TYPE_IS = "1 to 63 of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit"

BizType = Annotated[str, Meta(pattern=whole_text(BIZ_TYPE), description=BIZ_TYPE_IS)]

TaskKey = Annotated[str, Meta(pattern=whole_text(KEY), description=KEY_IS)]

FlowKey = Annotated[str, Meta(pattern=whole_text(FLOW_KEY), description=FLOW_KEY_IS)]


def checked_biz_type(biz_type: str, path: str = "biz_type") -> str:
    if not BIZ_TYPE.fullmatch(biz_type):
        raise invalid(path, f"must be {BIZ_TYPE_IS}.")
    return biz_type


def checked_key(key: str, path: str = "key") -> str:
    if not KEY.fullmatch(key):
        raise invalid(path, f"must be {KEY_IS}.")
    return key


def name_of(characters_max: int) -> Meta:
    """Checked by `printable_name`."""
    return Meta(
        description=f"1 to {characters_max} printable characters, no blank first or last",
        extra_json_schema=PRINTABLE
        | {"minLength": 1, "maxLength": characters_max, "not": {"pattern": "^ | $"}},
    )


def printable_name(name: str, characters_max: int, path: str) -> str:
    """A name is printable in lists and has no look-alike characters."""
    if not 1 <= len(name) <= characters_max or not name.isprintable() or name.strip() != name:
        reason = f"must be 1 to {characters_max} printable characters, no blank first or last."
        raise invalid(path, reason)
    return name


def scope_of(biz_type: str, flow_key: str | None = None) -> str:
    """The name of a business or of one of its flow keys, for what each has by itself. No business
    has a `#`."""
    return biz_type if flow_key is None else f"{biz_type}#{flow_key}"


def is_of_key(scope: str) -> bool:
    return "#" in scope


def parts_of(scope: str) -> tuple[str, str | None]:
    """Business and flow key."""
    biz_type, _, flow_key = scope.partition("#")
    return biz_type, flow_key or None
