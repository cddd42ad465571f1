"""Admission to the console on deployments with API keys, and on those with AWS credentials."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from local.stack import LocalStack
from tests.console.viewer import Viewer
from tests.support.service import Service

REMEMBERED_SECONDS = 61  # API Gateway caches the result of the authorizer for a minute
FORBIDDEN = {"message": "Forbidden"}
UNKNOWN = "The service does not know this key, or it is no longer good."


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack]:
    with LocalStack(frozen=True, asks_for_keys=True) as stack:
        yield stack


@pytest.fixture
def service(stack: LocalStack) -> Service:
    return Service(stack.url, stack.admin_key)


def key_with(service: Service, *grants: tuple[str, str]) -> tuple[str, str]:
    """The id and the text of a new key."""
    granted = [{"right": right, "businesses": businesses} for right, businesses in grants]
    status, key = service.call("POST", "/v1/keys", {"name": "viewer", "grants": granted})
    assert status == 201, key
    return key["key_id"], key["key"]


def enter(viewer: Viewer, key: str | None) -> None:
    assert key is not None
    viewer.fill("API key", key)
    viewer.page.keyboard.press("Enter")


def test_the_key_is_requested_and_kept_for_this_tab_alone(
    viewer: Viewer, service: Service, context: BrowserContext
) -> None:
    viewer.open("businesses")
    expect(viewer.page.get_by_label("API key")).to_be_focused()
    enter(viewer, service.key)
    expect(viewer.page.locator("main h1")).to_have_text("Businesses")
    viewer.page.reload()
    expect(viewer.page.locator("main h1")).to_have_text("Businesses")
    kept = "[localStorage.length, document.cookie, sessionStorage.length]"
    assert viewer.page.evaluate(kept) == [0, "", 1]
    assert context.cookies() == []
    assert service.key not in viewer.page.content()
    other = Viewer(context.new_page())
    other.open("businesses")
    expect(other.page.get_by_label("API key")).to_be_visible()


@pytest.mark.parametrize("key", ["dw_AAAAAAAAAAAA_" + "B" * 43, "hello"])
def test_an_invalid_key_is_refused_and_not_kept(viewer: Viewer, key: str) -> None:
    viewer.open()
    enter(viewer, key)
    expect(viewer.page.get_by_role("alert")).to_have_text(UNKNOWN)
    expect(viewer.page.get_by_label("API key")).to_be_focused()
    expect(viewer.page.get_by_role("button", name="Forget the key")).to_have_count(0)
    assert viewer.page.evaluate("sessionStorage.length") == 0


@pytest.mark.parametrize("key", ["", "   ", "two words", "schlüssel"])
def test_a_malformed_key_is_not_sent(viewer: Viewer, key: str) -> None:
    viewer.open()
    enter(viewer, key)
    expect(viewer.page.get_by_role("alert")).to_contain_text("A key is one word")
    assert viewer.page.evaluate("sessionStorage.length") == 0


def test_the_key_can_be_removed_from_the_tab(viewer: Viewer, service: Service) -> None:
    viewer.open("businesses")
    enter(viewer, service.key)
    viewer.press("Forget the key")
    expect(viewer.page.get_by_label("API key")).to_have_value("")
    viewer.page.reload()
    expect(viewer.page.get_by_label("API key")).to_be_visible()
    assert viewer.page.evaluate("sessionStorage.length") == 0


def test_a_key_revoked_before_a_refresh_is_requested_again(
    viewer: Viewer, service: Service
) -> None:
    key_id, key = key_with(service, ("read", "*"))
    viewer.page.clock.install()
    viewer.open("wheel")
    enter(viewer, key)
    expect(viewer.fact("Time pointer")).to_be_visible()
    assert service.call("DELETE", f"/v1/keys/{key_id}")[0] == 200
    service.advance(REMEMBERED_SECONDS)
    viewer.page.clock.run_for(3000)
    expect(viewer.page.get_by_role("alert")).to_have_text(UNKNOWN)
    expect(viewer.page.get_by_role("button", name="Forget the key")).to_have_count(0)
    viewer.page.get_by_role("link", name="Businesses").click()
    expect(viewer.page.get_by_label("API key")).to_be_visible()  # no page is opened
    enter(viewer, service.key)
    expect(viewer.page.locator("main h1")).to_have_text("Businesses")
    expect(viewer.page.get_by_role("button", name="Forget the key")).to_be_visible()


def test_a_key_revoked_before_a_click_is_requested_again(viewer: Viewer, service: Service) -> None:
    key_id, key = key_with(service, ("admin", "clicked"))
    service.call("PUT", "/v1/businesses/clicked", {})
    viewer.open("businesses/clicked")
    enter(viewer, key)
    viewer.press("Pause")
    service.call("DELETE", f"/v1/keys/{key_id}")
    service.advance(REMEMBERED_SECONDS)
    viewer.agree("Pause")
    expect(viewer.page.get_by_label("API key")).to_be_visible()
    assert service.call("GET", "/v1/businesses/clicked")[1]["paused"] is False


def test_a_key_for_one_business_shows_that_business(viewer: Viewer, service: Service) -> None:
    for name in ("mine", "theirs"):
        service.call("PUT", f"/v1/businesses/{name}", {})
    _, key = key_with(service, ("read", "mine"))
    viewer.open("businesses")
    enter(viewer, key)
    expect(viewer.rows("Businesses")).to_have_count(1)
    viewer.page.get_by_role("link", name="mine").click()
    expect(viewer.rows("Changes")).to_have_count(1)
    viewer.press("Pause")
    viewer.agree("Pause")
    expect(viewer.outcome()).to_contain_text("This call needs the right to administer")
    for path in ("businesses/theirs", "businesses/theirs/dead", "businesses/theirs/edit"):
        viewer.open(path)
        expect(viewer.page.locator("main .problem")).to_contain_text("not-permitted")
    for page in ("Tasks", "Timers", "Businesses"):
        viewer.page.get_by_role("link", name=page, exact=True).click()
        expect(viewer.page.locator("main h1")).to_be_visible()
    viewer.page.get_by_role("link", name="Wheel", exact=True).click()
    expect(viewer.page.get_by_role("alert").first).to_contain_text("The caller may not do this")
    expect(viewer.page.get_by_role("button", name="Forget the key")).to_be_visible()


def test_a_single_refusal_of_the_gateway_does_not_request_the_key_again(
    viewer: Viewer, service: Service
) -> None:
    viewer.answer("/v1/businesses", 403, FORBIDDEN)
    viewer.open("businesses")
    enter(viewer, service.key)
    expect(viewer.page.get_by_role("alert")).to_contain_text("does not let this caller in")
    expect(viewer.page.get_by_label("Name of a business")).to_be_visible()


def test_with_signed_requests_the_page_names_duewheel_console(viewer: Viewer) -> None:
    viewer.answer("/v1/health", 403, FORBIDDEN)
    viewer.open()
    expect(viewer.page.locator("main h1")).to_have_text("Requests are signed here")
    expect(viewer.page.locator("main code")).to_contain_text("duewheel console --stack")
    expect(viewer.page.get_by_label("API key")).to_have_count(0)


@pytest.mark.parametrize(("status", "title"), [(401, "Unauthorized"), (403, "Forbidden")])
def test_behind_duewheel_console_a_refusal_shows_what_to_do_in_the_terminal(
    viewer: Viewer, service: Service, status: int, title: str
) -> None:
    """The proxy has a key or credentials of its own, which no page can replace."""
    refusal = {"type": "about:blank", "title": title, "status": status, "detail": "Start it again."}
    viewer.answer("/v1/health", status, refusal)
    viewer.open("businesses")
    expect(viewer.page.get_by_role("alert")).to_have_text(f"{title}Start it again.")
    expect(viewer.page.get_by_label("API key")).to_have_count(0)
    viewer.page.unroute_all()
    viewer.press("Try again")
    enter(viewer, service.key)  # the stack of this test requires keys
    viewer.answer("/v1/businesses", status, refusal)
    viewer.open("businesses?cursor=anew")
    expect(viewer.page.locator("main .problem")).to_have_text(f"{title}Start it again.")
    expect(viewer.page.get_by_label("Name of a business")).to_be_visible()


def test_an_unanswered_request_can_be_repeated_by_hand(
    viewer: Viewer, service: Service, complaints: list[str]
) -> None:
    viewer.page.route("**/v1/health", lambda route: route.abort())
    viewer.open("businesses")
    expect(viewer.page.get_by_role("alert")).to_contain_text("The service does not answer")
    viewer.page.unroute("**/v1/health")
    complaints.clear()  # the browser reports that there was no answer
    viewer.press("Try again")
    enter(viewer, service.key)
    expect(viewer.page.locator("main h1")).to_have_text("Businesses")


def test_the_page_for_the_key_fits_a_phone(browser: Browser, stack: LocalStack) -> None:
    context = browser.new_context(base_url=stack.url, viewport={"width": 360, "height": 740})
    viewer = Viewer(context.new_page())
    viewer.open()
    expect(viewer.page.get_by_label("API key")).to_be_visible()
    assert viewer.has_room()
    context.close()
