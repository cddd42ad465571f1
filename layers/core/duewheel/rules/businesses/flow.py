"""The limits of flow keys, as the settings of a business have them.

They hold for each key by itself. Those of the longest prefix of a key replace the default as a
whole.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, cast

from msgspec import Meta, Struct, field
from msgspec.json import encode
from msgspec.structs import replace

from duewheel.rules.businesses.rate_limit import RATE_MAX, RATE_MIN
from duewheel.rules.fields import RequestBody, decode, invalid, joined_path, says
from duewheel.rules.names import FLOW_KEY, FLOW_KEY_IS, FlowKey

PREFIXES_MAX = 50
PAUSED_MAX = 100
IN_FLIGHT_MAX = 100  # as many as a page has tasks
LIMITS = {"calls_per_second": (RATE_MIN, RATE_MAX), "calls_in_flight": (1, IN_FLIGHT_MAX)}


class FlowLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What holds for each flow key; none of these: no limit. `in_order`: its tasks are called one
    after the other, so `calls_in_flight` is 1."""

    calls_per_second: Annotated[float, says(minimum=RATE_MIN, maximum=RATE_MAX)] | None = None
    calls_in_flight: Annotated[int, says(minimum=1, maximum=IN_FLIGHT_MAX)] | None = None
    in_order: bool = False


_LIMITS = {"$ref": "#/components/schemas/FlowLimits"}


class FlowBody(RequestBody, omit_defaults=True):
    """The limits of each flow key: `default`, or those of the longest of `prefixes` with which the
    key begins. One of both has limits."""

    default: FlowLimits | None = None
    prefixes: Annotated[
        dict[FlowKey, Annotated[Any, Meta(extra_json_schema=_LIMITS)]],
        says(maxProperties=PREFIXES_MAX),
    ] = field(default_factory=dict)


class Flow(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`set_ms`: when these limits were set. Turns begin anew with them, not with each change of the
    business."""

    default: FlowLimits | None = None
    prefixes: dict[str, FlowLimits] = field(default_factory=dict)
    set_ms: int = 0

    @property
    def body(self) -> FlowBody:
        return FlowBody(self.default, dict(self.prefixes))

    def set_after(self, before: "Flow | None", now_ms: int) -> "Flow":
        if before is not None and before.body == self.body:
            return before
        return replace(self, set_ms=now_ms)

    @property
    def keeps_some_order(self) -> bool:
        """Whether the tasks of some keys are called in order."""
        return any(
            one is not None and one.in_order for one in (self.default, *self.prefixes.values())
        )

    def limits(self, flow_key: str) -> FlowLimits | None:
        found = [prefix for prefix in self.prefixes if flow_key.startswith(prefix)]
        return self.prefixes[max(found, key=len)] if found else self.default


def flow_from(body: FlowBody, path: str) -> Flow:
    if body.default is not None:
        _check(body.default, joined_path(path, "default"))
    where = joined_path(path, "prefixes")
    if len(body.prefixes) > PREFIXES_MAX:
        raise invalid(where, f"must have at most {PREFIXES_MAX} members.")
    prefixes = {}
    for prefix, value in body.prefixes.items():
        at = joined_path(where, prefix)
        prefixes[prefix] = _check(decode(encode(value), FlowLimits, at), at)
    if body.default is None and not prefixes:
        raise invalid(path, "has no limits: it needs default or prefixes.")
    return Flow(body.default, prefixes)


def checked_limit(name: str, value: float, path: str, to_stop: str) -> float:
    least, most = LIMITS[name]
    if value == 0:
        raise invalid(path, f"must not be 0: {to_stop}.")
    if not least <= value <= most:
        raise invalid(path, f"must be from {least} to {most}.")
    return value


def _check(limits: FlowLimits, path: str) -> FlowLimits:
    for name in LIMITS:
        if (value := getattr(limits, name)) is not None:
            where = joined_path(path, name)
            checked_limit(name, value, where, "to stop a key's calls, use paused_flow_keys")
    if limits.in_order and limits.calls_in_flight not in (None, 1):
        raise invalid(joined_path(path, "calls_in_flight"), "must be 1 beside in_order, or absent.")
    return limits


def paused_keys_from(body: Mapping[str, object], path: str) -> dict[str, bool | None]:
    """By key: true pauses it, null resumes it."""
    for name, value in body.items():
        where = joined_path(path, name)
        if not FLOW_KEY.fullmatch(name):
            raise invalid(where, f"is no flow key: {FLOW_KEY_IS}.")
        if value is not None and value is not True:
            raise invalid(where, "must be true, or null for a key that is resumed.")
    return cast("dict[str, bool | None]", dict(body))


def merged_keys(
    own: Iterable[str], change: Mapping[str, bool | None], path: str
) -> tuple[str, ...] | None:
    """In order; None if no key is paused."""
    paused = {*own, *change} - {name for name, value in change.items() if value is None}
    if len(paused) > PAUSED_MAX:
        raise invalid(path, f"must be at most {PAUSED_MAX} together.")
    return tuple(sorted(paused)) or None
