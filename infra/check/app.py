"""A request of CloudFormation for the resource `Check`: invoke each function once with the event of
a check, and answer at the URL of the request.

The functions are as their next versions will be; nothing else invokes them unpublished. New rights
take some seconds to hold everywhere, so a check that fails is repeated for a minute. While an
update goes back nothing is checked: a failure would leave the stack in UPDATE_ROLLBACK_FAILED.
"""

import json
import time
from typing import Any
from urllib.request import Request, urlopen

import boto3

EVENT = b'{"check": true}'
PATIENCE_SECONDS = 60
PAUSE_SECONDS = 5
REASON_CHARACTERS_MAX = 1_000
ANSWER = "every function answered"  # always the same: another one would replace versions


def handler(event: dict[str, Any], context: Any) -> None:
    try:
        reason = "" if _is_going_away(event) else _what_is_wrong(event)
    except Exception as error:  # noqa: BLE001 - told to CloudFormation, which waits for an answer
        reason = repr(error)
    _answer(event, reason)


def _is_going_away(event: dict[str, Any]) -> bool:
    if event["RequestType"] != "Update":
        return bool(event["RequestType"] == "Delete")
    stacks = boto3.client("cloudformation").describe_stacks(StackName=event["StackId"])["Stacks"]
    return "ROLLBACK" in stacks[0]["StackStatus"]


def _what_is_wrong(event: dict[str, Any]) -> str:
    """Empty if every function has answered."""
    client = boto3.client("lambda")
    failing = dict.fromkeys(event["ResourceProperties"]["Functions"], "")
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        tried = {function: _failure(client, function) for function in failing}
        failing = {function: why for function, why in tried.items() if why}
        if not failing or time.monotonic() > until:
            break
        time.sleep(PAUSE_SECONDS)
    return "; ".join(f"{function.rpartition(':')[2]}: {why}" for function, why in failing.items())


def _failure(client: Any, function: str) -> str:
    try:
        answer = client.invoke(FunctionName=function, Payload=EVENT)
    except client.exceptions.ClientError as error:
        return str(error)
    if "FunctionError" not in answer:
        return ""
    failed = json.load(answer["Payload"])
    return f"{failed.get('errorType')}: {failed.get('errorMessage')}"


def _answer(event: dict[str, Any], reason: str) -> None:
    body = {
        "Status": "FAILED" if reason else "SUCCESS",
        "Reason": reason[:REASON_CHARACTERS_MAX],
        "PhysicalResourceId": "check",
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "Data": {"Answer": ANSWER},
    }
    # Without a Content-Type, as the URL was signed.
    request = Request(
        event["ResponseURL"], json.dumps(body).encode(), {"Content-Type": ""}, method="PUT"
    )
    urlopen(request, timeout=30).close()
