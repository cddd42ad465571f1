"""The answer to why a task waits, by facts alone."""

from msgspec.structs import replace

from duewheel.rules.businesses.health import Breaker, BusinessHealth
from duewheel.rules.businesses.settings import Business, Defaults, Own
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.delivery.page_lease import PageLease
from duewheel.rules.delivery.permits import VERSION
from duewheel.rules.delivery.waiting import (
    Facts,
    Reason,
    Stage,
    Wait,
    is_overdue,
    is_waiting,
    page_of,
    waiting,
)
from duewheel.rules.tasks.lifecycle import postponed
from duewheel.rules.tasks.task import Attempt, PostponedBy, Reservation, Status, Task
from duewheel.rules.wheel.addresses import Address
from tests.support.cases import each_case

NOW_MS = 1_800_000_000_000
SECOND = NOW_MS // 1000
ORDERS = Business("orders", Defaults(30, 10, 60))
ENTRY = Address(second=SECOND, ms=0, token="AAAAAAAA")
TASK = Task.at(ENTRY, "orders", NOW_MS, NOW_MS - 1, HttpCallback("https://a.example/", "POST"))
LATER_MS = NOW_MS + 60_000
FAILED = Attempt(at_ms=NOW_MS, lateness_ms=0, duration_ms=1, outcome="retry", entry_second=SECOND)


def facts(**more: object) -> Facts:
    return Facts(now_ms=NOW_MS, business=ORDERS, **more)  # type: ignore[arg-type]


@each_case(
    "task, expected",
    [
        (TASK, True),
        (replace(TASK, next_ms=LATER_MS), True),
        (replace(TASK, due_ms=LATER_MS, next_ms=LATER_MS), False),
        (replace(TASK, due_ms=LATER_MS, next_ms=LATER_MS - 1), True),  # run by hand, and put off
        (replace(TASK, due_ms=LATER_MS, next_ms=LATER_MS, parked=True), True),
        (replace(TASK, status=Status.DELIVERED), False),
    ],
)
def test_a_live_task_waits_from_its_due_instant_or_its_run_by_hand_on(
    task: Task, expected: bool
) -> None:
    assert is_waiting(task, NOW_MS) is expected
    assert (waiting(task, facts()) is not None) is expected


@each_case(
    "task, reason",
    [
        (postponed(TASK, LATER_MS, NOW_MS, PostponedBy.SLOW_LANE), Reason.SLOW_LANE),
        (postponed(TASK, LATER_MS, NOW_MS, PostponedBy.FLOW_KEY), Reason.FLOW_KEY),
        (replace(TASK, next_ms=LATER_MS, reservation=Reservation(LATER_MS, 1)), Reason.RATE),
        (
            replace(TASK, next_ms=LATER_MS, reservation=Reservation(LATER_MS, VERSION)),
            Reason.CONCURRENCY,
        ),
        (replace(TASK, next_ms=LATER_MS, history=(FAILED,)), Reason.RETRY),
        # Its instant was changed by a release that does not know the reason.
        (
            replace(
                postponed(TASK, LATER_MS - 1, NOW_MS, PostponedBy.SLOW_LANE),
                next_ms=LATER_MS,
                history=(FAILED,),
            ),
            Reason.RETRY,
        ),
    ],
)
def test_a_task_with_a_later_instant_has_the_reason_that_was_recorded(
    task: Task, reason: Reason
) -> None:
    assert waiting(task, facts()) == Wait(reason=reason, expected_ms=LATER_MS)


def test_a_task_behind_a_breaker_is_not_expected_before_a_probe_is_due() -> None:
    task = postponed(TASK, LATER_MS, NOW_MS, PostponedBy.OPEN_BREAKER)
    for until_ms in (LATER_MS - 1, LATER_MS + 1):
        breaker = Breaker(host="a.example", since_ms=NOW_MS, until_ms=until_ms, owner_token="me")
        business = replace(ORDERS, health=BusinessHealth(breakers=(breaker,)))
        found = waiting(task, Facts(now_ms=NOW_MS, business=business))
        assert found is not None
        assert found.until_ms == until_ms
        assert found.expected_ms == max(LATER_MS, until_ms)


def test_every_reason_for_a_postponement_is_said() -> None:
    said = {waiting(postponed(TASK, LATER_MS, NOW_MS, by), facts()) for by in PostponedBy}
    assert len(said) == len(PostponedBy)
    released = postponed(TASK, LATER_MS, NOW_MS, PostponedBy.RELEASE)
    place = Wait(reason=Reason.BACKLOG, expected_ms=LATER_MS, stage=Stage.PLACE)
    assert waiting(replace(released, history=(FAILED,)), facts()) == place


def test_a_pause_comes_before_every_other_reason() -> None:
    paused = replace(ORDERS, own=Own(paused=True))
    for task in (TASK, postponed(TASK, LATER_MS, NOW_MS, PostponedBy.OPEN_BREAKER)):
        found = waiting(task, Facts(now_ms=NOW_MS, business=paused))
        assert found == Wait(reason=Reason.PAUSED)


HELD = PageLease(SECOND, 0, owner="run", until_ms=NOW_MS, begun_ms=NOW_MS - 5)


@each_case(
    "lease, dispatched, expected",
    [
        (HELD, None, Wait(reason=Reason.CALLING, run="run", since_ms=NOW_MS - 5)),
        (replace(HELD, begun_ms=None), None, Wait(reason=Reason.CALLING, run="run")),
        (replace(HELD, until_ms=NOW_MS - 1), None, Stage.NOTIFIER),
        (replace(HELD, done=True), None, Stage.SWEEP),
        (PageLease(SECOND, 0, page="0s"), None, Wait(reason=Reason.SLOW_LANE)),
        (PageLease(SECOND, 0, page="0r"), None, Stage.NOTIFIER),
        (None, SECOND, Stage.NOTIFIER),
        (None, SECOND - 1, Stage.DISPATCH),
    ],
)
def test_an_overdue_task_is_where_its_page_is(
    lease: PageLease | None, dispatched: int | None, expected: Wait | Stage
) -> None:
    assert is_overdue(TASK, NOW_MS)
    if isinstance(expected, Stage):
        expected = Wait(reason=Reason.BACKLOG, stage=expected)
    assert waiting(TASK, facts(lease=lease, dispatched_second=dispatched)) == expected


def lease(page: str, **more: object) -> PageLease:
    return PageLease(SECOND, 0, page=page, owner="run", **more)  # type: ignore[arg-type]


BEFORE, BEHIND = f"{SECOND:011d}.000#0", f"{SECOND:011d}.999#z"
MINE = (ENTRY.place,)


@each_case(
    "leases, page",
    [
        ([], None),
        ([lease("0")], "0"),
        ([lease("0", end=BEHIND)], "0"),
        ([lease("0", end=BEFORE)], None),
        ([lease("0", end=BEFORE), lease("1")], "1"),
        ([lease("10"), lease("9", end=BEHIND), lease("0", end=BEFORE)], "9"),
        ([lease("0", slow=MINE)], "0s"),
        ([lease("0", rest=MINE), lease("0r")], "0r"),
        ([lease("0", rest=MINE), lease("0r", slow=MINE)], "0rs"),
        ([lease("d0123456789abcdef", slow=MINE)], None),
    ],
)
def test_a_page_is_found_by_its_end_and_by_what_it_passed_on(
    leases: list[PageLease], page: str | None
) -> None:
    found = page_of(ENTRY, leases)
    assert (found and found.page) == page


def test_a_direct_entry_is_found_only_where_its_message_passed_it_on() -> None:
    direct = replace(ENTRY, direct=True)
    leases = [lease("0"), lease("d0123456789abcdef", slow=(direct.place,))]
    found = page_of(direct, leases)
    assert found is not None
    assert (found.page, found.owner) == ("d0123456789abcdefs", None)
    assert page_of(direct, leases[:1]) is None
