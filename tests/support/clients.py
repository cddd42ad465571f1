"""Clients of the SDK, made once in a process, since making two takes as long as a short test.

Invariant: hooks that a test adds to its own client do not affect the client of another test.
"""

from functools import cache
from typing import Any

import boto3

from duewheel.stores.aws_clients import AwsTime, retry_conflicts

aws_time = AwsTime()  # shared by all observed clients; each `World` resets it


def observed(service: str) -> Any:
    """A copy of the client, so that a recorder on it does not affect others."""
    kept = _observed(service)
    client = object.__new__(type(kept))  # `copy` reads attributes that a new object lacks
    vars(client).update(vars(kept))
    return client


@cache
def plain(service: str) -> Any:
    """A shared client, which must not get hooks."""
    return boto3.client(service)  # type: ignore[call-overload]


@cache
def _observed(service: str) -> Any:
    client: Any = boto3.client(service)  # type: ignore[call-overload]
    aws_time.observe(client)
    if service == "dynamodb":
        retry_conflicts(client)
    return client
