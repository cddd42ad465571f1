"""Every AWS call of a client, as it was made: for counting, and for getting in between."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Call:
    operation: str
    request: dict[str, Any]
    response: dict[str, Any] | None = None


@dataclass
class Recorder:
    """`before` and `after` run around each call, on the calling thread: a test uses them to
    let something else happen at that very moment, or to raise in the place of a crash."""

    calls: list[Call] = field(default_factory=list)
    before: Callable[[Call], None] | None = None
    after: Callable[[Call], None] | None = None
    known: Callable[[Call], dict[str, Any] | None] = lambda call: None  # answers without asking

    def attach(self, client: Any) -> None:
        original = client._make_api_call

        def recorded(operation: str, request: dict[str, Any]) -> Any:
            call = Call(operation, request)
            if self.before is not None:
                self.before(call)
            self.calls.append(call)
            call.response = self.known(call) or original(operation, request)
            if self.after is not None:
                self.after(call)
            return call.response

        client._make_api_call = recorded

    def operations(self) -> list[str]:
        return [call.operation for call in self.calls]

    def clear(self) -> None:
        self.calls.clear()
