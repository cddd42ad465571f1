"""Calls of the URLs that the stacks print, and delivery of near tasks."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from hashlib import sha256
from hmac import digest

from botocore.credentials import Credentials

from tests.emulated.deployment import Deployment
from tests.emulated.emulator import Emulator
from tests.emulated.observed import caller, delivered, task, until, user
from tests.support.http_receiver import Receiver

SECRET = b64encode(bytes(range(32))).decode()


def test_the_printed_url_answers_signed_calls(plain: Deployment, operator: Credentials) -> None:
    status, health = plain.call("GET", "/v1/health", signed_by=operator)

    assert (status, health["status"]) == (200, "ok")


def test_an_unsigned_or_unpermitted_call_gets_a_403(plain: Deployment, emulator: Emulator) -> None:
    stranger = user(emulator, "stranger")

    assert plain.call("GET", "/v1/health")[0] == 403
    assert plain.call("GET", "/v1/health", signed_by=stranger)[0] == 403


def test_the_name_of_a_user_limits_its_permissions(plain: Deployment, receiver: Receiver) -> None:
    reader = caller(plain, "duewheel-read-orders")

    body = task({"url": receiver.url}, 1, None)
    status, problem = plain.call("POST", "/v1/tasks", body, signed_by=reader)

    assert (status, problem["type"]) == (403, "urn:duewheel:problem:not-permitted")
    assert plain.call("GET", "/v1/tasks?biz_type=orders", signed_by=reader)[1]["tasks"] == []


def test_a_task_is_delivered_signed_with_the_secret_of_its_business(
    plain: Deployment, operator: Credentials, receiver: Receiver
) -> None:
    settings = {"signing_secrets": [f"whsec_{SECRET}"]}
    assert plain.call("PUT", "/v1/businesses/orders", settings, operator)[0] in (200, 201)
    body = task({"url": receiver.url}, 1, {"near": 1})
    status, made = plain.call("POST", "/v1/tasks", body, operator)
    assert status == 201, made

    until(lambda: receiver.bodies != [], "the callback")

    assert receiver.bodies == ['{"near": 1}']
    [headers] = receiver.headers
    text = f"{made['task_id']}.{headers['webhook-timestamp']}.{receiver.bodies[0]}"
    expected = b64encode(digest(b64decode(SECRET), text.encode(), sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    delivered(plain, made["task_id"], signed_by=operator)


def test_the_first_api_key_is_accepted_by_a_stack_with_api_keys(
    whole: Deployment, key: Mapping[str, str], receiver: Receiver
) -> None:
    assert whole.call("GET", "/v1/health")[0] == 401
    forged = {"authorization": key["authorization"][:-1] + "!"}
    assert whole.call("GET", "/v1/health", headers=forged)[0] == 403
    assert whole.call("GET", "/v1/health", headers=key)[0] == 200
    body = task({"url": receiver.url}, 1, "keyed")
    status, made = whole.call("POST", "/v1/tasks", body, headers=key)
    assert status == 201, made
    until(lambda: receiver.bodies != [], "the callback")
    assert receiver.bodies == ['"keyed"']
    delivered(whole, made["task_id"], headers=key)


def test_the_console_needs_no_credentials(stack: Deployment) -> None:
    status, page = stack.call("GET", "/console")
    assert status == 200
    assert "<title>Duewheel</title>" in page
