"""The authorizer of the local gateway: API Gateway's answers, and its cache."""

import json
from typing import Any

import pytest

from duewheel.rules.access.grants import AuthMode
from local.aws.functions import Function
from local.aws.http_api import Gateway, Request, Route, routes_of
from local.aws.intrinsics import TemplateError
from local.aws.key_authorizer import Authorizer, authorizers_of
from local.aws.resources import Resources
from local.aws.template import load_template
from tests.conftest import TEMPLATE
from tests.support.cases import each_case

LET_IN = {"isAuthorized": True, "context": {"key_id": "a"}}
KEPT_MS = 60_000


def function(name: str) -> Function:
    return Function(name, name, f"arn:{name}", 10_000, 128, lambda event, context: None)


class Guarded:
    """A gateway with two routes and one authorizer, whose answers the test sets."""

    def __init__(self, authorizer_result: Any = LET_IN) -> None:
        self.now_ms = 1_000_000
        self.authorizer_result = authorizer_result
        self.asked: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        authorizer = Authorizer("keys", function("authorizer"), "authorization", KEPT_MS)
        routes = [
            Route(f"ANY /{path}/{{proxy+}}", function("api"), False, authorizer)
            for path in ("v1", "api")
        ]
        self.gateway = Gateway(routes, self._invoke, lambda: self.now_ms)

    def _invoke(self, called: Function, event: dict[str, Any]) -> Any:
        if called.name == "api":
            self.events.append(event)
            return {"statusCode": 204}
        self.asked.append(event)
        if isinstance(self.authorizer_result, Exception):
            raise self.authorizer_result
        return self.authorizer_result

    def answer(self, brought: str | None = "Bearer a", target: str = "/v1/tasks") -> Any:
        headers = (("Host", "localhost"),)
        if brought is not None:
            headers += (("Authorization", brought),)
        reply = self.gateway.answer(Request("GET", target, headers, b"body", "127.0.0.1"))
        return reply.status, json.loads(reply.body or b"null")


def test_an_admitted_request_has_the_context_of_the_authorizer() -> None:
    guarded = Guarded()
    assert guarded.answer()[0] == 204
    (event,) = guarded.events
    assert event["requestContext"]["authorizer"] == {"lambda": {"key_id": "a"}}


def test_the_authorizer_gets_the_request_without_its_body() -> None:
    guarded = Guarded()
    guarded.answer("Bearer a", "/v1/tasks?a=b")
    (asked,) = guarded.asked
    assert (asked["type"], asked["version"]) == ("REQUEST", "2.0")
    assert asked["identitySource"] == ["Bearer a"]
    assert asked["headers"]["authorization"] == "Bearer a"
    assert asked["rawQueryString"] == "a=b"
    assert not {"body", "isBase64Encoded"} & set(asked)


@each_case("brought", [None, ""])
def test_a_request_without_the_header_is_refused_without_the_authorizer(
    brought: str | None,
) -> None:
    guarded = Guarded()
    assert guarded.answer(brought) == (401, {"message": "Unauthorized"})
    assert guarded.asked == []
    assert guarded.events == []


@each_case("authorizer_result", [{"isAuthorized": False}, {"isAuthorized": "true"}])
def test_a_refused_request_does_not_reach_the_function(authorizer_result: Any) -> None:
    guarded = Guarded(authorizer_result)
    assert guarded.answer() == (403, {"message": "Forbidden"})
    assert guarded.events == []


@each_case("authorizer_result", [None, {}, "yes", RuntimeError("no")])
def test_a_failed_authorizer_admits_no_request_and_is_not_cached(authorizer_result: Any) -> None:
    guarded = Guarded(authorizer_result)
    assert guarded.answer() == (500, {"message": "Internal Server Error"})
    assert guarded.events == []
    guarded.authorizer_result = LET_IN
    assert guarded.answer()[0] == 204


def test_the_answer_for_a_value_is_cached_for_all_routes() -> None:
    guarded = Guarded()
    guarded.answer()
    guarded.authorizer_result = {"isAuthorized": False}
    guarded.now_ms += KEPT_MS - 1
    assert guarded.answer(target="/api/timer/v1/defs")[0] == 204
    assert guarded.answer("Bearer b")[0] == 403
    guarded.now_ms += 1
    assert guarded.answer()[0] == 403
    guarded.authorizer_result = LET_IN
    assert guarded.answer()[0] == 403, "a refusal is cached as well"


def of_the_template(resources: Resources, mode: AuthMode) -> Resources:
    template = load_template(TEMPLATE, {"AuthMode": mode.value})
    return Resources(template, resources._dynamodb, resources._sqs)


def test_the_templates_authorizer_guards_all_its_routes(resources: Resources) -> None:
    made = of_the_template(resources, AuthMode.KEYS)
    arns = [made.ref(f"{name}FunctionAliaslive") for name in ("Api", "Authorizer")]
    functions = {arn: function(arn) for arn in arns}
    (authorizer,) = authorizers_of(made, functions).values()
    assert (authorizer.header, authorizer.kept_ms) == ("authorization", KEPT_MS)
    assert authorizer.function is functions[arns[1]]
    routes = routes_of(made, functions)
    guarded = [route for route in routes if route.key.startswith("ANY ")]
    assert [route.authorizer for route in guarded] == [authorizer] * 2
    assert not any(route.is_signed for route in routes)


def test_an_authorizer_of_another_kind_is_refused(resources: Resources) -> None:
    made = of_the_template(resources, AuthMode.KEYS)
    made.template.resources["KeyAuthorizer"].properties["EnableSimpleResponses"] = False
    with pytest.raises(TemplateError, match="KeyAuthorizer"):
        authorizers_of(made, {})
