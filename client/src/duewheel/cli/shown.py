"""The form of values: JSON for programs, text for people.

JSON has the members of the service's own answers under the same names.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime
from typing import Any

from duewheel.cli.failures import visible


def members(value: Any) -> dict[str, Any]:
    """A value's members by the service's names, with those that a newer service adds."""
    named = {
        each.metadata.get("member") or each.name: getattr(value, each.name)
        for each in fields(value)
        if each.name != "extra"
    }
    return {**named, **getattr(value, "extra", {})}


def as_json(value: Any) -> str:
    """One line of ASCII, without characters that a terminal would obey."""
    return json.dumps(plain(value))


def plain(value: Any) -> Any:
    if is_dataclass(value):
        return {name: plain(member) for name, member in members(value).items()}
    if isinstance(value, datetime):
        return instant_in_utc(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain(member) for member in value]
    return value


def instant_in_utc(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def as_text(value: Any) -> str:
    """A value as text: instants in this machine's zone, JSON if there is no shorter form, and no
    control characters."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return here(value)
        case str():
            return visible(value).replace("\n", "\\n")
        case date():
            return value.isoformat()
        case int() | float():
            return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    return visible(json.dumps(plain(value), ensure_ascii=False))


def here(instant: datetime) -> str:
    local = instant.astimezone()
    return local.isoformat(" ", "milliseconds" if local.microsecond else "seconds")
