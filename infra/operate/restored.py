"""The decision about one item of a restored table, given the present item of the stack.

The stack's own table has everything since the restored instant, as far as it can be read: only
items that are missing, or were edited without the service, come back.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from duewheel.rules.history.changes import Change, ChangeAction
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.tasks.task import Status, Task
from duewheel.stores import registry_keys
from duewheel.stores.tasks import codec

Item = Mapping[str, Any]


class Fate(Enum):
    UNCHANGED = "as it was, or further on"
    GONE = "gone"
    EDITED = "edited past the service"
    TOO_OLD = "ended, and kept long enough"


def fate_of_task(restored: Task, own: Item | None, now_ms: int) -> Fate:
    """Every change by the service raises the version: a different task of the same version, or one
    of an older version, was edited."""
    if restored.expires_at is not None and restored.expires_at * 1000 <= now_ms:
        return Fate.TOO_OLD
    if own is None:
        return Fate.GONE
    try:
        current = codec.task_from(own)
    except UnreadableItem:
        return Fate.EDITED
    if current.version > restored.version or current == restored:
        return Fate.UNCHANGED
    return Fate.EDITED


def is_overdue(task: Task, dispatched_second: int) -> bool:
    """Whether it fell due behind the time pointer, and may have been called. A parked one did fall
    due, whatever its entry."""
    is_pending = task.status is Status.PENDING
    return is_pending and (task.parked or task.entry.second <= dispatched_second)


# The Registry. Pointers, leases, limiters and statistics are not brought back: the stack's own are
# newer, and a pointer that goes back would repeat calls.

_DEFINED = ("business", "timer", "api-key")
_CHANGES, _LINES, _SECRET = "changes", "timers", "secret"


def definition_of(item: Item) -> tuple[str, str] | None:
    """The definition of this record, as kind and name; None for records that are not brought
    back."""
    kind, _, name = str(item["kind"]["S"]).partition("#")
    if kind == _CHANGES:
        kind, _, name = name.partition("#")
        return kind, name
    if kind == _LINES:
        return "timer", registry_keys.timer_of_line(item)[1]
    if kind in _DEFINED:
        return kind, name or str(item["record"]["S"])
    return (_SECRET, str(item["record"]["S"])) if kind == _SECRET else None


def key_of_definition(kind: str, name: str) -> dict[str, Any]:
    if kind == "timer":
        return registry_keys.timer(name)
    return registry_keys.key(kind, name)


def is_lost(own: Item | None, last: Change | None) -> bool:
    """Missing, and not deleted by a caller since: a deletion would be its last change."""
    return own is None and (last is None or last.did is not ChangeAction.DELETED)
