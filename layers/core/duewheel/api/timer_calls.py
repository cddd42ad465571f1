"""The calls on timers: what they are, what is ahead of them, what has come of them."""

from collections.abc import Mapping

from duewheel.interface.answer import Answer, json_answer
from duewheel.interface.calls import Call
from duewheel.interface.changes_view import changes_view
from duewheel.interface.list_view import page_text
from duewheel.interface.request import Request
from duewheel.interface.task_view import task_text
from duewheel.interface.timer_view import timer_answer, timers_text, upcoming_view
from duewheel.rules.task_request import SINGLE_BYTES_MAX
from duewheel.rules.timer import Timer
from duewheel.rules.timer_ids import checked_timer_id
from duewheel.rules.timer_queries import runs_request, timers_request, upcoming_request
from duewheel.rules.timer_request import new_timer, preview_request, timer_change
from duewheel.rules.timer_state import first_second, upcoming
from duewheel.wiring import api, process
from duewheel.wiring import timers as wiring


def create_timer(request: Request) -> Answer:
    body, now_ms = request.text(SINGLE_BYTES_MAX), process.clock().now_ms()
    new = new_timer(body, now_ms, api.allowed_targets())
    timer = wiring.create_timer()(new, by=request.caller)
    return _shown(timer, 201, location=f"/v1/timers/{timer.timer_id}")


def list_timers(request: Request) -> Answer:
    return Answer(200, timers_text(api.look_up_timers().page(timers_request(request.query))))


def preview(request: Request) -> Answer:
    now_ms = process.clock().now_ms()
    asked = preview_request(request.text(SINGLE_BYTES_MAX), now_ms)
    first = first_second(asked.from_ms, now_ms // 1000)
    return json_answer(upcoming_view(upcoming(asked.rules, 0, first, asked.count)))


def read_timer(_: Request, timer_id: str) -> Answer:
    return timer_answer(api.look_up_timers().one(checked_timer_id(timer_id)))


def change_timer(request: Request, timer_id: str) -> Answer:
    change = timer_change(request.text(SINGLE_BYTES_MAX), api.allowed_targets())
    checked, precondition = checked_timer_id(timer_id), request.precondition
    return _shown(wiring.change_timer()(checked, change, precondition, by=request.caller))


def enable_timer(request: Request, timer_id: str) -> Answer:
    enable = wiring.change_timer().enable
    return _shown(enable(checked_timer_id(timer_id), request.precondition, by=request.caller))


def disable_timer(request: Request, timer_id: str) -> Answer:
    disable = wiring.change_timer().disable
    return _shown(disable(checked_timer_id(timer_id), request.precondition, by=request.caller))


def delete_timer(request: Request, timer_id: str) -> Answer:
    checked = checked_timer_id(timer_id)
    wiring.change_timer().delete(checked, request.precondition, by=request.caller)
    return json_answer({"timer_id": checked, "deleted": True})


def run_timer(_: Request, timer_id: str) -> Answer:
    task = wiring.run_timer()(checked_timer_id(timer_id))
    return Answer(201, task_text(task), headers={"location": f"/v1/tasks/{task.task_id}"})


def read_upcoming(request: Request, timer_id: str) -> Answer:
    asked = upcoming_request(request.query)
    look = api.look_up_timers().upcoming
    return json_answer(upcoming_view(look(checked_timer_id(timer_id), asked)))


def list_runs(request: Request, timer_id: str) -> Answer:
    asked = runs_request(request.query)
    page = api.look_up_timers().runs(checked_timer_id(timer_id), asked)
    return Answer(200, page_text(page.tasks, page.cursor))


def read_changes(_: Request, timer_id: str) -> Answer:
    return json_answer(changes_view(api.look_up_changes().of_timer(checked_timer_id(timer_id))))


def _shown(timer: Timer, status: int = 200, **headers: str) -> Answer:
    (shown,) = api.look_up_timers().shown([timer])
    return timer_answer(shown, status, **headers)


CALLS: dict[str, Mapping[str, Call]] = {
    "/v1/timers": {"GET": list_timers, "POST": create_timer},
    "/v1/timers/upcoming": {"POST": preview},
    "/v1/timers/{timer_id}": {"GET": read_timer, "PATCH": change_timer, "DELETE": delete_timer},
    "/v1/timers/{timer_id}/enable": {"POST": enable_timer},
    "/v1/timers/{timer_id}/disable": {"POST": disable_timer},
    "/v1/timers/{timer_id}/run": {"POST": run_timer},
    "/v1/timers/{timer_id}/upcoming": {"GET": read_upcoming},
    "/v1/timers/{timer_id}/runs": {"GET": list_runs},
    "/v1/timers/{timer_id}/changes": {"GET": read_changes},
}
