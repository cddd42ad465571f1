"""An attacker at the HTTP interface: any request, and the stored items afterwards."""

import json
import re
from typing import Any

from duewheel.wiring import process
from functions.api import app as api
from tests.functions.conftest import Context, http_event, text_of
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
    """Returns the status, the parsed body and the headers."""
    answer = api.handler(http_event(method, f"{path}?{query}", body, **headers), Context())
    # The integers of a payload may be long.
    document = json.loads(text_of(answer), parse_int=lambda digits: int(digits[:100]))
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
