"""Make, read, list and stop bulk operations. Workers carry them out."""

from collections.abc import Callable

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules import cursors
from duewheel.rules.access.grants import Access, Permit
from duewheel.rules.bulk.open_ones import free_numbers
from duewheel.rules.bulk.operation import Operation, RefusedItem, State
from duewheel.rules.bulk.requests import (
    NewOperation,
    OperationsQuery,
    RefusedQuery,
    mark_at,
    named_operation,
    no_such_operation,
)
from duewheel.rules.refusals import OperationEnded, Unavailable
from duewheel.rules.tasks.idempotency import IdempotentRequest
from duewheel.rules.tasks.listing import KEYS_MAX, ListQuery, Order, Room, filled
from duewheel.stores.bulk.operations import OperationStore
from duewheel.stores.dynamodb import Conflict, unavailable_when_throttled
from duewheel.stores.tasks.made_once import MadeOnce
from duewheel.workflows.businesses.all_businesses import AllBusinesses
from duewheel.workflows.tasks.list_tasks import LookedAt
from duewheel.workflows.tries import until_won

# The number of a marker may be taken by a create at the same time; another is drawn then.
_TRIES = 3
_READ_AT_ONCE = 100
NOT_STORED = "The operation was not stored: too many writes at once. Try it again."


class CreateOperation(Struct, frozen=True, kw_only=True):
    clock: Clock
    store: OperationStore
    made_once: MadeOnce
    check_list_index: Callable[[ListQuery], None]
    random_bytes: Callable[[], bytes]
    wake: Callable[[], bool]

    def __call__(
        self, new: NewOperation, *, by: str, once: IdempotentRequest | None = None
    ) -> Operation:
        """A repeat of the request gets the operation as it is now."""
        if (before := self.made_before(once)) is not None:
            return before
        if new.wish.filter is not None:
            self.check_list_index(new.wish.filter.query(new.biz_type, Order.ASC))

        def try_once() -> Operation | None:
            operation = self._drawn(new, by)
            with unavailable_when_throttled(Unavailable(NOT_STORED)):
                if once is None:
                    return operation if self.store.create(operation, new.ids) else None
                try:
                    record = self.made_once.record(
                        once, operation.operation_id, operation.created_ms
                    )
                    if self.store.create(operation, new.ids, record):
                        return operation
                except Conflict:
                    pass
                return self.made_before(once)

        operation = until_won(try_once, _TRIES, Unavailable(NOT_STORED))
        self.wake()
        return operation

    def _drawn(self, new: NewOperation, by: str) -> Operation:
        now_ms, drawn = self.clock.now_ms(), self.random_bytes()
        numbers = free_numbers(self.store.markers(), by, new.biz_type)
        return Operation(
            biz_type=new.biz_type,
            mark=mark_at(now_ms, drawn),
            marker=numbers[drawn[-1] % len(numbers)],
            wish=new.wish,
            created_ms=now_ms,
            created_by=by,
            updated_ms=now_ms,
        )

    def made_before(self, once: IdempotentRequest | None) -> Operation | None:
        """By the same request."""
        if once is None:
            return None
        if (operation_id := self.made_once.made(once, self.clock.now_ms())) is None:
            return None
        operation = self.store.read(*named_operation(operation_id))
        if operation is None:
            raise no_such_operation()
        return operation


class OperationPage(Struct, frozen=True):
    operations: list[Operation]
    cursor: str | None
    looked_at: LookedAt


class RefusedPage(Struct, frozen=True):
    refused: list[RefusedItem]
    cursor: str | None


class ReadOperations(Struct, frozen=True, kw_only=True):
    store: OperationStore
    all_businesses: AllBusinesses
    secret: bytes

    def find(self, operation_id: str, permit: Permit) -> Operation:
        biz_type, mark = named_operation(operation_id)
        permit.check_found(biz_type, no_such_operation())
        operation = self.store.read(biz_type, mark)
        if operation is None:
            raise no_such_operation()
        return operation

    def page(self, query: OperationsQuery, biz_type: str) -> OperationPage:
        """The latest first."""
        room = Room(query.limit)
        found, last = self._part(query, biz_type, self._position(query), room)
        return self._page(query, found, last, LookedAt(KEYS_MAX - room.records))

    def everywhere(self, query: OperationsQuery, access: Access) -> OperationPage:
        """Of all businesses within reach, one after the other."""
        room = Room(query.limit)

        def read(biz_type: str, position: str | None) -> tuple[list[Operation], str | None]:
            return self._part(query, biz_type, position, room)

        part = self.all_businesses.page(access, self._position(query), room, read)
        looked_at = LookedAt(KEYS_MAX - room.records, part.businesses)
        return self._page(query, part.found, part.position, looked_at)

    def _position(self, query: OperationsQuery) -> str | None:
        return cursors.opened(query.cursor, query.question, self.secret)

    def _page(
        self,
        query: OperationsQuery,
        operations: list[Operation],
        last: str | None,
        looked_at: LookedAt,
    ) -> OperationPage:
        cursor = cursors.sealed(last, query.question, self.secret)
        return OperationPage(operations, cursor, looked_at)

    def _part(
        self, query: OperationsQuery, biz_type: str, position: str | None, room: Room
    ) -> tuple[list[Operation], str | None]:
        count = room.items if query.state is None else _READ_AT_ONCE
        read, goes_on = self.store.page(biz_type, position, min(count, room.records))
        found = dict(read)

        def find(mark: str) -> Operation | None:
            one = found[mark]
            return one if one is not None and query.state in (None, one.state) else None

        return filled(list(found), find, lambda _: None, lambda mark: mark, room, goes_on=goes_on)

    def refused(self, operation_id: str, query: RefusedQuery, permit: Permit) -> RefusedPage:
        """In the order in which they were tried."""
        operation = self.find(operation_id, permit)
        question = ("refused by", operation_id)
        position = cursors.opened(query.cursor, question, self.secret) or "0 0"
        behind, passed = map(int, position.split(" "))
        found: list[RefusedItem] = []
        while True:
            pages, goes_on = self.store.refused(operation, behind)
            for number, (at, items) in enumerate(pages, start=1):
                room = query.limit - len(found)
                some = items[passed : passed + room]
                found += some
                passed += len(some)
                is_whole = passed == len(items)
                if is_whole:
                    behind, passed = at, 0
                if len(found) == query.limit:
                    more = goes_on or number < len(pages) or not is_whole
                    last = f"{behind} {passed}" if more else None
                    return RefusedPage(found, cursors.sealed(last, question, self.secret))
            if not goes_on:
                return RefusedPage(found, None)


class StopOperation(Struct, frozen=True):
    read: ReadOperations
    wake: Callable[[], bool]

    def __call__(self, operation_id: str, permit: Permit) -> Operation:
        """Its worker ends it before the next page. One that has stopped is answered as it is."""
        operation = self.read.find(operation_id, permit)
        if operation.state is State.RUNNING:
            with unavailable_when_throttled():
                stopped = self.read.store.stop(operation)
            if stopped is None:
                raise no_such_operation()
            operation = stopped
        if operation.state in (State.DONE, State.FAILED):
            raise OperationEnded(f"The operation is {operation.state.value}.")
        if operation.state is State.STOPPING:
            self.wake()
        return operation
