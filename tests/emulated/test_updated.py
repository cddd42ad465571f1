"""A stack with pending tasks is updated: to the next release, to the same release, and with another
parameter."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.credentials import Credentials

from duewheel.settings import LIVE
from tests.emulated.deployment import Deployment, delete, deploy
from tests.emulated.emulator import Emulator
from tests.emulated.mends import mend_pollers, mend_rights
from tests.emulated.observed import caller, delivered, task, until
from tests.support.by_verb import given, said
from tests.support.http_receiver import Receiver

NAME = "duewheel-updated"
PARAMETERS = {
    "AllowedPrivateCidrs": "127.0.0.0/8",
    "IamDefault": "admin",
    "NotifierConcurrency": "500",
}
DUE_SECONDS = (5, 15, 30, 45, 60, 90, 120, 150)  # before, during and after the update
FUNCTIONS = ("ApiFunction", "SchedulerFunction", "NotifierFunction", "SweeperFunction")


class Updated:
    """The stack, and the one user who calls it."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self.stack = self.deploy(given("BEFORE", "deploy-emulated").resolve())
        self.operator: Credentials = caller(self.stack, "updating")

    def deploy(self, package: Path, **parameters: str) -> Deployment:
        sam = given("SAM", "deploy-emulated")
        self.stack = deploy(self._emulator, sam, package, NAME, PARAMETERS | parameters)
        mend_pollers(self.stack)
        mend_rights(self.stack)
        return self.stack

    def ask(self, receiver: Receiver, delay_seconds: int, payload: str) -> str:
        body = task({"url": receiver.url}, delay_seconds, payload)
        status, made = self.stack.call("POST", "/v1/tasks", body, signed_by=self.operator)
        assert status == 201, made
        task_id: str = made["task_id"]
        return task_id

    def live(self) -> dict[str, Any]:
        """The versions that are invoked, by function."""
        functions = self._emulator.client("lambda")
        return {
            name: functions.get_function_configuration(
                FunctionName=self.stack.id(name), Qualifier=LIVE
            )
            for name in FUNCTIONS
        }


@pytest.fixture(scope="module")
def updated(emulator: Emulator) -> Iterator[Updated]:
    made = Updated(emulator)
    yield made
    delete(made.stack)


def test_tasks_that_are_pending_during_an_update_are_called_once(
    updated: Updated, receiver: Receiver
) -> None:
    task_ids = {f"due in {n} s": updated.ask(receiver, n, f"due in {n} s") for n in DUE_SECONDS}

    updated.deploy(given("PACKAGE", "deploy-emulated").resolve())

    task_ids |= {"after": updated.ask(receiver, 1, "after")}
    until(lambda: len(receiver.bodies) >= len(task_ids), "the callbacks")
    assert sorted(receiver.bodies) == sorted(f'"{payload}"' for payload in task_ids)
    for task_id in task_ids.values():
        delivered(updated.stack, task_id, signed_by=updated.operator)
    said.append(f"{updated.stack.name} was deployed over with {len(DUE_SECONDS)} tasks pending")


def test_a_deployment_of_the_same_release_publishes_no_version(updated: Updated) -> None:
    package = given("PACKAGE", "deploy-emulated").resolve()
    before = updated.live()

    updated.deploy(package)

    versions = {name: one["Version"] for name, one in updated.live().items()}
    assert versions == {name: one["Version"] for name, one in before.items()}
    assert all(version.isdigit() for version in versions.values())


def test_a_changed_parameter_reaches_the_invoked_versions(
    updated: Updated, receiver: Receiver
) -> None:
    before = updated.live()

    updated.deploy(given("PACKAGE", "deploy-emulated").resolve(), RetentionDays="7")

    after = updated.live()
    for name in FUNCTIONS:
        assert int(after[name]["Version"]) == int(before[name]["Version"]) + 1
        assert after[name]["Environment"]["Variables"]["RETENTION_DAYS"] == "7"
        assert after[name]["Layers"] != before[name]["Layers"]
    task_id = updated.ask(receiver, 1, "with another retention")
    delivered(updated.stack, task_id, signed_by=updated.operator)
