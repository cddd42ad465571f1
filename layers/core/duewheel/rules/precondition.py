"""`If-Match` and `If-None-Match`: as what a business must stand for a request to be carried out."""

import re
from dataclasses import dataclass

from duewheel.rules.business import Business
from duewheel.rules.refusals import VersionMismatch
from duewheel.rules.task_fields import invalid

IF_MATCH = "if-match"
IF_NONE_MATCH = "if-none-match"

_TAG = re.compile(r'"([0-9]{1,15})"')


@dataclass(frozen=True, slots=True)
class Precondition:
    version: int | None = None
    is_there: bool | None = None  # None: either way

    def check(self, business: Business) -> None:
        if self.is_there is False and business.version:
            raise VersionMismatch("The business is configured already.", IF_NONE_MATCH)
        if self.is_there and not business.version:
            raise VersionMismatch("The business is not configured.", IF_MATCH)
        if self.version is not None and self.version != business.version:
            raise VersionMismatch(
                f"The business is at version {business.version}."
                if business.version
                else "The business is not configured.",
                IF_MATCH,
            )


def precondition(if_match: str | None, if_none_match: str | None) -> Precondition:
    if if_none_match is not None:
        if if_none_match.strip() != "*":
            raise invalid(IF_NONE_MATCH, "must be *, which creates and changes nothing.")
        if if_match is not None:
            raise invalid(IF_NONE_MATCH, "cannot stand beside if-match.")
        return Precondition(is_there=False)
    if if_match is None:
        return Precondition()
    if if_match.strip() == "*":
        return Precondition(is_there=True)
    tag = _TAG.fullmatch(if_match.strip())
    if tag is None:
        raise invalid(IF_MATCH, 'must be a version in double quotes, as in etag: "3".')
    return Precondition(version=int(tag[1]))
