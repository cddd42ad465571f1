"""A thread pool on virtual time: its pieces of work have turns of their own, so that they are under
way at once and meet each other at AWS calls.

Invariant: the order of what they do follows from virtual time and the seed alone. Each execution
environment has a pool of its own, though one process plays all of them.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_EXCEPTION, Executor, Future
from typing import Any

from tests.simulation.invocation import current
from tests.simulation.virtual_time import ReservedTurns


class TurnPool(Executor):
    def __init__(self, turns: ReservedTurns, workers: int, *_: object) -> None:
        self._turns = turns
        self._workers = workers
        self._busy: Counter[object] = Counter()  # by environment
        self._waiting: dict[object, deque[Callable[[], Any]]] = {}

    def submit(
        self, function: Callable[..., Any], /, *arguments: Any, **named: Any
    ) -> "Future[Any]":
        future = _Piece(self._turns)

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(function(*arguments, **named))
            except BaseException as error:  # noqa: BLE001 - as a pool hands it on
                future.set_exception(error)

        run = current.get()
        if run is None or not self._turns.is_given():
            work()  # for somebody who looks on: nothing passes meanwhile
        else:
            environment = run.environment
            environment.threads_at_work += 1
            future.add_done_callback(environment.has_done)
            self._begin(environment, work)
        return future

    def _begin(self, environment: object, work: Callable[[], Any]) -> None:
        if self._busy[environment] >= self._workers:
            self._waiting.setdefault(environment, deque()).append(work)
            return
        self._busy[environment] += 1
        self._turns.spawn(self._carry_out, environment, work)

    def _carry_out(self, environment: object, work: Callable[[], Any]) -> None:
        """As a thread of a pool does: one piece after the other, while there are any."""
        waiting = self._waiting.setdefault(environment, deque())
        try:
            work()
            while waiting:
                waiting.popleft()()
        finally:
            self._busy[environment] -= 1

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        pass


class _Piece(Future[Any]):
    """Whoever waits for its result gives the turn away meanwhile."""

    def __init__(self, turns: ReservedTurns) -> None:
        super().__init__()
        self.turns = turns

    def result(self, timeout: float | None = None) -> Any:
        self.await_end()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self.await_end()
        return super().exception(timeout)

    def await_end(self) -> None:
        _await_all(self.turns, [self])


def _await_all(turns: ReservedTurns, pieces: Iterable[Future[Any]]) -> None:
    under_way = [piece for piece in pieces if not piece.done()]
    if under_way:
        turns.wait_for(_ended(under_way))


async def _ended(pieces: Sequence[Future[Any]]) -> None:
    loop = asyncio.get_running_loop()
    all_ended = loop.create_future()
    left = len(pieces)

    def end() -> None:
        if not all_ended.done():
            all_ended.set_result(None)

    def one_ended(_: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            # From a worker's turn: the loop stands still meanwhile, so this is safe.
            loop.call_soon(end)

    for piece in pieces:
        piece.add_done_callback(one_ended)
    await all_ended


def awaited(
    pieces: Iterable[Any], timeout: float | None = None, return_when: str = ALL_COMPLETED
) -> tuple[set[Any], set[Any]]:
    """Stands where `concurrent.futures.wait` stands. After a failure it may return late: the
    threads of a dead process end by themselves."""
    assert timeout is None
    assert return_when in (ALL_COMPLETED, FIRST_EXCEPTION)
    pieces = set(pieces)
    if pieces:
        _await_all(next(iter(pieces)).turns, pieces)
    return pieces, set()
