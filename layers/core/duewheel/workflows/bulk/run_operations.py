"""Run open operations: take the lease of one, carry out its pages until it has ended or the
invocation has to, then take the next one.

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
from duewheel.rules.bulk.operation import (
    PAGE_MS_MAX,
    RUN_RESERVE_MS,
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
        while (operation := self._claimed(owner)) is not None:
            turn = _Turn(self, operation, remaining_ms)
            try:
                turn.take()
            except Exception as error:  # noqa: BLE001 - recorded, and raised at the end of the run
                errors.append(error)
            if remaining_ms() <= RUN_RESERVE_MS:
                break
        if errors:
            raise errors[0]

    def _claimed(self, owner: str) -> Operation | None:
        now_ms = self.clock.now_ms()
        found = self.store.open_ones()
        for operation_id in found.ended:
            self.store.forget(operation_id)
        for operation in found.operations:
            if operation.is_free(now_ms):
                claimed = self.store.claim(operation, owner)
                if claimed is not None:
                    return claimed
        return None


class _Turn:
    """The work of one run on one operation."""

    def __init__(
        self, of: RunOperations, operation: Operation, remaining_ms: Callable[[], int]
    ) -> None:
        self._of = of
        self._now: Operation | None = operation  # None: the lease is lost
        self._remaining_ms = remaining_ms
        self._is_begun = operation.page is not None  # by this or an earlier worker
        self._throttled = 0  # times in a row
        self._next_ms = 0  # by the pace

    def take(self) -> None:
        while (operation := self._now) is not None and operation.state.is_open:
            if self._remaining_ms() <= RUN_RESERVE_MS:
                self._write(operation, replace(operation, owner=None, lease_until_ms=0))
                return
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
        elif operation.page is None:
            self._plan(operation)
        else:
            self._carry_out(operation, operation.page)

    def _plan(self, operation: Operation) -> None:
        page = self._of.source(operation, operation.position)
        now_ms = self._of.clock.now_ms()
        self._write(operation, replace(operation, page=page, updated_ms=now_ms))

    def _carry_out(self, operation: Operation, page: Page) -> None:
        self._await_turn(operation, len(page.items))
        self._is_begun = True
        found = self._found(operation, page.items)
        outcomes = {
            item: outcome
            for item, outcome in found.items()
            if isinstance(outcome, bool | Refusal) and not _passes(outcome)
        }
        self._settle(operation, page, outcomes)
        broken = [one for one in found.values() if isinstance(one, Exception)]
        for error in broken:
            if not isinstance(error, Refusal) and not _passes(error):
                raise error
        if len(outcomes) < len(page.items):
            self._pause()
        else:
            self._throttled = 0

    def _settle(self, operation: Operation, page: Page, outcomes: Mapping[str, Outcome]) -> None:
        """Count what was carried out, and write the next page ahead."""
        is_whole = len(outcomes) == len(page.items)
        following, failed = None, None
        if is_whole and page.behind is not None and operation.state is not State.STOPPING:
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

    def _await_turn(self, operation: Operation, number: int) -> None:
        """By the pace of the operation: so many items take so long."""
        per_second = operation.wish.per_second
        if per_second is None or operation.wish.dry_run:
            return
        now_ms = self._of.clock.now_ms()
        if self._next_ms > now_ms:
            self._of.clock.sleep((self._next_ms - now_ms) / 1000)
        self._next_ms = max(self._next_ms, now_ms) + number * 1000 // per_second

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
