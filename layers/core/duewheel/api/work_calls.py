"""The calls by which a receiver reports on work that goes on after its callback.

The completion token of the callback is the only credential: it is checked before anything is read.
"""

from collections.abc import Mapping

from duewheel.interface.http import Answer, Call, Carry, Request, by_token, encoded
from duewheel.interface.tasks.work_view import WorkView, work_view
from duewheel.rules import refusals
from duewheel.rules.callbacks.completion import name_in
from duewheel.rules.callbacks.payload_encoding import TOKEN_HEADER, AttemptName
from duewheel.rules.refusals import InvalidToken
from duewheel.rules.tasks import long_work
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import address_of_task
from duewheel.wiring import process


def complete_task(request: Request, task_id: str) -> Answer:
    name = _named(request, task_id)
    result = long_work.result_from(request.text_by_token(long_work.REPORT_BYTES_MAX))
    from duewheel.wiring.long_work import reported_work

    return _answer(reported_work().complete(address_of_task(task_id), name, result))


def fail_task(request: Request, task_id: str) -> Answer:
    name = _named(request, task_id)
    outcome = long_work.failure_from(request.text_by_token(long_work.REPORT_BYTES_MAX))
    from duewheel.wiring.long_work import reported_work

    return _answer(reported_work().fail(address_of_task(task_id), name, outcome))


def report_progress(request: Request, task_id: str) -> Answer:
    name = _named(request, task_id)
    note, within = long_work.progress_from(request.text_by_token(long_work.REPORT_BYTES_MAX))
    from duewheel.wiring.long_work import reported_work

    return _answer(reported_work().progress(address_of_task(task_id), name, note, within))


def _named(request: Request, task_id: str) -> AttemptName:
    name = name_in(request.completion_token, task_id, process.completion_secret())
    if name is None:
        raise InvalidToken(f"The call needs the header {TOKEN_HEADER} as the callback had it.")
    return name


def _answer(task: Task) -> Answer:
    log_fields = {"task_id": task.task_id, "biz_type": task.biz_type}
    return Answer(200, encoded(work_view(task)), log_fields=log_fields)


def _report(function: Carry, body: type) -> Mapping[str, Call]:
    problems = (refusals.InvalidToken, refusals.UnknownTask, refusals.NotRunning)
    takes = (TOKEN_HEADER,)
    return {
        "POST": by_token(function, WorkView, *problems, body=body, needs_body=False, takes=takes)
    }


CALLS: dict[str, Mapping[str, Call]] = {
    "/v1/tasks/{task_id}/complete": _report(complete_task, long_work.CompletionBody),
    "/v1/tasks/{task_id}/fail": _report(fail_task, long_work.FailureBody),
    "/v1/tasks/{task_id}/progress": _report(report_progress, long_work.ProgressBody),
}
