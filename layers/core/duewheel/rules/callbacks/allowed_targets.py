"""Which resources callbacks may name: those that this deployment's role may reach.

The list is the template parameter from which the notifier's policy is built. It matches no more
than IAM does, so IAM does not refuse a resource that passes here.
"""

import math
import re
from functools import lru_cache
from typing import Self

from msgspec import Struct

_STACK_ID = re.compile(r"arn:([a-z-]+):cloudformation:([a-z0-9-]+):([0-9]{12}):stack/.+")
_SEGMENTS = 6  # arn, partition, service, Region, account, resource


class Scope(Struct, frozen=True):
    """Partition, Region and account of the deployment, which complete a bare name."""

    partition: str = ""
    region: str = ""
    account: str = ""

    @classmethod
    def of_stack(cls, stack_id: str) -> Self:
        """Raises ValueError if this is no id of a stack."""
        found = _STACK_ID.fullmatch(stack_id)
        if found is None:
            raise ValueError("is no stack's id")
        return cls(*found.groups())

    def arn(self, service: str, resource: str) -> str:
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


class AllowedTargets(Struct, frozen=True):
    """ARNs, with `*` and `?` as in IAM. A type whose service has none is not enabled.
    `timeout_seconds_max`: the bound for a call of any type."""

    scope: Scope = Scope()
    arns: tuple[str, ...] = ()
    own_names: tuple[str, ...] = ()  # of the deployment's queues and functions
    timeout_seconds_max: float = math.inf

    def has(self, service: str) -> bool:
        return any(arn.split(":")[2] == service for arn in self.arns)

    def cover(self, arn: str) -> bool:
        return any(_expression(pattern).fullmatch(arn) for pattern in self.arns)

    def is_own(self, arn: str) -> bool:
        """`arn`: of a queue, or of a function without version and alias."""
        own = {self.scope.arn("sqs", name) for name in self.own_names}
        own |= {self.scope.arn("lambda", f"function:{name}") for name in self.own_names}
        return arn in own


HTTP_ALONE = AllowedTargets()


def check_patterns(patterns: tuple[str, ...]) -> None:
    """Raises ValueError if one is no ARN."""
    for pattern in patterns:
        segments = pattern.split(":", _SEGMENTS - 1)
        if len(segments) < _SEGMENTS or segments[0] != "arn":
            raise ValueError(f"{pattern!r} is no ARN")


@lru_cache(maxsize=64)
def _expression(pattern: str) -> re.Pattern[str]:
    """A wildcard stays within its segment; the last segment, the resource, may hold colons."""
    *head, resource = pattern.split(":", _SEGMENTS - 1)
    segments = [_translated(segment, "[^:]") for segment in head]
    return re.compile(":".join([*segments, _translated(resource, ".")]))


def _translated(segment: str, anything: str) -> str:
    parts = {"*": f"{anything}*", "?": anything}
    return "".join(parts.get(character) or re.escape(character) for character in segment)
