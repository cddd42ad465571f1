"""Holds every AWS call of a function to its role, as IAM does.

Invariant: a client of the functions makes only calls that the role of the calling function allows.
If the calling function is not known, the client makes no call. The local stack itself, its pollers
and tests have other clients, which are not checked.
"""

import logging
from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from duewheel.stores import aws_clients
from local.aws.actions import ActionRequest, Params, actions_of
from local.aws.calling_function import asking
from local.aws.policies import Right, Role
from local.aws.template import REGION

log = logging.getLogger(__name__)

in_use: set[Right] = set()  # since this process began
refused: list[str] = []  # for tests, since code may catch a refusal

_CODES = {"sqs": ("AccessDenied", 403), "sns": ("AuthorizationError", 403)}
_ANY_CODE = ("AccessDeniedException", 400)


class UnknownCaller(Exception):
    """A function's client was used, and it is not known by which function."""


def hold_functions_to_their_roles(clients: Any = aws_clients) -> None:
    """Check all clients that the functions build from now on, in this process. They share a
    session, and the SDK calls its hooks before it writes a request, on the thread of the call.
    `clients`: the module that builds them."""
    clients.shared_session().register("provide-client-params.*.*", _check, unique_id="roles")


def taken_refusals() -> list[str]:
    """Refusals since the last call of this function."""
    taken = refused[:]
    refused.clear()
    return taken


def must_allow(role: Role, service: str, operation: str, params: Params) -> None:
    for request in _actions(role, service, operation, params):
        right = role.right_to(request)
        if right is None:
            raise _refusal(role, service, operation, request)
        in_use.add(right)


def _check(**event: Any) -> None:
    model, params = event["model"], event["params"]
    service, operation = model.service_model.service_name, model.name
    try:
        role = asking.get()
    except LookupError:
        raise UnknownCaller(f"{service} {operation}, by an unknown function") from None
    if role is not None:
        must_allow(role, service, operation, params)


def _actions(role: Role, service: str, operation: str, params: Params) -> Iterator[ActionRequest]:
    for request in actions_of(service, operation, params):
        yield request
        key = role.sealed_by.get(request.resource.partition("/index/")[0])
        if key is not None:
            yield from _key_actions(key, request.action)


def _key_actions(key: str, action: str) -> Iterator[ActionRequest]:
    """The actions of DynamoDB and SQS on a customer's key, in the name of their caller."""
    service = action.partition(":")[0]
    via = f"{service}.{REGION}.amazonaws.com"
    if service == "dynamodb" or action in ("sqs:SendMessage", "sqs:ReceiveMessage"):
        yield ActionRequest("kms:Decrypt", key, via=via)
    if action == "sqs:SendMessage":
        yield ActionRequest("kms:GenerateDataKey", key, via=via)


def _refusal(role: Role, service: str, operation: str, request: ActionRequest) -> ClientError:
    what = f"{role.name} may not {request.action} on {request.resource}"
    refused.append(what)
    log.error("%s: the template gives it no such right", what)
    code, status = _CODES.get(service, _ANY_CODE)
    message = (
        f"User: {role.function_arn} is not authorized to perform: {request.action} on resource: "
        f"{request.resource} because no identity-based policy allows the {request.action} action"
    )
    error: Any = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {}, "RetryAttempts": 0},
    }
    return ClientError(error, operation)
