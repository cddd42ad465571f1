"""The whole service on one machine, used over HTTP with a frozen clock."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock, create_autospec, patch

import pytest
from moto.sqs.exceptions import QueueDoesNotExist
from moto.sqs.models import SQSBackend

from local.__main__ import main
from local.chaos.faults import Faults
from local.stack import LocalStack
from tests.support.service import Service, ms_of

REPOSITORY = Path(__file__).parents[2]
DAY_SECONDS = 86_400


@pytest.fixture(scope="module")
def running() -> Iterator[LocalStack]:
    with LocalStack(frozen=True) as stack:
        yield stack


@pytest.fixture
def service(running: LocalStack) -> Service:
    """The stack at a whole second, with an empty inbox."""
    service = Service(running.url)
    service.advance((1_000 - service.now_ms() % 1_000) / 1_000)
    service.call("DELETE", "/_local/received/box")
    return service


def test_a_task_is_called_back_in_its_millisecond_and_not_before(service: Service) -> None:
    task = service.create("box", delay_seconds=3600.25, payload={"n": 1})
    assert service.advance(3_600) == 0
    assert service.received("box") == []
    assert service.advance(0.25) == 1
    assert service.received_at_ms("box") == [ms_of(task["due_at"])]
    assert service.received("box")[0]["body"] == '{"n": 1}'
    assert service.task(task)["status"] == "delivered"


def test_tasks_of_one_second_are_called_each_in_its_millisecond(service: Service) -> None:
    start_ms = service.now_ms()
    for delay_ms in (60_900, 60_100, 60_500):
        service.create("box", delay_seconds=delay_ms / 1_000)
    assert service.advance(60.5) == 2
    assert service.advance(0.5) == 1
    assert service.received_at_ms("box") == [start_ms + ms for ms in (60_100, 60_500, 60_900)]


def test_a_task_due_at_the_frozen_instant_needs_no_advance(service: Service) -> None:
    start_ms = service.now_ms()
    service.create("box", due_ms=start_ms - 5_000)
    assert service.advance(0) in (0, 1)  # it may have been called before this request
    assert service.received_at_ms("box") == [start_ms]
    assert service.now_ms() == start_ms


@pytest.mark.exhaustive
def test_retries_are_made_at_their_instants_during_an_advance(service: Service) -> None:
    service.call("PUT", "/_local/received/box", {"status": 503, "times": 2})
    task = service.create("box", delay_seconds=10, retry={"delays_seconds": [30, 7200]})
    assert service.advance(9_000) == 1
    first, second, third = service.received_at_ms("box")
    assert (first, second - first, third - second) == (ms_of(task["due_at"]), 30_000, 7_200_000)
    attempts = [r["headers"]["duewheel-attempt"] for r in service.received("box")]
    assert attempts == ["1", "2", "3"]


def test_an_advance_of_ten_days_calls_tasks_in_order(service: Service) -> None:
    start_ms = service.now_ms()
    delays = [day * DAY_SECONDS for day in (9, 1, 7, 3, 2, 10)]
    for delay in delays:
        service.create("box", delay_seconds=delay)
    assert service.advance(10 * DAY_SECONDS) == len(delays)
    assert service.received_at_ms("box") == [start_ms + d * 1_000 for d in sorted(delays)]
    assert service.now_ms() == start_ms + 10 * DAY_SECONDS * 1_000


def test_tasks_are_called_on_time_while_the_queue_refuses_messages(service: Service) -> None:
    def refuse(self: Any, queue_name: str, entries: Any) -> Any:
        raise QueueDoesNotExist

    start_ms = service.now_ms()
    service.call("PUT", "/_local/received/box", {"status": 503, "times": 1})
    with patch.object(SQSBackend, "send_message_batch", refuse):
        service.create("box", delay_seconds=3600, retry={"delays_seconds": [3]})
        assert service.advance(3_700) == 1

    assert service.received_at_ms("box") == [start_ms + 3_600_000, start_ms + 3_603_000]


@pytest.mark.exhaustive
def test_the_pointers_are_up_to_date_after_an_advance(service: Service) -> None:
    service.advance(5_000)
    wheel = service.call("GET", "/v1/wheel")[1]
    assert wheel["time_pointer"]["lag_seconds"] == 0


def test_unknown_routes_get_the_gateways_answer(service: Service) -> None:
    for method in ("GET", "TRACE", "QUERY"):
        assert service.call(method, "/v2") == (404, {"message": "Not Found"})


def test_unusual_methods_reach_the_service_which_refuses_them(service: Service) -> None:
    for method in ("TRACE", "QUERY"):
        status, problem = service.call(method, "/v1/tasks")
        assert (status, problem["type"]) == (405, "urn:duewheel:problem:method-not-allowed")


def test_the_unfrozen_service_runs_by_itself(service: Service) -> None:
    assert service.call("POST", "/_local/clock", {"freeze": False})[1]["frozen"] is False
    task = service.create("box", delay_seconds=1)
    while service.task(task)["status"] == "pending":
        pass
    assert service.received_at_ms("box")[0] >= ms_of(task["due_at"])
    assert service.call("POST", "/_local/clock", {"freeze": True})[1]["frozen"] is True


def started(port: int, **settings: str) -> "subprocess.Popen[str]":
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    return subprocess.Popen(
        [sys.executable, "-m", "local"],
        cwd=REPOSITORY,
        env={**environment, "PORT": str(port)} | settings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.stack
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_stack_cleanly(number: signal.Signals) -> None:
    process = started(0)
    assert process.stdout is not None
    while not process.stdout.readline().startswith("Ctrl-C"):
        assert process.poll() is None
    process.send_signal(number)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert output.split() == ["Stopping."]


@pytest.mark.stack
def test_the_stack_can_start_frozen_and_ends_with_its_standard_input() -> None:
    settings = {"FROZEN_AT": "2030-01-31T08:30:00Z", "END_WITH_STDIN": "on"}
    process = started(0, **settings)
    assert process.stdout is not None
    assert process.stdin is not None
    url = process.stdout.readline().split(",")[0].rpartition(" ")[2]
    assert Service(url).call("GET", "/_local/clock")[1] == {
        "now": "2030-01-31T08:30:00.000Z",
        "frozen": True,
    }
    process.stdin.close()
    assert process.wait(timeout=30) == 0
    process.stdout.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"FROZEN_AT": "tomorrow"}, "FROZEN_AT='tomorrow' is no RFC 3339 instant"),
        (
            {"FROZEN_AT": "2030-01-31T08:30:00Z", "AWS_ENDPOINT_URL": "http://aws"},
            "only the emulator",
        ),
        ({"PORT": "http"}, "PORT='http' is no port"),
        ({"LOCAL_AUTH": "yes"}, "LOCAL_AUTH='yes' is neither"),
        ({"FAULTS": "often"}, "these are numbers"),
        ({"FAULTS": "0.1", "SEED": "x"}, "these are numbers"),
        ({"FAULTS": "0.6"}, "FAULTS=0.6 is no chance from 0 to 0.5"),
        ({"FAULTS": "nan"}, "no chance from 0 to 0.5"),
        ({"FAULTS": "0.1", "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "in the emulator only"),
    ],
)
def test_an_invalid_setting_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    settings: dict[str, str],
    message: str,
) -> None:
    monkeypatch.setattr("local.__main__._log_to_the_console", lambda: None)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert main() == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert (printed.out, printed.err.count("\n")) == ("", 1)


def test_garbage_collections_leave_out_what_a_running_stack_consists_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stack = create_autospec(LocalStack, instance=True, url="", endpoint=None, admin_key=None)
    stack.faults = Faults(rate=0, seed=0)
    monkeypatch.setattr("local.__main__._stack_wanted", lambda: stack)
    monkeypatch.setattr("local.__main__.signal", Mock())
    monkeypatch.setattr(gc, "set_threshold", Mock())  # those of the tests stay
    already = gc.get_freeze_count()
    assert main() == 0
    assert gc.get_freeze_count() > already


@pytest.mark.stack
def test_a_port_in_use_is_reported_in_one_line(running: LocalStack) -> None:
    port = int(running.url.rpartition(":")[2])
    process = started(port)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert output.startswith("The stack does not start:")
    assert output.count("\n") == 1
