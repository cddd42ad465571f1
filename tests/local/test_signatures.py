"""A receiver with the public Standard Webhooks library accepts the calls of the running stack."""

import base64
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from local.stack import LocalStack
from tests.support.cases import each_case

OLD, NEW = ("whsec_" + base64.b64encode(bytes([n] * 32)).decode() for n in (1, 2))
PATH = "/v1/businesses/orders"
PAYLOAD = {"order": 17, "customer": "Müller"}


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack]:
    with LocalStack() as running:
        yield running


def call(stack: LocalStack, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
    request = urllib.request.Request(stack.url + path, data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def received(stack: LocalStack, name: str) -> dict[str, Any]:
    task = {
        "biz_type": "orders",
        "delay_seconds": 0,
        "payload": PAYLOAD,
        "callback": {"url": f"{stack.url}/_local/inbox/{name}"},
    }
    assert call(stack, "POST", "/v1/tasks", task)[0] == 201
    for _ in range(600):
        arrived = call(stack, "GET", f"/_local/received/{name}")[1]["requests"]
        if arrived:
            return dict(arrived[0])
        time.sleep(0.05)
    raise AssertionError("nothing arrived")


def test_receivers_accept_the_calls_by_either_live_secret_and_by_no_other(
    stack: LocalStack,
) -> None:
    status, business = call(stack, "PUT", PATH, {"signing_secrets": [NEW, OLD]})
    assert (status, business["signing_secrets"]) == (201, ["whsec_…CAgI", "whsec_…BAQE"])
    arrived = received(stack, "signed")
    for secret in (NEW, OLD):
        assert Webhook(secret).verify(arrived["body"], arrived["headers"]) == PAYLOAD
    with pytest.raises(WebhookVerificationError):
        Webhook(OLD.replace("AQ", "Ag")).verify(arrived["body"], arrived["headers"])
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(arrived["body"] + " ", arrived["headers"])


@each_case(
    ("secrets", "field"),
    [
        ([], "signing_secrets"),
        ([NEW, OLD, NEW], "signing_secrets"),
        (NEW, "signing_secrets"),
        ([NEW, "whsec_dG9vIHNob3J0"], "signing_secrets[1]"),
        (["whsec_…CAgI"], "signing_secrets[0]"),
        ([17], "signing_secrets[0]"),
    ],
)
def test_an_invalid_secret_is_refused_and_not_shown(
    stack: LocalStack, secrets: Any, field: str
) -> None:
    before = call(stack, "GET", PATH)
    status, problem = call(stack, "PUT", PATH, {"signing_secrets": secrets})
    assert (status, problem["field"]) == (422, field)
    assert "dG9v" not in json.dumps(problem)
    assert call(stack, "GET", PATH) == before
