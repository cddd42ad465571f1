"""The rules of SQS and SNS for messages, of SNS for publications, of EventBridge for events, and of
Step Functions for starts."""

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.support.refused import refuse_if

MESSAGE_BYTES_MAX = 256 * 1024
EVENTS_MAX = 10
EVENTS_BYTES_MAX = 1024 * 1024
INPUT_BYTES_MAX = 256 * 1024
ATTRIBUTES_MAX = 10  # of a message that is delivered unchanged to a queue
NOT_ALLOWED = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAME = re.compile(r"(?!(?i:aws|amazon)\.)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_EXECUTION_NAME = re.compile("[0-9A-Za-z_-]{1,80}")  # the characters that its logs allow
_ID = re.compile(r"[!-~]{1,128}")


def size_of_attributes(message: Mapping[str, Any]) -> int:
    attributes = message.get("MessageAttributes", {})
    refuse_if(len(attributes) > ATTRIBUTES_MAX, f"{len(attributes)} attributes are over ten")
    size = 0
    for name, attribute in attributes.items():
        value = attribute["StringValue"]
        refuse_if(_NAME.fullmatch(name) is None or len(name) > 256, f"no attribute is named {name}")
        refuse_if(not value, f"the attribute {name} is empty")
        refuse_if(NOT_ALLOWED.search(value) is not None, "an attribute has refused characters")
        size += len(name) + len(attribute["DataType"]) + len(value.encode())
    return size


def check_fifo(resource: str, message: Mapping[str, Any]) -> None:
    names = ("MessageGroupId", "MessageDeduplicationId")
    if not resource.endswith(".fifo"):
        refuse_if(any(name in message for name in names), "these are for FIFO alone")
        return
    for name in names:
        refuse_if(
            _ID.fullmatch(message.get(name, "")) is None, f"FIFO without a {name} that is one"
        )


def check_publication(operation: str, request: Mapping[str, Any]) -> None:
    if operation != "Publish":
        return
    text = request["Message"]
    refuse_if(not text, "a message is empty")
    refuse_if(NOT_ALLOWED.search(text) is not None, "a message has characters SNS refuses")
    size = len(text.encode()) + size_of_attributes(request)
    check_fifo(request["TopicArn"], request)
    refuse_if(size > MESSAGE_BYTES_MAX, f"a message of {size} bytes is over 256 KiB")


def check_events(operation: str, request: Mapping[str, Any]) -> None:
    if operation != "PutEvents":
        return
    entries = request["Entries"]
    refuse_if(not 1 <= len(entries) <= EVENTS_MAX, f"PutEvents has {len(entries)} entries")
    size = 0
    for entry in entries:
        for name in ("Source", "DetailType", "Detail"):
            refuse_if(not entry.get(name), f"an event has no {name}")
            size += len(entry[name].encode())
        refuse_if(entry["Source"].startswith("aws."), "a source begins with aws.")
        refuse_if(len(entry["DetailType"]) > 128, "a detail type is over 128 characters")
        detail = json.loads(entry["Detail"])
        refuse_if(not isinstance(detail, dict), "a detail is no object")
    refuse_if(size > EVENTS_BYTES_MAX, f"{size} bytes of events are over 1 MiB")


def check_execution(operation: str, request: Mapping[str, Any]) -> None:
    if operation != "StartExecution":
        return
    name, text = request["name"], request["input"]
    refuse_if(_EXECUTION_NAME.fullmatch(name) is None, f"no execution is named {name}")
    json.loads(text)
    refuse_if(len(text.encode()) > INPUT_BYTES_MAX, "the input is over 256 KiB")


MESSAGE_CHECKS = {  # by the name of the SDK's client
    "sns": check_publication,
    "events": check_events,
    "stepfunctions": check_execution,
}
