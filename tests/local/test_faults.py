"""`FAULTS=0.1 make local`: everything goes wrong by chance, and nothing is lost."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from local.faults import LATE_SECONDS_MAX, Faults
from local.stack import LocalStack
from tests.support.service import Service

REPOSITORY = Path(__file__).parents[2]
MESSAGES: list[Any] = [{"MessageId": "a"}, {"MessageId": "b"}]


def test_tasks_are_delivered_though_calls_callbacks_and_processes_fail() -> None:
    with LocalStack(frozen=True, faults=Faults(0.1, seed=4)) as stack:
        service = Service(stack.url)
        asked = [
            service.call("POST", "/v1/tasks", service.new_task("orders", delay_seconds=i * 5))
            for i in range(4)
        ]
        created = [task for status, task in asked if status == 201]
        service.advance(400)
        assert len(created) > len(asked) / 2
        assert {task["task_id"] for task in created} <= {
            request["headers"]["webhook-id"] for request in service.received("orders")
        }
        _, faults = service.call("GET", "/_local/faults")
    assert sum(faults["injected"].values()) > 5
    assert (faults["rate"], faults["seed"]) == (0.1, 4)


def test_without_the_flag_nothing_goes_wrong() -> None:
    faults = Faults(0, seed=1)
    assert faults.batches(MESSAGES, lambda message, seconds: pytest.fail("hidden")) == [MESSAGES]
    assert faults.batches([], lambda message, seconds: pytest.fail("hidden")) == []
    assert faults.callback_trouble() is None
    assert not any(faults.injected.values())


def test_messages_come_late_twice_and_out_of_order() -> None:
    faults = Faults(0.4, seed=2)
    hidden: list[tuple[str, int]] = []
    seen = [
        faults.batches(MESSAGES, lambda m, seconds: hidden.append((m["MessageId"], seconds)))
        for _ in range(100)
    ]
    turned = MESSAGES[::-1]
    for expected in ([], [MESSAGES], [turned], [MESSAGES, MESSAGES], [turned, turned]):
        assert expected in seen
    assert len(hidden) == len(MESSAGES) * seen.count([])
    assert {seconds for _, seconds in hidden} <= set(range(1, LATE_SECONDS_MAX + 1))


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ({"FAULTS": "often"}, "these are numbers"),
        ({"FAULTS": "0.1", "SEED": "x"}, "these are numbers"),
        ({"FAULTS": "0.6"}, "no chance from 0 to 0.5"),
        ({"FAULTS": "nan"}, "no chance from 0 to 0.5"),
        ({"FAULTS": "0.1", "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "in the emulator only"),
    ],
)
def test_a_flag_that_cannot_be_is_told_in_one_line(named: dict[str, str], told: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "local"],
        cwd=REPOSITORY,
        env={**os.environ, "PORT": "0", **named},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert told in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
