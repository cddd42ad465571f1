"""The calls of xTimer's clients, and the codes of their refusals."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path

from msgspec.structs import replace

from duewheel.interface.http import (
    Answer,
    Calls,
    Carry,
    Request,
    for_all_callers,
    json_answer,
    reads,
    writes,
)
from duewheel.rules.refusals import Refusal
from duewheel.rules.tasks.idempotency import HEADER
from duewheel.rules.tasks.requests import SINGLE_BYTES_MAX
from duewheel.rules.timers.timer import Timer, no_such_timer
from duewheel.wiring import process
from duewheel.wiring import timers as wiring
from duewheel.wiring.wheel import tasks
from duewheel.xtimer import requests as parse
from duewheel.xtimer import views
from duewheel.xtimer.app_names import biz_type_of
from duewheel.xtimer.reads import ReadXtimer
from duewheel.xtimer.requests import (
    Named,
    XTimerDefinitionBody,
    XTimerListQuery,
    XTimerNamedBody,
    XTimerQuery,
    XTimerRecordsQuery,
)
from duewheel.xtimer.views import (
    XTimerCreated,
    XTimerDone,
    XTimerList,
    XTimerRead,
    XTimerRecords,
)

API_DOCUMENT = Path(__file__).parent / "openapi.json"


@process.once
def read_xtimer() -> ReadXtimer:
    return ReadXtimer(process.clock(), wiring.timers(), tasks(), wiring.run_list())


def _in_its_codes(call: Carry) -> Carry:
    @wraps(call)
    def answer(request: Request) -> Answer:
        try:
            return call(request)
        except Refusal as refusal:
            return views.refused(refusal)

    return answer


@_in_its_codes
def xtimer_create(request: Request) -> Answer:
    body = request.text(SINGLE_BYTES_MAX)
    new = parse.new_timer(body, process.clock().now_ms())
    request.permit.check(new.biz_type, "app")
    create = wiring.create_timer()
    timer_id = create(new, by=request.caller, once=request.once(body)).timer_id
    return replace(json_answer(XTimerCreated(id=int(timer_id))), log_fields={"timer_id": timer_id})


@_in_its_codes
def xtimer_read(request: Request) -> Answer:
    timer = _found(request, parse.named_in_query(request.query))
    return json_answer(XTimerRead(data=views.timer_view(timer)))


@_in_its_codes
def xtimer_delete(request: Request) -> Answer:
    return _changed(request, wiring.change_timer().delete)


@_in_its_codes
def xtimer_enable(request: Request) -> Answer:
    return _changed(request, wiring.change_timer().enable)


@_in_its_codes
def xtimer_unable(request: Request) -> Answer:
    return _changed(request, wiring.change_timer().disable)


@_in_its_codes
def xtimer_list(request: Request) -> Answer:
    app, paging = parse.timers_of(request.query)
    request.permit.check(biz_type_of(app), "app")
    timers, total = read_xtimer().of_app(app, paging)
    shown = [views.timer_view(timer) for timer in timers]
    return json_answer(XTimerList(data=shown, total=total))


@_in_its_codes
def xtimer_records(request: Request) -> Answer:
    named, paging = parse.records_of(request.query)
    timer = _found(request, named)
    tasks, total = read_xtimer().records(timer, paging)
    shown = [views.record_view(task, timer.timer_id) for task in tasks]
    return json_answer(XTimerRecords(data=shown, total=total))


def _changed(request: Request, change: Callable[..., Timer]) -> Answer:
    timer_id = _found(request, parse.named_in_body(request.text(SINGLE_BYTES_MAX))).timer_id
    change(timer_id, by=request.caller)
    return replace(json_answer(XTimerDone()), log_fields={"timer_id": timer_id})


def _found(request: Request, named: Named) -> Timer:
    """The timer; refused if it belongs to another app than the one that the call names."""
    if named.app is not None:
        request.permit.check(biz_type_of(named.app), "app")
    timer = read_xtimer().one(named)
    request.permit.check_found(timer.biz_type, no_such_timer())
    return timer


def xtimer_document(_: Request) -> Answer:
    return Answer(200, API_DOCUMENT.read_text("utf-8"))


CALLS = Calls(
    {
        "/api/timer/v1/def": {
            "POST": writes(
                xtimer_create, XTimerCreated, body=XTimerDefinitionBody, takes=(HEADER,)
            ),
            "GET": reads(xtimer_read, XTimerRead, query=XTimerQuery),
            "DELETE": writes(xtimer_delete, XTimerDone, body=XTimerNamedBody),
        },
        "/api/timer/v1/enable": {"POST": writes(xtimer_enable, XTimerDone, body=XTimerNamedBody)},
        "/api/timer/v1/unable": {"POST": writes(xtimer_unable, XTimerDone, body=XTimerNamedBody)},
        "/api/timer/v1/defs": {"GET": reads(xtimer_list, XTimerList, query=XTimerListQuery)},
        "/api/openapi.json": {"GET": for_all_callers(xtimer_document)},
        "/api/task/v1/records": {
            "GET": reads(xtimer_records, XTimerRecords, query=XTimerRecordsQuery)
        },
    }
)
