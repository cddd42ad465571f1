"""The page of a task: its state, its attempts, and its payload."""

import json
import re
import urllib.request

from playwright.sync_api import Page, Route, expect

from tests.console.tasks_at_hand import MARKUP, created, dead_task, open_task
from tests.console.viewer import Viewer
from tests.support.service import Service

ODD = r'{"b":1e400, "a" : 12345678901234567890,"a":"\u003c\"}{","c":[ ],"d":{"b":1.0}}'


# Its state


def test_the_attempts_are_shown_in_order(viewer: Viewer, service: Service, business: str) -> None:
    service.call("PUT", f"/_local/received/{business}", {"status": 503, "times": 1})
    retry = {"attempts": 3, "delays_seconds": [5]}
    task = created(service, business, 1, retry=retry, key="order-17")
    service.advance(10)
    open_task(viewer, task)
    expect(viewer.section("Attempts").get_by_role("listitem")).to_have_text(
        [
            re.compile("Attempt 1 retrystatus 503 · .*late · took .*ms · 127.0.0.1:"),
            re.compile("Attempt 2 deliveredstatus 200 · .*late · took .*ms · 127.0.0.1:"),
        ]
    )
    expect(viewer.fact("Key")).to_have_text("order-17")
    expect(viewer.fact("Late by")).to_have_text("5 s")
    expect(viewer.fact("Retry")).to_have_text("attempts 3 · delays_seconds 5")
    expect(viewer.fact("method")).to_have_text("POST filled in")
    for action in ("Run now", "Reschedule", "Cancel the task"):
        expect(viewer.button(action)).to_have_count(0)
    expect(viewer.button("Redrive")).to_have_count(1)


def test_the_time_to_the_next_attempt_counts_down(
    viewer: Viewer, service: Service, business: str, still: Page
) -> None:
    open_task(viewer, created(service, business, 600))
    countdown = viewer.section("Attempts").get_by_role("timer")
    expect(countdown).to_have_text(re.compile("in 10 min( 1 s)?"))
    still.clock.run_for(2000)
    expect(countdown).to_have_text(re.compile("in 9 min 5[89] s"))


def test_a_pending_task_is_refreshed_without_losing_focus_or_choices(
    viewer: Viewer, service: Service, business: str, still: Page
) -> None:
    service.call("PUT", f"/_local/received/{business}", {"status": 503, "times": 1})
    task = created(service, business, 30, payload={"a": 1}, retry={"delays_seconds": [60]})
    open_task(viewer, task)
    box = viewer.page.get_by_role("checkbox", name="Lay it out for reading")
    box.check()
    expect(viewer.page.locator("pre.payload")).to_have_text('{\n  "a": 1\n}')
    service.advance(40)
    still.clock.run_for(3000)
    expect(viewer.section("Attempts")).to_contain_text("Attempt 1")
    expect(box).to_be_checked()
    expect(box).to_be_focused()
    expect(viewer.page.locator("pre.payload")).to_have_text('{\n  "a": 1\n}')


def test_a_failed_refresh_keeps_the_task_until_the_next_one(
    viewer: Viewer, service: Service, business: str, still: Page
) -> None:
    open_task(viewer, created(service, business))
    expect(viewer.fact("Business")).to_have_text(business)
    address = re.compile("/v1/tasks/")
    still.route(address, lambda route: route.fulfill(status=503, json={"message": "no"}))
    still.clock.run_for(3000)
    expect(viewer.page.get_by_role("alert")).to_contain_text("cannot answer now")
    expect(viewer.fact("Business")).to_have_text(business)
    still.unroute(address)
    still.clock.run_for(3000)
    expect(viewer.page.get_by_role("alert")).to_have_count(0)


def test_a_parked_task_is_shown_as_parked(viewer: Viewer, service: Service, business: str) -> None:
    service.call("POST", f"/v1/businesses/{business}/pause")
    task = created(service, business, 10)
    service.advance(15)
    open_task(viewer, task)
    expect(viewer.page.locator(".standing")).to_have_text("pending parked")
    expect(viewer.section("Attempts")).to_contain_text("Parked until its business is resumed")


def test_an_unknown_id_is_reported(viewer: Viewer) -> None:
    for name in ("AQG5dxdnQAAACfpAZj_rkI-wgGT2", "order-17", MARKUP):
        viewer.open("tasks/" + name.replace(" ", "%20"))
        expect(viewer.page.locator(".empty")).to_contain_text(f"{name} is not the id of a task")


def test_a_task_that_cannot_be_read_shows_the_reason(viewer: Viewer, business: str) -> None:
    refusal = {"type": "urn:duewheel:problem:unreadable", "detail": "The record is damaged."}
    viewer.page.route(
        re.compile("/v1/tasks/"), lambda route: route.fulfill(status=500, json=refusal)
    )
    viewer.open("tasks/AQG5dxdnQAAACfpAZj_rkI-wgGT2")
    expect(viewer.page.get_by_role("alert")).to_contain_text("The record is damaged.")


def test_links_lead_to_its_business_and_its_timer(
    viewer: Viewer, service: Service, business: str
) -> None:
    service.call("PUT", f"/_local/received/{business}", {"status": 503})
    timer = service.new_task(business, biz_type=business, name=MARKUP, cron="0 3 * * *")
    timer |= {"retry": {"delays_seconds": [3600]}}
    timer_id = service.call("POST", "/v1/timers", timer)[1]["timer_id"]
    _, task = service.call("POST", f"/v1/timers/{timer_id}/run")
    service.advance(3)
    open_task(viewer, task)
    link = viewer.fact("Timer").get_by_role("link")
    expect(link).to_have_attribute("href", f"#/timers/{timer_id}")
    link = viewer.fact("Business").get_by_role("link")
    expect(link).to_have_attribute("href", f"#/businesses/{business}")
    expect(viewer.button("Cancel the task")).to_be_visible()
    for action in ("Run now", "Reschedule"):
        expect(viewer.button(action)).to_have_count(0)


def test_a_notice_leads_to_the_dead_task(viewer: Viewer, service: Service, business: str) -> None:
    callback = {"url": f"{service.url}/_local/inbox/notices"}
    told = {"outcomes": ["dead"], "callback": callback}
    service.call("PUT", f"/v1/businesses/{business}", {"on_outcome": told})
    dead = dead_task(service, business)
    service.advance(5)
    listed = service.call("GET", f"/v1/tasks?biz_type={business}")[1]["tasks"]
    (notice,) = (task for task in listed if "notice_of" in task)
    open_task(viewer, notice)
    viewer.fact("Notice of").get_by_role("link").click()
    expect(viewer.fact("Task id")).to_have_text(dead["task_id"])


def test_a_task_leads_to_the_notice_of_its_outcome(
    viewer: Viewer, service: Service, business: str
) -> None:
    callback = {"url": f"{service.url}/_local/inbox/notices"}
    on_outcome = {"outcomes": ["cancelled"], "callback": callback}
    body = {"biz_type": business, "delay_seconds": 600, "callback": callback}
    task = service.call("POST", "/v1/tasks", {**body, "on_outcome": on_outcome})[1]
    cancelled = service.call("DELETE", f"/v1/tasks/{task['task_id']}")[1]
    open_task(viewer, cancelled)
    expect(viewer.fact("Told of outcomes")).to_contain_text("cancelled")
    viewer.fact("Told by").get_by_role("link").click()
    expect(viewer.fact("Task id")).to_have_text(cancelled["notice_id"])


# Its payload


def test_the_payload_of_a_task_is_shown_unchanged(
    viewer: Viewer, service: Service, business: str
) -> None:
    body = f'{{"biz_type": "{business}", "delay_seconds": 600, "payload": {ODD}, "callback": '
    body += f'{{"url": "{service.url}/_local/inbox/x", "headers": {{"x-odd": "{MARKUP}"}}}}}}'
    request = urllib.request.Request(f"{service.url}/v1/tasks", body.encode(), method="POST")
    with urllib.request.urlopen(request) as reply:
        task = json.loads(reply.read())
    open_task(viewer, task)
    text = viewer.page.locator("pre.payload")
    expect(text).to_have_text(ODD)
    viewer.page.get_by_role("checkbox", name="Lay it out for reading").check()
    laid_out = r"""{
  "b": 1e400,
  "a": 12345678901234567890,
  "a": "\u003c\"}{",
  "c": [],
  "d": {
    "b": 1.0
  }
}"""
    assert text.text_content() == laid_out
    expect(viewer.fact("headers")).to_have_text(f"x-odd: {MARKUP}")


def test_a_missing_payload_is_reported(viewer: Viewer, service: Service, business: str) -> None:
    open_task(viewer, created(service, business))
    expect(viewer.section("Payload")).to_contain_text("null, or none was given")


def test_texts_of_a_task_are_not_read_as_markup(
    viewer: Viewer, service: Service, business: str
) -> None:
    task = created(service, business, payload=MARKUP)

    def with_markup(route: Route) -> None:
        attempt = {"at": task["due_at"], "lateness_ms": 1, "duration_ms": 1, "status_code": None}
        altered = dict.fromkeys(("key", "reason", "last_error", "biz_type", "timer_id"), MARKUP)
        altered |= {"callback": {"type": MARKUP, "url": MARKUP, "attributes": {MARKUP: MARKUP}}}
        altered |= {"history": [{**attempt, "outcome": MARKUP, "note": MARKUP}], "number": MARKUP}
        route.fulfill(json={**task, **altered})

    viewer.page.route(re.compile("/v1/tasks/"), with_markup)
    open_task(viewer, task)
    expect(viewer.section("Attempts")).to_contain_text(MARKUP)
    expect(viewer.page.locator("pre.payload")).to_have_text(f'"{MARKUP}"')
    expect(viewer.page.locator("main img")).to_have_count(0)


CUT = """async (texts) => {
    const { rawMember } = await import("/console/parts/raw_member.js");
    return texts.map((text) => rawMember(text, "payload"));
}"""
RAW = {
    '{"a":1,"payload":1e400}': "1e400",
    '{"payload":-0.0,"b":2}': "-0.0",
    '{ "payload" :  [1, {"payload": 2}] , "b":2}': '[1, {"payload": 2}]',
    '{"key":"\\"payload\\":1","payload":"a\\\\"}': '"a\\\\"',
    '{"a":{"payload":1},"payload":{"x":"}"}}': '{"x":"}"}',
    '{"a":["]",["["]],"payload":true}': "true",
    '{"payl\\u006fad":null}': "null",
    '{"a":{"payload":1}}': None,
    "{}": None,
}


def test_the_text_of_a_member_is_cut_out_unchanged(viewer: Viewer) -> None:
    viewer.open()
    assert viewer.page.evaluate(CUT, list(RAW)) == list(RAW.values())


# At any width


def test_the_task_page_fits_a_phone(viewer: Viewer, service: Service, business: str) -> None:
    callback = {"url": "https://example.com/" + "u" * 300, "headers": {"x-" + "h" * 90: "v" * 300}}
    viewer.page.set_viewport_size({"width": 360, "height": 740})
    open_task(
        viewer, created(service, business, key="k" * 128, payload="p" * 500, callback=callback)
    )
    expect(viewer.page.locator("pre.payload")).to_be_visible()
    assert viewer.has_room()
    viewer.press("Reschedule")
    assert viewer.has_room()
