"""The rights that a call of the SDK needs: actions of IAM with their resources.

Invariant: an unknown call is an error, never a call without rights.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from local.aws.template import ACCOUNT_ID, REGION

Params = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ActionRequest:
    action: str
    resource: str
    items: tuple[Params, ...] = ()  # their keys determine the partitions of a table
    via: str = ""  # the service that acts in the function's name


class NotUnderstood(Exception):
    """A call whose rights are not known here."""


def actions_of(service: str, operation: str, params: Params) -> Iterator[ActionRequest]:
    reader = _READERS.get((service, operation))
    if reader is None:
        raise NotUnderstood(f"the rights of {service} {operation} are not known here")
    return reader(params)


def _on_a_table(operation: str) -> Callable[[Params], Iterator[ActionRequest]]:
    def request(params: Params) -> Iterator[ActionRequest]:
        yield ActionRequest(f"dynamodb:{operation}", _table(params["TableName"]), _of_one(params))

    return request


def _query(params: Params) -> Iterator[ActionRequest]:
    """A query of an index needs the right to the index, and none to its table."""
    index = f"/index/{params['IndexName']}" if "IndexName" in params else ""
    yield ActionRequest("dynamodb:Query", _table(params["TableName"]) + index, (_equal(params),))


def _equal(params: Params) -> Params:
    """The equalities of a Query, as an item: they contain its partition."""
    names = params.get("ExpressionAttributeNames", {})
    values = params.get("ExpressionAttributeValues", {})
    return {
        names.get(name, name): values[value]
        for name, value in _EQUALITY.findall(params.get("KeyConditionExpression", ""))
    }


_EQUALITY = re.compile(r"(#?\w+) *= *(:\w+)")


def _batch(operation: str) -> Callable[[Params], Iterator[ActionRequest]]:
    """IAM checks all keys of a table at once: one that is not covered refuses all."""

    def request(params: Params) -> Iterator[ActionRequest]:
        for table, wanted in params["RequestItems"].items():
            items = wanted["Keys"] if "Keys" in wanted else map(_written, wanted)
            yield ActionRequest(f"dynamodb:{operation}", _table(table), tuple(items))

    return request


def _written(request: Params) -> Params:
    """The keys of a batch of writes."""
    ((_, written),) = request.items()
    (item,) = _of_one(written)
    return item


def _of_one(params: Params) -> tuple[Params, ...]:
    item = params.get("Key") or params.get("Item")
    return () if item is None else (item,)


_PARTS = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}


def _transaction(params: Params) -> Iterator[ActionRequest]:
    """A transaction is no action of its own: each of its parts is."""
    for part in params["TransactItems"]:
        ((kind, written),) = part.items()
        yield ActionRequest(
            f"dynamodb:{_PARTS[kind]}", _table(written["TableName"]), _of_one(written)
        )


def _on_a_queue(action: str) -> Callable[[Params], Iterator[ActionRequest]]:
    def request(params: Params) -> Iterator[ActionRequest]:
        yield ActionRequest(f"sqs:{action}", _queue(params["QueueUrl"]))

    return request


def _invoke(params: Params) -> Iterator[ActionRequest]:
    function = params["FunctionName"]
    is_arn = function.startswith("arn:")
    yield ActionRequest(
        "lambda:InvokeFunction", function if is_arn else _arn("lambda", f"function:{function}")
    )


def _publish(params: Params) -> Iterator[ActionRequest]:
    yield ActionRequest("sns:Publish", params["TopicArn"])


def _put_events(params: Params) -> Iterator[ActionRequest]:
    for entry in params["Entries"]:
        bus = entry["EventBusName"]
        yield ActionRequest(
            "events:PutEvents",
            bus if bus.startswith("arn:") else _arn("events", f"event-bus/{bus}"),
        )


def _start_execution(params: Params) -> Iterator[ActionRequest]:
    """IAM judges a call of an alias or a version by the ARN of its state machine."""
    machine = ":".join(params["stateMachineArn"].split(":")[:7])
    yield ActionRequest("states:StartExecution", machine)


def _table(name: str) -> str:
    return _arn("dynamodb", f"table/{name}")


def _queue(url: str) -> str:
    """The host of an address of AWS contains the Region."""
    parts = urlsplit(url)
    _, account, name = parts.path.split("/")
    host = (parts.hostname or "").split(".")
    region = host[1] if host[0] == "sqs" else REGION
    return f"arn:aws:sqs:{region}:{account}:{name}"


def _arn(service: str, resource: str) -> str:
    return f"arn:aws:{service}:{REGION}:{ACCOUNT_ID}:{resource}"


_READERS: dict[tuple[str, str], Callable[[Params], Iterator[ActionRequest]]] = {
    **{
        ("dynamodb", operation): _on_a_table(operation)
        for operation in ("GetItem", "PutItem", "UpdateItem", "DeleteItem")
    },
    ("dynamodb", "Query"): _query,
    ("dynamodb", "BatchGetItem"): _batch("BatchGetItem"),
    ("dynamodb", "BatchWriteItem"): _batch("BatchWriteItem"),
    ("dynamodb", "TransactWriteItems"): _transaction,
    ("sqs", "GetQueueAttributes"): _on_a_queue("GetQueueAttributes"),
    ("sqs", "SendMessage"): _on_a_queue("SendMessage"),
    ("sqs", "SendMessageBatch"): _on_a_queue("SendMessage"),
    ("sqs", "ChangeMessageVisibility"): _on_a_queue("ChangeMessageVisibility"),
    ("sqs", "ChangeMessageVisibilityBatch"): _on_a_queue("ChangeMessageVisibility"),
    ("lambda", "Invoke"): _invoke,
    ("sns", "Publish"): _publish,
    ("events", "PutEvents"): _put_events,
    ("stepfunctions", "StartExecution"): _start_execution,
}
