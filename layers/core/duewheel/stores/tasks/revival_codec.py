"""The redrives of a task as rows.

`revivals` has the seconds of each redrive, as every release writes them. `ended_as` has more about
those of tasks that were not dead. An older release, which redrives dead tasks alone, leaves these
rows as they are; so each names its redrive by the seconds.
"""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.json import Decoder, encode

from duewheel.rules.tasks.task import Revival, Status
from duewheel.rules.wheel.addresses import Second
from duewheel.stores.callbacks.codec import COUNT_MAX
from duewheel.stores.item_attributes import InstantMs, Text

_ROWS_MAX = 100


class _EndRow(Struct, array_like=True, forbid_unknown_fields=True, kw_only=True):
    ended: Second
    revived: Second
    status: Status
    lateness_ms: InstantMs | None
    reason: Text | None
    attempts: Annotated[int, Meta(ge=0, le=COUNT_MAX)]

    @property
    def revival(self) -> Revival:
        return Revival(
            ended=self.ended,
            revived=self.revived,
            status=self.status,
            lateness_ms=self.lateness_ms,
            reason=self.reason,
            attempts=self.attempts,
        )


Pairs = tuple[tuple[Second, Second], ...]
pairs_from = Decoder(Annotated[Pairs, Meta(max_length=_ROWS_MAX)]).decode
ends_from = Decoder(Annotated[tuple[_EndRow, ...], Meta(max_length=_ROWS_MAX)]).decode


def revival_texts(revivals: Sequence[Revival]) -> dict[str, str]:
    """By attribute."""
    pairs = [(one.ended, one.revived) for one in revivals]
    rows = [
        _EndRow(
            ended=one.ended,
            revived=one.revived,
            status=one.status,
            lateness_ms=one.lateness_ms,
            reason=one.reason,
            attempts=one.attempts,
        )
        for one in revivals
        if one.status is not Status.DEAD
    ]
    texts = {"revivals": encode(pairs).decode()}
    return texts | ({"ended_as": encode(rows).decode()} if rows else {})


def revivals_from(pairs: Pairs, ends: Sequence[_EndRow]) -> tuple[Revival, ...]:
    found, left = [], list(ends)
    for ended, revived in pairs:
        end = next((one for one in left if (one.ended, one.revived) == (ended, revived)), None)
        if end is None:
            found.append(Revival(ended=ended, revived=revived))
        else:
            left.remove(end)
            found.append(end.revival)
    return tuple(found)
