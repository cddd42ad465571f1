"""The stack as a process: its start, its end, and failures of both."""

import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from duewheel import local_stack
from duewheel.local_stack import LocalStack, LocalStackFailed, stack_environment

UP = 'print("Duewheel is up on http://127.0.0.1:1, its data in memory.", flush=True)\n'


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a program that is run in place of the stack."""
    (tmp_path / "local").mkdir()
    (tmp_path / "template.yaml").touch()
    monkeypatch.setattr(local_stack, "IN_CHECKOUT", tmp_path)
    return tmp_path / "local/__main__.py"


def test_a_stack_with_much_output_does_not_block(program: Path) -> None:
    program.write_text('print("a log record")\n' + UP + 'print("another\\n" * 100_000)\n')
    with LocalStack() as stack:
        assert stack.url == "http://127.0.0.1:1"
        assert stack._process.wait(timeout=30) == 0


def test_a_failed_start_raises_the_output_of_the_stack(program: Path) -> None:
    program.write_text('raise SystemExit("No module named moto")')
    with pytest.raises(LocalStackFailed, match="No module named moto"), LocalStack():
        pass


def test_a_stack_ends_with_its_block(program: Path) -> None:
    program.write_text(UP + "import sys; sys.stdin.read()")
    with LocalStack() as stack:
        assert stack._process.poll() is None
    assert stack._process.poll() == 0


def test_ctrl_c_of_the_parent_does_not_reach_the_stack(program: Path) -> None:
    program.write_text(UP + "import sys; sys.stdin.read()")
    with LocalStack() as stack:
        assert os.getpgid(stack._process.pid) != os.getpgid(0)


def test_a_stack_that_does_not_end_is_killed(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_stack, "STOP_SECONDS", 0.1)
    program.write_text(UP + "import signal; signal.pause()")
    with LocalStack() as stack:
        pass
    assert stack._process.poll() == -signal.SIGKILL


def test_the_clock_can_be_frozen_from_the_start(program: Path) -> None:
    program.write_text(UP + 'import os; print(os.environ["FROZEN_AT"])')
    with LocalStack(frozen_at=datetime(2030, 1, 31, 8, 30, tzinfo=UTC)) as stack:
        stack._listener.join(30)
    assert stack._output_lines[-1] == "2030-01-31T08:30:00+00:00\n"
    with pytest.raises(ValueError, match="no time zone"):
        LocalStack(frozen_at=datetime(2030, 1, 31, 8, 30))


def test_settings_of_another_stack_are_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE", "FAULTS", "FROZEN_AT", "PYTHONPATH"):
        monkeypatch.setenv(name, "another")
    monkeypatch.setenv("PORTAGE", "kept")
    environment = stack_environment(8081)
    assert "another" not in environment.values()
    assert (environment["PORT"], environment["PORTAGE"]) == ("8081", "kept")
    assert environment["PATH"] == os.environ["PATH"]


def test_a_missing_stack_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_stack, "IN_CHECKOUT", tmp_path)
    with pytest.raises(LocalStackFailed, match="carries no local stack"):
        LocalStack().start()
