"""A page of a list over all businesses that its caller reaches: one business after the other, in
the order of their names. The work of a request is bounded, however many there are.

A position is the name of a business that is done, or of one with the position within its own list.
It names only businesses within reach; of a position that is not, the list goes on behind it.
"""

from collections.abc import Callable
from itertools import chain
from typing import Generic, TypeVar

from msgspec import Struct

from duewheel.rules.access.grants import Access
from duewheel.rules.tasks.listing import Room
from duewheel.workflows.businesses.known import KnownBusinesses

BUSINESSES_AT_ONCE = 10  # a business costs sixteen queries

T = TypeVar("T")
# Of a business, from a position within its list: what was found, and the position reached.
Read = Callable[[str, str | None], tuple[list[T], str | None]]


class Part(Struct, Generic[T], frozen=True):
    found: list[T]
    position: str | None  # None: the list is at its end
    businesses: int  # that were looked at


class AllBusinesses(Struct, frozen=True):
    known: KnownBusinesses

    def page(self, access: Access, position: str | None, room: Room, read: Read[T]) -> Part[T]:
        begun, _, inside = (position or "").partition(" ")
        names = self.known.names(access, begun or None, BUSINESSES_AT_ONCE + 1)
        if inside and access.reaches(begun):
            names = chain([begun], names)
        found: list[T] = []
        looked_at, last = 0, begun
        for name in names:
            if looked_at == BUSINESSES_AT_ONCE or room.is_full:
                return Part(found, last, looked_at)
            some, behind = read(name, inside if name == begun else None)
            found += some
            looked_at += 1
            if behind is not None:
                return Part(found, f"{name} {behind}", looked_at)
            last = name
        return Part(found, None, looked_at)
