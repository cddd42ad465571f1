"""Run open operations: take a seat among the workers, and the lease of an operation; carry out its
pages until it has ended or its turn has; then take the one whose turn it is. An operation with a
pace is given back with the instant at which it may go on. So no more functions run than there are
seats, and none sleeps for one operation while another could be carried out.

A page is written ahead, in the same write that counts the page before. Its items are changed side
by side. What DynamoDB throttles is tried again, for as long as it takes. Any other error counts as
a failure of the page; after a few the operation has failed. So does the run: its error is raised
when all other operations have been worked on.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.fan_out import fan_out
from duewheel.log import logger
from duewheel.rules.bulk.open_ones import free_ones, wait_ms
from duewheel.rules.bulk.operation import (
    PAGE_MS_MAX,
    RUN_RESERVE_MS,
    THROTTLED_MS,
    TURN_MS,
    Operation,
    Outcome,
    Page,
    RefusedItem,
    State,
    counted,
    ended,
    failed_once,
    refusals_of,
)
from duewheel.rules.refusals import Refusal, TooManyCreates, Unavailable
from duewheel.stores.bulk.operations import OperationStore
from duewheel.stores.dynamodb import code_of, is_for_load
from duewheel.workflows.bulk.change_tasks import ChangeOneTask
from duewheel.workflows.bulk.sources import TaskSource
from duewheel.workflows.retry_throttled import pause_ms

WRITERS = 16  # items that are changed side by side

Found = Outcome | Exception | None  # None: not begun


class RunOperations(Struct, frozen=True, kw_only=True):
    clock: Clock
    store: OperationStore
    source: TaskSource
    change: ChangeOneTask
    writers: ThreadPoolExecutor
    random_unit: Callable[[], float]
    random_text: Callable[[], str]

    def run(self, remaining_ms: Callable[[], int]) -> None:
        owner = self.random_text()  # an invocation may come twice under one id
        errors: list[Exception] = []
        seat = self.store.take_seat(owner)
        if seat is None:
            return
        now_ms: int | None = self.clock.now_ms()
        while now_ms is not None:
            now_ms = self._take_turn(owner, now_ms, remaining_ms, errors)
            if remaining_ms() <= RUN_RESERVE_MS:
                break
            if now_ms is not None and not self.store.hold_seat(seat, owner):
                break
        self.store.leave_seat(seat, owner)
        if errors:
            raise errors[0]

    def _take_turn(
        self, owner: str, now_ms: int, remaining_ms: Callable[[], int], errors: list[Exception]
    ) -> int | None:
        """Carry out one turn, or wait for it. Returns the instant of the next look, which a clock
        that stands still does not reach; None if there is nothing to do."""
        found = self.store.open_ones()
        for marker in found.ended:
            self.store.forget(marker)
        claims = (
            self.store.claim(one, owner, now_ms) for one in free_ones(found.operations, now_ms)
        )
        operation = next((one for one in claims if one is not None), None)
        if operation is not None:
            try:
                _Turn(self, operation, remaining_ms).take()
            except Exception as error:  # noqa: BLE001 - recorded, and raised at the end of the run
                errors.append(error)
            return self.clock.now_ms()
        soon_ms = wait_ms(found.operations, now_ms)
        if soon_ms is None:
            return None
        self.clock.sleep(soon_ms / 1000)
        return now_ms + soon_ms


class _Turn:
    """What a worker does on one operation, up to the first end of a page after its time."""

    def __init__(
        self, of: RunOperations, operation: Operation, remaining_ms: Callable[[], int]
    ) -> None:
        self._of = of
        self._now: Operation | None = operation  # None: the lease is lost
        self._remaining_ms = remaining_ms
        self._is_begun = operation.page is not None  # by this or an earlier worker
        self._throttled = 0  # times in a row
        self._next_ms = 0  # by the pace
        self._ends_ms = of.clock.now_ms() + TURN_MS

    def take(self) -> None:
        while (operation := self._now) is not None and operation.owner is not None:
            try:
                self._step(operation)
            except Exception as error:  # noqa: BLE001 - judged here
                if not _passes(error):
                    self._fail(operation, error)
                    return
                self._pause()

    def _step(self, operation: Operation) -> None:
        if operation.state is State.STOPPING and not self._is_begun:
            self._end(operation, State.STOPPED)
        elif self._is_over(operation):
            self._give_back(operation)
        elif operation.page is None:
            self._plan(operation)
        else:
            self._carry_out(operation, operation.page)

    def _is_over(self, operation: Operation) -> bool:
        """A page that was planned in this turn is carried out in it, if the invocation lasts."""
        now_ms = self._of.clock.now_ms()
        is_planned = operation.page is not None and not self._is_begun
        is_late = now_ms >= self._ends_ms or now_ms < self._next_ms
        return (is_late and not is_planned) or self._remaining_ms() <= RUN_RESERVE_MS

    def _give_back(self, operation: Operation) -> None:
        """A page that was begun is kept, since its tasks may have been changed."""
        now_ms = self._of.clock.now_ms()
        next_ms = now_ms + THROTTLED_MS if self._throttled else self._next_ms
        page = operation.page if self._is_begun else None
        after = replace(operation, owner=None, lease_until_ms=next_ms, page=page, updated_ms=now_ms)
        self._write(operation, after)

    def _plan(self, operation: Operation) -> None:
        page = self._of.source(operation, operation.position)
        now_ms = self._of.clock.now_ms()
        self._write(operation, replace(operation, page=page, updated_ms=now_ms))

    def _carry_out(self, operation: Operation, page: Page) -> None:
        next_ms = self._next_turn_ms(operation, len(page.items))
        self._is_begun = True
        found = self._found(operation, page.items)
        outcomes = {
            item: outcome
            for item, outcome in found.items()
            if isinstance(outcome, bool | Refusal) and not _passes(outcome)
        }
        self._settle(operation, page, outcomes, next_ms)
        broken = [one for one in found.values() if isinstance(one, Exception)]
        for error in broken:
            if not isinstance(error, Refusal) and not _passes(error):
                raise error
        if len(outcomes) < len(page.items):
            self._pause()
        else:
            self._throttled = 0

    def _settle(
        self, operation: Operation, page: Page, outcomes: Mapping[str, Outcome], next_ms: int
    ) -> None:
        """Count what was carried out, and write the next page ahead, unless the turn is over."""
        is_whole = len(outcomes) == len(page.items)
        goes_on = next_ms <= self._of.clock.now_ms() and not self._is_over(operation)
        has_more = page.behind is not None and operation.state is not State.STOPPING
        following, failed = None, None
        if is_whole and has_more and goes_on:
            try:
                following = self._of.source(operation, page.behind)
            except Exception as error:  # noqa: BLE001 - raised when the page is counted
                failed = error
        now_ms = self._of.clock.now_ms()
        after = counted(operation, outcomes, now_ms, following)
        if is_whole and page.behind is None:
            after = ended(after, State.DONE, now_ms)
        refused = refusals_of(outcomes, page.items)
        self._write(operation, after, refused)
        self._next_ms = next_ms
        if is_whole:
            self._is_begun = False
        if failed is not None:
            raise failed

    def _found(self, operation: Operation, items: Sequence[str]) -> dict[str, Found]:
        until_ms = self._of.clock.now_ms() + PAGE_MS_MAX
        if operation.wish.dry_run:
            return dict.fromkeys(items, True)

        def change(item: str) -> Found:
            if self._of.clock.now_ms() >= until_ms:
                return None
            try:
                return self._of.change(operation, item)
            except Exception as error:  # noqa: BLE001 - judged when the page is through
                return error

        return dict(zip(items, fan_out(self._of.writers, change, items), strict=True))

    def _next_turn_ms(self, operation: Operation, number: int) -> int:
        """By the pace of the operation: so many items take so long from now on."""
        per_second = operation.wish.per_second
        if per_second is None or operation.wish.dry_run:
            return 0
        return self._of.clock.now_ms() + number * 1000 // per_second

    def _end(self, operation: Operation, state: State) -> None:
        self._write(operation, ended(operation, state, self._of.clock.now_ms()))

    def _write(
        self, before: Operation, after: Operation, refused: Sequence[RefusedItem] = ()
    ) -> None:
        self._now = self._of.store.write(before, after, refused)
        if self._now is None:
            logger.warning(
                "lease of an operation lost",
                action="operation-lease-lost",
                operation_id=before.operation_id,
            )
        elif not self._now.state.is_open:
            _log_end(self._now)

    def _fail(self, operation: Operation, error: Exception) -> None:
        """The operation as it was written last; what was counted since is in the store."""
        current = self._now if self._now is not None else operation
        logger.exception(
            "page of an operation failed",
            action="operation-failed-once",
            operation_id=current.operation_id,
        )
        is_final = isinstance(error, Refusal)
        if self._now is not None:
            now_ms = self._of.clock.now_ms()
            after = failed_once(current, _name_of(error), now_ms, is_final=is_final)
            self._write(current, after)
        if not is_final:
            raise error

    def _pause(self) -> None:
        self._throttled += 1
        pause = pause_ms(min(self._throttled, 10), self._of.random_unit())
        self._of.clock.sleep(pause / 1000)


def _passes(error: object) -> bool:
    """The same may succeed later."""
    if isinstance(error, Unavailable | TooManyCreates):
        return True
    return isinstance(error, Exception) and is_for_load(error)


def _name_of(error: Exception) -> str:
    """Without the text of an error, which may quote what was sent."""
    if isinstance(error, Refusal):
        return error.detail
    return f"{code_of(error) or type(error).__name__}; the log of the function says more"


def _log_end(operation: Operation) -> None:
    counts = operation.counts
    logger.info(
        "operation ended",
        action="operation-ended",
        operation_id=operation.operation_id,
        biz_type=operation.biz_type,
        state=operation.state.value,
        looked_at=counts.looked_at,
        changed=counts.changed,
        unchanged=counts.unchanged,
        refused=counts.refused,
    )
