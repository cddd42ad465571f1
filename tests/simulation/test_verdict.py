"""What the verdict says of a task, by what its clients know and of its calls."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.priority import Priority
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import address_at
from duewheel.stores.tasks.codec import task_item
from tests.simulation.clients import labels_of
from tests.simulation.faults import FLAKY_HOST, Outage
from tests.simulation.found_verdict import (
    FirstCall,
    first_calls,
    found_late,
    held_up,
    waited_seconds,
)
from tests.simulation.invocation import DUPLICATE, Environment, Invocation
from tests.simulation.ledger import Asked, DueAsked, Ledger
from tests.simulation.operators import BULKED
from tests.simulation.owner_verdict import (
    COMPARED_MIN,
    low_before_high,
    too_many_in_flight,
    wrong_labels,
    wrong_notices,
)
from tests.simulation.owners import IN_FLIGHT, NARROW, TOLD
from tests.simulation.receiver import Call, Dropped
from tests.simulation.sweep_watch import BrokenSpan
from tests.simulation.verdict import Report, judged
from tests.support.cases import each_case
from tests.support.clock import NOON_MS
from tests.support.limited_business import a_task

OK = Outcome(Verdict.DELIVERED, "ok", status_code=200)
BUSY = Outcome(Verdict.RETRY, "busy", status_code=503)
HOME = address_at(NOON_MS + 10_000, b"8 bytes!")
ID = HOME.task_id


def item(status: Status = Status.DELIVERED, **fields: Any) -> dict[str, Any]:
    due_ms = NOON_MS + 10_000
    callback = HttpCallback("https://receiver.example/ok")
    task = replace(Task.at(HOME, "orders", due_ms, 1, callback), status=status, **fields)
    return task_item(task, 1_000, listed=False)


def call(at: float, heard: Outcome = OK, *troubles: str) -> Call:
    by = Invocation("notifier", 1, Environment("notifier"), 0, troubles=list(troubles))
    return Call(ID, "orders", 1, "", at, NOON_MS + round(at * 1000), by, heard)


def ledger(*dues: DueAsked, cancels: tuple[Asked, ...] = ()) -> Ledger:
    made = Ledger()
    known = made.created(ID, DueAsked(0.0, 0.1, 201, NOON_MS + 10_000))
    known.dues.extend(dues)
    known.cancels.extend(cancels)
    return made


@dataclass
class Seen:
    calls: list[Call] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    completed: dict[str, float] = field(default_factory=dict)


def verdict(made: Ledger, *calls: Call, status: Status = Status.DELIVERED) -> Report:
    return judged(made, Seen(list(calls)), [item(status)])


def test_a_task_that_was_called_on_time_and_delivered_is_as_it_should_be() -> None:
    report = verdict(ledger(), call(10.0))
    assert report.broken == []
    assert (report.created, report.calls, report.repeated) == (1, 1, 0)


def test_a_task_that_is_gone_or_pending_is_lost() -> None:
    assert judged(ledger(), Seen(), []).lost == [f"{ID} is gone"]
    assert verdict(ledger(), status=Status.PENDING).lost == [f"{ID} is still pending"]


def test_a_call_before_its_instant_is_early() -> None:
    assert verdict(ledger(), call(9.999)).early == [f"{ID} by 1 ms"]


def test_a_task_may_wait_for_a_second_within_its_tolerance_and_no_longer() -> None:
    def of(requested_ms: int, tolerance: int | None) -> Report:
        stored = item(requested_ms=requested_ms, tolerance_seconds=tolerance)
        return judged(ledger(), Seen([call(10.0)]), [stored])

    assert of(NOON_MS + 5_000, 5).broken == []
    assert of(NOON_MS + 4_999, 5).untrue
    assert of(NOON_MS + 4_999, None).broken == [], "its business may have a tolerance"
    assert of(NOON_MS + 10_001, 60).untrue, "before it is due"


def test_a_delivered_task_that_was_redriven_must_be_called_again() -> None:
    made, again = ledger(), Asked(700.0, 700.1, 200)
    made.tasks[ID].redrives.append(again)
    made.tasks[ID].called_again.append(again)
    assert verdict(made, call(10.0)).untrue
    assert verdict(made, call(10.0), call(700.05)).broken == []


def test_a_cancelled_task_may_be_called_after_a_redrive() -> None:
    made = ledger(cancels=(Asked(1.0, 1.1, 200),))
    assert verdict(made, call(10.0)).called_after_cancel
    made.tasks[ID].redrives.append(Asked(2.0, None, None))
    assert verdict(made, call(10.0)).broken == []


def test_a_moved_task_may_not_be_called_at_its_old_instant() -> None:
    moved = DueAsked(1.0, 1.1, 200, NOON_MS + 20_000)
    assert verdict(ledger(moved), call(10.0)).early
    assert verdict(ledger(moved), call(20.0)).broken == []


def test_where_the_answer_to_a_move_was_lost_both_instants_are_allowed() -> None:
    earlier = DueAsked(1.0, None, None, NOON_MS + 5_000)
    assert verdict(ledger(earlier), call(5.0)).broken == []
    assert verdict(ledger(earlier), call(10.0)).broken == []
    assert verdict(ledger(earlier), call(4.9)).early


def test_a_refused_move_allows_nothing() -> None:
    assert verdict(ledger(DueAsked(1.0, 1.1, 422, NOON_MS + 5_000)), call(5.0)).early


def test_a_call_after_a_granted_cancel_is_a_broken_promise() -> None:
    granted = ledger(cancels=(Asked(5.0, 5.1, 200),))
    assert verdict(granted, call(10.0), status=Status.CANCELLED).called_after_cancel
    assert verdict(granted, status=Status.CANCELLED).broken == []


def test_a_cancel_that_came_too_late_forbids_nothing() -> None:
    assert verdict(ledger(cancels=(Asked(9.0, 9.1, 409),)), call(10.0)).broken == []


def test_a_repeat_is_explained_by_what_befell_the_call_before_it() -> None:
    assert verdict(ledger(), call(10.0), call(11.0)).unexplained
    explained = verdict(ledger(), call(10.0, OK, "died"), call(11.0))
    assert (explained.repeated, explained.unexplained) == (1, [])


def test_a_repeat_is_explained_by_its_own_message_having_come_twice() -> None:
    """The other copy may have been passed on, and called by a run that met with nothing."""
    assert verdict(ledger(), call(10.0), call(10.1, OK, DUPLICATE)).unexplained == []
    assert verdict(ledger(), call(10.0), call(10.1, OK, "throttled")).unexplained


@pytest.mark.parametrize("troubles", [[], ["timed out, and yet done"]])
def test_a_repeat_is_explained_by_the_run_of_a_call_that_never_arrived(troubles: list[str]) -> None:
    by = Invocation("notifier", 2, Environment("notifier"), 0, troubles=troubles)
    seen = Seen([call(10.0), call(11.0)], [Dropped(ID, 1, 10.5, by)])
    report = judged(ledger(), seen, [item()])
    assert (report.unexplained == []) == bool(troubles)


def test_an_attempt_after_a_failed_one_is_no_repeat() -> None:
    report = verdict(ledger(), call(10.0, BUSY), call(11.0))
    assert (report.repeated, report.broken) == (0, [])


def test_a_record_of_a_delivery_that_nobody_heard_of_is_untrue() -> None:
    assert verdict(ledger(), call(10.0, BUSY)).untrue
    assert verdict(ledger(), call(10.0)).untrue == []


def test_a_granted_cancel_of_a_delivered_task_is_untrue() -> None:
    assert verdict(ledger(cancels=(Asked(5.0, 5.1, 200),)), call(4.0)).untrue


def under_way(number: int) -> list[Call]:
    """Each by a run of its own."""
    runs = [Invocation("notifier", n, Environment("notifier"), 0) for n in range(number)]
    return [Call(ID, NARROW, 1, "", 1.0, NOON_MS, run, OK, ended_seconds=2.0) for run in runs]


def test_the_calls_in_flight_of_all_runs_are_held_against_the_limit() -> None:
    assert list(too_many_in_flight(under_way(IN_FLIGHT))) == []
    assert list(too_many_in_flight(under_way(IN_FLIGHT + 1))) == [
        f"{IN_FLIGHT + 1} calls of {NARROW} were in flight at once"
    ]


def test_calls_one_after_the_other_are_not_in_flight_at_once() -> None:
    run = Invocation("notifier", 7, Environment("notifier"), 0)
    began = [Call(ID, NARROW, 1, "", at, NOON_MS, run, OK, at + 1.0) for at in range(9)]
    assert list(too_many_in_flight(began)) == []


def test_labels_that_did_not_come_with_the_payload_are_found() -> None:
    task = replace(a_task(0, NOON_MS), home=HOME)
    labels = tuple(labels_of(1).items())
    good = replace(task, payload='{"n": 1}', labels=labels), replace(task, payload='{"n": 3}')
    assert list(wrong_labels([*good, task])) == []
    bad = replace(task, payload='{"n": 1}'), replace(task, payload='{"n": 3}', labels=labels)
    assert len(list(wrong_labels(bad))) == 2


@each_case(
    ("high_ms", "low_ms", "is_wrong"),
    [
        (9_000, 1_000, True),
        (2_900, 1_000, False),
        (1_000, 9_000, False),
    ],
)
def test_high_priority_that_is_later_than_low_is_found(
    high_ms: int, low_ms: int, is_wrong: bool
) -> None:
    def delivered(priority: Priority, late_ms: int) -> Task:
        task = replace(a_task(0, NOON_MS), priority=priority, attempts=1)
        return replace(task, lateness_ms=late_ms)

    tasks = [
        delivered(priority, late_ms + number)
        for priority, late_ms in ((Priority.HIGH, high_ms), (Priority.LOW, low_ms))
        for number in range(COMPARED_MIN)
    ]
    assert bool(list(low_before_high(tasks, COMPARED_MIN / 6))) is is_wrong
    assert list(low_before_high(tasks, COMPARED_MIN / 7)) == [], "more than the turns kept for them"
    assert list(low_before_high(tasks[1:], COMPARED_MIN)) == [], "too few to compare"


def test_an_overdue_task_that_says_no_reason_is_a_broken_promise() -> None:
    made = Ledger()
    made.silent.append("/v1/tasks/a")
    report = judged(made, Seen(), [])
    assert report.broken == ["waits and does not say why: /v1/tasks/a"]


def told_task(**fields: Any) -> Task:
    task = Task.at(address_at(NOON_MS, b"0" * 8), TOLD, NOON_MS, NOON_MS)
    return replace(task, **{"status": Status.DELIVERED, **fields})


def test_an_outcome_without_its_notice_or_with_a_wrong_one_is_found() -> None:
    place = address_at(NOON_MS, b"1" * 8)
    ended = told_task(notice_id=place.task_id)
    body = json.dumps({"outcome": "delivered", "task_id": ended.task_id})
    notice = replace(ended, home=place, notice_of=ended.task_id, notice_id=None, payload=body)
    assert list(wrong_notices([ended, notice])) == []
    assert list(wrong_notices([told_task(status=Status.CANCELLED, reason="timer disabled")])) == []
    assert list(wrong_notices([told_task()])) != []
    assert list(wrong_notices([ended])) != []
    assert list(wrong_notices([told_task(), notice])) != []
    lies = replace(notice, payload=body.replace("delivered", "dead"))
    assert list(wrong_notices([ended, lies])) != []


def first_call(
    called: float, *asked: DueAsked, redrives: tuple[Asked, ...] = (), **fields: Any
) -> list[FirstCall]:
    """Of a task that is due at 10 s, by a call that was dropped on the way."""
    task = replace(a_task(0, NOON_MS), home=HOME, biz_type=BULKED, **fields)
    by = Invocation("notifier", 1, Environment("notifier"), 0)
    made = ledger(*asked)
    made.tasks[ID].redrives.extend(redrives)
    return list(first_calls(made, [Dropped(ID, 1, called, by)], [task], 1_000))


def test_a_task_found_after_five_minutes_is_found_late_and_one_after_three_is_not() -> None:
    assert list(found_late(first_call(10 + 180), [])) == []
    late = Report(found_late=list(found_late(first_call(10 + 300), [])))
    assert late.broken == [f"found too late: {ID} not called from 10 to 310, 300 s of these"]


def test_a_task_that_is_pending_and_was_never_called_is_found_late() -> None:
    task = replace(a_task(0, NOON_MS), home=HOME, biz_type=BULKED)
    assert list(found_late(first_calls(ledger(), [], [task], 200), [])) == []
    assert len(list(found_late(first_calls(ledger(), [], [task], 300), []))) == 1
    cancelled = replace(task, status=Status.CANCELLED)
    assert list(first_calls(ledger(), [], [cancelled], 300)) == []


def test_time_in_which_nothing_could_be_found_does_not_count() -> None:
    call = first_call(10 + 300)
    down = Outage("dynamodb", 0, 50), Outage("sqs", 40, 80)
    assert waited_seconds(call[0], held_up(down, [])) == 230
    broken = [BrokenSpan(60, 100), BrokenSpan(290, 400), BrokenSpan(100, 290, passed=10)]
    assert waited_seconds(call[0], held_up(down, broken)) == 190, "the pointer had passed it"
    elsewhere = Outage(FLAKY_HOST, 0, 200), Outage("ingest", 0, 200)
    assert list(found_late(call, held_up(elsewhere, [])))
    receivers = Outage("receiver", 10, 50)
    assert waited_seconds(call[0], held_up([receivers], [])) == 220, "and their breaker"


def test_a_call_is_owed_from_the_end_of_the_last_request_that_may_have_moved_it() -> None:
    moved = DueAsked(1.0, 1.1, 200, NOON_MS + 100_000)
    lost = DueAsked(2.0, None, None, NOON_MS + 150_000)
    refused = DueAsked(3.0, 3.1, 422, NOON_MS + 200_000)
    run = DueAsked(4.0, 60.0, 200)
    again = Asked(70.0, 80.0, 200)

    def owed(*asked: DueAsked, redrives: tuple[Asked, ...] = (), **fields: Any) -> float:
        return first_call(310, *asked, redrives=redrives, **fields)[0].owed_seconds

    assert owed() == 10
    assert owed(tolerance_seconds=20) == 30
    assert owed(moved) == 100
    assert owed(moved, lost, refused) == 150
    assert owed(moved, lost, run) == 60
    assert owed(redrives=(again,)) == 80


def test_a_call_before_the_create_that_was_answered_is_not_judged() -> None:
    task = replace(a_task(0, NOON_MS), home=HOME, biz_type=BULKED)
    made = Ledger()
    made.created(ID, DueAsked(20.0, 20.1, 201, NOON_MS + 10_000))
    assert list(first_calls(made, [call(10.0)], [task], 1_000)) == []


def test_what_waits_for_something_of_its_own_is_not_judged() -> None:
    flaky = HttpCallback(f"https://{FLAKY_HOST}/ok")
    task = replace(a_task(0, NOON_MS), home=HOME, biz_type=BULKED)
    assert list(first_calls(ledger(), [call(310.0)], [task], 1_000))
    waits: list[dict[str, Any]] = [
        {"biz_type": NARROW},
        {"priority": Priority.LOW},
        {"callback": flaky},
    ]
    for task in [replace(task, **own) for own in waits]:
        assert list(first_calls(ledger(), [call(310.0)], [task], 1_000)) == []
