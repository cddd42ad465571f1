"""The record of a change of a business."""

from typing import Any

from msgspec import to_builtins

from duewheel.rules.businesses.flow import Flow
from duewheel.rules.businesses.settings import Business, Own
from duewheel.rules.callbacks.types import KeepAnswers
from duewheel.rules.history.changes import (
    Change,
    ChangeAction,
    Difference,
    Hidden,
    Subject,
    differences,
    plain,
)

BUSINESS = "business"

# All others may contain values that no answer shows: headers, parts of a URL, secrets.
_SHOWN = {
    "retry",
    "retention_days",
    "timeout_seconds",
    "allowed_hosts",
    "trusted_origins",
    "retry_statuses",
    "stop_statuses",
    "calls_per_second",
    "calls_in_flight",
    "creates_per_second",
    "paused",
    "tolerance_seconds",
    "priority",
    "flow",
    "paused_flow_keys",
    "keep_answers",
}


def business_named(biz_type: str) -> Subject:
    return Subject(BUSINESS, biz_type, owner=biz_type)


def business_configured(before: Business, after: Business, by: str) -> Change:
    found = differences(_settings(before.own), _settings(after.own))
    return Change(
        version=after.version,
        at_ms=after.updated_ms,
        by=by,
        did=_action(before, after, found),
        differences=found,
    )


def _action(before: Business, after: Business, found: tuple[Difference, ...]) -> ChangeAction:
    if not before.version:
        return ChangeAction.CREATED
    if [one.setting for one in found] == ["paused"] and before.paused != after.paused:
        return ChangeAction.PAUSED if after.paused else ChangeAction.RESUMED
    return ChangeAction.CONFIGURED


def _settings(own: Own) -> dict[str, Any]:
    """By the names of requests; null is the default, as it is there."""
    values = {name: getattr(own, name) for name in Own.__struct_fields__}
    return {
        name: plain(_members(value)) if name in _SHOWN or value is None else Hidden(value)
        for name, value in values.items()
    }


def _members(value: Any) -> Any:
    if isinstance(value, KeepAnswers):
        return to_builtins(value)
    return to_builtins(value.body) if isinstance(value, Flow) else value
