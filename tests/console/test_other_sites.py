"""The local stack refuses requests of other sites' pages in the developer's browser: the rules of
tests/local/control/test_browsers.py in a real browser."""

from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from playwright.sync_api import Browser

from local.stack import LocalStack
from tests.console.conftest import CHROMIUM
from tests.support.service import Service

SEND = """async ([url, body]) => {
    const task = {method: "POST", mode: "no-cors", headers: {"content-type": "text/plain"}, body};
    await fetch(url, task).catch(() => null);
    document.body.innerHTML = `<form method="post" enctype="text/plain" action="${url}">
        <input name='${body.slice(0, -1)}, "payload": "' value='"}'>`;
    document.forms[0].target = "_blank";
    document.forms[0].submit();
    const image = new Image();
    const isThrough = new Promise((done) => { image.onload = image.onerror = done; });
    image.src = url.replace("ingest", "inbox/pages");
    await isThrough;
}"""


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def other_site() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Page)
    thread = Thread(target=partial(server.serve_forever, 0.01))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("own", [True, False], ids=["the stack's own page", "another site's"])
def test_only_the_stacks_own_page_can_create_tasks(
    browser: Browser,
    stack: LocalStack,
    service: Service,
    other_site: str,
    own: bool,
) -> None:
    name = "of-the-stack" if own else "of-another-site"
    task = (
        f'{{"biz_type": "{name}", "delay_seconds": 600, "callback": {{"url": "http://x.example"}}}}'
    )
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{stack.url}/_local/clock" if own else other_site)
    with context.expect_page() as opened:
        page.evaluate(SEND, [f"{stack.url}/_local/ingest", task])
    opened.value.wait_for_load_state()
    service.advance(5)
    status, listed = service.call("GET", f"/v1/tasks?biz_type={name}")
    assert status == 200, listed
    assert len(listed["tasks"]) == (2 if own else 0)
    assert len(service.received("pages")) == (1 if own else 0)
    service.call("DELETE", "/_local/received/pages")
    context.close()


def test_another_host_name_of_this_machine_is_refused(browser: Browser, stack: LocalStack) -> None:
    rules = "--host-resolver-rules=MAP leads-here.example 127.0.0.1"
    misled = browser.browser_type.launch(executable_path=CHROMIUM, args=["--no-sandbox", rules])
    page = misled.new_page()
    port = stack.url.rpartition(":")[2]
    for path in ("/console", "/_local/clock"):
        answer = page.goto(f"http://leads-here.example:{port}{path}")
        assert answer is not None
        assert answer.status == 403
        assert "The local stack answers to" in answer.text()
    misled.close()
