"""Tells a story to a local stack of its own, and keeps what is to be shown of it.

Invariant: every story begins at START on an empty wheel, and the clock is frozen unless
the story moves it. So all that is answered follows from the story, but for random parts.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from docs.examples.exchange import SHOWN_ADDRESS, Exchange, Message, exchanged
from docs.examples.layout import laid_out
from duewheel.rules.instants import ms_from_rfc3339
from duewheel.targets.http.resolver import RefusedAddress, Resolver
from local.stack import LocalStack

START = "2030-01-31T08:00:00Z"
INBOX = f"http://{SHOWN_ADDRESS}/_local/inbox"
_INBOX_HOST = SHOWN_ADDRESS.partition(":")[0]


class StoryError(Exception):
    """The story cannot be played in this way."""


class Teller:
    def __init__(self, stack: LocalStack) -> None:
        self.stack = stack
        self.examples: dict[str, str] = {}
        self._address = stack.url.removeprefix("http://")

    def example(
        self,
        name: str,
        method: str,
        target: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """One exchange to be shown; what was answered. A body that is a text is sent as it is."""
        exchange = self._exchange(method, target, body, headers or {})
        self._keep(name, exchange.blocks())
        return json.loads(exchange.answer.body)

    def call(
        self,
        method: str,
        target: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        fails: bool = False,
    ) -> Any:
        """One exchange that the story needs and the page does not show."""
        exchange = self._exchange(method, target, body, headers or {})
        if (exchange.status >= 300) is not fails:
            raise StoryError(f"{exchange.request}: {exchange.answer}")
        return json.loads(exchange.answer.body)

    def received(self, name: str, inbox: str) -> None:
        """The last callback that the inbox got, to be shown."""
        request = self.call("GET", f"/_local/received/{inbox}")["requests"][-1]
        first_line = f"{request['method']} {request['path']} HTTP/1.1"
        self._keep(
            name, Message(first_line, [*request["headers"].items()], request["body"]).block()
        )

    def advance(self, seconds: float) -> None:
        """All that is due on the way is done when this returns."""
        self.call("POST", "/_local/clock", {"advance_seconds": seconds})

    def _exchange(
        self, method: str, target: str, body: Any, headers: Mapping[str, str]
    ) -> Exchange:
        text = body if isinstance(body, str) else "" if body is None else laid_out(json.dumps(body))
        return exchanged(self._address, method, target, headers, text)

    def _keep(self, name: str, text: str) -> None:
        if name in self.examples:
            raise StoryError(f"there are two examples with the name {name}")
        self.examples[name] = f"{text}\n"


@dataclass(frozen=True, slots=True)
class Story:
    tell: Callable[[Teller], None]
    parameters: Mapping[str, str] = field(default_factory=dict)  # of the template


def told(story: Story) -> dict[str, str]:
    """The story's examples by name, in the order in which it came to them."""
    stack = LocalStack(start_ms=ms_from_rfc3339(START), frozen=True, overrides=story.parameters)
    with _nothing_logged(), _inbox_alone_called(), stack:
        teller = Teller(stack)
        story.tell(teller)
        teller.advance(0)  # calls what the story left due, before the checks end
    return teller.examples


@contextmanager
def _nothing_logged() -> Iterator[None]:
    """Stories are full of failures that are no news."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


@contextmanager
def _inbox_alone_called() -> Iterator[None]:
    """A callback to a third party, which a page shows, must not fall due."""
    strays: list[str] = []

    async def addresses_of(_: Resolver, host: str, *_more: object) -> tuple[str, ...]:
        if host == _INBOX_HOST:
            return (host,)
        strays.append(host)
        raise RefusedAddress(host)

    with patch.object(Resolver, "addresses_of", addresses_of):
        yield
    if strays:
        raise StoryError(f"a callback to {strays[0]} came due; let it go to the inbox")
