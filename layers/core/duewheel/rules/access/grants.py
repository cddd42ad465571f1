"""Who may do what: rights, grants of them on businesses, and the permit that one call needs.

Invariant: a right includes those before it, and what a grant includes it permits as well. So
nobody who may only grant what their own grants include can ever permit more than they may.
"""

import re
from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from duewheel.rules.names import BIZ_TYPE
from duewheel.rules.refusals import NotPermitted, Refusal

ALL = "*"  # businesses, whatever their names

_BEGINNING = re.compile(rf"(?:{BIZ_TYPE.pattern})?\*")


class Right(StrEnum):
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def includes(self, other: "Right") -> bool:
        return _RANK[self] >= _RANK[other]


_RANK = {right: rank for rank, right in enumerate(Right)}


class Grant(Struct, frozen=True):
    """A right on businesses: one by its name, those whose names begin with what stands before a
    `*`, or all of them by a `*` alone."""

    right: Right
    businesses: str

    def covers(self, biz_type: str) -> bool:
        if self.businesses.endswith(ALL):
            return biz_type.startswith(self.businesses[: -len(ALL)])
        return biz_type == self.businesses

    def includes(self, other: "Grant") -> bool:
        """No business has a `*` in its name, so another's businesses are covered like a name."""
        return self.right.includes(other.right) and self.covers(other.businesses)


def are_businesses(text: str) -> bool:
    """What may stand in a grant."""
    return bool(BIZ_TYPE.fullmatch(text) or _BEGINNING.fullmatch(text))


def check_businesses(listed: Iterable[str]) -> None:
    """Raises ValueError for what may not stand in a grant."""
    for text in listed:
        if not are_businesses(text):
            raise ValueError(f"{text!r} names no businesses")


def grants_text(grants: Iterable[Grant]) -> str:
    """As a key's grants travel: `write:orders-*,read:*`."""
    return ",".join(f"{grant.right}:{grant.businesses}" for grant in grants)


def grants_of(text: str) -> tuple[Grant, ...]:
    """Raises ValueError for what `grants_text` does not write."""
    return tuple(_grant(part) for part in text.split(","))


def _grant(text: str) -> Grant:
    right, _, businesses = text.partition(":")
    if not are_businesses(businesses):
        raise ValueError("no businesses")
    return Grant(Right(right), businesses)


class Access(Struct, frozen=True):
    """Who asks, and what is granted to them. `key_version`: of an API key, as it stood when it was
    let in."""

    caller: str
    grants: tuple[Grant, ...] = ()
    key_version: int | None = None

    @property
    def administers(self) -> bool:
        """Whether there is any business that it may administer."""
        return any(grant.right is Right.ADMIN for grant in self.grants)

    def reaches(self, biz_type: str) -> bool:
        """Whether anything at all is granted there. Where it is not, nothing is known to exist."""
        return any(grant.covers(biz_type) for grant in self.grants)

    def may(self, right: Right, biz_type: str) -> bool:
        return any(grant.right.includes(right) and grant.covers(biz_type) for grant in self.grants)

    def may_grant(self, grants: Iterable[Grant]) -> bool:
        """Nobody grants more than they have, and only who is admin there grants at all."""
        mine = [own for own in self.grants if own.right is Right.ADMIN]
        return all(any(own.includes(grant) for own in mine) for grant in grants)

    def is_above(self, grants: Iterable[Grant]) -> bool:
        """Whether of each admin's right in `grants` this one has a wider one, which they have not.
        Of two who administer the same, neither is above the other."""
        theirs = tuple(grants)
        wider = [
            own
            for own in self.grants
            if own.right is Right.ADMIN and not any(grant.includes(own) for grant in theirs)
        ]
        admins = [grant for grant in theirs if grant.right is Right.ADMIN]
        return all(any(own.includes(grant) for own in wider) for grant in admins)


class Permit(Struct, frozen=True):
    """What one call needs, held against the access of who makes it."""

    access: Access
    right: Right

    def check_found(self, biz_type: str, unknown: Refusal) -> None:
        """Of what was found by its id: whose business is out of reach gets the same answer as
        for an id that there is not."""
        if not self.access.reaches(biz_type):
            raise unknown
        self.check(biz_type)

    def check_anywhere(self) -> None:
        """Raise the refusal of who has the right on no business, whatever else the request says."""
        if not any(grant.right.includes(self.right) for grant in self.access.grants):
            raise NotPermitted(f"This call needs the right to {_DOING[self.right]} a business.")

    def check(self, biz_type: str, path: str = "biz_type") -> None:
        """Also for businesses that there are not: the answer tells nobody which there are."""
        if not self.access.may(self.right, biz_type):
            named = "all businesses" if biz_type == ALL else f"business {biz_type}"
            raise NotPermitted(f"This call needs the right to {_DOING[self.right]} {named}.", path)


_DOING = {Right.READ: "read", Right.WRITE: "write to", Right.ADMIN: "administer"}

NOBODY = Access("nobody")
# Of what the service does by itself, and of a stack that asks nobody who they are.
ANYTHING = Permit(Access("local", (Grant(Right.ADMIN, ALL),)), Right.ADMIN)
