"""The access of a caller, by what API Gateway says of the caller.

Invariant: without the identity that the deployment requires, or with one that is not understood,
the caller is anonymous and has no grant.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from duewheel.rules.access.grants import (
    ALL,
    ANONYMOUS,
    ANYTHING,
    Access,
    Grant,
    Right,
    are_businesses,
)
from duewheel.rules.access.grants import grants_of as granted_by

BEGINNING = "+"  # replaces `*`, which names of IAM may not contain
IAM_DEFAULTS: Mapping[str, Right | None] = {
    **{right.value: right for right in Right},
    "none": None,
}

_BY_KEY = "key/"
_ARN = re.compile(r"arn:[a-z-]+:(?:iam|sts)::([0-9]{12}):(.+)")
_SAYS_A_RIGHT = re.compile(r"duewheel-(read|write|admin)(.*)", re.IGNORECASE | re.DOTALL)


class AuthMode(StrEnum):
    IAM = "iam"
    KEYS = "keys"
    OFF = "off"  # the local stack's alone: no template takes it


class Callers(Struct, frozen=True):
    mode: AuthMode
    account: str  # whose identities count
    iam_default: Right | None  # on all businesses, for names without a right

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
        # Of an assumed role the session is left out: another instance of the same service is the
        # same caller.
        caller = parts[0].rpartition("/")[0] if kind == "assumed-role" else parts[0]
        name = _name(kind, rest)
        return Access(caller) if name is None else Access(caller, self._grants(name))

    def _grants(self, name: str) -> tuple[Grant, ...]:
        """A name that begins like a right and is malformed has no grant: it was meant to limit, and
        is misspelt."""
        matched = _SAYS_A_RIGHT.fullmatch(name)
        if matched is None:
            return () if self.iam_default is None else (Grant(self.iam_default, ALL),)
        right, rest = matched.groups()
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
        return rest.partition("/")[0]
    return rest.rpartition("/")[2] if kind == "user" else None


def _of_key(context: Any, now_ms: int) -> Access:
    """As the authorizer saw the key up to a minute ago; the key may have expired since."""
    try:
        caller, expires = key_caller(context["key_id"]), str(context["expires_ms"])
        grants, version = granted_by(context["grants"]), int(context["version"])
        if expires and now_ms >= int(expires):
            return ANONYMOUS
    except (KeyError, TypeError, ValueError, AttributeError):
        return ANONYMOUS
    return Access(caller, grants, version)


def key_id_of(caller: str) -> str | None:
    """None for a caller that brought no key."""
    return caller.removeprefix(_BY_KEY) if caller.startswith(_BY_KEY) else None


def key_caller(key_id: str) -> str:
    """The name of a key in logs, records and request records."""
    return f"{_BY_KEY}{key_id}"
