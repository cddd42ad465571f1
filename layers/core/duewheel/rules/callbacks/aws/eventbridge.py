"""Put an event on an EventBridge bus."""

import re
from collections.abc import Mapping
from typing import Any

from duewheel.rules.callbacks.allowed_targets import AllowedTargets
from duewheel.rules.callbacks.aws.outcome import outcome_of_refusal
from duewheel.rules.callbacks.aws.target import AwsTarget, line, status_of
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.payload_encoding import TaskData, envelope
from duewheel.rules.callbacks.types import AwsCallback
from duewheel.rules.fields import Fields

SOURCE_CHARACTERS_MAX = 256
DETAIL_TYPE_CHARACTERS_MAX = 128

_EVENT_BUS = re.compile(r"[A-Za-z0-9._/-]{1,256}")


class EventBridgeCallback(
    AwsCallback,
    frozen=True,
    tag="eventbridge",
    rename={"event_bus": "bus", "detail_type": "as"},
):
    """`event_bus` is a name or an ARN."""

    event_bus: str
    source: str
    detail_type: str


def _read(fields: Fields, allowed: AllowedTargets) -> EventBridgeCallback:
    name, arn = TARGET.named(fields, "event_bus", allowed)
    if not _EVENT_BUS.fullmatch(name):
        raise fields.invalid("event_bus", "is no event bus's name or ARN.")
    TARGET.check_covered(fields, "event_bus", arn, allowed)
    source = line(fields, "source", SOURCE_CHARACTERS_MAX)
    if source.lower().startswith("aws."):
        raise fields.invalid("source", "begins with aws., which is for AWS's own events.")
    detail_type = line(fields, "detail_type", DETAIL_TYPE_CHARACTERS_MAX)
    return EventBridgeCallback(fields.text("event_bus"), source, detail_type)


def _request(callback: EventBridgeCallback, task: TaskData) -> dict[str, Any]:
    event = {
        "EventBusName": callback.event_bus,
        "Source": callback.source,
        "DetailType": callback.detail_type,
        "Detail": envelope(task),
    }
    return {"Entries": [event]}


def _outcome(answer: Mapping[str, Any], now_ms: int) -> Outcome:
    (entry,) = answer["Entries"]
    if "EventId" in entry:  # a refused entry is answered with 200 all the same
        return Outcome(
            Verdict.DELIVERED, f"event {entry['EventId']}", status_code=status_of(answer)
        )
    code, reason = entry.get("ErrorCode", ""), entry.get("ErrorMessage", "")
    return outcome_of_refusal(code, reason, status_of(answer), "", now_ms)


TARGET = AwsTarget(
    name="eventbridge",
    callback=EventBridgeCallback,
    members={
        "event_bus": {"type": "string", "minLength": 1},
        "source": {"type": "string", "minLength": 1, "maxLength": SOURCE_CHARACTERS_MAX},
        "detail_type": {"type": "string", "minLength": 1, "maxLength": DETAIL_TYPE_CHARACTERS_MAX},
    },
    read=_read,
    service="events",
    kind="event-bus/",
    action="events:PutEvents",
    parameter="TargetEventBusArns",
    client="events",
    operation="put_events",
    request=_request,
    outcome=_outcome,
)
