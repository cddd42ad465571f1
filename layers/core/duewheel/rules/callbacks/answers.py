"""The setting of a business by which answers are kept, as requests have it.

No header that may carry a secret is kept.
"""

import re
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from duewheel.rules.callbacks.secret_headers import carries_secret
from duewheel.rules.callbacks.types import KEPT_BYTES_MAX, KeepAnswers
from duewheel.rules.fields import RequestBody, given, invalid

HEADERS_MAX = 8

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")


class KeepAnswersBody(RequestBody):
    """What is kept of the last answer to each task, beside its beginning in the `history`."""

    body_bytes: Annotated[int, Meta(ge=0, le=KEPT_BYTES_MAX)] | UnsetType = UNSET
    headers: (
        Annotated[
            tuple[Annotated[str, Meta(min_length=1, max_length=64)], ...],
            Meta(
                max_length=HEADERS_MAX,
                description="Names of headers, none of which may carry a secret.",
            ),
        ]
        | UnsetType
    ) = UNSET


def keep_answers_from(body: KeepAnswersBody, path: str) -> KeepAnswers:
    names = given(body.headers, ())
    for index, name in enumerate(names):
        where = f"{path}.headers[{index}]"
        if not _NAME.fullmatch(name):
            raise invalid(where, "is no name that a header can have.")
        if carries_secret(name, ""):
            raise invalid(where, "may carry a secret, which is not kept.")
    unique = tuple(dict.fromkeys(name.lower() for name in names))
    return KeepAnswers(given(body.body_bytes, KEPT_BYTES_MAX), unique)


def shown_keep_answers(keep: KeepAnswers) -> KeepAnswersBody:
    """In the form of a request."""
    return KeepAnswersBody(keep.body_bytes, keep.headers)
