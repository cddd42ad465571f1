"""What the verdict says of the calls of a flow key in order."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import address_at
from tests.simulation.invocation import Environment, Invocation
from tests.simulation.ledger import DueAsked, Ledger
from tests.simulation.lines import ORDERED, judged_lines
from tests.simulation.receiver import Call, ReportedEnd
from tests.support.clock import NOON_MS

OK = Outcome(Verdict.DELIVERED, "ok", status_code=200)


def task(due_seconds: int, settled_seconds: int) -> Task:
    due_ms = NOON_MS + due_seconds * 1000
    made = Task.at(address_at(due_ms, b"8 bytes!"), ORDERED, due_ms, NOON_MS)
    settled_ms = NOON_MS + settled_seconds * 1000
    return replace(made, flow_key="line", status=Status.DELIVERED, settled_ms=settled_ms)


def call(of: Task, began: float, ended: float, *, died: bool = False, run_number: int = 1) -> Call:
    run = Invocation("notifier", run_number, Environment("notifier"), 0, is_dead=died)
    return Call(of.task_id, ORDERED, 1, "", began, NOON_MS, run, OK, ended)


@dataclass
class Seen:
    calls: list[Call]
    ends: list[ReportedEnd]


def wrong(*calls: Call, ends: Sequence[ReportedEnd] = ()) -> int:
    ledger = Ledger()
    for one in (FIRST, SECOND):
        ledger.created(one.task_id, DueAsked(0.0, 0.1, 201, one.due_ms))
    return len(list(judged_lines(ledger, Seen([*calls], [*ends]), [SECOND, FIRST])))


FIRST, SECOND = task(10, 30), task(20, 40)


def test_calls_one_after_the_other_are_in_order() -> None:
    assert wrong(call(FIRST, 10, 11), call(FIRST, 29, 30), call(SECOND, 30, 31)) == 0


def test_a_call_before_an_earlier_task_has_ended_is_out_of_order() -> None:
    assert wrong(call(FIRST, 10, 11), call(SECOND, 20, 21), call(FIRST, 29, 30)) == 1


def test_a_call_beside_another_is_wrong_unless_the_run_of_that_died() -> None:
    assert wrong(call(FIRST, 29, 32), call(SECOND, 31, 33)) == 1
    assert wrong(call(FIRST, 29, 32, died=True), call(SECOND, 31, 33)) == 0


def test_a_repeat_by_a_second_message_may_be_beside_the_call_of_the_next_task() -> None:
    first, repeat = call(FIRST, 29, 30), call(FIRST, 29.5, 32, run_number=2)
    assert wrong(first, repeat, call(SECOND, 31, 33, run_number=3)) == 0
    assert wrong(first, repeat, call(SECOND, 29.7, 31, run_number=3)) > 0


def test_work_that_is_reported_as_over_during_its_call_lets_the_next_task_be_called() -> None:
    first, second = call(FIRST, 29, 32), call(SECOND, 31, 33)
    assert wrong(first, second, ends=[ReportedEnd(FIRST.task_id, 29.5, 30.5)]) == 0
    assert wrong(first, second, ends=[ReportedEnd(FIRST.task_id, 31.5, 31.7)]) == 1
    assert wrong(first, second, ends=[ReportedEnd(FIRST.task_id, 27.5, 28.5)]) == 1
    assert wrong(first, second, ends=[ReportedEnd(SECOND.task_id, 29.5, 30.5)]) == 1
