"""Which call a method and a path mean.

A table of its own, since the resolver at hand keeps the event it works on in a class
attribute: two threads, as one machine's stack has them, would answer each other's requests.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct

from duewheel.interface.answer import Answer
from duewheel.interface.request import Request
from duewheel.rules.callback_headers import ATTEMPT
from duewheel.rules.refusals import CallbackRefused, MethodNotAllowed, UnknownCall

Call = Callable[..., Answer]  # takes the request, and what its path's placeholders stand for


class Calls(Struct, frozen=True):
    """By path (`/v1/tasks/{task_id}`) and method. The first path that matches is meant."""

    by_path: Mapping[str, Mapping[str, Call]]

    def answer(self, request: Request) -> Answer:
        for path, by_method in self.by_path.items():
            arguments = _match(path, request.path)
            if arguments is None:
                continue
            if request.method not in by_method:
                raise MethodNotAllowed(by_method)
            if request.is_callback and request.method != "GET":
                raise CallbackRefused(f"The request is a task's callback: it carries {ATTEMPT}.")
            return by_method[request.method](request, **arguments)
        raise UnknownCall(f"{request.method} {request.path} is no call of this service.")


def _match(pattern: str, path: str) -> dict[str, str] | None:
    expected, given = pattern.split("/"), path.split("/")
    if len(expected) != len(given):
        return None
    arguments = {}
    for part, text in zip(expected, given, strict=True):
        if part.startswith("{") and text:
            arguments[part.strip("{}")] = text
        elif part != text:
            return None
    return arguments
