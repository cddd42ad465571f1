"""What is to be done with one item of a restored table, given what stands in the stack's own.

The stack's own table is the truth of all that happened since the instant that was restored, as
far as it can be read: only what is gone from it, or was edited past the service, comes back.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from duewheel.rules.history.changes import Change, ChangeAction
from duewheel.rules.refusals import NewerItem, UnreadableItem
from duewheel.rules.tasks.task import Status, Task
from duewheel.stores import registry_keys
from duewheel.stores.tasks import codec

Item = Mapping[str, Any]


class Fate(Enum):
    STANDS = "as it was, or further on"
    GONE = "gone"
    EDITED = "edited past the service"
    NEWER = "written by a newer release"
    TOO_OLD = "ended, and kept long enough"


def fate_of_task(restored: Task, own: Item | None, now_ms: int) -> Fate:
    """Every change by the service raises the version: one of the same version that differs, and
    one that is older, were not made by it."""
    if restored.expires_at is not None and restored.expires_at * 1000 <= now_ms:
        return Fate.TOO_OLD
    if own is None:
        return Fate.GONE
    try:
        stands = codec.task_from(own)
    except NewerItem:
        return Fate.NEWER
    except UnreadableItem:
        return Fate.EDITED
    if stands.version > restored.version or stands == restored:
        return Fate.STANDS
    return Fate.EDITED


def is_overdue(task: Task, dispatched_second: int) -> bool:
    """Whether it came up behind the time pointer, and may have been called. One that is parked
    did come up, whatever its entry says."""
    is_pending = task.status is Status.PENDING
    return is_pending and (task.parked or task.entry.second <= dispatched_second)


# The Registry. Pointers, leases, limiters and statistics are not brought back: the stack's own are
# the newer ones, and a pointer set back would have everything called again.

_DEFINED = ("business", "timer", "api-key")
_CHANGES, _LINES, _SECRET = "changes", "timers", "secret"


def definition_of(item: Item) -> tuple[str, str] | None:
    """To which definition this belongs, as kind and name; None for what is not brought back."""
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
    """Gone, and not because somebody deleted it since: that would be the last that was done."""
    return own is None and (last is None or last.did is not ChangeAction.DELETED)
