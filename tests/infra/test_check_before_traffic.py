"""The function by which CloudFormation checks the others before it publishes versions of them."""

import io
import json
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from infra.check import app
from tests.support.cases import each_case

API = "arn:aws:lambda:us-east-1:123456789012:function:timers-Api"
NOTIFIER = "arn:aws:lambda:us-east-1:123456789012:function:timers-Notifier"
STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/timers/1"
BROKEN = {"errorType": "SettingsError", "errorMessage": "WHEEL_TABLE is missing"}


class Aws:
    """Functions that answer in order, and the stack's state. Keeps CloudFormation's answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clients = {name: boto3.client(name) for name in ("lambda", "cloudformation")}
        self.stubs = {name: Stubber(client) for name, client in self.clients.items()}
        self.told: list[dict[str, Any]] = []
        self.now = 0.0
        for stub in self.stubs.values():
            stub.activate()
        monkeypatch.setattr(app.boto3, "client", lambda service: self.clients[service])
        monkeypatch.setattr(app, "urlopen", self._put)
        monkeypatch.setattr(app.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(app.time, "sleep", self._sleep)

    def answers(self, function: str, failure: dict[str, str] | None = None) -> None:
        body = json.dumps(failure or {"reached": []}).encode()
        error = {"FunctionError": "Unhandled"} if failure else {}
        self.stubs["lambda"].add_response(
            "invoke",
            {"StatusCode": 200, "Payload": io.BytesIO(body), **error},
            {"FunctionName": function, "Payload": b'{"check": true}'},
        )

    def stack_is(self, status: str) -> None:
        stack = {"StackName": "timers", "CreationTime": 0, "StackStatus": status}
        self.stubs["cloudformation"].add_response(
            "describe_stacks", {"Stacks": [stack]}, {"StackName": STACK}
        )

    def check_all_used(self) -> None:
        for stub in self.stubs.values():
            stub.assert_no_pending_responses()

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def _put(self, request: Any, timeout: int) -> io.BytesIO:
        assert (request.method, request.full_url) == ("PUT", "https://storage.example/?signed")
        assert not request.get_header("Content-type")
        self.told.append(json.loads(request.data))
        return io.BytesIO()


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Aws:
    return Aws(monkeypatch)


def run(aws: Aws, kind: str, *functions: str) -> dict[str, Any]:
    app.handler(
        {
            "RequestType": kind,
            "ResponseURL": "https://storage.example/?signed",
            "StackId": STACK,
            "RequestId": "1",
            "LogicalResourceId": "Check",
            "ResourceProperties": {"Functions": list(functions)},
        },
        None,
    )
    aws.check_all_used()
    (told,) = aws.told
    return told


def test_each_function_is_invoked_once_and_the_answer_is_always_the_same(aws: Aws) -> None:
    aws.answers(API)
    aws.answers(NOTIFIER)
    told = run(aws, "Create", API, NOTIFIER)
    assert told["Status"] == "SUCCESS"
    assert told["Data"] == {"Answer": app.ANSWER}
    assert (told["StackId"], told["RequestId"], told["LogicalResourceId"]) == (STACK, "1", "Check")


def test_a_function_that_keeps_failing_is_named_with_its_reason(aws: Aws) -> None:
    aws.stack_is("UPDATE_IN_PROGRESS")
    aws.answers(API)
    for _ in range(app.PATIENCE_SECONDS // app.PAUSE_SECONDS + 2):
        aws.answers(NOTIFIER, BROKEN)
    told = run(aws, "Update", API, NOTIFIER)
    assert told["Status"] == "FAILED"
    assert told["Reason"] == "timers-Notifier: SettingsError: WHEEL_TABLE is missing"


def test_a_right_that_does_not_hold_everywhere_yet_fails_no_deployment(aws: Aws) -> None:
    aws.stubs["lambda"].add_client_error("invoke", "AccessDeniedException")
    aws.answers(API, BROKEN)
    aws.answers(API)
    assert run(aws, "Create", API)["Status"] == "SUCCESS"


@each_case(
    ("kind", "statuses"),
    [("Delete", []), ("Update", ["UPDATE_ROLLBACK_IN_PROGRESS"])],
)
def test_what_goes_away_or_back_is_not_checked(kind: str, statuses: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        aws = Aws(patch)
        for status in statuses:
            aws.stack_is(status)
        assert run(aws, kind, API)["Status"] == "SUCCESS"


def test_an_unexpected_error_is_an_answer_too(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("unexpected")

    failing: Callable[..., None] = fail
    monkeypatch.setattr(app, "_what_is_wrong", failing)
    told = run(aws, "Create", API)
    assert (told["Status"], told["Reason"]) == ("FAILED", "ValueError('unexpected')")
