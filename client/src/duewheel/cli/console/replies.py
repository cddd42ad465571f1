"""The proxy's answers: pages and problems of its own, or the answers of the service."""

import json
from dataclasses import dataclass
from html import escape
from http import HTTPStatus

# To a browser, another local server is the same site, so its pages could frame or load these.
ALWAYS = (
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("cross-origin-resource-policy", "same-origin"),
)
OF_A_PAGE = (
    ("content-type", "text/html; charset=utf-8"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
)


@dataclass(frozen=True)
class Reply:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Refused(Exception):
    """The request is not passed on. `is_for_people`: the answer is a page, for a browser to
    show."""

    def __init__(self, status: int, detail: str, *, is_for_people: bool = False) -> None:
        self.reply = page(status, detail) if is_for_people else problem(status, detail)


def page(status: int, text: str, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    return _page(status, f"<p>{escape(text)}", headers)


def way_in(cookie: str) -> Reply:
    """A page that leads to the console. After a redirect from another page, such as a terminal in
    the browser, strict cookies are not sent; from a page of this origin they are."""
    on = '<meta http-equiv="refresh" content="0; url=/console"><a href="/console">The console</a>'
    return _page(HTTPStatus.OK, on, (("set-cookie", cookie),))


def problem(status: int, detail: str) -> Reply:
    title = HTTPStatus(status).phrase
    document = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    headers = (("content-type", "application/problem+json"), ("cache-control", "no-store"))
    return Reply(status, headers, json.dumps(document).encode())


def _page(status: int, inside: str, headers: tuple[tuple[str, str], ...]) -> Reply:
    html = f"<!doctype html><title>Duewheel console</title>{inside}\n"
    return Reply(status, (*OF_A_PAGE, *headers), html.encode())
