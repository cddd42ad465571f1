"""One local stack for the whole run, and clients of it. Its clock stands still, so nothing is
called before a test moves it on."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from duewheel import Duewheel
from duewheel.local_stack import LocalStack

pytest_plugins = [
    "duewheel.testing.plugin",  # installed, pytest finds it by itself
    "tests.signatures",
    "tests.console_support",
]


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("AWS_", "DUEWHEEL_")):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def stack_url() -> Iterator[str]:
    with LocalStack(frozen_at=datetime.now(UTC)) as stack:
        yield stack.url


@pytest.fixture
def client(stack_url: str) -> Iterator[Duewheel]:
    with Duewheel(stack_url) as client:
        yield client


@pytest.fixture
def biz_type(request: pytest.FixtureRequest) -> str:
    """A business for each test: they share the stack."""
    return "t" + request.node.name.lower().replace("_", "-").replace("[", "-").rstrip("]")[-60:]
