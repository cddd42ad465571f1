"""`duewheel console`: the requests and answers that its proxy passes on."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import httpx
import pytest

from duewheel import BearerKey, SigV4
from tests.console_support import PAGE, Proxy, Upstream, proxied, upstream
from tests.signatures import signed_by_hand
from tests.support import Script, gateway, problem


@pytest.fixture
def signing(service: Upstream, credentials: None) -> Iterator[Proxy]:
    with proxied(service.url, SigV4(region="eu-central-1")) as proxy:
        yield proxy


def test_the_printed_address_opens_the_console(service: Upstream) -> None:
    with proxied(service.url) as proxy, httpx.Client() as browser:
        entered = browser.get(proxy.address)
        assert 'content="0; url=/console"' in entered.text
        page = browser.get(f"http://{proxy.host}/console")
    assert (page.status_code, page.content) == (200, PAGE)


def test_a_browser_with_the_cookie_may_load_the_used_address_again(proxy: Proxy) -> None:
    """The user may reload it, and browsers prefetch it."""
    query = f"/?token={proxy.token}"
    assert proxy.ask(f"GET {query}").status_code == 200
    assert proxy.ask("GET /").status_code == 200


@pytest.mark.parametrize(
    ("sent", "arrives"),
    [
        ("/v1/tasks/AQG5dxdnQAAAeOt8N-CZJxW76LPH", "/v1/tasks/AQG5dxdnQAAAeOt8N-CZJxW76LPH"),
        ("/v1/businesses/orders/tasks/order%3A1~a", "/v1/businesses/orders/tasks/order:1~a"),
        ("/v1/businesses/orders/tasks/%C3%BC%20", "/v1/businesses/orders/tasks/%C3%BC%20"),
        ("/v1/tasks?a=1+2%2B3&a=*&b", "/v1/tasks?a=1%202%2B3&a=%2A&b="),
        ("/v1/tasks?key_prefix=a~b:c%2Fd?e", "/v1/tasks?key_prefix=a~b%3Ac%2Fd%3Fe"),
        ("/v1/tasks?", "/v1/tasks"),
        ("/console", "/console"),
        ("/console/app.js", "/console/app.js"),
    ],
)
def test_the_proxy_sends_addresses_as_the_client_writes_them(
    service: Upstream, proxy: Proxy, sent: str, arrives: str
) -> None:
    assert proxy.ask(f"GET {sent}").status_code == 200
    assert service.received[0].url.raw_path.decode() == arrives


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_signatures_are_valid_for_the_forwarded_request(
    service: Upstream, signing: Proxy, method: str
) -> None:
    form = urlencode({"key_prefix": "order-17: +&=/~ü*'", "empty": ""})
    signing.ask(f"{method} /v1/tasks/a%3Ab~c%7Ed?{form}&z=1&a=2", body="ü".encode())
    (request,) = service.received
    assert request.headers["x-amz-security-token"] == "token"
    assert request.headers["authorization"] == signed_by_hand(request)


def test_the_users_key_replaces_the_authorization_of_the_page(service: Upstream) -> None:
    with proxied(service.url, BearerKey("dw_mine")) as proxy:
        proxy.ask("GET /v1/wheel", {"Authorization": "Bearer dw_theirs"})
    assert service.received[0].headers.get_list("authorization") == ["Bearer dw_mine"]


def test_body_and_headers_of_the_interface_are_passed_on(service: Upstream, proxy: Proxy) -> None:
    headers = {
        "Content-Type": "application/json",
        "If-Match": '"3"',
        "Idempotency-Key": "once",
        "Accept": "application/json",
    }
    body = '{"payload": "ü"}'.encode()
    proxy.ask("PUT /v1/businesses/orders", headers, body)
    (request,) = service.received
    assert (request.method, request.content) == ("PUT", body)
    assert {name: request.headers[name] for name in headers} == headers


def test_an_answer_keeps_its_descriptive_headers(service: Upstream, proxy: Proxy) -> None:
    service.status = 201
    service.headers = {
        "content-type": "application/json",
        "content-security-policy": "default-src 'self'",
        "cache-control": "no-cache",
        "etag": '"3"',
        "location": "/v1/tasks/AQ",
        "retry-after": "5",
        "x-content-type-options": "nosniff",
    }
    answer = proxy.ask("POST /v1/tasks", body=b"{}")
    assert (answer.status_code, answer.content) == (201, service.body)
    assert {name: answer.headers[name] for name in service.headers} == service.headers


def test_not_modified_is_passed_on_without_a_body(service: Upstream, proxy: Proxy) -> None:
    assert proxy.ask("HEAD /console/app.js").content == b""
    service.status, service.body = 304, b""
    answer = proxy.ask("GET /v1/openapi.json", {"If-None-Match": '"a"'})
    assert (answer.status_code, answer.content) == (304, b"")
    assert service.received[1].headers["if-none-match"] == '"a"'


def test_concurrent_requests_of_a_page_are_answered(service: Upstream, proxy: Proxy) -> None:
    """The connections are kept alive."""
    name, _, text = proxy.cookie.partition("=")
    same_origin = {"sec-fetch-site": "same-origin"}
    with (
        httpx.Client(cookies={name: text}, headers=same_origin, timeout=60) as page,
        ThreadPoolExecutor(8) as many,
    ):
        addresses = [f"http://{proxy.host}/v1/tasks/{number}" for number in range(40)]
        assert {each.status_code for each in many.map(page.get, addresses)} == {200}
    assert {str(each.url.path) for each in service.received} == {
        f"/v1/tasks/{number}" for number in range(40)
    }


@pytest.mark.parametrize(("method", "is_unknown"), [("GET", False), ("POST", True)])
def test_an_answer_that_breaks_off_becomes_a_problem(
    service: Upstream, proxy: Proxy, method: str, is_unknown: bool
) -> None:
    service.headers = {"content-encoding": "gzip"}  # wrong: the body is plain text
    answer = proxy.ask(f"{method} /v1/tasks/AQ")
    problem = json.loads(answer.content)
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, problem["status"]) == (502, 502)
    assert ("may have been carried out" in problem["detail"]) == is_unknown


def test_an_unreachable_service_is_reported_as_unchanged(service: Upstream) -> None:
    with upstream() as gone:
        url = gone.url
    with proxied(url) as proxy:
        answer = proxy.ask("POST /v1/tasks", body=b"{}")
    assert answer.status_code == 502
    assert "ConnectError" in answer.text
    assert "carried out" not in answer.text


def test_a_timeout_of_the_service_becomes_a_problem() -> None:
    script = Script(httpx.ReadTimeout("timed out"))
    with proxied("http://service.example", transport=script.transport) as proxy:
        answer = proxy.ask("DELETE /v1/tasks/AQ")
    assert (answer.status_code, "may have been" in answer.text) == (504, True)


def test_credentials_that_cannot_be_renewed_become_a_problem_with_the_reason(
    service: Upstream, credentials: None
) -> None:
    from botocore.credentials import RefreshableCredentials
    from botocore.exceptions import UnauthorizedSSOTokenError

    class Ended(RefreshableCredentials):
        def get_frozen_credentials(self) -> None:
            raise UnauthorizedSSOTokenError

    auth = SigV4(region="eu-central-1")
    auth._credentials = Ended("a", "b", "c", None, lambda: {}, "sso")
    with proxied(service.url, auth) as proxy:
        answer = proxy.ask("GET /v1/wheel")
    assert (answer.status_code, "The request was not sent" in answer.text) == (502, True)
    assert "SSO" in answer.text
    assert service.received == []


@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        (BearerKey("dw_revoked"), "The API key is not known here, or no longer good"),
        (SigV4(region="eu-central-1"), "The AWS credentials do not hold here"),
        (None, "duewheel console was started without any"),
    ],
)
@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_of_api_gateway_shows_what_to_do_in_the_terminal(
    auth: httpx.Auth | None, expected: str, status: int, credentials: None
) -> None:
    script = Script(gateway(status, "The token is expired"))
    with proxied("http://service.example", auth, script.transport) as proxy:
        call, file = proxy.ask("GET /v1/wheel"), proxy.ask("GET /console/main.js")
    refusal = json.loads(call.content)
    assert call.headers["content-type"] == "application/problem+json"
    assert (call.status_code, refusal["status"], refusal["type"]) == (status, status, "about:blank")
    assert expected in refusal["detail"]
    assert "with Ctrl-C and start it again" in refusal["detail"]
    assert refusal["detail"].endswith("API Gateway says: The token is expired.")
    assert (file.status_code, expected in file.text) == (status, True)
    assert "dw_revoked" not in call.text + file.text


def test_a_refusal_of_the_service_is_passed_on_unchanged() -> None:
    script = Script(problem("not-permitted", 403))
    with proxied("http://service.example", transport=script.transport) as proxy:
        answer = proxy.ask("GET /v1/wheel")
    assert json.loads(answer.content)["type"] == "urn:duewheel:problem:not-permitted"


def test_a_redirect_is_neither_followed_nor_passed_on(service: Upstream, proxy: Proxy) -> None:
    service.status, service.headers = 302, {"location": "https://evil.example/"}
    answer = proxy.ask("GET /v1/wheel")
    assert (answer.status_code, "location" in answer.headers) == (302, False)
    assert len(service.received) == 1


def test_the_proxy_works_with_the_local_stack(stack_url: str, biz_type: str) -> None:
    with proxied(stack_url) as proxy:
        made = proxy.ask(
            f"PUT /v1/businesses/{biz_type}/tasks/order-17%3Aclose~1",
            {"Content-Type": "application/json"},
            b'{"delay_seconds": 60, "callback": {"url": "https://example.com/hook"}}',
        )
        assert made.status_code == 201, made.text
        found = proxy.ask(f"GET /v1/businesses/{biz_type}/tasks?key_prefix=order-17%3Aclose%7E")
        task_id = json.loads(made.content)["task_id"]
        assert [task["task_id"] for task in json.loads(found.content)["tasks"]] == [task_id]
        assert proxy.ask(f"DELETE /v1/tasks/{task_id}").status_code == 200
        unknown = proxy.ask("GET /v1/tasks/nonsense")
        assert unknown.headers["content-type"] == "application/problem+json"
