"""The emulator with two stacks on it (`make deploy-emulated`); the observed gaps are printed."""

import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest
from botocore.credentials import Credentials

from tests.emulated.account import WHOLE, Account, everything_on
from tests.emulated.deployment import ROOT, Deployment, deploy, deploy_again
from tests.emulated.emulator import Emulator
from tests.emulated.mends import mend_pollers, mend_rights
from tests.emulated.observed import caller
from tests.support.by_verb import given, said
from tests.support.by_verb import pytest_terminal_summary as pytest_terminal_summary
from tests.support.http_receiver import Receiver

VERB = "deploy-emulated"


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    python = given("EMULATOR_PYTHON", VERB).absolute()
    emulator = Emulator(python, tmp_path_factory.mktemp("emulator"))
    yield emulator
    emulator.stop()


@pytest.fixture(scope="session")
def account(emulator: Emulator) -> Account:
    return Account(emulator)


@pytest.fixture(scope="session")
def whole(emulator: Emulator, account: Account) -> Deployment:
    """A stack with everything that the template can make."""
    sam, package = given("SAM", VERB), given("PACKAGE", VERB).resolve()
    stack = deploy(emulator, sam, package, WHOLE, everything_on(account))
    said.append(
        f"sam deploy made {stack.name} with everything on: {len(stack.resources)} resources"
    )
    mend_pollers(stack)
    mend_rights(stack)
    said.append("  mended: CloudFormation made no alarms of metric math")
    said.append("  mended: MaximumConcurrency of the pollers was a text, and is a number now")
    said.append(f"  mended in {stack.name}: rights to a message were not taken for ten")
    return stack


@pytest.fixture(scope="session")
def plain(whole: Deployment) -> Deployment:
    """A stack with the defaults, in the same account, except for parameters of a first try."""
    first_try = {
        "AllowedPrivateCidrs": "127.0.0.0/8",
        "IamDefault": "admin",
        "AlarmEmail": "operators@example.com",
    }
    stack = deploy_again(whole, "duewheel-plain", first_try)
    said.append(f"CloudFormation made {stack.name} of the same: {len(stack.resources)} resources")
    return stack


@pytest.fixture(params=["whole", "plain"])
def stack(request: pytest.FixtureRequest) -> Deployment:
    """Each of the two stacks."""
    found: Deployment = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def operator(plain: Deployment) -> Credentials:
    return caller(plain, "operator")


@pytest.fixture(scope="session")
def key(whole: Deployment) -> Mapping[str, str]:
    """The header of the first API key, created by `make admin-key`."""
    made = subprocess.run(
        [sys.executable, "-m", "infra.operate.admin_key", whole.name],
        cwd=ROOT,
        env={**whole.emulator.environment(), "PYTHONPATH": "layers/core:."},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return {"authorization": f"Bearer {made.stdout.strip()}"}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()
