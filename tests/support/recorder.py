"""Records every AWS call of a client, and lets tests act before and after it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from threading import Lock
from typing import Any

from botocore.exceptions import ClientError


class Death(BaseException):
    """The end of the process: the service does not catch it, and no cleanup runs."""


@dataclass
class Call:
    operation: str
    request: dict[str, Any]
    response: dict[str, Any] | None = None


@dataclass
class Recorder:
    """`before` and `after` run around each call, on the calling thread. A test uses them to run
    another step at that moment, or to simulate a crash by an exception."""

    calls: list[Call] = field(default_factory=list)
    before: Callable[[Call], None] | None = None
    after: Callable[[Call], None] | None = None
    known: Callable[[Call], dict[str, Any] | None] = lambda call: None  # an answer without a call

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

    def once(
        self,
        operation: str,
        happens: Callable[[], object],
        moment: str = "before",
        *,
        of: str = "",
        at: int = 1,
    ) -> None:
        """Run `happens` once, at one of the calls whose request contains `of`."""
        is_it = _nth(at, of, operation)

        def hook(call: Call) -> None:
            if is_it(call):
                setattr(self, moment, None)
                happens()

        setattr(self, moment, hook)

    def lose_answer(self, client: Any, *operations: str, of: str = "", at: int = 1) -> None:
        """Let the SDK repeat one of the calls after its first try was carried out."""
        is_it = _nth(at, of, *operations)

        def hook(call: Call) -> None:
            if is_it(call):
                self.before = None
                client._make_api_call(call.operation, call.request)

        self.before = hook

    def die(self, operation: str, moment: str = "before", *, of: str = "", at: int = 1) -> None:
        """Let the process end at one of the calls."""
        self.once(operation, _die, moment, of=of, at=at)

    def refuse(
        self, *operations: str, code: str = "ServiceUnavailable", times: float = inf, of: str = ""
    ) -> None:
        """Answer a number of the calls whose request contains `of` with an error."""
        left = times

        def hook(call: Call) -> None:
            nonlocal left
            if call.operation in operations and of in str(call.request) and left > 0:
                left -= 1
                raise ClientError({"Error": {"Code": code}}, call.operation)

        self.before = hook

    def operations(self) -> list[str]:
        return [call.operation for call in self.calls]

    def clear(self) -> None:
        self.calls.clear()


def _nth(at: int, of: str, *operations: str) -> Callable[[Call], bool]:
    """Whether a call is that one of those meant. Threads may ask side by side."""
    lock, seen = Lock(), 0

    def is_it(call: Call) -> bool:
        nonlocal seen
        if call.operation not in operations or of not in str(call.request):
            return False
        with lock:
            seen += 1
            return seen == at

    return is_it


def _die() -> None:
    raise Death
