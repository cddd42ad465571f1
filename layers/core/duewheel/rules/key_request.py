"""The query string of calls on a key prefix."""

from msgspec import Struct

from duewheel.rules.query_string import Parameters
from duewheel.rules.task_request import checked_key

LIMIT_DEFAULT = 50
LIMIT_MAX = 100


class PrefixRequest(Struct, frozen=True):
    prefix: str
    cursor: str | None
    limit: int


def prefix_request(query_string: str) -> PrefixRequest:
    """A prefix is never empty: nobody cancels a whole business by leaving something out."""
    parameters = Parameters.of(query_string, ("key_prefix", "cursor", "limit"))
    return PrefixRequest(
        checked_key(parameters.required_text("key_prefix"), "key_prefix"),
        parameters.text("cursor"),
        parameters.whole_number("limit", 1, LIMIT_MAX) or LIMIT_DEFAULT,
    )
