"""One request and its answer over HTTP, and their form in the page.

What was sent and received is shown whole, but for headers that say nothing about the call, and
for values too long to read, which are cut and say so. Whatever port the stack has, the page
shows the usual one.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection

from docs.examples.layout import laid_out

SHOWN_ADDRESS = "127.0.0.1:8080"
TIMEOUT_SECONDS = 60.0
LONG_CHARACTERS = 300
_SHOWN_OF_LONG = 20
LONG_LINES = 400
_SHOWN_LINES = 2
_SAYS_NOTHING = {"connection", "content-length", "date"}
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Message:
    """A request or an answer. `first_line` says which."""

    first_line: str
    headers: Headers
    body: str

    def block(self) -> str:
        shown = [header for header in self.headers if header[0].lower() not in _SAYS_NOTHING]
        headers = [f"{name}: {value}" for name, value in shown]
        body = _beginning(_TEXT.sub(_cut, _readable(self.body)))
        lines = [self.first_line, *headers, *(["", body] if body else [])]
        return "\n".join(["```http", *lines, "```"])


@dataclass(frozen=True, slots=True)
class Exchange:
    status: int
    request: Message
    answer: Message

    def blocks(self) -> str:
        return f"{self.request.block()}\n\n{self.answer.block()}"


def exchanged(
    address: str, method: str, target: str, headers: Mapping[str, str], body: str
) -> Exchange:
    """`body` is the shown form; the sent one has the stack's own address."""
    sent = body.replace(SHOWN_ADDRESS, address).encode()
    connection = HTTPConnection(address, timeout=TIMEOUT_SECONDS)
    try:
        connection.request(method, target, sent or None, dict(headers))
        answer = connection.getresponse()
        text = answer.read().decode().replace(address, SHOWN_ADDRESS)
    finally:
        connection.close()
    return Exchange(
        answer.status,
        Message(f"{method} {target} HTTP/1.1", tuple(headers.items()), body),
        Message(f"HTTP/1.1 {answer.status}", answer.getheaders(), text),
    )


def _readable(body: str) -> str:
    """As it is where it is no JSON."""
    try:
        return laid_out(body)
    except ValueError:
        return body


def _beginning(body: str) -> str:
    """How much there is more is left unsaid: the page is not to change with it."""
    lines = body.splitlines()
    return body if len(lines) <= LONG_LINES else "\n".join([*lines[:_SHOWN_LINES], "…"])


def _cut(text: re.Match[str]) -> str:
    if len(text[1]) <= LONG_CHARACTERS:
        return text[0]
    return f'"{text[1][:_SHOWN_OF_LONG]}… {len(text[1]):,} characters"'
