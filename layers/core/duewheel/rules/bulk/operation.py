"""A bulk operation: one action on many items of a business, carried out page by page.

A page is written ahead: its items are in the record before the first of them is changed. The counts
of a page, the position behind it and the next page are one write, on condition of the lease. So
after a crash another worker finds what may have been changed, and what has been counted.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules.instants import WrittenMs
from duewheel.rules.labels import Labels
from duewheel.rules.refusals import Refusal
from duewheel.rules.tasks import listing
from duewheel.rules.tasks.dead_tasks import DeadFilter
from duewheel.rules.tasks.listing import ListQuery, Order, way_of
from duewheel.rules.tasks.task import Status
from duewheel.rules.wheel.addresses import address_named

IDS_MAX = 500
PAGE_MAX = 100
OPEN_MAX = 10  # of one business
KEPT_SECONDS = 30 * 86_400  # after the end
# From the write of ids and refusals on, since the end is not known then.
PARTS_KEPT_SECONDS = 90 * 86_400

# Longer than a page takes: no item is begun in the last part of the lease, and one that is begun
# ends within the time of its requests.
LEASE_MS = 90_000
PAGE_MS_MAX = 40_000
# A worker takes an operation for so long, and then the one whose turn it is.
TURN_MS = 5_000
THROTTLED_MS = 1_000  # before another turn
# A page that begins so long before the end of the invocation ends before it.
RUN_RESERVE_MS = 60_000
TRIES_MAX = 5  # of a page that fails, other than by throttling
RETRY_MS = 30_000


class Action(StrEnum):
    CANCEL = "cancel"
    RESCHEDULE = "reschedule"
    RUN = "run"
    REDRIVE = "redrive"
    PAUSE = "pause"
    RESUME = "resume"


class State(StrEnum):
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"

    @property
    def is_open(self) -> bool:
        return self in OPEN_STATES


OPEN_STATES = (State.RUNNING, State.STOPPING)


class Filter(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The tasks that are meant. `due_to_ms` is exclusive. Stored."""

    status: Status | None = None
    due_from_ms: WrittenMs | None = None
    due_to_ms: WrittenMs | None = None
    key_prefix: str | None = None
    flow_key: str | None = None
    timer_id: str | None = None
    labels: Labels = ()
    death: DeadFilter | None = None  # None: dead or not, however it died

    def query(self, biz_type: str, order: Order) -> ListQuery:
        return ListQuery(
            biz_type,
            status=self.status,
            due_from_ms=self.due_from_ms,
            due_to_ms=self.due_to_ms,
            order=order,
            labels=self.labels,
            key_prefix=self.key_prefix,
            flow_key=self.flow_key,
            timer_id=self.timer_id,
            death=self.death,
        )


class Wish(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is to be done. Stored as it is. `total`: the number of ids."""

    action: Action
    due_ms: WrittenMs | None = None
    shift_seconds: int | None = None
    filter: Filter | None = None
    total: int | None = None
    per_second: int | None = None
    dry_run: bool = False


class Counts(Struct, frozen=True, kw_only=True):
    looked_at: int = 0
    changed: int = 0
    unchanged: int = 0
    refused: int = 0


class Page(Struct, frozen=True):
    """Items that are carried out together. `behind`: the position behind it; None: the end."""

    items: tuple[str, ...]
    looked_at: int
    behind: str | None


class Operation(Struct, frozen=True, kw_only=True):
    """`position`: behind which the pages begin that are not carried out; None: at the beginning.
    `number` of the worker's writes, so that each is made once. Without an owner `lease_until_ms` is
    the instant of its next turn."""

    biz_type: str
    mark: str  # the id without the business
    marker: int  # which of its caller's
    wish: Wish
    created_ms: int
    created_by: str
    updated_ms: int
    state: State = State.RUNNING
    counts: Counts = Counts()
    position: str | None = None
    page: Page | None = None
    number: int = 0
    failures: int = 0
    last_problem: str | None = None
    ended_ms: int | None = None
    expires_at: int | None = None
    owner: str | None = None
    lease_until_ms: int = 0

    @property
    def operation_id(self) -> str:
        return f"{self.biz_type}~{self.mark}"

    @property
    def page_max(self) -> int:
        """A page takes about a second at most, where a pace is given: so a stop takes effect."""
        return min(PAGE_MAX, self.wish.per_second or PAGE_MAX)

    def is_free(self, now_ms: int) -> bool:
        return self.state.is_open and self.lease_until_ms <= now_ms

    def has_worker(self, now_ms: int) -> bool:
        return self.owner is not None and self.lease_until_ms > now_ms

    @property
    def worked_on_ms(self) -> int:
        """The latest instant at which a worker is known to have been at it."""
        begun_ms = 0 if self.owner is None else self.lease_until_ms - LEASE_MS
        return max(self.updated_ms, begun_ms)


class RefusedItem(Struct, frozen=True, kw_only=True):
    """What could not be changed, and why."""

    item_id: str
    type: str
    title: str
    status: int
    detail: str
    field: str | None = None

    @classmethod
    def of(cls, item_id: str, refusal: Refusal) -> "RefusedItem":
        return cls(
            item_id=item_id,
            type=refusal.type,
            title=refusal.title,
            status=refusal.status,
            detail=refusal.detail,
            field=refusal.field,
        )


# True: changed; False: it was so already.
Outcome = bool | Refusal


def counted(
    operation: Operation, outcomes: Mapping[str, Outcome], now_ms: int, following: Page | None
) -> Operation:
    """After these items of its page. If some are left they remain its page; else `following` is the
    next one, and without one the operation is at its end."""
    page = operation.page
    assert page is not None
    left = tuple(item for item in page.items if item not in outcomes)
    results = list(outcomes.values())
    before = operation.counts
    counts = Counts(
        looked_at=before.looked_at + page.looked_at,
        changed=before.changed + results.count(True),
        unchanged=before.unchanged + results.count(False),
        refused=before.refused + sum(isinstance(one, Refusal) for one in results),
    )
    after = replace(operation, counts=counts, updated_ms=now_ms)
    if left:
        return replace(after, page=Page(left, 0, page.behind))
    after = replace(after, failures=0, last_problem=None, page=following)
    return after if page.behind is None else replace(after, position=page.behind)


def ended(operation: Operation, state: State, now_ms: int) -> Operation:
    return replace(
        operation,
        state=state,
        page=None,
        updated_ms=now_ms,
        ended_ms=now_ms,
        expires_at=now_ms // 1000 + KEPT_SECONDS,
        owner=None,
        lease_until_ms=0,
    )


def failed_once(operation: Operation, problem: str, now_ms: int, *, is_final: bool) -> Operation:
    """After a page that failed: tried again a while later, a few times, unless that is in vain."""
    failures = operation.failures + 1
    after = replace(operation, failures=failures, last_problem=problem, updated_ms=now_ms)
    if is_final or failures >= TRIES_MAX:
        return ended(after, State.FAILED, now_ms)
    return replace(after, owner=None, lease_until_ms=now_ms + RETRY_MS)


def walk_order(wish: Wish) -> Order:
    """So that the tasks that are moved are behind the walk, as far as possible."""
    is_moved_back = wish.due_ms is not None or (wish.shift_seconds or 0) > 0
    return Order.DESC if is_moved_back else Order.ASC


def refusals_of(outcomes: Mapping[str, Outcome], items: Sequence[str]) -> list[RefusedItem]:
    """In the order of the page."""
    return [
        RefusedItem.of(address_named(item).task_id, outcome)
        for item in items
        if isinstance(outcome := outcomes.get(item), Refusal)
    ]


def reached_ms(operation: Operation) -> int | None:
    """The instant that the walk has reached."""
    chosen = operation.wish.filter
    if operation.position is None or chosen is None:
        return None
    return listing.reached_ms(operation.position, way_of(chosen.status, chosen.key_prefix))
