"""The poller of the ingest queue, as in Lambda: it receives messages, and deletes those that the
function does not report."""

import json
from typing import Any

import boto3

from duewheel.wiring import process
from functions.ingest import app as ingest
from local.aws.queue_poller import record_of
from tests.functions.conftest import Context

ARN = "arn:aws:sqs:us-east-1:123456789012:duewheel-IngestMessageQueue"
TASK = {
    "biz_type": "orders",
    "delay_seconds": 600,
    "payload": {"order": 17},
    "callback": {"url": "https://receiver.example/"},
}


def send(body: Any, **attributes: str) -> str:
    """Send a message; returns its id. Underscores in attribute names become hyphens."""
    answer = boto3.client("sqs").send_message(
        QueueUrl=process.settings().ingest_queue_url,
        MessageBody=body if isinstance(body, str) else json.dumps(body),
        MessageAttributes={
            name.replace("_", "-"): {"DataType": "String", "StringValue": value}
            for name, value in attributes.items()
        },
    )
    return str(answer["MessageId"])


def handed_out() -> list[dict[str, Any]]:
    """Receive the next batch, which hides its messages; returns its records."""
    answer = boto3.client("sqs").receive_message(
        QueueUrl=process.settings().ingest_queue_url,
        MaxNumberOfMessages=10,
        MessageSystemAttributeNames=["All"],
        MessageAttributeNames=["All"],
    )
    return [record_of(message, ARN) for message in answer.get("Messages", [])]


def run(records: list[dict[str, Any]], context: Context | None = None) -> set[str]:
    """Run the function; returns the ids of the reported messages."""
    answer = ingest.handler({"Records": records}, context or Context())
    return {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}


def poll() -> int:
    """Receive a batch, run the function, delete the messages that it does not report; returns the
    number of the others."""
    records = handed_out()
    left = run(records)
    for record in records:
        if record["messageId"] not in left:
            boto3.client("sqs").delete_message(
                QueueUrl=process.settings().ingest_queue_url,
                ReceiptHandle=record["receiptHandle"],
            )
    return len(left)


def waiting(url: str | None = None) -> int:
    """The number of messages in the queue, with hidden ones."""
    names: Any = [
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesNotVisible",
    ]
    answer = boto3.client("sqs").get_queue_attributes(
        QueueUrl=url or process.settings().ingest_queue_url, AttributeNames=names
    )
    return sum(int(count) for count in answer["Attributes"].values())


def dead_letters() -> list[tuple[Any, dict[str, str]]]:
    """Receive and delete all dead letters; returns body and attributes of each."""
    sqs, url = boto3.client("sqs"), process.settings().ingest_dead_letter_queue_url
    letters = []
    while messages := sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    ).get("Messages", []):
        for message in messages:
            attributes = message.get("MessageAttributes", {})
            values = {name: value["StringValue"] for name, value in attributes.items()}
            letters.append((message["Body"], values))
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return letters


def tasks_stored() -> list[dict[str, Any]]:
    return [item for item in items_stored() if "status" in item]


def items_stored() -> list[dict[str, Any]]:
    return boto3.client("dynamodb").scan(TableName=process.settings().wheel_table)["Items"]
