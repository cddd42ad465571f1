"""Keys of the Registry: the kind of a record, and which one of its kind.

A kind that is read in order is one partition; a kind that is written often is spread over many.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duewheel.rules.access.name_spans import NameSpan

IF_ABSENT: Any = {
    "ConditionExpression": "attribute_not_exists(#kind)",
    "ExpressionAttributeNames": {"#kind": "kind"},
}


def key(kind: str, record: str) -> dict[str, Any]:
    return {"kind": {"S": kind}, "record": {"S": record}}


SHAPE = key("wheel", "shape")
BUSINESS_KIND = "business"  # one partition, so that they are listed in order
API_KEY_KIND = "api-key"  # one partition; the authorizer's role may reach no other
SEEN_KIND = "seen"  # one partition, so that they are listed in order
OPEN_OPERATIONS_KIND = "open-operations"  # one partition: the sweeper reads it each minute
PARKING_KIND = "parking"  # one partition: the sweeper reads it each minute
_HEALTH = "standing#"
_TIMER = "timer#"


def records_within(kind: str, span: "NameSpan") -> dict[str, Any]:
    """The parts of a query."""
    return {
        "KeyConditionExpression": "#kind = :kind AND #record BETWEEN :low AND :high",
        "ExpressionAttributeNames": {"#kind": "kind", "#record": "record"},
        "ExpressionAttributeValues": {
            ":kind": {"S": kind},
            ":low": {"S": span.low},
            ":high": {"S": span.high},
        },
    }


def pointer(name: str) -> dict[str, Any]:
    return key("pointer", name)


def statistics_kind(biz_type: str, day: int) -> str:
    """A business's day, in days since the epoch."""
    return f"statistics#{biz_type}#{day}"


def load_kind(hour: int) -> str:
    """An hour, in hours since the epoch."""
    return f"load#{hour}"


def minute_record(minute: int) -> str:
    """Minutes since the epoch, so that they sort by time."""
    return f"{minute:010d}"


def request(name: str) -> dict[str, Any]:
    return key(f"idempotency#{name}", "request")


def made(name: str) -> dict[str, Any]:
    """What a request under an idempotency key has made, in one transaction with this record."""
    return key(f"idempotency#{name}", "made")


def operations_kind(biz_type: str) -> str:
    """The bulk operations of a business in the order in which they were made."""
    return f"operations#{biz_type}"


def operation(biz_type: str, mark: str) -> dict[str, Any]:
    return key(operations_kind(biz_type), mark)


def operation_parts_kind(operation_id: str) -> str:
    return f"operation#{operation_id}"


def operation_ids(operation_id: str) -> dict[str, Any]:
    """The items that it was given."""
    return key(operation_parts_kind(operation_id), "ids")


def refused_by_operation(operation_id: str, number: int) -> dict[str, Any]:
    """What could not be changed, by the number of the write that counts it."""
    return key(operation_parts_kind(operation_id), f"refused#{number:010d}")


def number_of_refused(item: Mapping[str, Any]) -> int:
    return int(str(item["record"]["S"]).partition("#")[2])


def open_operation(caller: str, number: int) -> dict[str, Any]:
    """That an operation of the caller has not ended."""
    return key(OPEN_OPERATIONS_KIND, f"{caller}#{number}")


def worker_of_operations(seat: int) -> dict[str, Any]:
    return key("bulk-workers", str(seat))


def turns(limit: str, scope: str) -> dict[str, Any]:
    """`scope`: a business, or one of its flow keys."""
    return key(f"turns#{scope}", limit)


def permits(scope: str) -> dict[str, Any]:
    """Beside the turns, so that a role that may take turns may take permits."""
    return key(f"turns#{scope}", "permits")


def business(biz_type: str) -> dict[str, Any]:
    return key(BUSINESS_KIND, biz_type)


def api_key(key_id: str) -> dict[str, Any]:
    return key(API_KEY_KIND, key_id)


def api_key_id_of(item: Mapping[str, Any]) -> str:
    return str(item["record"]["S"])


def parking(scope: str) -> dict[str, Any]:
    """`scope`: a business, or one of its flow keys."""
    return key(PARKING_KIND, scope)


def seen(biz_type: str) -> dict[str, Any]:
    """That it has had tasks."""
    return key(SEEN_KIND, biz_type)


def health(biz_type: str) -> dict[str, Any]:
    return key(f"{_HEALTH}{biz_type}", "standing")


def is_health(item: Mapping[str, Any]) -> bool:
    return str(item["kind"]["S"]).startswith(_HEALTH)


def biz_type_of(item: Mapping[str, Any]) -> str:
    """The business of a record of settings or health."""
    if is_health(item):
        return str(item["kind"]["S"]).removeprefix(_HEALTH)
    return str(item["record"]["S"])


def timer(timer_id: str) -> dict[str, Any]:
    return key(f"{_TIMER}{timer_id}", "definition")


def timer_counters(timer_id: str) -> dict[str, Any]:
    return key(f"{_TIMER}{timer_id}", "counters")


def timer_running(timer_id: str) -> dict[str, Any]:
    """The occurrence that was begun last."""
    return key(f"{_TIMER}{timer_id}", "running")


def timer_id_of(item: Mapping[str, Any]) -> str:
    return str(item["kind"]["S"]).removeprefix(_TIMER)


def changes(kind: str, name: str) -> dict[str, Any]:
    """The last changes of a definition of this kind."""
    return key(f"changes#{kind}#{name}", "last")


def timer_lines_kind(biz_type: str) -> str:
    """A business's timers in the order of their names."""
    return f"timers#{biz_type}"


def timer_line(biz_type: str, name: str, timer_id: str) -> dict[str, Any]:
    return key(timer_lines_kind(biz_type), f"{name}#{timer_id}")


def timer_name(biz_type: str, name: str) -> dict[str, Any]:
    """The latest timer that was made by this name."""
    return key(f"timer-names#{biz_type}", name)


def timer_of_line(item: Mapping[str, Any]) -> tuple[str, str]:
    """Name and id. A name may contain the separator; an id does not."""
    name, _, timer_id = str(item["record"]["S"]).rpartition("#")
    return name, timer_id
