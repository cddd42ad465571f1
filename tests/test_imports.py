"""The modules that each function may import before its first event, so that no cold start pays for
another's work: packages of others, packages of the core, and expensive modules of the standard
library."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.support.bounds import quick_first

ROOT = Path(__file__).parents[1]

THE_SDK = {"botocore", "jmespath", "urllib3", "dateutil", "six"}
EVERYWHERE = THE_SDK | {"aws_lambda_powertools", "msgspec", "typing_extensions"}
PACKAGES = {
    "api": EVERYWHERE,
    "scheduler": EVERYWHERE,
    "notifier": EVERYWHERE | {"httptools"},
    "sweeper": EVERYWHERE,
    "bulk": EVERYWHERE,
    "authorizer": EVERYWHERE,
    "ingest": EVERYWHERE,
    "stack_timers": EVERYWHERE,
}

TO_RUN = {"duewheel.rules", "duewheel.stores", "duewheel.wiring", "duewheel.workflows"}
TO_RUN |= {"duewheel.clock", "duewheel.log", "duewheel.metrics", "duewheel.settings"}
ON_THREADS = TO_RUN | {"duewheel.fan_out"}
ROOMS = {
    "api": ON_THREADS | {"duewheel.api", "duewheel.interface"},
    "scheduler": ON_THREADS,
    "notifier": ON_THREADS | {"duewheel.targets"},
    "sweeper": ON_THREADS,
    "bulk": ON_THREADS,
    "authorizer": TO_RUN,
    "ingest": ON_THREADS,
    "stack_timers": ON_THREADS | {"duewheel.api", "duewheel.interface"},
}

TO_READ_SCHEDULES = {"duewheel.rules.timers.cron.expression", "duewheel.rules.timers.schedule"}
EXPENSIVE = {
    "asyncio",
    "zoneinfo",
    "sysconfig",
    "sqlite3",
    "unittest",
    "doctest",
    "pydoc",
    "xmlrpc",
}
EXPENSIVE |= TO_READ_SCHEDULES
EXPENSIVE_ALLOWED = {
    "api": TO_READ_SCHEDULES,
    "scheduler": set(),
    "notifier": {"asyncio"} | TO_READ_SCHEDULES,
    "sweeper": set(),
    "bulk": {"asyncio"},
    "authorizer": set(),
    "ingest": set(),
    "stack_timers": TO_READ_SCHEDULES,
}

# The SDK uses them where they are installed, as in the tests' environment.
NOT_DEPLOYED = {"certifi", "awscrt", "_awscrt"}

LISTED = """
import sys
before = set(sys.modules)
import app
for name in sorted(sys.modules.keys() - before):
    print(name, "site-packages" in (getattr(sys.modules[name], "__file__", None) or ""))
"""


FUNCTIONS = [
    "api",
    "notifier",
    "scheduler",
    "sweeper",
    "bulk",
    "authorizer",
    "ingest",
    "stack_timers",
]
OF_EACH_FUNCTION = pytest.mark.parametrize(
    "function", quick_first(FUNCTIONS, pytest.mark.exhaustive, 2)
)


@cache
def imported(function: str) -> dict[str, bool]:
    """Each module, and whether it belongs to a package of others."""
    folders = (ROOT / "functions" / function, ROOT / "layers" / "core")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    ran = subprocess.run(
        [sys.executable, "-c", LISTED],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return {name: is_other == "True" for name, is_other in map(str.split, ran.stdout.splitlines())}


@OF_EACH_FUNCTION
def test_a_function_imports_only_its_packages_of_others(function: str) -> None:
    packaged = {name for name, is_packaged in imported(function).items() if is_packaged}
    found = {name.partition(".")[0] for name in packaged}
    assert found - NOT_DEPLOYED == PACKAGES[function]


@OF_EACH_FUNCTION
def test_a_function_imports_only_its_packages_of_the_core(function: str) -> None:
    names = [name.split(".") for name in imported(function) if name.startswith("duewheel.")]
    assert {".".join(name[:2]) for name in names} == ROOMS[function]


@OF_EACH_FUNCTION
def test_a_function_imports_no_expensive_module_that_it_does_not_need(function: str) -> None:
    assert imported(function).keys() & EXPENSIVE == EXPENSIVE_ALLOWED[function]


@OF_EACH_FUNCTION
def test_a_function_is_wired_on_its_own(function: str) -> None:
    own = {function, "api"} if function == "stack_timers" else {function}
    others = {f"duewheel.wiring.{other}" for other in PACKAGES.keys() - own}
    assert not imported(function).keys() & others
