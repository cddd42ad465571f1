"""The redrives of a task as rows."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.json import Decoder, encode
from msgspec.structs import asdict

from duewheel.rules.tasks.task import Revival, Status
from duewheel.rules.wheel.addresses import Second
from duewheel.stores.callbacks.codec import COUNT_MAX
from duewheel.stores.item_attributes import InstantMs, Text

_ROWS_MAX = 100


class _Row(Struct, array_like=True, forbid_unknown_fields=True, kw_only=True):
    ended: Second
    revived: Second
    status: Status
    lateness_ms: InstantMs | None
    reason: Text | None
    attempts: Annotated[int, Meta(ge=0, le=COUNT_MAX)]


_rows = Decoder(Annotated[tuple[_Row, ...], Meta(max_length=_ROWS_MAX)])


def revivals_text(revivals: Sequence[Revival]) -> str:
    return encode([_Row(**asdict(one)) for one in revivals]).decode()


def revivals_from(source: str) -> tuple[Revival, ...]:
    return tuple(Revival(**asdict(row)) for row in _rows.decode(source))
