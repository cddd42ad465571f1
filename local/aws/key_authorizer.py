"""Emulates an HTTP API's Lambda authorizer: simple responses, cached by the stack's clock.

Invariant: the authorizer's answer for a header's value is used for all routes until it expires, as
in API Gateway. A request without the header is refused without a run of the authorizer.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from local.aws.functions import Function
from local.aws.intrinsics import TemplateError
from local.aws.resources import Resources

log = logging.getLogger(__name__)

_HEADER = "$request.header."
_PLAYED = {"AuthorizerType": "REQUEST", "AuthorizerPayloadFormatVersion": "2.0"}


class Unauthorized(Exception):
    """The request lacks the header of the authorizer."""


class Forbidden(Exception):
    """The authorizer refuses the request."""


@dataclass(frozen=True, slots=True)
class Authorizer:
    name: str
    function: Function
    header: str  # in lower case
    kept_ms: int


def authorizers_of(
    resources: Resources, functions: Mapping[str, Function]
) -> dict[str, Authorizer]:
    """The authorizers by the value of their `Ref`."""
    authorizers = {}
    for resource in resources.template.of_type("AWS::ApiGatewayV2::Authorizer"):
        properties = resources.resolve(resource.properties)
        (source,) = properties["IdentitySource"]
        is_played = all(properties.get(name) == value for name, value in _PLAYED.items())
        if not (is_played and properties.get("EnableSimpleResponses") and _HEADER in source):
            raise TemplateError(f"{resource.logical_id} is no authorizer that is emulated here")
        arn = properties["AuthorizerUri"].partition("/functions/")[2].removesuffix("/invocations")
        authorizers[resources.ref(resource.logical_id)] = Authorizer(
            resource.logical_id,
            functions[arn],
            source.removeprefix(_HEADER).lower(),
            int(properties["AuthorizerResultTtlInSeconds"]) * 1000,
        )
    return authorizers


@dataclass(frozen=True, slots=True)
class _Cached:
    context: Mapping[str, Any] | None  # None: refused
    until_ms: int


class Authorizing:
    """Invokes authorizers, and caches their answers."""

    def __init__(
        self, invoke: Callable[[Function, dict[str, Any]], Any], now_ms: Callable[[], int]
    ) -> None:
        self._invoke = invoke
        self._now_ms = now_ms
        self._lock = Lock()
        self._cache: dict[tuple[str, str], _Cached] = {}

    def context(self, authorizer: Authorizer, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """The authorizer's context for the sender of this event. Raises if it refuses them."""
        brought = event["headers"].get(authorizer.header, "")
        if not brought:
            raise Unauthorized
        place, now_ms = (authorizer.name, brought), self._now_ms()
        with self._lock:
            cached = self._cache.get(place)
        if cached is None or now_ms >= cached.until_ms:
            cached = _Cached(
                self._answer_of(authorizer, brought, event), now_ms + authorizer.kept_ms
            )
            with self._lock:
                self._cache[place] = cached
        if cached.context is None:
            raise Forbidden
        return cached.context

    def _answer_of(
        self, authorizer: Authorizer, brought: str, event: Mapping[str, Any]
    ) -> Mapping[str, Any] | None:
        request = {name: part for name, part in event.items() if name not in _NOT_PASSED}
        answer = self._invoke(
            authorizer.function, {**request, "type": "REQUEST", "identitySource": [brought]}
        )
        if answer["isAuthorized"] is not True:
            return None
        context: Mapping[str, Any] = answer.get("context") or {}
        return context


_NOT_PASSED = {"body", "isBase64Encoded"}
