"""`make admin-key` creates the first key without the HTTP interface."""

from typing import Any

import boto3
import pytest

from infra.operate import admin_key
from local.aws.resources import Resources
from tests.support.clock import ManualClock


class CloudFormation:
    def __init__(self, outputs: dict[str, str]) -> None:
        self._outputs = [{"OutputKey": k, "OutputValue": v} for k, v in outputs.items()]

    def describe_stacks(self, StackName: str) -> Any:
        return {"Stacks": [{"StackName": StackName, "Outputs": self._outputs}]}


def test_the_registry_is_found_in_the_outputs_of_the_stack() -> None:
    outputs = {"WheelTable": "wheel", "RegistryTable": "registry"}
    assert admin_key.registry_of(CloudFormation(outputs), "timers") == "registry"
    with pytest.raises(admin_key.NoSuchStack, match="other"):
        admin_key.registry_of(CloudFormation({"WheelTable": "wheel"}), "other")


def test_the_key_has_the_admin_right_on_all_businesses_and_records_its_creator(
    resources: Resources, clock: ManualClock
) -> None:
    table = resources.table_name("Registry")
    made = admin_key.issued(boto3.client("dynamodb"), table, "arn:of:operator", clock)
    items = boto3.client("dynamodb").scan(TableName=table)["Items"]
    (item,) = [item for item in items if "digest" in item]
    assert item["grants"] == {"S": "admin:*"}
    assert item["created_by"] == {"S": "arn:of:operator"}
    assert made.text.split("_")[2] not in repr(items)


def test_the_command_prints_the_key_once_and_nothing_else_on_standard_output(
    resources: Resources, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = CloudFormation({"RegistryTable": resources.table_name("Registry")})
    real = boto3.client

    def client(service: str) -> Any:
        return outputs if service == "cloudformation" else real(service)

    monkeypatch.setattr(admin_key.boto3, "client", client)
    assert admin_key.main(["timers"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("dw_")
    assert len(printed.out.splitlines()) == 1
    assert printed.out.strip() not in printed.err


def test_no_key_is_created_without_a_stack(
    resources: Resources, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(admin_key.boto3, "client", lambda _: CloudFormation({}))
    assert admin_key.main(["timers"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "No key was made" in printed.err
