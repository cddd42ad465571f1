# Made of _async/work.py by make_sync.py; change that.
"""Reports on work that goes on after a callback, by the completion token of the callback."""

from types import TracebackType
from typing import Any, Self

from duewheel._sync.transport import Transport
from duewheel.calls import ALWAYS, changing, part
from duewheel.deliveries import StopTask
from duewheel.errors import NotRunning
from duewheel.instants import Seconds, plain
from duewheel.values import WorkState

TOKEN_HEADER = "duewheel-completion-token"


class Work:
    """As a context manager it reports the end of its block, unless the block has done so: complete,
    with `result` if that was set, or failed when the block raises. A `StopTask` ends the task.

    Every report raises `NotRunning` when the attempt is over, as after a cancel: the work may stop.
    """

    def __init__(self, transport: Transport, task_id: str, token: str) -> None:
        self._transport = transport
        self._path = f"/v1/tasks/{part(task_id)}"
        self._headers = {TOKEN_HEADER: token}
        self._is_over = False
        self.result: str | None = None

    def complete(self, result: str | None = None) -> WorkState:
        """The task is delivered, and keeps the result."""
        return self._end("complete", {} if result is None else {"result": result})

    def fail(
        self, reason: str | None = None, *, retry: bool = True, retry_after: Seconds | None = None
    ) -> WorkState:
        """The attempt has failed: the task is tried again, or is dead."""
        body: dict[str, Any] = {} if reason is None else {"reason": reason}
        if not retry:
            body["retry"] = False
        if retry_after is not None:
            body["retry_after_seconds"] = plain(retry_after)
        return self._end("fail", body)

    def progress(self, note: str | None = None, *, within: Seconds | None = None) -> WorkState:
        """Move the deadline to `within` from now, by default as long as before."""
        body: dict[str, Any] = {} if note is None else {"note": note}
        if within is not None:
            body["complete_within_seconds"] = plain(within)
        return self._report("progress", body)

    def _end(self, kind: str, body: dict[str, Any]) -> WorkState:
        state = self._report(kind, body)
        self._is_over = True
        return state

    def _report(self, kind: str, body: dict[str, Any]) -> WorkState:
        """A repeat has no further effect."""
        path = f"{self._path}/{kind}"
        call = changing("POST", path, body, headers=self._headers, repeatable_seconds=ALWAYS)
        try:
            return WorkState.read(self._transport.send(call))
        except NotRunning:
            self._is_over = True
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_over:
            return
        if error is None:
            self.complete(self.result)
        else:
            self.fail(_reason(error), retry=not isinstance(error, StopTask))


def _reason(error: BaseException) -> str:
    text = str(error) if isinstance(error, StopTask) else f"{type(error).__name__}: {error}"
    sendable = text.encode(errors="backslashreplace").decode()  # names of files have half pairs
    return sendable[:1_000] or type(error).__name__
