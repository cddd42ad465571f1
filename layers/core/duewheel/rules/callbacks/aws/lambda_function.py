"""Invoke a Lambda function, synchronously or asynchronously."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from duewheel.rules.callbacks.allowed_targets import AllowedTargets
from duewheel.rules.callbacks.aws.function_names import (
    FUNCTION,
    FUNCTION_CHARACTERS_MAX,
    function_name,
    is_plain,
)
from duewheel.rules.callbacks.aws.outcome import outcome_of_function
from duewheel.rules.callbacks.aws.target import (
    AwsTarget,
    check_not_own,
    check_region,
)
from duewheel.rules.callbacks.completion import WithinSeconds
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.payload_encoding import TaskData, envelope
from duewheel.rules.callbacks.timeouts import TimeoutSeconds
from duewheel.rules.callbacks.types import AwsCallback
from duewheel.rules.fields import RequestBody, given, invalid, joined_path


class LambdaCallbackBody(RequestBody, kw_only=True):
    type: Literal["lambda"] = "lambda"
    function: Annotated[
        str,
        Meta(
            min_length=1,
            description="a function's name or ARN, with or without an alias",
            extra_json_schema={"pattern": FUNCTION, "maxLength": FUNCTION_CHARACTERS_MAX},
        ),
    ]
    invocation: Literal["sync", "async"] = "sync"
    complete_within_seconds: WithinSeconds | UnsetType = UNSET
    timeout_seconds: TimeoutSeconds | UnsetType = UNSET


class LambdaCallback(
    AwsCallback,
    frozen=True,
    tag="lambda",
    rename={"is_async": "async", "complete_within_seconds": "within"},
):
    """`function` is a name or an ARN, with or without an alias or a version. `is_async`: Lambda
    keeps the event and retries it; else the function's answer is awaited."""

    function: str
    is_async: bool = False
    complete_within_seconds: int | None = None

    @property
    def resource(self) -> str:
        return self.function.rpartition(TARGET.kind)[2]


def _read(body: LambdaCallbackBody, allowed: AllowedTargets, path: str) -> LambdaCallback:
    text, where = body.function, joined_path(path, "function")
    named = function_name(text, allowed.scope)
    if named is None or named.partition != allowed.scope.partition:
        raise invalid(where, "is no function's name or ARN, with or without an alias.")
    check_region(named.region, where, allowed)
    check_not_own(named.function_arn, where, allowed)
    TARGET.check_covered(named.arn, where, allowed)
    # Lambda could read a partial ARN differently.
    return LambdaCallback(
        text if is_plain(text) else named.arn,
        body.invocation == "async",
        given(body.complete_within_seconds, None),
    )


def _shown(callback: LambdaCallback) -> dict[str, Any]:
    within = callback.complete_within_seconds
    return {
        "function": callback.function,
        "invocation": "async" if callback.is_async else "sync",
        "complete_within_seconds": UNSET if within is None else within,
    }


def _request(callback: LambdaCallback, task: TaskData) -> dict[str, Any]:
    return {
        "FunctionName": callback.function,
        "Payload": envelope(task).encode(),
        "InvocationType": "Event" if callback.is_async else "RequestResponse",
    }


def _outcome(answer: Mapping[str, Any], now_ms: int) -> Outcome:
    if answer["StatusCode"] == 202:  # of an asynchronous invocation
        return Outcome(Verdict.DELIVERED, "", status_code=202)
    has_failed = "FunctionError" in answer
    return outcome_of_function(answer["Payload"], answer["StatusCode"], has_failed=has_failed)


TARGET = AwsTarget(
    body=LambdaCallbackBody,
    callback=LambdaCallback,
    read=_read,
    members=_shown,
    service="lambda",
    kind="function:",
    action="lambda:InvokeFunction",
    client="lambda",
    operation="invoke",
    request=_request,
    outcome=_outcome,
)
