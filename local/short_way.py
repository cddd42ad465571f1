"""Hands the usual DynamoDB requests to moto's handlers without playing a web server on the way.

Invariant: same answers and same effects. A request is read as the JSON it is and its result written
as JSON; moto itself makes an HTTP request of it, parses that by the service's model and writes the
result by it. Whatever the short way does not know, and whatever is refused, goes moto's own way: a
refused request has done nothing, or what it does again.
"""

import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult
from moto.dynamodb.responses import DynamoHandler
from werkzeug.exceptions import HTTPException

from local.template import ACCOUNT_ID, REGION

Reply = tuple[int, dict[str, str], Any]

_URL = f"https://dynamodb.{REGION}.amazonaws.com/"
_TARGET = "DynamoDB_20120810."
_KNOWN: dict[str, Callable[[DynamoHandler], ActionResult]] = {
    "BatchGetItem": DynamoHandler.batch_get_item,
    "BatchWriteItem": DynamoHandler.batch_write_item,
    "DeleteItem": DynamoHandler.delete_item,
    "GetItem": DynamoHandler.get_item,
    "PutItem": DynamoHandler.put_item,
    "Query": DynamoHandler.query,
    "TransactWriteItems": DynamoHandler.transact_write_items,
    "UpdateItem": DynamoHandler.update_item,
}


def answered_the_short_way(request: Any) -> Reply | None:
    """None for what is to go moto's own way."""
    target = request.headers.get("X-Amz-Target", b"")
    text = target.decode() if isinstance(target, bytes) else str(target)
    act = _KNOWN.get(text.removeprefix(_TARGET))
    if act is None or request.url != _URL or b'"B"' in request.body:
        return None
    handler = DynamoHandler()
    handler.region, handler.current_account = REGION, ACCOUNT_ID
    handler.body = handler.params = json.loads(request.body)
    try:
        result = act(handler).result
    except (ServiceException, HTTPException):
        return None
    return 200, {"Content-Type": "application/x-amz-json-1.0"}, json.dumps(result, default=_text_of)


def _text_of(binary: bytes) -> str:
    return b64encode(binary).decode("ascii")
