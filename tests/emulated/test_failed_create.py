"""A first creation that fails leaves no resource that costs money or prevents another creation."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.emulated.deployment import ROOT, delete, made, sam_deploy
from tests.emulated.emulator import Emulator
from tests.support.by_verb import given, said

NAME = "duewheel-failed"
# After the tables, so that there are resources to delete.
FAILING = """
  Failing:
    Type: AWS::SQS::Queue
    DependsOn: [Wheel, Registry, Secrets]
    Properties: { VisibilityTimeout: 999999 }
"""


@pytest.fixture
def failing(tmp_path: Path) -> Path:
    package = tmp_path / "package"
    shutil.copytree(given("PACKAGE", "deploy-emulated"), package)
    template = package / "template.yaml"
    text = template.read_text("utf-8")
    template.write_text(text.replace("\nResources:\n", f"\nResources:\n{FAILING}", 1), "utf-8")
    return package


def test_a_failed_creation_leaves_no_resource_and_one_command_replaces_it(
    emulator: Emulator, failing: Path
) -> None:
    dynamodb = emulator.client("dynamodb")
    tables = set(dynamodb.list_tables()["TableNames"])

    failed = sam_deploy(emulator, given("SAM", "deploy-emulated"), failing, NAME, {})

    assert failed.returncode != 0
    [stack] = emulator.client("cloudformation").describe_stacks(StackName=NAME)["Stacks"]
    assert stack["StackStatus"] == "ROLLBACK_COMPLETE"
    assert set(dynamodb.list_tables()["TableNames"]) == tables

    refused = make_deploy(emulator)
    assert refused.returncode != 0
    assert "REPLACE_FAILED=yes" in refused.stdout + refused.stderr
    again = make_deploy(emulator, replace_failed="yes")
    assert again.returncode == 0, again.stdout + again.stderr

    deployment = made(emulator, NAME)
    for name in ("Wheel", "Registry", "Secrets"):
        described = dynamodb.describe_table(TableName=deployment.id(name))["Table"]
        assert described["DeletionProtectionEnabled"] is True
    delete(deployment)
    said.append(f"{NAME} failed at its first creation, left nothing, and was made by one command")


def make_deploy(emulator: Emulator, replace_failed: str = "") -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable, "-m", "infra.operate.deploy", "dev",
        "--template", given("PACKAGE", "deploy-emulated").resolve() / "template.yaml",
        "--sam", given("SAM", "deploy-emulated").resolve(),
        "--watch-minutes", "10",
        "--stack", NAME,
        "--parameters", "",
        "--replace-failed", replace_failed,
        "--again", "make deploy ENV=dev",
    ]  # fmt: skip
    return subprocess.run(
        command, cwd=ROOT, env=emulator.environment(), capture_output=True, text=True, check=False
    )
