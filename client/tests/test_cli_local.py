"""`duewheel local` ends the stack that it started."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

CLIENT = Path(__file__).parents[1]
STARTED = """
import sys
from pathlib import Path
from duewheel import local_stack
from duewheel.cli.__main__ import main
local_stack.IN_CHECKOUT = Path(sys.argv.pop(1))
main()
"""
PLAYED = """
import os, signal
ending = {signal.SIGINT, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, ending)
print(*[os.environ[name] for name in ("PORT", "LOCAL_AUTH", "FAULTS")], flush=True)
signal.sigwait(ending)
print("stopping", flush=True)
"""


def started(root: Path, program: str, *arguments: str) -> "subprocess.Popen[str]":
    """The command in a session of its own, as in a terminal, with `program` in place of the
    stack."""
    (root / "local").mkdir()
    (root / "template.yaml").touch()
    (root / "local/__main__.py").write_text(program)
    return subprocess.Popen(
        [sys.executable, "-c", STARTED, str(root), "local", *arguments],
        env={**os.environ, "PYTHONPATH": str(CLIENT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("is_ctrl_c", [True, pytest.param(False, marks=pytest.mark.exhaustive)])
def test_the_stack_ends_with_the_command(tmp_path: Path, is_ctrl_c: bool) -> None:
    options = ["--port", "8099", "--auth", "--faults", "0.1"]
    process = started(tmp_path, PLAYED, *options)
    assert process.stdout is not None
    assert process.stdout.readline().split() == ["8099", "on", "0.1"]
    if is_ctrl_c:
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.terminate()
    stdout, stderr = process.communicate(timeout=30)  # until both have ended
    assert (process.returncode, stdout, stderr) == (0, "stopping\n", "")


def test_a_stack_that_does_not_start_is_a_failure(tmp_path: Path) -> None:
    process = started(tmp_path, "raise SystemExit('The port is taken')")
    _, stderr = process.communicate(timeout=30)
    assert (process.returncode, "The port is taken" in stderr) == (1, True)
    assert "has ended with 1" in stderr


# The stack of the checkout, as if these were not installed.
WITHOUT = """
import runpy, sys
del sys.modules["local"]
for name in {missing!r}:
    sys.modules[name] = None
sys.path[:0] = [{core!r}, {root!r}]
runpy.run_module("local", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(
    "missing",
    [["moto"], pytest.param(["msgspec", "boto3", "moto"], marks=pytest.mark.exhaustive)],
)
def test_the_command_without_its_extra_says_what_to_install(
    tmp_path: Path, missing: list[str]
) -> None:
    root = CLIENT.parent
    program = WITHOUT.format(missing=missing, core=str(root / "layers/core"), root=str(root))
    _, stderr = started(tmp_path, program).communicate(timeout=60)
    assert "pip install 'duewheel[local]'" in stderr
    assert any(f"needs {name}:" in stderr for name in missing)
    assert "Traceback" not in stderr


def test_a_module_of_the_stack_itself_that_is_missing_is_not_called_a_requirement(
    tmp_path: Path,
) -> None:
    root = CLIENT.parent
    program = WITHOUT.format(
        missing=["local.stack"], core=str(root / "layers/core"), root=str(root)
    )
    _, stderr = started(tmp_path, program).communicate(timeout=60)
    assert "Traceback" in stderr
    assert "pip install" not in stderr
