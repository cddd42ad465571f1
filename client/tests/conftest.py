"""One local stack for each process of a run, and clients of it. Its clock is frozen, so no task is
called before a test moves the clock."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings as hypothesis_settings

from duewheel import Duewheel
from duewheel.testing.frozen_stack import FrozenStack

pytest_plugins = [
    "duewheel.testing.plugin",  # pytest finds it by itself when it is installed
    "tests.signatures",
    "tests.console_support",
]

hypothesis_settings.register_profile("quick", deadline=None, max_examples=15, derandomize=True)
hypothesis_settings.register_profile("suite", deadline=None, max_examples=100, derandomize=True)
hypothesis_settings.register_profile("prove", deadline=None, max_examples=400)  # at random
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("AWS_", "DUEWHEEL_")):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def stack() -> Iterator[FrozenStack]:
    with FrozenStack() as stack:
        yield stack


@pytest.fixture(scope="session")
def stack_url(stack: FrozenStack) -> str:
    return stack.url


@pytest.fixture
def client(stack: FrozenStack) -> Duewheel:
    return stack.client


@pytest.fixture
def biz_type(request: pytest.FixtureRequest) -> str:
    """A business for each test, since the tests share the stack."""
    return "t" + request.node.name.lower().replace("_", "-").replace("[", "-").rstrip("]")[-60:]
