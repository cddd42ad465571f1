"""The progress of a bulk operation: whatever is carried out of a page, each item counts once."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.bulk.operation import (
    KEPT_SECONDS,
    PAGE_MAX,
    RETRY_MS,
    TRIES_MAX,
    Action,
    Counts,
    Filter,
    Operation,
    Outcome,
    Page,
    State,
    Wish,
    counted,
    ended,
    failed_once,
    reached_ms,
    refusals_of,
)
from duewheel.rules.refusals import TooLate
from duewheel.rules.tasks.task import Status
from duewheel.rules.wheel.addresses import TOKEN_BYTES, address_at

NOW_MS = 1_700_000_000_000
CANCEL = Wish(action=Action.CANCEL, filter=Filter(status=Status.PENDING))
AT_WORK = Operation(
    biz_type="orders",
    mark="0" * 20,
    marker=0,
    wish=CANCEL,
    created_ms=NOW_MS,
    created_by="me",
    updated_ms=NOW_MS,
    owner="a worker",
    lease_until_ms=NOW_MS + 1,
)
REFUSED = TooLate("The cut-off has passed.")
OUTCOMES = st.sampled_from([True, False, REFUSED])
PAGES = st.lists(st.lists(st.tuples(OUTCOMES, st.integers(0, 3)), max_size=5), min_size=1)


@given(PAGES)
def test_each_item_counts_once_in_however_many_turns_its_page_is_carried_out(
    drawn: list[list[tuple[Outcome, int]]],
) -> None:
    """A number with an item: the turn in which it is carried out."""
    pages = [
        Page(
            tuple(f"{at}/{n}" for n in range(len(items))),
            len(items) + 1,
            None if at == len(drawn) - 1 else str(at),
        )
        for at, items in enumerate(drawn)
    ]
    operation = replace(AT_WORK, page=pages[0])
    for items, page, following in zip(drawn, pages, [*pages[1:], None], strict=True):
        turns = max((turn for _, turn in items), default=0)
        before = operation.position
        for now in range(turns + 1):
            some: dict[str, Outcome] = {
                f"{page.items[n]}": outcome
                for n, (outcome, turn) in enumerate(items)
                if turn == now
            }
            operation = counted(operation, some, NOW_MS + now, following)
            if now < turns:
                assert operation.position == before, "behind a page that is not whole is nothing"
                assert operation.page is not None
                assert operation.page.looked_at == 0
        assert operation.page == following
    outcomes = [outcome for items in drawn for outcome, _ in items]
    assert operation.counts == Counts(
        looked_at=len(outcomes) + len(pages),
        changed=outcomes.count(True),
        unchanged=outcomes.count(False),
        refused=outcomes.count(REFUSED),
    )
    assert operation.position == (str(len(pages) - 2) if len(pages) > 1 else None)


def test_a_page_that_is_through_takes_back_the_failures_before_it() -> None:
    page = Page(("a", "b"), 2, "b")
    failing = replace(AT_WORK, page=page, failures=2, last_problem="it was broken")
    part = counted(failing, {"a": True}, NOW_MS, None)
    assert (part.failures, part.last_problem) == (2, "it was broken")
    whole = counted(part, {"b": True}, NOW_MS, None)
    assert (whole.failures, whole.last_problem) == (0, None)


def test_a_page_that_fails_is_tried_again_later_and_a_few_times() -> None:
    operation = AT_WORK
    for number in range(1, TRIES_MAX):
        operation = failed_once(operation, "it is broken", NOW_MS, is_final=False)
        assert (operation.state, operation.failures) == (State.RUNNING, number)
        assert not operation.is_free(NOW_MS + RETRY_MS - 1)
        assert operation.is_free(NOW_MS + RETRY_MS)
    last = failed_once(operation, "it is broken", NOW_MS, is_final=False)
    assert (last.state, last.last_problem) == (State.FAILED, "it is broken")
    assert failed_once(AT_WORK, "it is off", NOW_MS, is_final=True).state is State.FAILED


def test_an_operation_that_has_ended_is_kept_for_a_time_and_free_for_nobody() -> None:
    after = ended(replace(AT_WORK, page=Page(("a",), 1, None)), State.STOPPED, NOW_MS)
    assert (after.page, after.owner, after.ended_ms) == (None, None, NOW_MS)
    assert after.expires_at == NOW_MS // 1000 + KEPT_SECONDS
    assert not after.is_free(NOW_MS)


def test_a_page_takes_about_a_second_at_most_where_there_is_a_pace() -> None:
    def of(per_second: int | None) -> int:
        return replace(AT_WORK, wish=replace(CANCEL, per_second=per_second)).page_max

    assert [of(None), of(3), of(1_000)] == [PAGE_MAX, 3, PAGE_MAX]


def test_refusals_are_listed_in_the_order_of_the_page() -> None:
    homes = [address_at(NOW_MS + n, bytes(TOKEN_BYTES)) for n in range(4)]
    first, second, third, left = (home.name for home in homes)
    outcomes: dict[str, Outcome] = {third: REFUSED, second: True, first: REFUSED}
    found = refusals_of(outcomes, [first, second, third, left])
    assert [(one.item_id, one.type, one.status) for one in found] == [
        (homes[0].task_id, "too-late", 409),
        (homes[2].task_id, "too-late", 409),
    ]


def test_the_instant_that_is_reached_is_that_of_the_index() -> None:
    dead = Wish(action=Action.REDRIVE, filter=Filter(status=Status.DEAD))
    by_ids = Wish(action=Action.CANCEL, total=7)
    at = f"{NOW_MS} 00000"
    assert reached_ms(AT_WORK) is None
    assert reached_ms(replace(AT_WORK, position=at)) == NOW_MS
    assert reached_ms(replace(AT_WORK, wish=dead, position=f"0 {NOW_MS} 7")) == NOW_MS
    assert reached_ms(replace(AT_WORK, wish=by_ids, position="100")) is None
