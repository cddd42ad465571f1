"""From the query string of a list call to what is asked for, and its limits."""

from msgspec import Struct

from duewheel.rules.listing import LIMIT_DEFAULT, LIMIT_MAX, ListQuery, Order
from duewheel.rules.query_string import Parameters
from duewheel.rules.task import Status
from duewheel.rules.task_fields import invalid
from duewheel.rules.task_request import checked_biz_type

_KNOWN = ("biz_type", "status", "due_from", "due_to", "order", "cursor", "limit")


class ListRequest(Struct, frozen=True):
    query: ListQuery
    limit: int = LIMIT_DEFAULT
    cursor: str | None = None


def list_request(query_string: str) -> ListRequest:
    parameters = Parameters.of(query_string, _KNOWN)
    return ListRequest(
        _query(parameters),
        parameters.whole_number("limit", 1, LIMIT_MAX) or LIMIT_DEFAULT,
        parameters.text("cursor"),
    )


def _query(parameters: Parameters) -> ListQuery:
    biz_type = checked_biz_type(parameters.required_text("biz_type"))
    status = parameters.one_of("status", [status.value for status in Status])
    due_from_ms = parameters.instant_ms("due_from")
    due_to_ms = parameters.instant_ms("due_to")
    if due_from_ms is not None and due_to_ms is not None and due_to_ms <= due_from_ms:
        raise invalid("due_to", "must be later than due_from.")
    order = parameters.one_of("order", [order.value for order in Order])
    return ListQuery(
        biz_type,
        None if status is None else Status(status),
        due_from_ms,
        due_to_ms,
        Order.ASC if order is None else Order(order),
    )
