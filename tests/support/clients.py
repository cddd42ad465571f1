"""Clients of the SDK, made once in a process: to make two takes as long as a short test does.

Invariant: what a test hooks into its own client does not reach the client of another test.
"""

from functools import cache
from typing import Any

import boto3

from duewheel.stores.aws_clients import AwsTime, retry_conflicts

aws_time = AwsTime()  # of all observed clients; each `World` begins without any


def observed(service: str) -> Any:
    """A copy: what is set on it, such as a recorder, stays with it."""
    kept = _observed(service)
    client = object.__new__(type(kept))  # `copy` asks the new one for attributes it lacks
    vars(client).update(vars(kept))
    return client


@cache
def plain(service: str) -> Any:
    """Not to be hooked into."""
    return boto3.client(service)  # type: ignore[call-overload]


@cache
def _observed(service: str) -> Any:
    client: Any = boto3.client(service)  # type: ignore[call-overload]
    aws_time.observe(client)
    if service == "dynamodb":
        retry_conflicts(client)
    return client
