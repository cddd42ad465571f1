"""A bulk operation as an item of the Registry, and back."""

from typing import Annotated, Any

from msgspec import Meta, Struct, convert
from msgspec.json import Decoder, encode
from msgspec.structs import astuple, fields

from duewheel.rules.bulk.open_ones import Marker
from duewheel.rules.bulk.operation import (
    IDS_MAX,
    Counts,
    Operation,
    Page,
    RefusedItem,
    State,
    Wish,
    reached_ms,
)
from duewheel.rules.bulk.requests import named_operation
from duewheel.rules.instants import WrittenMs
from duewheel.rules.names import BizType
from duewheel.rules.refusals import UnknownOperation
from duewheel.rules.wheel.addresses import Second
from duewheel.rules.wheel.queue_messages import NOT_UNDERSTOOD
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import Item
from duewheel.stores.item_attributes import (
    InstantMs,
    InvalidAttribute,
    N,
    S,
    Source,
    Text,
    attributes,
    built,
    decoded,
    reported,
    text,
)

_Count = Annotated[int, Meta(ge=0, le=10**15)]
_Source = Annotated[str, Meta(max_length=200_000)]


class _Row(Struct, kw_only=True):
    kind: S[str]
    record: S[str]
    marker: N[_Count]
    wish: S[Source]
    state: S[State]
    created_ms: N[InstantMs]
    created_by: S[Text]
    updated_ms: N[InstantMs]
    looked_at: N[_Count]
    changed: N[_Count]
    unchanged: N[_Count]
    refused: N[_Count]
    number: N[_Count]
    position: S[Text] | None = None
    page: S[_Source] | None = None
    failures: N[_Count] | None = None
    last_problem: S[Text] | None = None
    ended_ms: N[InstantMs] | None = None
    expires_at: N[Second] | None = None
    owner: S[Text] | None = None
    lease_until_ms: N[InstantMs] | None = None


class _PageRow(Struct, array_like=True):
    items: Annotated[tuple[str, ...], Meta(max_length=IDS_MAX)]
    looked_at: _Count
    behind: str | None


AT_TIMES = tuple(one.name for one in fields(_Row) if not one.required)
# All but the page, which no reader of a list needs.
SHOWN = tuple(one.name for one in fields(_Row) if one.name != "page")

_page = Decoder(_PageRow)
_wish = Decoder(Wish)
_ids = Decoder(tuple[str, ...])
_refused: Decoder[Any] = Decoder(list[tuple[str, str, str, int, str, str | None]])


def operation_item(operation: Operation) -> dict[str, Any]:
    return {
        **registry_keys.operation(operation.biz_type, operation.mark),
        "marker": {"N": str(operation.marker)},
        "wish": {"S": encode(operation.wish).decode()},
        "state": {"S": operation.state},
        "created_ms": {"N": str(operation.created_ms)},
        "created_by": {"S": operation.created_by},
        **progress(operation),
    }


def progress(operation: Operation) -> dict[str, Any]:
    """The attributes that a worker writes; `state` is not among them, since a stop is another's."""
    counts = operation.counts
    numbers = {
        "updated_ms": operation.updated_ms,
        "looked_at": counts.looked_at,
        "changed": counts.changed,
        "unchanged": counts.unchanged,
        "refused": counts.refused,
        "number": operation.number,
        "failures": operation.failures or None,
        "ended_ms": operation.ended_ms,
        "expires_at": operation.expires_at,
        "lease_until_ms": operation.lease_until_ms or None,
    }
    texts = {
        "position": operation.position,
        "last_problem": operation.last_problem,
        "owner": operation.owner,
        "page": None if operation.page is None else _page_text(operation.page),
    }
    return {
        **{name: {"N": str(value)} for name, value in numbers.items() if value is not None},
        **{name: {"S": value} for name, value in texts.items() if value is not None},
    }


def operation_from(item: Item) -> Operation:
    """Raises UnreadableItem, and reports it, for a damaged one."""
    try:
        row = attributes(item, _Row)
        operation = Operation(
            biz_type=_biz_type_of(row),
            mark=row.record.S,
            marker=row.marker.N,
            wish=_wish_from(row.wish.S),
            state=row.state.S,
            created_ms=row.created_ms.N,
            created_by=row.created_by.S,
            updated_ms=row.updated_ms.N,
            counts=Counts(
                looked_at=row.looked_at.N,
                changed=row.changed.N,
                unchanged=row.unchanged.N,
                refused=row.refused.N,
            ),
            position=row.position and row.position.S,
            page=decoded("page", row.page, _page_from),
            number=row.number.N,
            failures=row.failures.N if row.failures else 0,
            last_problem=row.last_problem and row.last_problem.S,
            ended_ms=row.ended_ms and row.ended_ms.N,
            expires_at=row.expires_at and row.expires_at.N,
            owner=row.owner and row.owner.S,
            lease_until_ms=row.lease_until_ms.N if row.lease_until_ms else 0,
        )
        built(item, "position", lambda: convert(reached_ms(operation), WrittenMs | None))
    except InvalidAttribute as error:
        raise reported(item, error.attribute) from error
    return operation


def _biz_type_of(row: _Row) -> str:
    return convert(row.kind.S.removeprefix(registry_keys.operations_kind("")), BizType)


def _wish_from(source: str) -> Wish:
    """Without a member of its filter an operation would change tasks that are not meant."""
    try:
        return _wish.decode(source)
    except NOT_UNDERSTOOD as error:
        raise InvalidAttribute("wish") from error


def _page_text(page: Page) -> str:
    return encode(_PageRow(page.items, page.looked_at, page.behind)).decode()


def _page_from(source: str) -> Page:
    row = _page.decode(source)
    return Page(row.items, row.looked_at, row.behind)


def marker_of(operation: Operation) -> Marker:
    return Marker(operation.created_by, operation.marker, operation.operation_id)


def marker_item(marker: Marker) -> dict[str, Any]:
    key = registry_keys.open_operation(marker.caller, marker.number)
    return {**key, "operation_id": {"S": marker.operation_id}}


def marker_from(item: Item) -> Marker:
    """Raises UnreadableItem, and reports it, for a damaged one."""
    caller, _, number = item["record"]["S"].rpartition("#")
    try:
        operation_id = text(item, "operation_id")
        named_operation(operation_id)
        return Marker(caller, int(number), operation_id)
    except (InvalidAttribute, UnknownOperation, ValueError) as error:
        raise reported(item, "operation_id") from error


def ids_attribute(ids: tuple[str, ...]) -> dict[str, Any]:
    return {"ids": {"S": encode(ids).decode()}}


def ids_from(item: Item) -> tuple[str, ...]:
    try:
        return _ids.decode(item["ids"]["S"])
    except NOT_UNDERSTOOD as error:
        raise reported(item, "ids") from error


def refused_attribute(refused: list[RefusedItem]) -> dict[str, Any]:
    return {"refused": {"S": encode([astuple(one) for one in refused]).decode()}}


def refused_from(item: Item) -> list[RefusedItem]:
    names = RefusedItem.__struct_fields__
    try:
        rows: list[Any] = _refused.decode(item["refused"]["S"])
    except NOT_UNDERSTOOD as error:
        raise reported(item, "refused") from error
    return [RefusedItem(**dict(zip(names, row, strict=True))) for row in rows]
