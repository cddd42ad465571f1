"""Small soaks, and that a soak sees what it is there to see."""

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from duewheel.rules import settlement
from duewheel.rules.profile import ECONOMY, PRECISE, Profile
from duewheel.rules.task import Task
from duewheel.stores.tasks import TaskStore
from duewheel.workflows.reenter import Reenter
from tests.conftest import the_template
from tests.simulation.faults import CALM
from tests.simulation.service import Service
from tests.simulation.soak import TEMPLATE, Soak, soaked
from tests.simulation.verdict import Report


def report_of(soak: Soak) -> Report:
    report, _, _ = soaked(soak, the_template())
    return report


@pytest.mark.parametrize(("seed", "profile"), [(11, PRECISE), (12, ECONOMY)])
def test_no_promise_is_broken_whatever_goes_wrong(seed: int, profile: Profile) -> None:
    soak = Soak(tasks=60, seed=seed, tasks_per_second=4, profile=profile.name)
    report, faults, _ = soaked(soak, the_template(profile.name))
    replay = f"make soak TASKS=60 SEED={seed} PER_SECOND=4 PROFILE={profile.name}"
    assert report.broken == [], f"replay: {replay}"
    assert report.created >= 30
    assert faults.injected.total() >= 20


def test_where_nothing_goes_wrong_nothing_is_repeated_and_a_run_can_be_repeated() -> None:
    first, second = (
        soaked(Soak(tasks=30, seed=5, rates=CALM, tasks_per_second=4), the_template())
        for _ in range(2)
    )
    assert first[0].broken == []
    assert first[0].repeated == 0
    assert (first[0], first[2]) == (second[0], second[2])


def test_the_command_shares_the_tasks_between_worlds_and_says_what_came_of_each() -> None:
    command = [sys.executable, "-m", "tests.simulation", "--tasks", "8", "--worlds", "2"]
    ended = subprocess.run(
        [*command, "--seed", "21"],
        cwd=TEMPLATE.parent,
        env={**os.environ, "PYTHONPATH": "layers/core"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "4 tasks, seed 21, 1 a second, precise" in ended.stdout
    assert "4 tasks, seed 22, 1 a second, precise" in ended.stdout
    assert ended.stdout.count("lost 0, early 0") == 2


# What a soak must notice: each defect is planted, and has to be named.


def test_a_task_whose_entry_is_never_put_is_found_lost() -> None:
    with patch.object(Reenter, "put", lambda self, home, instant_ms: self.address(instant_ms)):
        report = report_of(
            Soak(tasks=30, seed=3, rates=CALM, tasks_per_second=4, settling_seconds_max=60)
        )
    assert report.lost


def test_a_call_before_its_instant_is_found_early() -> None:
    async def at_once(self: Service, instant_ms: int) -> None:
        pass

    with patch.object(Service, "sleep_until_ms", at_once):
        assert report_of(Soak(tasks=30, seed=3, rates=CALM, tasks_per_second=4)).early


def test_a_repeat_without_a_reason_is_found() -> None:
    """Whoever settles forgets to do so at first, in a world in which nothing goes wrong."""
    put_delivered = TaskStore.put_delivered
    forgotten: set[str] = set()

    def later(self: TaskStore, tasks: Sequence[Task]) -> list[Task]:
        remembered = [task for task in tasks if task.task_id in forgotten]
        forgotten.update(task.task_id for task in tasks)
        return put_delivered(self, remembered) if remembered else []

    with patch.object(TaskStore, "put_delivered", later):
        report = report_of(Soak(tasks=30, seed=3, rates=CALM, tasks_per_second=4))
    assert report.unexplained


def test_a_task_that_will_never_be_deleted_is_found_in_no_honest_state() -> None:
    """Nobody but the audit would notice: it was called on time, and is delivered."""
    delivered = settlement.delivered

    def for_ever(*arguments: Any) -> Task:
        task = delivered(*arguments)
        return task if task.key else replace(task, expires_at=None)

    with patch.object(settlement, "delivered", for_ever):
        report = report_of(Soak(tasks=10, seed=3, rates=CALM, tasks_per_second=4))
    assert report.dishonest
    assert all(each.startswith("in no honest state: never-expires") for each in report.broken)
