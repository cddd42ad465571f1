"""Timers in templates of stacks: a request of CloudFormation for a `Custom::DuewheelTimer` becomes
calls on a timer by its name, answered as by the api function, of the caller `StackTimersAs`.

A resource's timer has the resource's mark as `managed_by`; all others are neither changed nor
deleted. CloudFormation and Lambda may repeat any request. Each that has a URL for its answer is
answered, also after an unexpected error, since the stack waits for it. The URL is a secret: with
it anybody can answer. Neither it nor a property is logged.
"""

import json
import re
from hashlib import sha256
from http.client import HTTPException, HTTPSConnection
from typing import Any

from msgspec import Raw
from msgspec.json import encode
from msgspec.structs import replace

from duewheel.api import timer_calls
from duewheel.api.answered import answered
from duewheel.interface.http import Answer, Calls, Request
from duewheel.log import logger, logs_run
from duewheel.rules.access.grants import Access
from duewheel.rules.fields import decode, invalid
from duewheel.rules.names import TIMER_ID
from duewheel.rules.refusals import Refusal
from duewheel.wiring import api, process, timers

# No other host gets an answer, whatever a request says.
_RESPONSE_URL = re.compile(
    r"https://(cloudformation-custom-resource-response-[a-z0-9]+\.s3[a-z0-9.-]*\.amazonaws\.com"
    r"(?:\.cn)?)(/[!-~]*)"
)
_BY_NAME = "/v1/timers/by-name/{biz_type}/{timer_name}"
_CALLS = Calls({_BY_NAME: timer_calls.CALLS[_BY_NAME]})
_LAST_TRY_MS = 120_000  # before the end: the calls with all tries of the SDK, and the answer
_PAUSE_SECONDS = 2
_ANSWER_PAUSES_SECONDS = (0.2, 1, 3, 0)
_REASON_CHARACTERS_MAX = 500  # CloudFormation takes answers of 4,096 bytes

_Members = dict[str, Any]


@logs_run
@process.answers_check(timers)
@process.writes_metrics
def handler(event: _Members, context: Any) -> None:
    url = _RESPONSE_URL.fullmatch(str(event.get("ResponseURL")))
    if url is None:
        logger.error("no request of CloudFormation", action="stack-request-refused")
        return
    said = {"PhysicalResourceId": event.get("PhysicalResourceId", "not-made")}
    said |= {name: event.get(name) for name in ("StackId", "RequestId", "LogicalResourceId")}
    try:
        said |= _carry_out(event, context)
    except Refusal as refusal:
        said |= {"Status": "FAILED", "Reason": refusal.detail}
    except Exception:  # noqa: BLE001 - logged, and answered
        logger.exception("request of a stack failed", action="stack-request-failed")
        reason = f"Duewheel failed; its log says more under {context.aws_request_id}."
        said |= {"Status": "FAILED", "Reason": reason}
    _put_answer(url[1], url[2], encode(said))


def _carry_out(event: _Members, context: Any) -> _Members:
    """While there is time, what failed by AWS or by a change meanwhile is tried again."""
    biz_type, name = (event["ResourceProperties"].get(one, " ") for one in ("biz_type", "name"))
    path = _BY_NAME.format(biz_type=biz_type, timer_name=name)
    caller = process.settings().stack_timers_as
    access = Access(caller, api.callers().grants(caller))
    request = Request(method="GET", path=path, request_id=context.aws_request_id, access=access)
    make = {"Create": _put, "Update": _put, "Delete": _delete}[event["RequestType"]]
    while True:
        answer = make(event, request)
        is_late = context.get_remaining_time_in_millis() < _LAST_TRY_MS
        if is_late or (answer.status < 500 and answer.status not in (412, 429)):
            break
        process.clock().sleep(_PAUSE_SECONDS)
    said = json.loads(answer.text)
    if answer.status >= 300:
        reason, kind = said["detail"][:_REASON_CHARACTERS_MAX], said["type"].rpartition(":")[2]
        return {"Status": "FAILED", "Reason": f"{reason} ({kind}, as {caller})"}
    if make is _delete:
        return {"Status": "SUCCESS"}
    data = {one: said[one] or "" for one in ("timer_id", "biz_type", "name", "next_at")}
    return {"Status": "SUCCESS", "PhysicalResourceId": said["timer_id"], "Data": data}


def _put(event: _Members, request: Request) -> Answer:
    found, mark = answered(_CALLS, request), _mark(event)
    version: _Members = {"if_none_match": "*"}
    if found.status == 200:
        timer, version = json.loads(found.text), {"if_match": found.headers["etag"]}
        if timer["managed_by"] != mark:
            remedy = f"Delete it, or set its managed_by to {mark}."
            raise invalid("name", f"timer {timer['timer_id']} has it. {remedy}")
    elif found.status != 404:
        return found
    body = _definition(event["ResourceProperties"].get("definition"), mark)
    return answered(_CALLS, replace(request, method="PUT", body=body, **version))


def _delete(event: _Members, request: Request) -> Answer:
    """A late repeat leaves a timer that was made by the name since: it has another id. Without an
    id the create was refused, or its answer lost."""
    answer, physical_id = answered(_CALLS, request), event["PhysicalResourceId"]
    is_known, timer = TIMER_ID.fullmatch(physical_id) is not None, json.loads(answer.text)
    is_found = answer.status == 200 and timer["managed_by"] == _mark(event)
    if is_found and (not is_known or timer["timer_id"] == physical_id):
        version = answer.headers["etag"]
        answer = answered(_CALLS, replace(request, method="DELETE", if_match=version))
    is_gone = answer.status == 404 or (not is_known and answer.status in (403, 409, 422))
    return Answer(200, "{}") if is_gone else answer


def _mark(event: _Members) -> str:
    """Each resource has its own; that of a stack that is deleted and made again is another."""
    stack_id, resource = event["StackId"], event["LogicalResourceId"]
    digest = sha256(f"{stack_id} {resource}".encode()).hexdigest()[:16]
    return f"cloudformation:{stack_id.split('/')[1][:40]}/{resource[:40]}#{digest}"


def _definition(text: object, mark: str) -> str:
    if not isinstance(text, str):
        raise invalid("definition", "must be a string: the JSON body of the PUT by name.")
    members = decode(text, dict[str, Raw], "definition")
    return encode({**members, "managed_by": mark}).decode()


def _put_answer(host: str, target: str, answer: bytes) -> None:
    """If no try succeeds the run fails, and Lambda repeats it."""
    for pause_seconds in _ANSWER_PAUSES_SECONDS:
        connection = HTTPSConnection(host, timeout=5)
        try:
            # The URL is signed for an empty content type.
            connection.request("PUT", target, answer, {"content-type": ""})
            status = str(connection.getresponse().status)
        except (OSError, HTTPException) as error:
            status = type(error).__name__
        finally:
            connection.close()
        if status.startswith("2"):
            return
        process.clock().sleep(pause_seconds)
    raise ConnectionError(f"The answer to a stack was not taken: {status}.")
