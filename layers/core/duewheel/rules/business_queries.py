"""The query strings of calls on businesses: which page of their list, and how one is deleted."""

from msgspec import Struct

from duewheel.rules.query_string import Parameters

LIMIT_DEFAULT = 50
LIMIT_MAX = 100


class BusinessesRequest(Struct, frozen=True):
    cursor: str | None
    limit: int


class DeleteRequest(Struct, frozen=True):
    cancels_pending: bool
    cursor: str | None


def businesses_request(query_string: str) -> BusinessesRequest:
    parameters = Parameters.of(query_string, ("cursor", "limit"))
    limit = parameters.whole_number("limit", 1, LIMIT_MAX) or LIMIT_DEFAULT
    return BusinessesRequest(parameters.text("cursor"), limit)


def delete_request(query_string: str) -> DeleteRequest:
    parameters = Parameters.of(query_string, ("cancel_pending", "cursor"))
    cancels = parameters.one_of("cancel_pending", ("true", "false")) == "true"
    return DeleteRequest(cancels, parameters.text("cursor"))
