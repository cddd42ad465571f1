"""The sample events, with the members that a test sets."""

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[2] / "infra" / "events"


def sample(name: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return event


def http_api(
    method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    event = sample("http-api-create-task")
    event["headers"] |= headers or {}
    path, _, event["rawQueryString"] = path.partition("?")
    event["rawPath"] = event["requestContext"]["http"]["path"] = path
    event["requestContext"]["http"]["method"] = method
    event["pathParameters"]["proxy"] = path.removeprefix("/v1/")
    if body is None:
        del event["body"], event["headers"]["content-type"], event["headers"]["content-length"]
    else:
        event["body"] = json.dumps(body)
        event["headers"]["content-length"] = str(len(event["body"]))
    return event


def slice_queue_batch(messages: Sequence[Any]) -> dict[str, Any]:
    """The event of the event source mapping for received messages."""
    event = sample("slice-queue-batch")
    like = event["Records"][0]
    event["Records"] = [_record(copy.deepcopy(like), message) for message in messages]
    return event


def _record(record: dict[str, Any], message: Any) -> dict[str, Any]:
    record["messageId"] = message["MessageId"]
    record["receiptHandle"] = message["ReceiptHandle"]
    record["body"] = message["Body"]
    record["md5OfBody"] = message["MD5OfBody"]
    for name in record["attributes"]:
        record["attributes"][name] = message["Attributes"][name]
    return record
