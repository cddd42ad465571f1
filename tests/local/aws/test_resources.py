"""Tables and queues as the template declares them."""

import json
from pathlib import Path

import boto3
import pytest

from duewheel.settings import settings_from
from local.aws.emulator import Emulator
from local.aws.intrinsics import TemplateError
from local.aws.resources import Resources, create_resources
from local.aws.template import load_template

TEMPLATE = Path(__file__).parents[3] / "template.yaml"


def from_text(folder: Path, resources: str) -> Resources:
    path = folder / "template.yaml"
    path.write_text(f"Transform: AWS::Serverless-2016-10-31\nResources:\n{resources}")
    return create_resources(load_template(path), boto3.client("dynamodb"), boto3.client("sqs"))


def test_every_function_gets_complete_settings(resources: Resources) -> None:
    for function in ("api", "scheduler", "notifier", "sweeper"):
        by_lambda = {"AWS_LAMBDA_FUNCTION_NAME": "itself"}
        settings = settings_from({**by_lambda, **resources.environment(function)})
        assert settings.wheel_table == resources.table_name("Wheel")
        assert settings.slice_queue_url == resources.queue_url("SliceQueue")


def test_tables_have_their_time_to_live(resources: Resources) -> None:
    client = boto3.client("dynamodb")
    for table in ("Wheel", "Registry"):
        answer = client.describe_time_to_live(TableName=resources.table_name(table))
        assert answer["TimeToLiveDescription"]["AttributeName"] == "expires_at"


@pytest.mark.parametrize(
    ("list_index", "indexes"),
    [
        ("on", {"by_business", "dead_by_business", "by_timer"}),
        ("off", {"dead_by_business", "by_timer"}),
    ],
)
def test_the_list_index_exists_if_its_parameter_is_on(
    emulator: Emulator, list_index: str, indexes: set[str]
) -> None:
    template = load_template(TEMPLATE, {"ListIndex": list_index})
    client = boto3.client("dynamodb")
    resources = create_resources(template, client, boto3.client("sqs"))
    table = client.describe_table(TableName=resources.table_name("Wheel"))["Table"]
    assert {index["IndexName"] for index in table["GlobalSecondaryIndexes"]} == indexes


def test_a_provisioned_table_and_its_indexes_have_the_units_of_the_template(
    emulator: Emulator,
) -> None:
    overrides = {"Capacity": "100"}
    client = boto3.client("dynamodb")
    resources = create_resources(load_template(TEMPLATE, overrides), client, boto3.client("sqs"))
    table = client.describe_table(TableName=resources.table_name("Wheel"))["Table"]
    writes = {
        index["IndexName"]: index["ProvisionedThroughput"]["WriteCapacityUnits"]
        for index in table["GlobalSecondaryIndexes"]
    }
    assert table["ProvisionedThroughput"]["WriteCapacityUnits"] == 300
    assert writes == {"by_business": 145, "dead_by_business": 20, "by_timer": 20}


def test_the_slice_queue_redrives_to_the_dead_letter_queue(resources: Resources) -> None:
    answer = boto3.client("sqs").get_queue_attributes(
        QueueUrl=resources.queue_url("SliceQueue"), AttributeNames=["All"]
    )
    redrive = json.loads(answer["Attributes"]["RedrivePolicy"])
    assert redrive["deadLetterTargetArn"] == resources.attribute("DeadLetterQueue", "Arn")
    assert answer["Attributes"]["VisibilityTimeout"] == "90"


def test_an_unknown_resource_type_fails_the_start(emulator: Emulator, tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="Jobs is of type AWS::Kinesis::Stream"):
        from_text(tmp_path, "  Jobs: {Type: AWS::Kinesis::Stream}\n")


def test_an_unknown_table_property_fails_the_start(emulator: Emulator, tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="StreamSpecification"):
        from_text(
            tmp_path,
            "  T:\n    Type: AWS::DynamoDB::Table\n"
            "    Properties: {StreamSpecification: {StreamViewType: KEYS_ONLY}}\n",
        )


def test_an_unknown_attribute_is_named_in_the_error(resources: Resources) -> None:
    with pytest.raises(TemplateError, match=r"Wheel\.StreamArn"):
        resources.attribute("Wheel", "StreamArn")
