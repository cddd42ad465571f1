"""What each function may import before its first event, so that no cold start pays for another's
work: other people's packages, rooms of the core, and what is dear of the standard library."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

THE_SDK = {"botocore", "jmespath", "urllib3", "dateutil", "six"}
EVERYWHERE = THE_SDK | {"aws_lambda_powertools", "msgspec", "typing_extensions"}
PACKAGES = {
    "api": EVERYWHERE,
    "scheduler": EVERYWHERE,
    "notifier": EVERYWHERE | {"httptools"},
    "sweeper": EVERYWHERE,
    "authorizer": EVERYWHERE,
    "ingest": EVERYWHERE,
}

TO_RUN = {"duewheel.rules", "duewheel.stores", "duewheel.wiring", "duewheel.workflows"}
TO_RUN |= {"duewheel.clock", "duewheel.log", "duewheel.metrics", "duewheel.settings"}
ON_THREADS = TO_RUN | {"duewheel.fan_out"}
ROOMS = {
    "api": ON_THREADS | {"duewheel.api", "duewheel.interface"},
    "scheduler": ON_THREADS,
    "notifier": ON_THREADS | {"duewheel.targets"},
    "sweeper": ON_THREADS,
    "authorizer": TO_RUN,
    "ingest": ON_THREADS,
}

TO_READ_SCHEDULES = {"duewheel.rules.timers.cron.expression", "duewheel.rules.timers.schedule"}
DEAR = {"asyncio", "zoneinfo", "sysconfig", "sqlite3", "unittest", "doctest", "pydoc", "xmlrpc"}
DEAR |= TO_READ_SCHEDULES
DEAR_ALLOWED = {
    "api": TO_READ_SCHEDULES,
    "scheduler": set(),
    "notifier": {"asyncio"} | TO_READ_SCHEDULES,
    "sweeper": set(),
    "authorizer": set(),
    "ingest": set(),
}

NOT_DEPLOYED = {"certifi"}  # the SDK takes it where it finds it, as in the tests' environment

ASKED = """
import sys
before = set(sys.modules)
import app
for name in sorted(sys.modules.keys() - before):
    print(name, "site-packages" in (getattr(sys.modules[name], "__file__", None) or ""))
"""


@pytest.fixture(scope="module")
def imported() -> dict[str, dict[str, bool]]:
    """By function: each module, and whether it is of another's package."""
    running = {function: started(function) for function in PACKAGES}
    return {function: modules_of(process) for function, process in running.items()}


def started(function: str) -> subprocess.Popen[str]:
    folders = (ROOT / "functions" / function, ROOT / "layers" / "core")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    return subprocess.Popen(
        [sys.executable, "-c", ASKED], env=environment, stdout=subprocess.PIPE, text=True
    )


def modules_of(process: subprocess.Popen[str]) -> dict[str, bool]:
    told, _ = process.communicate()
    assert process.returncode == 0
    return {name: said == "True" for name, said in map(str.split, told.splitlines())}


@pytest.mark.parametrize("function", PACKAGES)
def test_a_function_imports_no_other_package(
    imported: dict[str, dict[str, bool]], function: str
) -> None:
    packaged = {name for name, is_packaged in imported[function].items() if is_packaged}
    found = {name.partition(".")[0] for name in packaged}
    assert found - NOT_DEPLOYED == PACKAGES[function]


@pytest.mark.parametrize("function", ROOMS)
def test_a_function_imports_no_other_room_of_the_core(
    imported: dict[str, dict[str, bool]], function: str
) -> None:
    names = [name.split(".") for name in imported[function] if name.startswith("duewheel.")]
    assert {".".join(name[:2]) for name in names} == ROOMS[function]


@pytest.mark.parametrize("function", DEAR_ALLOWED)
def test_a_function_imports_nothing_dear_that_it_does_not_need(
    imported: dict[str, dict[str, bool]], function: str
) -> None:
    assert imported[function].keys() & DEAR == DEAR_ALLOWED[function]


@pytest.mark.parametrize("function", PACKAGES)
def test_a_function_is_wired_by_itself(imported: dict[str, dict[str, bool]], function: str) -> None:
    others = {f"duewheel.wiring.{other}" for other in PACKAGES if other != function}
    assert not imported[function].keys() & others
