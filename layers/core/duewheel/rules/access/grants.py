"""Who a caller is, by what API Gateway says, and what they may do: rights, grants of rights on
businesses, and the permit that a call needs.

Invariants: without the identity that the deployment requires, or with one that is not understood,
the caller is anonymous and has no grant. A right includes those before it, and a grant permits all
that it includes. So a caller who may only grant what its own grants include can never permit more
than it has.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from duewheel.rules.names import BIZ_TYPE
from duewheel.rules.refusals import NotPermitted, Refusal

ALL = "*"  # all businesses

BUSINESSES = re.compile(rf"{BIZ_TYPE.pattern}|(?:{BIZ_TYPE.pattern})?\*")
BEGINNING = "+"  # written for `*` in a name of IAM, which cannot have one
_BY_KEY = "key/"
_ARN = re.compile(r"arn:[a-z-]+:(?:iam|sts)::([0-9]{12}):(.+)")
# Of a permission set in IAM Identity Center; AWS reserves the prefix.
_OF_PERMISSION_SET = re.compile(r"AWSReservedSSO_(.+)_[^_]*", re.DOTALL)
_SAYS_A_RIGHT = re.compile(r"duewheel-(read|write|admin)(.*)", re.IGNORECASE | re.DOTALL)


class Right(StrEnum):
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def includes(self, other: "Right") -> bool:
        return _RANK[self] >= _RANK[other]


_RANK = {right: rank for rank, right in enumerate(Right)}


class Grant(Struct, frozen=True):
    """A right on one business by its name, on those whose names begin with the text before a `*`,
    or on all by `*`."""

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
    """Whether the text may be the businesses of a grant."""
    return BUSINESSES.fullmatch(text) is not None


def check_businesses(listed: Iterable[str]) -> None:
    """Raises ValueError for a text that may not be the businesses of a grant."""
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
    """A caller and its grants. `key_version`: of an API key, as it was when it was admitted."""

    caller: str
    grants: tuple[Grant, ...] = ()
    key_version: int | None = None

    @property
    def administers(self) -> bool:
        """Whether there is any business that it may administer."""
        return any(grant.right is Right.ADMIN for grant in self.grants)

    def reaches(self, biz_type: str) -> bool:
        """Whether the caller has any right there. If not, all answers there are "unknown"."""
        return any(grant.covers(biz_type) for grant in self.grants)

    def may(self, right: Right, biz_type: str) -> bool:
        return any(grant.right.includes(right) and grant.covers(biz_type) for grant in self.grants)

    def may_grant(self, grants: Iterable[Grant]) -> bool:
        """A caller may grant only what it has, and only where it is admin."""
        mine = [own for own in self.grants if own.right is Right.ADMIN]
        return all(any(own.includes(grant) for own in mine) for grant in grants)

    def is_above(self, grants: Iterable[Grant]) -> bool:
        """True if for each admin right in `grants` this caller has a wider one. Of two callers that
        administer the same, neither is above the other."""
        theirs = tuple(grants)
        wider = [
            own
            for own in self.grants
            if own.right is Right.ADMIN and not any(grant.includes(own) for grant in theirs)
        ]
        admins = [grant for grant in theirs if grant.right is Right.ADMIN]
        return all(any(own.includes(grant) for own in wider) for grant in admins)


class Permit(Struct, frozen=True):
    """The right that one call needs, checked against the access of its caller."""

    access: Access
    right: Right

    @property
    def caller(self) -> str | None:
        """None: the service itself."""
        return None if self is ANYTHING else self.access.caller

    def check_found(self, biz_type: str, unknown: Refusal) -> None:
        """For a record found by its id: a caller without access to its business gets the same
        answer as for an unknown id."""
        if not self.access.reaches(biz_type):
            raise unknown
        self.check(biz_type)

    def check_anywhere(self) -> None:
        """Refuse a caller that has the right on no business, before the request is read."""
        if not any(grant.right.includes(self.right) for grant in self.access.grants):
            raise NotPermitted(f"This call needs the right to {_DOING[self.right]} a business.")

    def check(self, biz_type: str, path: str = "biz_type") -> None:
        """Also for unknown businesses: the answer does not reveal which exist."""
        if not self.access.may(self.right, biz_type):
            named = "all businesses" if biz_type == ALL else f"business {biz_type}"
            raise NotPermitted(f"This call needs the right to {_DOING[self.right]} {named}.", path)


_DOING = {Right.READ: "read", Right.WRITE: "write to", Right.ADMIN: "administer"}

ANONYMOUS = Access("nobody")
# For actions of the service itself, and for a stack without access control.
ANYTHING = Permit(Access("local", (Grant(Right.ADMIN, ALL),)), Right.ADMIN)


IAM_DEFAULTS: Mapping[str, Right | None] = {
    **{right.value: right for right in Right},
    "none": None,
}


class AuthMode(StrEnum):
    IAM = "iam"
    KEYS = "keys"
    OFF = "off"  # only for the local stack: no template allows it


class Callers(Struct, frozen=True):
    mode: AuthMode
    account: str  # whose identities count
    iam_default: Right | None  # on all businesses, if the name states no right

    def access(self, authorizer: Mapping[str, Any], now_ms: int) -> Access:
        """`authorizer`: `requestContext.authorizer` of the event."""
        match self.mode:
            case AuthMode.OFF:
                return ANYTHING.access
            case AuthMode.IAM:
                return self._of_iam(authorizer.get("iam"))
            case AuthMode.KEYS:
                return _of_key(authorizer.get("lambda"), now_ms)

    def _of_iam(self, identity: Any) -> Access:
        arn = identity.get("userArn") if isinstance(identity, Mapping) else None
        parts = _ARN.fullmatch(arn) if isinstance(arn, str) else None
        if parts is None or parts[1] != self.account:
            return ANONYMOUS
        kind, _, rest = parts[2].partition("/")
        # Without the session of an assumed role: all instances of a service are one caller.
        caller = parts[0].rpartition("/")[0] if kind == "assumed-role" else parts[0]
        name = _name(kind, rest)
        return Access(caller) if name is None else Access(caller, self.grants(name))

    def grants(self, name: str) -> tuple[Grant, ...]:
        """By a name. A malformed one that begins like a right has none: it was meant as a limit."""
        found = _SAYS_A_RIGHT.fullmatch(name)
        if found is None:
            return () if self.iam_default is None else (Grant(self.iam_default, ALL),)
        right, rest = found.groups()
        businesses = rest[1:] if rest else ALL
        if rest.endswith(BEGINNING):
            businesses = businesses[: -len(BEGINNING)] + ALL
        is_spelt_right = name.startswith(f"duewheel-{right.lower()}") and rest[:1] in ("", "-")
        if not is_spelt_right or not are_businesses(businesses):
            return ()
        return (Grant(Right(right), businesses),)


def _name(kind: str, rest: str) -> str | None:
    """The name of a role or of a user; the path does not matter, since IAM takes each name once.
    Others have no such name: a federated user is named by its creator, who may be limited by a
    name."""
    if kind == "assumed-role":
        role = rest.partition("/")[0]
        set_ = _OF_PERMISSION_SET.fullmatch(role)
        return set_[1] if set_ else role
    return rest.rpartition("/")[2] if kind == "user" else None


def _of_key(context: Any, now_ms: int) -> Access:
    """As the authorizer saw the key up to a minute ago; the key may have expired since."""
    try:
        caller, expires = key_caller(context["key_id"]), str(context["expires_ms"])
        grants, version = grants_of(context["grants"]), int(context["version"])
        if expires and now_ms >= int(expires):
            return ANONYMOUS
    except (KeyError, TypeError, ValueError, AttributeError):
        return ANONYMOUS
    return Access(caller, grants, version)


def key_id_of(caller: str) -> str | None:
    """None for a caller without a key."""
    return caller.removeprefix(_BY_KEY) if caller.startswith(_BY_KEY) else None


def key_caller(key_id: str) -> str:
    """The name of a key in logs, records and request records."""
    return f"{_BY_KEY}{key_id}"
