"""The xTimer interface: its calls, its codes. The timers are those of `/v1/timers`."""

from collections.abc import Callable, Mapping
from functools import wraps

from duewheel.interface import xtimer_view
from duewheel.interface.answer import Answer
from duewheel.interface.calls import Call
from duewheel.interface.request import Request
from duewheel.interface.xtimer_view import done
from duewheel.rules import xtimer_request as parse
from duewheel.rules.refusals import Refusal
from duewheel.rules.task_request import SINGLE_BYTES_MAX
from duewheel.wiring import process
from duewheel.wiring import timers as wiring


def _in_its_codes(call: Callable[[Request], Answer]) -> Call:
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
    return done(id=int(wiring.create_timer()(new, by=request.caller).timer_id))


@_in_its_codes
def read(request: Request) -> Answer:
    timer = wiring.look_up_xtimer().one(parse.named_in_query(request.query))
    return done(data=xtimer_view.timer_view(timer))


@_in_its_codes
def delete(request: Request) -> Answer:
    wiring.change_timer().delete(_own(request), by=request.caller)
    return done()


@_in_its_codes
def enable(request: Request) -> Answer:
    wiring.change_timer().enable(_own(request), by=request.caller)
    return done()


@_in_its_codes
def unable(request: Request) -> Answer:
    wiring.change_timer().disable(_own(request), by=request.caller)
    return done()


@_in_its_codes
def list_timers(request: Request) -> Answer:
    timers, total = wiring.look_up_xtimer().of_app(*parse.timers_of(request.query))
    return done(data=xtimer_view.timers_view(timers), total=total)


@_in_its_codes
def list_records(request: Request) -> Answer:
    named, paging = parse.records_of(request.query)
    look_up = wiring.look_up_xtimer()
    timer = look_up.one(named)
    tasks, total = look_up.records(timer, paging)
    return done(data=[xtimer_view.record_view(task, timer.timer_id) for task in tasks], total=total)


def _own(request: Request) -> str:
    """The id of the timer, which is the app's that names it."""
    named = parse.named_in_body(request.text(SINGLE_BYTES_MAX))
    return wiring.look_up_xtimer().one(named).timer_id


CALLS: dict[str, Mapping[str, Call]] = {
    "/api/timer/v1/def": {"POST": create, "GET": read, "DELETE": delete},
    "/api/timer/v1/enable": {"POST": enable},
    "/api/timer/v1/unable": {"POST": unable},
    "/api/timer/v1/defs": {"GET": list_timers},
    "/api/task/v1/records": {"GET": list_records},
}
