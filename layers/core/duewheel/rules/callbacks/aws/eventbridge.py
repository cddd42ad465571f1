"""Put an event on an EventBridge bus."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import asdict

from duewheel.rules.callbacks.allowed_targets import AllowedTargets
from duewheel.rules.callbacks.aws.outcome import outcome_of_refusal
from duewheel.rules.callbacks.aws.target import AwsTarget, line, status_of
from duewheel.rules.callbacks.completion import WithinSeconds
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.payload_encoding import TaskData, envelope
from duewheel.rules.callbacks.timeouts import TimeoutSeconds
from duewheel.rules.callbacks.types import AwsCallback
from duewheel.rules.fields import PRINTABLE, RequestBody, given, invalid, joined_path, whole_text

SOURCE_CHARACTERS_MAX = 256
DETAIL_TYPE_CHARACTERS_MAX = 128

_EVENT_BUS = re.compile(
    r"(?:arn:[a-z-]+:events:[a-z0-9-]+:[0-9]{12}:event-bus/)?[A-Za-z0-9._/-]{1,256}"
)


class EventBridgeCallbackBody(RequestBody, kw_only=True):
    type: Literal["eventbridge"] = "eventbridge"
    event_bus: Annotated[
        str, Meta(pattern=whole_text(_EVENT_BUS), description="an event bus's name or ARN")
    ]
    source: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=SOURCE_CHARACTERS_MAX,
            description="Printable. AWS keeps what begins with `aws.`, in any case, to itself.",
            extra_json_schema=PRINTABLE | {"not": {"pattern": r"^[aA][wW][sS]\."}},
        ),
    ]
    detail_type: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=DETAIL_TYPE_CHARACTERS_MAX,
            description="Printable.",
            extra_json_schema=PRINTABLE,
        ),
    ]
    complete_within_seconds: WithinSeconds | UnsetType = UNSET
    timeout_seconds: TimeoutSeconds | UnsetType = UNSET


class EventBridgeCallback(
    AwsCallback,
    frozen=True,
    tag="eventbridge",
    rename={"event_bus": "bus", "detail_type": "as", "complete_within_seconds": "within"},
):
    """`event_bus` is a name or an ARN."""

    event_bus: str
    source: str
    detail_type: str
    complete_within_seconds: int | None = None

    @property
    def resource(self) -> str:
        return self.event_bus.rpartition(TARGET.kind)[2]


def _read(body: EventBridgeCallbackBody, allowed: AllowedTargets, path: str) -> EventBridgeCallback:
    where = joined_path(path, "event_bus")
    _, arn = TARGET.named(body.event_bus, where, allowed)
    TARGET.check_covered(arn, where, allowed)
    source = line(body.source, SOURCE_CHARACTERS_MAX, joined_path(path, "source"))
    if source.lower().startswith("aws."):
        reason = "begins with aws., which is for AWS's own events."
        raise invalid(joined_path(path, "source"), reason)
    where = joined_path(path, "detail_type")
    detail_type = line(body.detail_type, DETAIL_TYPE_CHARACTERS_MAX, where)
    within = given(body.complete_within_seconds, None)
    return EventBridgeCallback(body.event_bus, source, detail_type, within)


def _shown(callback: EventBridgeCallback) -> dict[str, Any]:
    within = callback.complete_within_seconds
    return asdict(callback) | {"complete_within_seconds": UNSET if within is None else within}


def _request(callback: EventBridgeCallback, task: TaskData) -> dict[str, Any]:
    event = {
        "EventBusName": callback.event_bus,
        "Source": callback.source,
        "DetailType": callback.detail_type,
        "Detail": envelope(task),
    }
    return {"Entries": [event]}


def _outcome(answer: Mapping[str, Any], now_ms: int) -> Outcome:
    (entry,), status_code = answer["Entries"], status_of(answer)
    if "EventId" in entry:  # the status is 200 even if the entry is refused
        return Outcome(Verdict.DELIVERED, f"event {entry['EventId']}", status_code=status_code)
    code, reason = entry.get("ErrorCode", ""), entry.get("ErrorMessage", "")
    return outcome_of_refusal(code, reason, status_code, "", now_ms)


TARGET = AwsTarget(
    body=EventBridgeCallbackBody,
    callback=EventBridgeCallback,
    read=_read,
    members=_shown,
    service="events",
    kind="event-bus/",
    action="events:PutEvents",
    client="events",
    operation="put_events",
    request=_request,
    outcome=_outcome,
)
