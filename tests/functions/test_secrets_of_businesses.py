"""Secrets that the api stores and the notifier opens, each with the role of its function."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from duewheel.wiring import process
from functions.notifier import app as notifier
from local.aws.calling_function import as_function
from local.aws.emulator import Emulator
from local.aws.permissions import taken_refusals
from local.aws.policies import roles_of
from local.aws.resources import Resources, create_resources
from local.aws.template import load_template
from tests.functions.conftest import Context, call, received_batch
from tests.support.clock import ManualClock
from tests.support.http_receiver import Receiver
from tests.support.rights_in_use import CUSTOMER_KEY, TEMPLATE

WHSEC = "whsec_" + b64encode(bytes(range(32))).decode()
TOKEN = "canary-0123456789"


@pytest.fixture
def resources(emulator: Emulator) -> Resources:
    ways = {"AuthMode": "keys", "IngestBusinesses": "*", "KmsKeyArn": CUSTOMER_KEY}
    template = load_template(TEMPLATE, ways)
    return create_resources(template, boto3.client("dynamodb"), boto3.client("sqs"))


def configured(url: str, **settings: Any) -> None:
    callback = {"url": url, "headers": {"authorization": "Bearer {{secret:token}}"}}
    status, answer = call("PUT", "/v1/businesses/orders", {"callback": callback, **settings})
    assert status in (200, 201), answer


def called(wired: ManualClock) -> None:
    status, _ = call("POST", "/v1/tasks", {"biz_type": "orders", "payload": 1, "delay_seconds": 1})
    assert status == 201
    wired.advance_ms(1_000)
    assert notifier.handler(received_batch(), Context()) == {"batchItemFailures": []}


def test_the_api_stores_secrets_that_the_notifier_signs_and_fills_in_with(
    wired: ManualClock, receiver: Receiver
) -> None:
    configured(receiver.url, signing_secrets=[WHSEC], secrets={"token": TOKEN})
    called(wired)
    (made,), (body,) = receiver.headers, receiver.bodies
    assert made["authorization"] == f"Bearer {TOKEN}"
    signed = f"{made['webhook-id']}.{made['webhook-timestamp']}.{body}".encode()
    digest = hmac.digest(b64decode(WHSEC[6:]), signed, hashlib.sha256)
    assert made["webhook-signature"] == f"v1,{b64encode(digest).decode()}"
    configured(receiver.url, signing_secrets=None, secrets={"token": f"{TOKEN}-2"})
    assert call("DELETE", "/v1/businesses/orders")[0] == 200
    assert boto3.client("dynamodb").scan(TableName=process.settings().secrets_table)["Items"] == []


def test_the_api_gets_no_secret_out_of_the_table(
    wired: ManualClock, resources: Resources, receiver: Receiver
) -> None:
    """By no request that could return an item, the writes included."""
    configured(receiver.url, secrets={"token": TOKEN})
    table = process.settings().secrets_table
    key = {"id": {"S": "orders#guessed"}}
    read_back = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}

    def ask(*_: Any) -> None:
        client = process.dynamodb()
        for request in (
            lambda: client.get_item(TableName=table, Key=key),
            lambda: client.batch_get_item(RequestItems={table: {"Keys": [key]}}),
            lambda: client.put_item(TableName=table, Item=key, **read_back),
            lambda: client.delete_item(TableName=table, Key=key, ReturnValues="ALL_OLD"),
            lambda: client.update_item(TableName=table, Key=key, ReturnValues="ALL_OLD"),
        ):
            with pytest.raises(ClientError, match="not authorized"):
                request()

    as_function(roles_of(resources)["api"], ask)({}, Context())
    assert len(taken_refusals()) == 5
