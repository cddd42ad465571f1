"""The form of a business's settings: own settings, defaults of the service, concurrent changes."""

import re

import pytest
from playwright.sync_api import expect

from tests.console.viewer import FAILED, Viewer
from tests.support.service import Service

MARKUP = "<img src=x onerror=alert(1)>"


def business(service: Service, name: str) -> dict[str, object]:
    status, answer = service.call("GET", f"/v1/businesses/{name}")
    assert status == 200, answer
    return dict(answer)


def saved(viewer: Viewer) -> None:
    viewer.press("Save")
    expect(viewer.outcome()).to_contain_text("are saved; they hold within five seconds")
    expect(viewer.part("State")).to_be_visible()


def test_a_new_business_gets_only_the_settings_that_were_typed(
    viewer: Viewer, service: Service
) -> None:
    viewer.open("businesses")
    viewer.fill("Name of a business", "fresh")
    viewer.press("Configure")
    viewer.choose("What its tasks leave out", "http")
    viewer.page.locator("[name='callback.url']").fill("https://api.example.org/hook")
    viewer.page.locator("[name='callback.headers']").fill("x-team: billing\nx-note: " + MARKUP)
    viewer.choose("How a failed call is tried again", "these delays")
    viewer.fill("Delays (seconds)", "1.5, 60")
    viewer.fill("Allowed hosts", "*.example.com\napi.example.org")
    viewer.fill("Default headers also go to", "https://*.example.com")
    viewer.fill("Tried again on", "404, 5XX")
    viewer.fill("Ended by", "none")
    viewer.fill("Calls a second", "2.5")
    viewer.fill("Called later by up to (seconds)", "60")
    viewer.fill("Limits of each flow key (JSON)", '{"default": {"calls_per_second": 5}}')
    viewer.fill("Bytes of the last answer that are kept", "1024")
    viewer.fill("Headers of it that are kept", "X-Request-Id, date")
    viewer.choose("Priority", "low")
    saved(viewer)
    expect(viewer.fact("Priority")).to_contain_text("low")
    expect(viewer.fact("Called later by")).to_contain_text("up to 1 min")
    answer = business(service, "fresh")
    assert answer["own"] == [
        "callback", "retry", "allowed_hosts", "trusted_origins", "retry_statuses", "stop_statuses",
        "calls_per_second", "tolerance_seconds", "priority", "flow",
        "keep_answers",
    ]  # fmt: skip
    assert answer["keep_answers"] == {"body_bytes": 1024, "headers": ["x-request-id", "date"]}
    assert answer["callback"] == {
        "type": "http", "url": "https://api.example.org/hook", "method": None,
        "headers": {"x-team": "billing", "x-note": MARKUP},
    }  # fmt: skip
    assert answer["retry"] == {"attempts": 3, "delays_seconds": [1.5, 60]}
    assert (answer["retry_statuses"], answer["stop_statuses"]) == ([404, "5xx"], [])
    assert answer["calls_per_second"] == 2.5


def test_the_form_contains_own_settings_and_no_defaults(viewer: Viewer, service: Service) -> None:
    service.call(
        "PUT", "/v1/businesses/shown",
        {"callback": {"url": "https://example.com/hook", "headers": {"x-note": MARKUP}},
         "timeout_seconds": 4, "retry": {"attempts": 5, "factor": 3},
         "on_outcome": {"outcomes": ["expired"], "callback": {"url": "https://example.com/told"}}},
    )  # fmt: skip
    viewer.open("businesses/shown/edit")
    expect(viewer.page.locator("[name='callback.headers']")).to_have_value(f"x-note: {MARKUP}")
    expect(viewer.page.get_by_label("A call may take (seconds)")).to_have_value("4")
    expect(viewer.page.get_by_label("Factor")).to_have_value("3")
    expect(viewer.page.get_by_label("Delays (seconds)")).to_be_hidden()
    days = viewer.page.get_by_label("Ended tasks are kept (days)")
    expect(days).to_have_value("")
    expect(days).to_have_attribute("placeholder", "service default: 30")
    viewer.press("Save")
    expect(viewer.outcome()).to_contain_text("Nothing differs")
    assert business(service, "shown")["version"] == 1


def test_only_changed_settings_are_sent(viewer: Viewer, service: Service) -> None:
    service.call(
        "PUT", "/v1/businesses/untouched",
        {"callback": {"type": "lambda", "function": "inbox-function", "invocation": "sync"},
         "retry": {"attempts": 2}, "retention_days": 3},
    )  # fmt: skip
    viewer.open("businesses/untouched/edit")
    viewer.fill("Ended tasks are kept (days)", "9")
    with viewer.page.expect_request(lambda request: request.method == "PUT") as sent:
        saved(viewer)
    assert sent.value.post_data_json == {"retention_days": 9}


def test_an_emptied_field_restores_the_default_of_the_service(
    viewer: Viewer, service: Service
) -> None:
    service.call(
        "PUT", "/v1/businesses/emptied",
        {"callback": {"url": "https://example.com/hook"}, "retention_days": 3, "priority": "low",
         "retry": {"attempts": 2}, "calls_in_flight": 4, "timeout_seconds": 9},
    )  # fmt: skip
    viewer.open("businesses/emptied/edit")
    viewer.choose("What its tasks leave out", "service default: each task says it all")
    viewer.choose("How a failed call is tried again", "service default")
    viewer.choose("Priority", "service default: normal")
    viewer.fill("Ended tasks are kept (days)", "")
    viewer.fill("Calls in flight", "")
    saved(viewer)
    assert business(service, "emptied")["own"] == ["timeout_seconds"]


@pytest.mark.parametrize(
    ("label", "value", "expected"),
    [
        ("Calls a second", "many", "calls_per_second: must be"),
        ("Ended tasks are kept (days)", "0", "retention_days: must be"),
        ("Allowed hosts", "https://example.com/", "allowed_hosts[0]"),
        ("Tried again on", "200", "retry_statuses[0]: must be"),
    ],
)
def test_a_refusal_is_shown_at_its_field(
    viewer: Viewer, service: Service, label: str, value: str, expected: str
) -> None:
    viewer.open("businesses/wrong/edit")
    viewer.fill(label, value)
    viewer.press("Save")
    expect(viewer.field_problem(label)).to_contain_text(expected)
    expect(viewer.page.get_by_label(label, exact=True)).to_be_focused()
    expect(viewer.page.get_by_label(label, exact=True)).to_have_value(value)
    assert service.call("GET", "/v1/businesses/wrong")[0] == 404


@pytest.mark.parametrize("headers", ["no colon", "a: 1\na: 2"])
def test_malformed_headers_are_refused_without_a_request(viewer: Viewer, headers: str) -> None:
    viewer.open("businesses/wrong/edit")
    viewer.choose("What its tasks leave out", "http")
    viewer.page.locator("[name='callback.headers']").fill(headers)
    viewer.press("Save")
    expect(viewer.field_problem("Headers").first).to_be_visible()


def test_the_second_of_two_editors_is_refused_and_loads_the_settings_again(
    viewer: Viewer, service: Service
) -> None:
    service.call("PUT", "/v1/businesses/shared", {"retention_days": 3})
    viewer.open("businesses/shared/edit")
    viewer.fill("Calls a second", "5")
    service.call("PUT", "/v1/businesses/shared", {"retention_days": 9})
    viewer.press("Save")
    expect(viewer.page.get_by_text("Another caller has changed the settings")).to_be_visible()
    assert business(service, "shared")["calls_per_second"] is None
    viewer.press("Load again")
    expect(viewer.page.get_by_label("Ended tasks are kept (days)")).to_have_value("9")
    expect(viewer.page.get_by_label("Calls a second")).to_have_value("")
    viewer.fill("Calls a second", "5")
    saved(viewer)
    assert business(service, "shared")["own"] == ["retention_days", "calls_per_second"]


def test_the_second_of_two_creators_of_a_business_is_refused(
    viewer: Viewer, service: Service
) -> None:
    viewer.open("businesses/raced/edit")
    viewer.fill("Calls a second", "5")
    service.call("PUT", "/v1/businesses/raced", {"retention_days": 9})
    viewer.press("Save")
    expect(viewer.page.get_by_role("button", name="Load again")).to_be_visible()
    assert business(service, "raced")["own"] == ["retention_days"]


def test_a_new_secret_is_made_in_the_browser_and_shown_once(
    viewer: Viewer, service: Service
) -> None:
    service.call("PUT", "/v1/businesses/signed", {"signing_secrets": ["whsec_" + "A" * 32]})
    viewer.open("businesses/signed/edit")
    how = "How its HTTP callbacks are signed"
    expect(viewer.page.get_by_label(how)).to_have_value("")
    expect(viewer.page.get_by_label(how)).to_contain_text("as now: whsec_…AAAA")
    viewer.choose(how, "signed with others")
    viewer.press("Make a new secret")
    secret = viewer.page.get_by_label("Secret", exact=True).input_value()
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret)
    viewer.fill("The one before it, still good", "whsec_" + "A" * 32)
    saved(viewer)
    hints = [f"whsec_…{secret.rstrip('=')[-4:]}", "whsec_…AAAA"]
    assert business(service, "signed")["signing_secrets"] == hints
    expect(viewer.fact("Signing secrets")).to_contain_text(", ".join(hints))
    assert secret not in viewer.page.content()
    viewer.page.get_by_role("link", name="Settings", exact=True).click()
    expect(viewer.page.get_by_label(how)).to_contain_text(hints[0])
    viewer.choose(how, "not signed")
    saved(viewer)
    assert business(service, "signed")["signing_secrets"] is None


def test_an_invalid_secret_is_refused_at_its_field(viewer: Viewer) -> None:
    viewer.open("businesses/unsigned/edit")
    viewer.choose("How its HTTP callbacks are signed", "signed with")
    viewer.fill("Secret", "hunter2")
    viewer.press("Save")
    expect(viewer.field_problem("Secret")).to_contain_text("must be 'whsec_'")


def test_the_keyboard_alone_changes_a_setting(viewer: Viewer, service: Service) -> None:
    service.call("PUT", "/v1/businesses/keyed", {"retention_days": 3})
    viewer.open("businesses/keyed/edit")
    viewer.page.get_by_label("Ended tasks are kept (days)").focus()
    viewer.page.keyboard.press("ControlOrMeta+a")
    viewer.page.keyboard.type("8")
    viewer.page.keyboard.press("Tab")
    viewer.page.keyboard.press("Enter")
    expect(viewer.outcome()).to_contain_text("The settings of keyed are saved")
    assert business(service, "keyed")["retention_days"] == 8


def test_a_double_click_saves_once(viewer: Viewer, service: Service) -> None:
    viewer.open("businesses/twice/edit")
    viewer.fill("Calls a second", "5")
    viewer.page.get_by_role("button", name="Save").dblclick()
    expect(viewer.part("State")).to_be_visible()
    assert business(service, "twice")["version"] == 1


def test_the_form_is_not_shown_if_the_settings_cannot_be_read(viewer: Viewer) -> None:
    viewer.answer("/v1/businesses/broken", 500, FAILED)
    viewer.open("businesses/broken/edit")
    expect(viewer.page.locator("main .problem")).to_contain_text("failed unexpectedly")
    expect(viewer.page.get_by_role("button", name="Save")).to_have_count(0)


def test_the_form_fits_a_phone(viewer: Viewer, service: Service) -> None:
    service.call("PUT", "/v1/businesses/narrow", {"signing_secrets": ["whsec_" + "A" * 32]})
    viewer.page.set_viewport_size({"width": 360, "height": 740})
    viewer.open("businesses/narrow/edit")
    viewer.choose("What its tasks leave out", "sqs")
    viewer.choose("How a failed call is tried again", "growing delays")
    viewer.choose("How its HTTP callbacks are signed", "signed with others")
    expect(viewer.page.get_by_role("button", name="Make a new secret")).to_be_visible()
    assert viewer.has_room()
