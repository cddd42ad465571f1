"""The last changes of a definition in an answer, the latest first."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct

from duewheel.rules.fields import Count, Instant
from duewheel.rules.history.changes import (
    KEPT_MAX,
    Change,
    ChangeAction,
    Difference,
    KeptChanges,
)
from duewheel.rules.instants import rfc3339


class DifferenceView(Struct, rename={"from_": "from"}):
    """A setting whose value is not shown has only its name."""

    field: str
    from_: Any = UNSET
    to: Any = UNSET


class ChangeView(Struct, kw_only=True):
    version: Count
    at: Instant
    by: str
    did: ChangeAction
    fields: list[DifferenceView]


class ChangesView(Struct):
    changes: Annotated[list[ChangeView], Meta(max_length=KEPT_MAX)]


def changes_view(kept: KeptChanges) -> ChangesView:
    return ChangesView([_change(change) for change in kept.changes])


def _change(change: Change) -> ChangeView:
    fields = [_field(one) for one in change.differences]
    return ChangeView(
        version=change.version,
        at=rfc3339(change.at_ms),
        by=change.by,
        did=change.did,
        fields=fields,
    )


def _field(one: Difference) -> DifferenceView:
    return DifferenceView(one.setting, *(one.shown or ()))
