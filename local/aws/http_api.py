"""The template's HTTP API: routes, events and answers as API Gateway's.

Invariant: a function sees the event of payload format 2.0 and nothing else, whatever came in; a
request without a route, a request that is too large, and an event on which a function failed get
API Gateway's own answers.
"""

import base64
import json
import logging
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qsl, unquote

from local.aws.functions import Function
from local.aws.intrinsics import TemplateError
from local.aws.key_authorizer import (
    Authorizer,
    Authorizing,
    Forbidden,
    Unauthorized,
    authorizers_of,
)
from local.aws.resources import Resources
from local.aws.template import ACCOUNT_ID

log = logging.getLogger(__name__)

API_ID = "local"
_TEXT_TYPES = ("text/", "application/json", "application/javascript", "application/xml")


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    target: str  # as on the request line
    headers: tuple[tuple[str, str], ...]
    body: bytes
    client_ip: str

    @property
    def raw_path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def path(self) -> str:
        return unquote(self.raw_path)

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    def joined_headers(self) -> dict[str, str]:
        joined: dict[str, str] = {}
        for name, value in self.headers:
            name = name.lower()
            joined[name] = f"{joined[name]},{value}" if name in joined else value
        return joined


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = field(default=())


def gateway_reply(status: int, message: str) -> Reply:
    """An answer of API Gateway itself; it has a shape of its own."""
    body = json.dumps({"message": message}, separators=(",", ":")).encode()
    return Reply(status, body, (("Content-Type", "application/json"),))


@dataclass(frozen=True, slots=True)
class Route:
    key: str
    function: Function
    is_signed: bool
    authorizer: Authorizer | None = None

    def match(self, method: str, path: str) -> dict[str, str] | None:
        if self.key == "$default":
            return {}
        own_method, _, pattern = self.key.partition(" ")
        if own_method not in ("ANY", method):
            return None
        found = re.fullmatch(_expression(pattern), path, re.DOTALL)
        return found.groupdict() if found else None

    @property
    def rank(self) -> tuple[bool, bool, bool, int]:
        """API Gateway's order: full matches, then greedy ones, then the default."""
        return (self.key == "$default", "+}" in self.key, "{" in self.key, -len(self.key))


def _expression(pattern: str) -> str:
    parts = []
    for literal, name, greedy in re.findall(r"([^{]*)(?:\{(\w+)(\+?)\})?", pattern):
        parts.append(re.escape(literal))
        if name:
            parts.append(f"(?P<{name}>{'.+' if greedy else '[^/]+'})")
    return "".join(parts)


def routes_of(resources: Resources, functions: Mapping[str, Function]) -> list[Route]:
    routes = []
    authorizers = authorizers_of(resources, functions)
    integrations = {
        f"integrations/{resources.ref(i.logical_id)}": resources.resolve(i.properties)
        for i in resources.template.of_type("AWS::ApiGatewayV2::Integration")
    }
    for resource in resources.template.of_type("AWS::ApiGatewayV2::Route"):
        properties = resources.resolve(resource.properties)
        integration = integrations[properties["Target"]]
        if integration.get("PayloadFormatVersion") != "2.0":
            raise TemplateError(f"{resource.logical_id} does not use payload format 2.0")
        routes.append(
            Route(
                properties["RouteKey"],
                functions[integration["IntegrationUri"]],
                properties.get("AuthorizationType") == "AWS_IAM",
                authorizers[properties["AuthorizerId"]] if "AuthorizerId" in properties else None,
            )
        )
    return sorted(routes, key=lambda route: route.rank)


class Gateway:
    """Finds the route, makes the event, invokes, and reads the function's answer."""

    def __init__(
        self,
        routes: list[Route],
        invoke: Callable[[Function, dict[str, Any]], Any],
        now_ms: Callable[[], int],
    ) -> None:
        self._routes = routes
        self._invoke = invoke
        self._now_ms = now_ms
        self._authorizing = Authorizing(invoke, now_ms)

    def answer(self, request: Request) -> Reply:
        reply = self._answer(request)
        date = formatdate(self._now_ms() // 1000, usegmt=True)
        return replace(reply, headers=(*reply.headers, ("Date", date)))

    def _answer(self, request: Request) -> Reply:
        for route in self._routes:
            parameters = route.match(request.method, request.path)
            if parameters is not None:
                event = http_event(request, route, parameters, self._now_ms())
                return self._answer_of(route, event)
        return gateway_reply(404, "Not Found")

    def _answer_of(self, route: Route, event: dict[str, Any]) -> Reply:
        try:
            if route.authorizer is not None:
                context = self._authorizing.context(route.authorizer, event)
                event["requestContext"]["authorizer"] = {"lambda": context}
            return reply_from(self._invoke(route.function, event))
        except Unauthorized:
            return gateway_reply(401, "Unauthorized")
        except Forbidden:
            return gateway_reply(403, "Forbidden")
        except Exception:  # the caller never sees the error; it is in the log
            log.exception("%s failed", route.function.name)
            return gateway_reply(500, "Internal Server Error")


def http_event(
    request: Request, route: Route, parameters: Mapping[str, str], now_ms: int
) -> dict[str, Any]:
    headers = request.joined_headers()
    cookies = [part.strip() for part in headers.pop("cookie", "").split(";") if part.strip()]
    headers.setdefault("host", "localhost")
    headers["x-amzn-trace-id"] = f"Root=1-{now_ms // 1000:08x}-{uuid.uuid4().hex[:24]}"
    headers["x-forwarded-for"] = request.client_ip
    headers["x-forwarded-port"] = headers["host"].rpartition(":")[2]
    headers["x-forwarded-proto"] = "http"
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route.key,
        "rawPath": request.path,
        "rawQueryString": request.query,
        "headers": headers,
        "requestContext": _request_context(request, route, headers, now_ms),
        "isBase64Encoded": False,
    }
    if cookies:
        event["cookies"] = cookies
    query: dict[str, str] = {}
    for name, value in parse_qsl(request.query, keep_blank_values=True):
        query[name] = f"{query[name]},{value}" if name in query else value
    if query:
        event["queryStringParameters"] = query
    if parameters:
        event["pathParameters"] = dict(parameters)
    if request.body:
        text = _as_text(request.body, headers.get("content-type", ""))
        event["isBase64Encoded"] = text is None
        event["body"] = base64.b64encode(request.body).decode() if text is None else text
    return event


def _request_context(
    request: Request, route: Route, headers: Mapping[str, str], now_ms: int
) -> dict[str, Any]:
    context: dict[str, Any] = {
        "accountId": ACCOUNT_ID,
        "apiId": API_ID,
        "domainName": headers["host"].partition(":")[0],
        "domainPrefix": API_ID,
        "http": {
            "method": request.method,
            "path": request.path,
            "protocol": "HTTP/1.1",
            "sourceIp": request.client_ip,
            "userAgent": headers.get("user-agent", ""),
        },
        "requestId": uuid.uuid4().hex[:16],
        "routeKey": route.key,
        "stage": "$default",
        "time": f"{datetime.fromtimestamp(now_ms // 1000, UTC):%d/%b/%Y:%H:%M:%S +0000}",
        "timeEpoch": now_ms,
    }
    if route.is_signed:
        context["authorizer"] = {
            "iam": {
                "accessKey": "LOCAL",
                "accountId": ACCOUNT_ID,
                "callerId": "LOCAL",
                "cognitoIdentity": None,
                "principalOrgId": None,
                "userArn": f"arn:aws:iam::{ACCOUNT_ID}:user/local",
                "userId": "LOCAL",
            }
        }
    return context


def _as_text(body: bytes, content_type: str) -> str | None:
    """None: API Gateway passes such a body in base64."""
    if content_type and not content_type.strip().lower().startswith(_TEXT_TYPES):
        return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def reply_from(answer: Any) -> Reply:
    """A function's answer in payload format 2.0: a response, or only a body."""
    if not isinstance(answer, dict) or "statusCode" not in answer:
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return Reply(200, text.encode(), (("Content-Type", "application/json"),))
    headers = [(str(name), str(value)) for name, value in (answer.get("headers") or {}).items()]
    if not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(("Content-Type", "text/plain; charset=utf-8"))
    headers += [("Set-Cookie", cookie) for cookie in answer.get("cookies", [])]
    text = answer.get("body") or ""
    body = base64.b64decode(text) if answer.get("isBase64Encoded") else text.encode()
    return Reply(int(answer["statusCode"]), body, tuple(headers))
