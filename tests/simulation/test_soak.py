"""Small soaks, and that a soak sees what it is there to see."""

import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.idempotency import IdempotentRequest
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.open_places import Why
from duewheel.stores.ingest.queue import IngestQueue
from duewheel.stores.tasks import codec
from duewheel.stores.tasks.idempotency_records import RequestRecords
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.sweep.read_second import SliceOfSecond
from duewheel.workflows.sweep.sweep_second import SweepSecond
from duewheel.workflows.tasks.write_entries import EntryWriter
from functions.ingest import app as ingest
from local.chaos.aws_faults import Handle, Reply, operation_of
from tests.simulation import clients
from tests.simulation.clients import Clients
from tests.simulation.event_sources import COPY_GOES_ON, EventSources, Mapping
from tests.simulation.faults import CALM, ROUGH, Rates
from tests.simulation.invocation import current
from tests.simulation.service import Service
from tests.simulation.soak import TEMPLATE, Soak, soaked
from tests.simulation.verdict import Report
from tests.simulation.wire import Wire
from tests.support.clock import NOON_MS

WITH_MESSAGES = 1  # a seed by which they come early


def small(tasks: int, seed: int, rates: Rates = CALM, settling_seconds_max: int = 7_200) -> Soak:
    return Soak(
        tasks,
        seed,
        rates,
        tasks_per_second=4,
        settling_seconds_max=settling_seconds_max,
    )


def report_of(soak: Soak) -> Report:
    report, _, _ = soaked(soak)
    return report


@pytest.mark.soak
@pytest.mark.parametrize("seed", [16, 21])
def test_no_promise_is_broken_whatever_goes_wrong(seed: int) -> None:
    soak = Soak(tasks=60, seed=seed, tasks_per_second=4)
    report, faults, _ = soaked(soak)
    replay = f"make soak TASKS=60 SEED={seed} PER_SECOND=4 DAY={soak.day_seconds}"
    assert report.broken == [], f"replay: {replay}"
    assert report.created >= 30
    assert faults.injected.total() >= 20
    assert faults.injected[COPY_GOES_ON]


@pytest.mark.soak
def test_where_nothing_goes_wrong_nothing_is_repeated_and_a_run_can_be_repeated() -> None:
    first, second = (soaked(small(tasks=30, seed=WITH_MESSAGES)) for _ in range(2))
    assert first[0].broken == []
    assert (first[0].repeated, first[0].messages.letters_again) == (0, 0)
    assert first[0].messages.done
    assert first[0].messages.letters
    assert (first[0], first[2]) == (second[0], second[2])


@pytest.mark.soak
@pytest.mark.parametrize(("seed", "met"), [(5, "timer#"), (2, "idempotency#")])
def test_whatever_goes_wrong_a_seed_makes_the_same_calls_again(seed: int, met: str) -> None:
    first, second = (calls_of(small(tasks=16, seed=seed, rates=ROUGH)) for _ in range(2))
    assert any(met in call for call in first)
    assert first == second


def calls_of(soak: Soak) -> list[str]:
    """Of AWS, by the functions."""
    calls: list[str] = []

    def noted(wire: Wire, request: Any, handle: Handle) -> Reply | None:
        if current.get() is not None:
            body = re.sub(r'"ClientRequestToken": "[^"]+"', "", str(request.body))
            calls.append(f"{wire._seconds():.3f} {operation_of(request)} {body}")
        return answer(wire, request, handle)

    answer = Wire.answer
    with patch.object(Wire, "answer", noted):
        soaked(soak)
    return calls


@pytest.mark.soak
def test_the_command_shares_the_tasks_between_worlds_and_says_what_came_of_each() -> None:
    command = [sys.executable, "-m", "tests.simulation", "--tasks", "8", "--worlds", "2"]
    ended = subprocess.run(
        [*command, "--seed", "21", "--day", "86400"],
        cwd=TEMPLATE.parent,
        env={**os.environ, "PYTHONPATH": "layers/core"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "4 tasks, seed 21, 1 a second" in ended.stdout
    assert "4 tasks, seed 22, 1 a second" in ended.stdout
    assert ended.stdout.count("  lost 0, early 0") == 2
    assert ended.stdout.count("  of messages: lost 0, made twice 0, misjudged 0") == 2


def test_in_a_minute_in_which_nothing_goes_wrong_no_promise_is_broken() -> None:
    """But for those that need a sweep, which comes later."""
    report = report_of(small(tasks=10, seed=4, settling_seconds_max=60))
    assert report.created >= 10
    assert all("swept" in each for each in report.deleted_wrongly)
    assert dataclasses.replace(report, deleted_wrongly=[]).broken == []


# What a soak must notice: each defect is planted, and has to be named.


@pytest.mark.exhaustive
def test_a_task_whose_entry_is_never_put_is_found_lost() -> None:
    all_retry = patch.object(clients, "RECEIVERS", ("busy/1",))
    never = patch.object(
        EntryWriter, "put", lambda self, home, instant_ms: self.address(instant_ms)
    )
    with all_retry, never:
        report = report_of(small(tasks=10, seed=3, settling_seconds_max=60))
    assert len(report.lost) > 1  # one is pending


@pytest.mark.soak
def test_what_is_found_after_ten_minutes_is_found_late() -> None:
    """Nothing goes wrong but that all messages of the first minutes are lost."""
    finish, receive = SweepSecond.finish, EventSources._receive

    def later(self: SweepSecond, part: SliceOfSecond, *others: Any) -> Any:
        is_early = self.clock.now_ms() < (part.second + 600) * 1000
        return ("", Why.HELD) if is_early else finish(self, part, *others)

    def lost(self: EventSources, mapping: Mapping) -> list[dict[str, Any]]:
        messages = receive(self, mapping)
        if mapping.queue != "main" or self._service.seconds() > 100:
            return messages
        for message in messages:
            handle = message["ReceiptHandle"]
            self._sqs.delete_message(QueueUrl=mapping.queue_url, ReceiptHandle=handle)
        return []

    with patch.object(EventSources, "_receive", lost):
        in_time = report_of(small(tasks=30, seed=3))
        with patch.object(SweepSecond, "finish", later):
            late = report_of(small(tasks=30, seed=3))
    assert in_time.found_late == []
    assert in_time.found_after_seconds > 60
    assert late.found_late


@pytest.mark.soak
def test_a_call_before_its_instant_is_found_early() -> None:
    async def at_once(self: Service, instant_ms: int) -> None:
        pass

    with patch.object(Service, "sleep_until_ms", at_once):
        assert report_of(small(tasks=30, seed=3)).early


@pytest.mark.soak
def test_a_repeat_without_a_reason_is_found() -> None:
    """Whoever settles forgets to do so at first, in a world in which nothing goes wrong."""
    put_delivered = TaskStore.put_delivered
    forgotten: set[str] = set()

    def later(self: TaskStore, tasks: Sequence[Task]) -> list[Task]:
        remembered = [task for task in tasks if task.task_id in forgotten]
        forgotten.update(task.task_id for task in tasks)
        return put_delivered(self, remembered) if remembered else []

    with patch.object(TaskStore, "put_delivered", later):
        report = report_of(small(tasks=30, seed=3))
    assert report.unexplained


@pytest.mark.soak
def test_a_task_that_will_never_be_deleted_is_found_inconsistent() -> None:
    """Nobody but the audit would notice: it was called on time, and is delivered."""
    delivered = lifecycle.delivered

    def for_ever(*arguments: Any) -> Task:
        task = delivered(*arguments)
        return task if task.key else replace(task, expires_at=None)

    with patch.object(lifecycle, "delivered", for_ever):
        report = report_of(small(tasks=10, seed=3))
    assert report.inconsistent
    assert all("never-expires" in each or "kept for ever" in each for each in report.broken)
    assert report.deleted_wrongly


@pytest.mark.soak
def test_a_task_that_expires_while_it_waits_is_found() -> None:
    """Only where time deletes, and a task waits for longer than another is kept."""
    task_item = codec.task_item

    def expiring(task: Task, *arguments: Any, **named: Any) -> dict[str, Any]:
        return {**task_item(task, *arguments, **named), "expires_at": {"N": str(NOON_MS // 1000)}}

    with patch.object(codec, "task_item", expiring):
        report = report_of(dataclasses.replace(small(tasks=10, seed=3), day_seconds=60))
    assert any("is pending" in each for each in report.deleted_wrongly)
    assert report.lost


@pytest.mark.soak
def test_a_message_that_is_answered_for_before_its_tasks_are_made_is_found_lost() -> None:
    with patch.object(ingest, "_is_done", return_value=True):
        report = report_of(small(tasks=30, seed=WITH_MESSAGES, settling_seconds_max=60))
    assert report.messages.lost


@pytest.mark.soak
def test_a_message_that_is_buried_without_its_dead_letter_is_found_lost() -> None:
    with patch.object(IngestQueue, "give_up"):
        report = report_of(small(tasks=15, seed=WITH_MESSAGES, settling_seconds_max=60))
    assert report.messages.lost


@pytest.mark.soak
def test_a_message_that_is_forgotten_when_it_comes_again_is_found_made_twice() -> None:
    soak = small(15, WITH_MESSAGES, Rates(duplicate=1.0), settling_seconds_max=60)
    with (
        patch.object(RequestRecords, "claim", return_value=None),
        patch.object(RequestRecords, "replace", return_value=True),
    ):
        assert report_of(soak).messages.made_twice


@pytest.mark.soak
def test_a_request_that_is_forgotten_when_it_is_repeated_is_found_created_again() -> None:
    with repeating_requests(), patch.object(RequestRecords, "claim", return_value=None):
        broken = report_of(small(15, 1, settling_seconds_max=60)).not_once
    assert any("was created" in each for each in broken)
    assert any("and then" in each for each in broken)


@pytest.mark.soak
def test_a_request_whose_tasks_a_repeat_does_not_find_is_found_created_again() -> None:
    with repeating_requests(), patch.object(TaskStore, "present", return_value=set()):
        assert report_of(small(30, 1, settling_seconds_max=60)).not_once


@pytest.mark.soak
def test_requests_that_are_repeated_whatever_goes_wrong_are_carried_out_once() -> None:
    with repeating_requests():
        report, faults, _ = soaked(small(60, 1, ROUGH))
    assert report.broken == []
    assert faults.injected.total() >= 20


def repeating_requests() -> Any:
    """All clients send requests under idempotency keys."""
    return patch.object(Clients, "_any_story", lambda mine: mine._once)


@pytest.mark.soak
def test_redrives_by_two_callers_at_once_are_carried_out_once() -> None:
    with patch.object(Clients, "_any_story", lambda mine: mine._revived):
        report = report_of(small(10, 1))
    assert report.broken == []
    assert report.redriven_by_two


@pytest.mark.soak
def test_a_late_delivery_that_overwrites_a_cancel_or_a_change_is_found() -> None:
    soak = small(30, 1, Rates(late_copy=1.0))

    def put(self: TaskStore, task: Task) -> bool:
        return not self.put_delivered([task])

    with patch.object(clients, "TASKS_A_LATE_MIND", 1):
        report, faults, _ = soaked(soak)
        with patch.object(TaskStore, "put_delivered_if_unchanged", put):
            untrue = report_of(soak).untrue
    assert report.broken == []
    assert faults.injected[COPY_GOES_ON]
    assert any("was cancelled and is delivered" in each for each in untrue)
    assert any("moved, and not called again" in each for each in untrue)


@pytest.mark.soak
def test_a_delay_that_counts_from_when_its_message_is_worked_off_is_found() -> None:
    soak = small(15, WITH_MESSAGES, Rates(delay=1.0), settling_seconds_max=60)
    with patch.object(IdempotentRequest, "read_ms", lambda self, now_ms: now_ms):
        assert report_of(soak).messages.misjudged
