"""Which tasks a redrive by a filter finds: dead ones by their deaths, others by their due
instants."""

from typing import Annotated, Literal

from msgspec import UNSET, UnsetType

from duewheel.rules.fields import (
    Instant,
    RequestBody,
    To,
    decode,
    given,
    invalid,
    period,
    says,
)
from duewheel.rules.tasks.dead_tasks import (
    DeadQuery,
    DeadRequest,
    ErrorText,
    Reason,
    Since,
    StatusCode,
    dead_filter,
)
from duewheel.rules.tasks.listing import ListQuery, ListRequest
from duewheel.rules.tasks.task import Status

REDRIVEN_MAX = 100  # by one call

_OF_DEAD = ("since", "until", "reason", "status_code", "last_error")
_OF_OTHERS = ("due_from", "due_to")


class RedriveFilterBody(RequestBody):
    """A body without a member means all that are dead. `since` to `last_error` are for dead tasks,
    `due_from` and `due_to` for all others, which need both."""

    status: Annotated[
        Literal["dead", "delivered", "expired", "cancelled"], says("By default `dead`.")
    ] = "dead"
    since: Since | UnsetType = UNSET
    until: To | UnsetType = UNSET
    reason: Reason | UnsetType = UNSET
    status_code: StatusCode | UnsetType = UNSET
    last_error: ErrorText | UnsetType = UNSET
    due_from: Annotated[Instant, says("The due instant, inclusive.")] | UnsetType = UNSET
    due_to: To | UnsetType = UNSET
    cursor: str | UnsetType = UNSET


def redrive_request(body: str, biz_type: str) -> DeadRequest | ListRequest:
    read = decode(body, RedriveFilterBody)
    is_dead = read.status == "dead"
    for name in _OF_OTHERS if is_dead else _OF_DEAD:
        if getattr(read, name) is not UNSET:
            raise invalid(name, f"does not belong to tasks that are {read.status}.")
    cursor = given(read.cursor, None)
    if is_dead:
        wanted = DeadQuery(
            since=given(read.since, None),
            until=given(read.until, None),
            reason=given(read.reason, None),
            status_code=given(read.status_code, None),
            last_error=given(read.last_error, None),
        )
        return DeadRequest(dead_filter(wanted), cursor=cursor)
    for name in _OF_OTHERS:
        if getattr(read, name) is UNSET:
            raise invalid(name, f"is needed for tasks that are {read.status}.")
    due_from_ms, due_to_ms = period(*((name, getattr(read, name)) for name in _OF_OTHERS))
    query = ListQuery(
        biz_type=biz_type, status=Status(read.status), due_from_ms=due_from_ms, due_to_ms=due_to_ms
    )
    return ListRequest(query, REDRIVEN_MAX, cursor)
