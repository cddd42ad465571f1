"""An attacker at the HTTP interface: any request, and the stored items afterwards."""

import json
import re
from base64 import b64decode, b64encode
from typing import Any

from duewheel.wiring import process
from functions.api import app as api
from tests.functions.conftest import Context, event_from
from tests.functions.conftest import wired as wired
from tests.support.every_call import EVERY_CALL

HOOK = {"url": "https://receiver.example/hook"}
TASK = {"biz_type": "orders", "delay_seconds": 600, "callback": HOOK}
TIMER = {"biz_type": "orders", "name": "close", "cron": "0 3 * * *", "callback": HOOK}
APP_TIMER = {
    "app": "orders",
    "name": "close",
    "cron": "0 30 9 * * * *",
    "notifyHTTPParam": {**HOOK, "method": "POST", "header": {"x-team": ["a"]}, "body": "{}"},
}


def attack(
    method: str, path: str, body: Any = None, query: str = "", **headers: str
) -> tuple[int, Any, dict[str, str]]:
    """Returns the status, the parsed body and the headers. API Gateway encodes a body of bytes in
    Base64."""
    event = event_from("http-api-create-task.json")
    event["rawPath"] = event["requestContext"]["http"]["path"] = path
    event["requestContext"]["http"]["method"] = method
    event["rawQueryString"] = query
    event["headers"] |= {name.replace("_", "-"): value for name, value in headers.items()}
    del event["body"]
    if isinstance(body, bytes):
        event["body"], event["isBase64Encoded"] = b64encode(body).decode(), True
    elif body is not None:
        event["body"] = body if isinstance(body, str) else json.dumps(body)
    answer = api.handler(event, Context())
    text = b64decode(answer["body"]).decode() if answer["isBase64Encoded"] else answer["body"]
    # The integers of a payload may be long.
    document = json.loads(text, parse_int=lambda digits: int(digits[:100]))
    return answer["statusCode"], document, answer["headers"]


def made(method: str, path: str, body: Any = None) -> Any:
    status, answer, _ = attack(method, path, body)
    assert status in (200, 201), answer
    return answer


def problem(*request: Any, **headers: str) -> tuple[int, str]:
    status, document, _ = attack(*request, **headers)
    return status, document["type"].removeprefix("urn:duewheel:problem:")


def stored_items() -> list[Any]:
    """Every item of both tables, except for the wheel's shape, which the first caller records."""
    client, settings = process.dynamodb(), process.settings()
    return [
        item
        for table in (settings.wheel_table, settings.registry_table)
        for page in client.get_paginator("scan").paginate(TableName=table)
        for item in page["Items"]
        if item.get("kind") != {"S": "wheel"}
    ]


def every_call() -> list[tuple[str, str]]:
    """Method and path of every call of the service, with the placeholders."""
    table = EVERY_CALL.by_path
    return [(method, path) for path, by_method in table.items() for method in by_method]


def filled(path: str, otherwise: str = "orders", **named: str) -> str:
    """A call's path, with values for its placeholders."""
    return re.sub(r"\{(\w+)\}", lambda place: named.get(place[1], otherwise), path)
