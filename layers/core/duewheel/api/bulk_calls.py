"""The calls on bulk operations."""

from collections.abc import Mapping

from duewheel.interface.bulk.operation_view import (
    OperationsView,
    OperationView,
    RefusedItemsView,
    operation_text,
    operations_text,
    refused_text,
)
from duewheel.interface.http import Answer, Call, Request, reads, writes
from duewheel.rules import refusals
from duewheel.rules.bulk.operation import Operation
from duewheel.rules.bulk.requests import (
    BODY_BYTES_MAX,
    NewOperationBody,
    OperationsQuery,
    RefusedQuery,
    operation_request,
    operations_query,
)
from duewheel.rules.query_string import read_query
from duewheel.rules.tasks.idempotency import HEADER
from duewheel.wiring import api as wiring
from duewheel.wiring import process


def create_operation(request: Request) -> Answer:
    body = request.text(BODY_BYTES_MAX)
    new = operation_request(body, process.clock().now_ms())
    request.permit.check(new.biz_type)
    operation = wiring.create_operation()(new, by=request.caller, once=request.once(body))
    return Answer(
        201,
        operation_text(operation),
        headers={"location": f"/v1/operations/{operation.operation_id}"},
        log_fields=_log_fields(operation),
    )


def list_operations(request: Request) -> Answer:
    query = operations_query(request.query)
    if query.biz_type is None:
        page = wiring.read_operations().everywhere(query, request.access)
    else:
        request.permit.check(query.biz_type)
        page = wiring.read_operations().page(query, query.biz_type)
    return Answer(200, operations_text(page))


def read_operation(request: Request, operation_id: str) -> Answer:
    return Answer(200, operation_text(wiring.read_operations().find(operation_id, request.permit)))


def stop_operation(request: Request, operation_id: str) -> Answer:
    operation = wiring.stop_operation()(operation_id, request.permit)
    return Answer(200, operation_text(operation), log_fields=_log_fields(operation))


def list_refused(request: Request, operation_id: str) -> Answer:
    query = read_query(request.query, RefusedQuery)
    page = wiring.read_operations().refused(operation_id, query, request.permit)
    return Answer(200, refused_text(page))


def _log_fields(operation: Operation) -> Mapping[str, object]:
    return {
        "operation_id": operation.operation_id,
        "biz_type": operation.biz_type,
        "action_of_operation": operation.wish.action.value,
    }


_BY_ID = (refusals.UnknownOperation,)

CALLS: dict[str, Mapping[str, Call]] = {
    "/v1/operations": {
        "GET": reads(list_operations, OperationsView, query=OperationsQuery),
        "POST": writes(
            create_operation,
            OperationView,
            refusals.ListIndexOff,
            refusals.TooManyOperations,
            refusals.IdempotencyKeyReused,
            body=NewOperationBody,
            takes=(HEADER,),
            statuses=(201,),
            gives=("Location",),
        ),
    },
    "/v1/operations/{operation_id}": {"GET": reads(read_operation, OperationView, *_BY_ID)},
    "/v1/operations/{operation_id}/stop": {
        "POST": writes(stop_operation, OperationView, *_BY_ID, refusals.OperationEnded)
    },
    "/v1/operations/{operation_id}/refused": {
        "GET": reads(list_refused, RefusedItemsView, *_BY_ID, query=RefusedQuery)
    },
}
