"""Secrets that the api stores and the notifier opens, each with the role of its function."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
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
from tests.functions.conftest import Context, call
from tests.support.clock import ManualClock
from tests.support.rights_in_use import CUSTOMER_KEY, TEMPLATE

WHSEC = "whsec_" + b64encode(bytes(range(32))).decode()
TOKEN = "canary-0123456789"


@pytest.fixture
def resources(emulator: Emulator) -> Resources:
    ways = {"AuthMode": "keys", "IngestBusinesses": "*", "KmsKeyArn": CUSTOMER_KEY}
    template = load_template(TEMPLATE, ways)
    return create_resources(template, boto3.client("dynamodb"), boto3.client("sqs"))


@pytest.fixture
def received() -> Iterator[list[dict[str, str]]]:
    """The headers of each call, and its body."""
    calls: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            calls.append({name.lower(): text for name, text in self.headers.items()})
            calls[-1]["body"] = body
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    calls.append({"url": f"http://127.0.0.1:{server.server_port}/"})
    yield calls
    server.shutdown()
    server.server_close()


def configured(url: str, **settings: Any) -> None:
    callback = {"url": url, "headers": {"authorization": "Bearer {{secret:token}}"}}
    status, answer = call("PUT", "/v1/businesses/orders", {"callback": callback, **settings})
    assert status in (200, 201), answer


def called(wired: ManualClock) -> None:
    status, _ = call("POST", "/v1/tasks", {"biz_type": "orders", "payload": 1, "delay_seconds": 1})
    assert status == 201
    wired.advance_ms(1_000)
    messages = boto3.client("sqs").receive_message(
        QueueUrl=process.settings().slice_queue_url, MaxNumberOfMessages=10
    )["Messages"]
    records = [
        {"messageId": m["MessageId"], "receiptHandle": m["ReceiptHandle"], "body": m["Body"]}
        for m in messages
    ]
    assert notifier.handler({"Records": records}, Context()) == {"batchItemFailures": []}


def test_the_api_stores_secrets_that_the_notifier_signs_and_fills_in_with(
    wired: ManualClock, received: list[dict[str, str]]
) -> None:
    url = received.pop()["url"]
    configured(url, signing_secrets=[WHSEC], secrets={"token": TOKEN})
    called(wired)
    (made,) = received
    assert made["authorization"] == f"Bearer {TOKEN}"
    signed = f"{made['webhook-id']}.{made['webhook-timestamp']}.{made['body']}".encode()
    digest = hmac.digest(b64decode(WHSEC[6:]), signed, hashlib.sha256)
    assert made["webhook-signature"] == f"v1,{b64encode(digest).decode()}"
    configured(url, signing_secrets=None, secrets={"token": f"{TOKEN}-2"})
    assert call("DELETE", "/v1/businesses/orders")[0] == 200
    assert boto3.client("dynamodb").scan(TableName=process.settings().secrets_table)["Items"] == []


def test_the_api_gets_no_secret_out_of_the_table(
    wired: ManualClock, resources: Resources, received: list[dict[str, str]]
) -> None:
    """By no request that could return an item, the writes included."""
    configured(received.pop()["url"], secrets={"token": TOKEN})
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
