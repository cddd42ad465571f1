"""The emulator with two stacks on it (`make deploy-emulated`); what was seen is printed."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.emulated.deployment import Deployment, deploy, deploy_again, mend_rights
from tests.emulated.emulator import Emulator
from tests.package.receiver import Receiver

said: list[str] = []  # printed at the end


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for line in said:
        terminalreporter.write_line(line)


def _given(variable: str) -> Path:
    if variable not in os.environ:
        pytest.skip(f"{variable} is not set: these tests are run by `make deploy-emulated`")
    return Path(os.environ[variable])


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    emulator = Emulator(_given("EMULATOR_PYTHON").absolute(), tmp_path_factory.mktemp("emulator"))
    yield emulator
    emulator.stop()


@pytest.fixture(scope="session")
def stacks(emulator: Emulator) -> dict[str, Deployment]:
    """By AuthMode, in one account."""
    sam, package = _given("SAM"), _given("PACKAGE").resolve()
    first = deploy(emulator, sam, package, "duewheel-iam", "iam")
    second = deploy_again(first, "duewheel-keys", "keys")
    said.append(f"sam deploy made {first.name}, {len(first.resources)} resources")
    said.append(f"CloudFormation made {second.name} of the same, {len(second.resources)} resources")
    mend_rights(first)
    said.append("  mended: MaximumConcurrency of the pollers was a text, and is a number now")
    said.append(f"  mended in {first.name}: SendMessage was not taken for SendMessageBatch")
    return {"iam": first, "keys": second}


@pytest.fixture
def signed(stacks: dict[str, Deployment]) -> Deployment:
    return stacks["iam"]


@pytest.fixture
def keyed(stacks: dict[str, Deployment]) -> Deployment:
    return stacks["keys"]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()
