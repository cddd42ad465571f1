"""Events and answers in the shapes of API Gateway's HTTP API, payload format 2.0."""

import base64
import json
from email.utils import parsedate_to_datetime
from typing import Any

from local.aws.functions import Function
from local.aws.http_api import Gateway, Reply, Request, Route, reply_from, routes_of
from local.aws.resources import Resources
from tests.support.cases import each_case

NOW_MS = 1_800_000_000_123


def function(name: str = "api") -> Function:
    return Function(name, name, f"arn:{name}", 29_000, 512, lambda event, context: None)


class Seen:
    """A gateway with one route, which records its events."""

    def __init__(self, key: str = "ANY /v1/{proxy+}", answer: Any = None) -> None:
        self.events: list[dict[str, Any]] = []
        self._answer = answer
        route = Route(key, function(), is_signed=True)
        self.gateway = Gateway([route], self._invoke, lambda: NOW_MS)

    def _invoke(self, _: Function, event: dict[str, Any]) -> Any:
        self.events.append(event)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer or {"statusCode": 204}

    def event(self, *arguments: Any, **named: Any) -> dict[str, Any]:
        self.gateway.answer(request(*arguments, **named))
        return self.events[-1]


def request(
    target: str = "/v1/tasks",
    method: str = "POST",
    headers: tuple[tuple[str, str], ...] = (("Host", "localhost:8080"),),
    body: bytes = b"",
) -> Request:
    return Request(method, target, headers, body, "127.0.0.1")


def test_an_event_has_the_members_that_aws_sends() -> None:
    event = Seen().event("/v1/tasks/a%20b?x=1&x=2&y=", "GET")
    assert event["version"] == "2.0"
    assert event["routeKey"] == "ANY /v1/{proxy+}"
    assert event["rawPath"] == "/v1/tasks/a b"
    assert event["rawQueryString"] == "x=1&x=2&y="
    assert event["queryStringParameters"] == {"x": "1,2", "y": ""}
    assert event["pathParameters"] == {"proxy": "tasks/a b"}
    assert event["isBase64Encoded"] is False
    context = event["requestContext"]
    assert context["http"]["method"] == "GET"
    assert context["http"]["path"] == "/v1/tasks/a b"
    assert context["http"]["sourceIp"] == "127.0.0.1"
    assert context["stage"] == "$default"
    assert context["timeEpoch"] == NOW_MS
    assert context["time"] == "15/Jan/2027:08:00:00 +0000"
    assert context["authorizer"]["iam"]["userArn"].startswith("arn:aws:iam::")


def test_members_that_a_request_lacks_are_not_in_the_event() -> None:
    event = Seen().event("/v1/tasks", "GET")
    assert not {"body", "queryStringParameters", "cookies"} & set(event)


def test_header_names_are_lower_case_and_repeated_ones_are_joined() -> None:
    headers = (("Host", "h:1"), ("X-A", "1"), ("x-a", "2"), ("Cookie", "a=1; b=2"))
    event = Seen().event(headers=headers)
    assert event["headers"]["x-a"] == "1,2"
    assert event["headers"]["x-forwarded-for"] == "127.0.0.1"
    assert event["cookies"] == ["a=1", "b=2"]
    assert "cookie" not in event["headers"]


@each_case(
    ("content_type", "body", "is_text"),
    [
        ("application/json", '{"a": "ü"}'.encode(), True),
        ("application/json; charset=utf-8", b"{}", True),
        ("text/plain", b"x", True),
        ("application/json", b"\xff", False),
        ("application/octet-stream", b"x", False),
        ("application/x-www-form-urlencoded", b"{}", False),
    ],
)
def test_binary_bodies_are_encoded_in_base64(content_type: str, body: bytes, is_text: bool) -> None:
    event = Seen().event(headers=(("Host", "h:1"), ("Content-Type", content_type)), body=body)
    assert event["isBase64Encoded"] is not is_text
    assert event["body"] == (body.decode() if is_text else base64.b64encode(body).decode())


@each_case("target", ["/", "/v1", "/v1/", "/v2/tasks", "/v1x/tasks"])
def test_an_unknown_route_is_answered_with_the_404_of_the_gateway(target: str) -> None:
    seen = Seen()
    reply = seen.gateway.answer(request(target))
    assert (reply.status, json.loads(reply.body)) == (404, {"message": "Not Found"})
    assert not seen.events


def test_a_failed_function_is_answered_with_the_500_of_the_gateway() -> None:
    reply = Seen(answer=RuntimeError("no")).gateway.answer(request())
    assert (reply.status, json.loads(reply.body)) == (500, {"message": "Internal Server Error"})


def test_an_answer_has_the_date_of_the_stacks_clock() -> None:
    date = dict(Seen().gateway.answer(request()).headers)["Date"]
    assert parsedate_to_datetime(date).timestamp() == NOW_MS // 1000


def test_routes_match_in_the_order_full_greedy_default() -> None:
    routes = [
        Route(key, function(key), is_signed=False)
        for key in ("$default", "ANY /v1/{proxy+}", "GET /v1/{one}", "GET /v1/wheel")
    ]
    assert [route.key for route in sorted(routes, key=lambda route: route.rank)] == [
        "GET /v1/wheel",
        "GET /v1/{one}",
        "ANY /v1/{proxy+}",
        "$default",
    ]


def test_the_templates_routes_lead_to_the_api_function(resources: Resources) -> None:
    arns = [resources.ref(f"{name}FunctionAliaslive") for name in ("Api", "Authorizer")]
    api, asked = function("api"), function("authorizer")
    routes = routes_of(resources, dict(zip(arns, (api, asked), strict=True)))
    console = {"GET /console", "GET /console/{file+}"}
    reports = {f"POST /v1/tasks/{{task_id}}/{kind}" for kind in ("complete", "fail", "progress")}
    guarded = {"ANY /v1/{proxy+}", "ANY /api/{proxy+}"}
    assert {route.key for route in routes} == guarded | console | reports
    assert {route.function for route in routes} == {api}
    assert {route.key for route in routes if route.authorizer is None} == console | reports


@each_case(
    ("answer", "expected"),
    [
        ({"statusCode": 204}, Reply(204, b"", (("Content-Type", "text/plain; charset=utf-8"),))),
        (
            {"statusCode": 200, "headers": {"content-type": "a/b"}, "body": "é"},
            Reply(200, "é".encode(), (("content-type", "a/b"),)),
        ),
        (
            {"statusCode": 200, "headers": {"Content-Type": "a/b"}, "cookies": ["a=1"]},
            Reply(200, b"", (("Content-Type", "a/b"), ("Set-Cookie", "a=1"))),
        ),
        ({"a": 1}, Reply(200, b'{"a": 1}', (("Content-Type", "application/json"),))),
    ],
)
def test_a_functions_answer_is_interpreted_as_by_aws(answer: Any, expected: Reply) -> None:
    assert reply_from(answer) == expected


def test_a_binary_answer_is_decoded() -> None:
    body = base64.b64encode(b"\x00\xff").decode()
    answer = {"statusCode": 200, "body": body, "isBase64Encoded": True}
    assert reply_from(answer).body == b"\x00\xff"
