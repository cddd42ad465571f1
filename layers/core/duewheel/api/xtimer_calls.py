"""The xTimer interface: its calls, its codes. The timers are those of `/v1/timers`."""

from collections.abc import Callable, Mapping
from functools import wraps

from msgspec.structs import replace

from duewheel.interface.http import Answer, Request
from duewheel.interface.routes import Call, Carry, reads, writes
from duewheel.interface.timers import xtimer_view
from duewheel.interface.timers.xtimer_view import done
from duewheel.rules.refusals import Refusal
from duewheel.rules.tasks.requests import SINGLE_BYTES_MAX
from duewheel.rules.timers.timer import Timer, no_such_timer
from duewheel.rules.timers.xtimer import requests as parse
from duewheel.rules.timers.xtimer.app_names import biz_type_of
from duewheel.rules.timers.xtimer.requests import Named
from duewheel.wiring import process
from duewheel.wiring import timers as wiring


def _in_its_codes(call: Carry) -> Carry:
    @wraps(call)
    def answer(request: Request) -> Answer:
        try:
            return call(request)
        except Refusal as refusal:
            return xtimer_view.refused(refusal)

    return answer


@_in_its_codes
def create(request: Request) -> Answer:
    new = parse.new_timer(request.text(SINGLE_BYTES_MAX), process.clock().now_ms())
    request.permit.check(new.biz_type, "app")
    timer_id = wiring.create_timer()(new, by=request.caller).timer_id
    return replace(done(id=int(timer_id)), log_fields={"timer_id": timer_id})


@_in_its_codes
def read(request: Request) -> Answer:
    timer = _found(request, parse.named_in_query(request.query))
    return done(data=xtimer_view.timer_view(timer))


@_in_its_codes
def delete(request: Request) -> Answer:
    return _changed(request, wiring.change_timer().delete)


@_in_its_codes
def enable(request: Request) -> Answer:
    return _changed(request, wiring.change_timer().enable)


@_in_its_codes
def unable(request: Request) -> Answer:
    return _changed(request, wiring.change_timer().disable)


@_in_its_codes
def list_timers(request: Request) -> Answer:
    app, paging = parse.timers_of(request.query)
    request.permit.check(biz_type_of(app), "app")
    timers, total = wiring.read_xtimer().of_app(app, paging)
    return done(data=xtimer_view.timers_view(timers), total=total)


@_in_its_codes
def list_records(request: Request) -> Answer:
    named, paging = parse.records_of(request.query)
    timer = _found(request, named)
    tasks, total = wiring.read_xtimer().records(timer, paging)
    return done(data=[xtimer_view.record_view(task, timer.timer_id) for task in tasks], total=total)


def _changed(request: Request, change: Callable[..., Timer]) -> Answer:
    timer_id = _found(request, parse.named_in_body(request.text(SINGLE_BYTES_MAX))).timer_id
    change(timer_id, by=request.caller)
    return replace(done(), log_fields={"timer_id": timer_id})


def _found(request: Request, named: Named) -> Timer:
    """The timer, which is the app's that names it."""
    if named.app is not None:
        request.permit.check(biz_type_of(named.app), "app")
    timer = wiring.read_xtimer().one(named)
    request.permit.check_found(timer.biz_type, no_such_timer())
    return timer


CALLS: dict[str, Mapping[str, Call]] = {
    "/api/timer/v1/def": {"POST": writes(create), "GET": reads(read), "DELETE": writes(delete)},
    "/api/timer/v1/enable": {"POST": writes(enable)},
    "/api/timer/v1/unable": {"POST": writes(unable)},
    "/api/timer/v1/defs": {"GET": reads(list_timers)},
    "/api/task/v1/records": {"GET": reads(list_records)},
}
