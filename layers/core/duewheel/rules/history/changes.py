"""A change of a definition: what, when and by whom. It is kept with the definition.

The record has the name of each changed setting. It has the old and the new value only if answers
show the setting in clear and the value is small. A `Hidden` value is compared and never written: no
record repeats a callback, a payload or a secret.
"""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, to_builtins

from duewheel.rules.callbacks.retry import number_said, shown_retry
from duewheel.rules.callbacks.types import RetryPolicy

KEPT_MAX = 10
SHOWN_CHARACTERS_MAX = 200

THE_SERVICE = "duewheel"  # the author of a change without a caller: a receiver answered stop


class ChangeAction(StrEnum):
    CREATED = "created"
    CONFIGURED = "configured"
    PAUSED = "paused"
    RESUMED = "resumed"
    CHANGED = "changed"
    ENABLED = "enabled"
    DISABLED = "disabled"
    DELETED = "deleted"
    ROTATED = "rotated"
    REVOKED = "revoked"


DELETED_KEPT_SECONDS = 30 * 86_400


class Subject(Struct, frozen=True):
    """The changed definition. `owner`: its business, also after its end. `gone_ms`: when it
    expires, if known."""

    kind: str
    name: str
    owner: str
    gone_ms: int | None = None


class Hidden(Struct, frozen=True):
    value: object


class Difference(Struct, frozen=True):
    """`shown`: old and new value. None: the record has the name alone."""

    setting: str
    shown: tuple[Any, Any] | None = None


class Change(Struct, frozen=True, kw_only=True):
    """`version`: of the definition, from this change on."""

    version: int
    at_ms: int
    by: str
    did: ChangeAction
    differences: tuple[Difference, ...] = ()


class KeptChanges(Struct, frozen=True):
    """The recorded changes of a definition, the latest first."""

    owner: str
    changes: tuple[Change, ...] = ()


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Of settings as `plain` has them; what `before` has not was null."""
    return tuple(
        Difference(name, _shown(before.get(name), value))
        for name, value in after.items()
        if before.get(name) != value
    )


def plain(value: Any) -> Any:
    """As JSON, in the form of a request."""
    match value:
        case RetryPolicy():
            members = to_builtins(shown_retry(value))
            return {name: plain(member) for name, member in members.items()}
        case dict():
            return {name: plain(member) for name, member in value.items()}
        case tuple():
            return [plain(element) for element in value]
        case StrEnum():
            return value.value
        case float():
            return number_said(value)
        case _:
            return value


def gone_ms(subject: Subject, change: Change) -> int | None:
    """When the record expires; never while the definition exists."""
    if change.did is ChangeAction.DELETED:
        return change.at_ms + DELETED_KEPT_SECONDS * 1000
    return subject.gone_ms


def deleted(version: int, updated_ms: int, by: str, now_ms: int) -> Change:
    """The end of a definition of this version."""
    return Change(
        version=version + 1, at_ms=max(now_ms, updated_ms), by=by, did=ChangeAction.DELETED
    )


def _shown(before: Any, after: Any) -> tuple[Any, Any] | None:
    if any(isinstance(value, Hidden) for value in (before, after)):
        return None
    if any(len(json.dumps(value)) > SHOWN_CHARACTERS_MAX for value in (before, after)):
        return None
    return before, after
