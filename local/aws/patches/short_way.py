"""Passes the usual DynamoDB and SQS requests to moto's handlers without emulating a web server.

Invariant: same answers and same effects. A request is read as JSON and its result written as JSON.
moto itself would make an HTTP request, parse it by the service's model, and write the result by the
model. Other requests, and refused ones, are left to moto: a refused request had no effect, or has
the same effect again.
"""

import json
import re
from base64 import b64encode
from typing import Any

from moto.core.exceptions import ServiceException
from moto.dynamodb.exceptions import DynamodbException
from moto.dynamodb.responses import DynamoHandler
from moto.sqs.responses import SQSResponse
from werkzeug.exceptions import HTTPException

from local.aws.template import ACCOUNT_ID, REGION

Reply = tuple[int, dict[str, str], Any]

_DYNAMODB, _SQS = "DynamoDB_20120810", "AmazonSQS"  # as a request's target names them
_TARGETS = {"dynamodb": _DYNAMODB, "sqs": _SQS}
_HANDLERS: dict[str, tuple[str, type[Any]]] = {
    _DYNAMODB: (f"https://dynamodb.{REGION}.amazonaws.com/", DynamoHandler),
    _SQS: (f"https://sqs.{REGION}.amazonaws.com/", SQSResponse),
}
_KNOWN = {
    (_DYNAMODB, "BatchGetItem"): "batch_get_item",
    (_DYNAMODB, "BatchWriteItem"): "batch_write_item",
    (_DYNAMODB, "DeleteItem"): "delete_item",
    (_DYNAMODB, "GetItem"): "get_item",
    (_DYNAMODB, "PutItem"): "put_item",
    (_DYNAMODB, "Query"): "query",
    (_DYNAMODB, "Scan"): "scan",
    (_DYNAMODB, "TransactWriteItems"): "transact_write_items",
    (_DYNAMODB, "UpdateItem"): "update_item",
    (_SQS, "ChangeMessageVisibility"): "change_message_visibility",
    (_SQS, "ChangeMessageVisibilityBatch"): "change_message_visibility_batch",
    (_SQS, "DeleteMessage"): "delete_message",
    (_SQS, "DeleteMessageBatch"): "delete_message_batch",
    (_SQS, "ReceiveMessage"): "receive_message",
    (_SQS, "SendMessage"): "send_message",
    (_SQS, "SendMessageBatch"): "send_message_batch",
}
# Binary values, and message attributes, which may hold them, are read by the service's model.
_LEFT_TO_MOTO = re.compile(rb'"B"|"Message(System)?Attribute')


def target_of(service: str, operation: str) -> str | None:
    """How a request of the SDK's service names its operation; None if unknown."""
    name = _TARGETS.get(service)
    return f"{name}.{operation}" if name and (name, operation) in _KNOWN else None


def url_of(service: str) -> str:
    return _HANDLERS[_TARGETS[service]][0]


def is_left_to_moto(body: bytes) -> bool:
    return _LEFT_TO_MOTO.search(body) is not None


def answered_the_short_way(request: Any) -> Reply | None:
    """None for a request that is left to moto."""
    target = request.headers.get("X-Amz-Target", b"")
    text = target.decode() if isinstance(target, bytes) else str(target)
    service, _, operation = text.partition(".")
    act = _KNOWN.get((service, operation))
    if act is None or is_left_to_moto(request.body):
        return None
    url, kind = _HANDLERS[service]
    if request.url != url:
        return None
    handler = kind()
    handler.region, handler.current_account = REGION, ACCOUNT_ID
    handler.body = handler.params = json.loads(request.body)
    handler.uri_match = {}
    try:
        result = getattr(handler, act)().result or {}
    except DynamodbException as refusal:
        return int(refusal.code), dict(refusal.get_headers()), refusal.description
    except (ServiceException, HTTPException):
        return None
    return 200, {"Content-Type": "application/x-amz-json-1.0"}, json.dumps(result, default=_text_of)


def _text_of(binary: bytes) -> str:
    return b64encode(binary).decode("ascii")
