"""The last changes of a definition in an answer, the latest first."""

from duewheel.rules.history.changes import Change, Difference, KeptChanges
from duewheel.rules.instants import rfc3339


def changes_view(kept: KeptChanges) -> dict[str, object]:
    return {"changes": [_change(change) for change in kept.changes]}


def _change(change: Change) -> dict[str, object]:
    return {
        "version": change.version,
        "at": rfc3339(change.at_ms),
        "by": change.by,
        "did": change.did.value,
        "fields": [_field(one) for one in change.differences],
    }


def _field(one: Difference) -> dict[str, object]:
    if one.shown is None:
        return {"field": one.setting}
    before, after = one.shown
    return {"field": one.setting, "from": before, "to": after}
