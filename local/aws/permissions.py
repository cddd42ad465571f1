"""Holds every AWS call of a function to its role, as IAM does.

Invariant: a client of the functions asks AWS for nothing that the role of the function that asks
does not allow; where nobody is known to ask it asks for nothing at all. The clients of the local
stack itself, of its pollers and of tests are others, and are left alone.
"""

import logging
from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from duewheel.stores import aws_clients
from local.aws.actions import Asked, Params, asked_of
from local.aws.calling_function import asking
from local.aws.policies import Right, Role
from local.aws.template import REGION

log = logging.getLogger(__name__)

in_use: set[Right] = set()  # since this process began
refused: list[str] = []  # for tests, since what is refused may be caught

_CODES = {"sqs": ("AccessDenied", 403), "sns": ("AuthorizationError", 403)}
_ANY_CODE = ("AccessDeniedException", 400)


class NobodyAsks(Exception):
    """A function's client was used where it is not known for which function."""


def hold_functions_to_their_roles() -> None:
    """All clients that the functions build from now on, in this process. They share a session,
    and the SDK asks its hooks before it writes a request, on the thread that makes the call."""
    aws_clients.shared_session().register("provide-client-params.*.*", _check, unique_id="roles")


def taken_refusals() -> list[str]:
    """What was refused since this was last asked."""
    taken = refused[:]
    refused.clear()
    return taken


def must_allow(role: Role, service: str, operation: str, params: Params) -> None:
    for asked in _asked(role, service, operation, params):
        right = role.right_to(asked)
        if right is None:
            raise _refusal(role, service, operation, asked)
        in_use.add(right)


def _check(**event: Any) -> None:
    model, params = event["model"], event["params"]
    service, operation = model.service_model.service_name, model.name
    try:
        role = asking.get()
    except LookupError:
        raise NobodyAsks(f"{service} {operation}, and nobody is known to ask for it") from None
    if role is not None:
        must_allow(role, service, operation, params)


def _asked(role: Role, service: str, operation: str, params: Params) -> Iterator[Asked]:
    for asked in asked_of(service, operation, params):
        yield asked
        key = role.sealed_by.get(asked.resource.partition("/index/")[0])
        if key is not None:
            yield from _asked_of_key(key, asked.action)


def _asked_of_key(key: str, action: str) -> Iterator[Asked]:
    """What DynamoDB and SQS ask of a customer's key in the name of whoever calls them."""
    service = action.partition(":")[0]
    via = f"{service}.{REGION}.amazonaws.com"
    if service == "dynamodb" or action in ("sqs:SendMessage", "sqs:ReceiveMessage"):
        yield Asked("kms:Decrypt", key, via=via)
    if action == "sqs:SendMessage":
        yield Asked("kms:GenerateDataKey", key, via=via)


def _refusal(role: Role, service: str, operation: str, asked: Asked) -> ClientError:
    what = f"{role.name} may not {asked.action} on {asked.resource}"
    refused.append(what)
    log.error("%s: the template gives it no such right", what)
    code, status = _CODES.get(service, _ANY_CODE)
    message = (
        f"User: {role.function_arn} is not authorized to perform: {asked.action} on resource: "
        f"{asked.resource} because no identity-based policy allows the {asked.action} action"
    )
    error: Any = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {}, "RetryAttempts": 0},
    }
    return ClientError(error, operation)
