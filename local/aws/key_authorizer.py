"""Plays an HTTP API's Lambda authorizer: simple responses, kept by the stack's clock.

Invariant: what the authorizer said of a header's value stands for all routes until its time is
over, as in API Gateway. A request without the header is refused before anybody is asked.
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
    """The request does not bring what the authorizer is asked about."""


class Forbidden(Exception):
    """The authorizer does not let it in."""


@dataclass(frozen=True, slots=True)
class Authorizer:
    name: str
    function: Function
    header: str  # in lower case
    kept_ms: int


def authorizers_of(
    resources: Resources, functions: Mapping[str, Function]
) -> dict[str, Authorizer]:
    """By what `Ref` makes of them."""
    authorizers = {}
    for resource in resources.template.of_type("AWS::ApiGatewayV2::Authorizer"):
        properties = resources.resolve(resource.properties)
        (source,) = properties["IdentitySource"]
        is_played = all(properties.get(name) == value for name, value in _PLAYED.items())
        if not (is_played and properties.get("EnableSimpleResponses") and _HEADER in source):
            raise TemplateError(f"{resource.logical_id} is no authorizer that is played here")
        arn = properties["AuthorizerUri"].partition("/functions/")[2].removesuffix("/invocations")
        authorizers[resources.ref(resource.logical_id)] = Authorizer(
            resource.logical_id,
            functions[arn],
            source.removeprefix(_HEADER).lower(),
            int(properties["AuthorizerResultTtlInSeconds"]) * 1000,
        )
    return authorizers


@dataclass(frozen=True, slots=True)
class _Said:
    context: Mapping[str, Any] | None  # None: not let in
    until_ms: int


class Authorizing:
    """Asks authorizers, and remembers what they said."""

    def __init__(
        self, invoke: Callable[[Function, dict[str, Any]], Any], now_ms: Callable[[], int]
    ) -> None:
        self._invoke = invoke
        self._now_ms = now_ms
        self._lock = Lock()
        self._said: dict[tuple[str, str], _Said] = {}

    def context(self, authorizer: Authorizer, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """What it says of whoever sends this event; raises when it does not let them in."""
        brought = event["headers"].get(authorizer.header, "")
        if not brought:
            raise Unauthorized
        place, now_ms = (authorizer.name, brought), self._now_ms()
        with self._lock:
            said = self._said.get(place)
        if said is None or now_ms >= said.until_ms:
            said = _Said(self._asked(authorizer, brought, event), now_ms + authorizer.kept_ms)
            with self._lock:
                self._said[place] = said
        if said.context is None:
            raise Forbidden
        return said.context

    def _asked(
        self, authorizer: Authorizer, brought: str, event: Mapping[str, Any]
    ) -> Mapping[str, Any] | None:
        asked = {name: part for name, part in event.items() if name not in _NOT_ASKED}
        answer = self._invoke(
            authorizer.function, {**asked, "type": "REQUEST", "identitySource": [brought]}
        )
        if answer["isAuthorized"] is not True:
            return None
        context: Mapping[str, Any] = answer.get("context") or {}
        return context


_NOT_ASKED = {"body", "isBase64Encoded"}
