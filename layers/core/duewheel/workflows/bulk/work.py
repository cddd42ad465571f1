"""What the engine of bulk operations needs of an action: a source of pages, and the change of one
item.

An item is a text that the source makes and the change understands. It is in the record while its
page is carried out.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from duewheel.rules.bulk.operation import Operation, Page


class Source(Protocol):
    def __call__(self, operation: Operation, position: str | None) -> Page:
        """The next items behind a position, at most `page_max`; None: from the beginning."""


class Work(Struct, frozen=True, kw_only=True):
    """`change`: True if the item was changed, also if this operation did so before; False if it was
    so already. It raises a Refusal if the item cannot be changed, and `Unavailable` if it may be
    later. `id_of`: the name of an item to callers."""

    source: Source
    change: Callable[[Operation, str], bool]
    id_of: Callable[[str], str]
