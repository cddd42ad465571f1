"""`If-Match` and `If-None-Match`: the version that a record must have for a request to be carried
out.
"""

import re

from msgspec import Struct

from duewheel.rules.fields import invalid
from duewheel.rules.refusals import VersionMismatch

IF_MATCH = "if-match"
IF_NONE_MATCH = "if-none-match"

_TAG = re.compile(r'"([0-9]{1,15})"')


class Precondition(Struct, frozen=True):
    version: int | None = None
    is_there: bool | None = None  # None: either way

    def check(self, kind: str, version: int) -> None:
        """`kind`: of the record, such as "business". Version 0: there is no record."""
        if self.is_there is False and version:
            raise VersionMismatch(f"The {kind} is there already.", IF_NONE_MATCH)
        if self.is_there and not version:
            raise VersionMismatch(f"The {kind} is not there.", IF_MATCH)
        if self.version is not None and self.version != version:
            raise VersionMismatch(
                f"The {kind} is at version {version}." if version else f"The {kind} is not there.",
                IF_MATCH,
            )


def precondition(if_match: str | None, if_none_match: str | None) -> Precondition:
    if if_none_match is not None:
        if if_none_match.strip() != "*":
            raise invalid(IF_NONE_MATCH, "must be *, which creates and changes nothing.")
        if if_match is not None:
            raise invalid(IF_NONE_MATCH, "cannot be combined with if-match.")
        return Precondition(is_there=False)
    if if_match is None:
        return Precondition()
    if if_match.strip() == "*":
        return Precondition(is_there=True)
    tag = _TAG.fullmatch(if_match.strip())
    if tag is None:
        raise invalid(IF_MATCH, 'must be a version in double quotes, as in etag: "3".')
    return Precondition(version=int(tag[1]))
