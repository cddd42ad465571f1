"""The pages contain the tables made from the code. After an intended change: `make examples`."""

import json
from threading import Thread

import pytest

from docs.limits import NESTING_TAKEN, NOW_MS
from docs.tables import (
    BLOCKS,
    PAGES,
    PLACE,
    TABLES,
    TableError,
    endpoints_of,
    explained,
    with_all_made,
)
from duewheel.rules.refusals import MalformedBody
from duewheel.rules.tasks.requests import single_request
from tests.support.cases import each_case
from tests.support.page_blocks import ROOT

MADE = {page: PLACE.findall(page.read_text("utf-8")) for page in PAGES}


@each_case("page", [str(page.relative_to(ROOT)) for page, places in MADE.items() if places])
def test_the_tables_of_a_page_are_up_to_date(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert with_all_made(text) == text


def test_every_table_has_its_place() -> None:
    named = {name for places in MADE.values() for _, name, *_ in places}
    assert named == {*TABLES, *BLOCKS}


@each_case(
    ("known", "reason"),
    [(["one"], "there is no two"), (["one", "two", "three"], "no row explains three")],
)
def test_descriptions_and_code_must_match(known: list[str], reason: str) -> None:
    rows = [["`one`, `two`", "words"], ["", "more of them"]]
    assert list(explained(["one", "two"])(rows)) == [tuple(row) for row in rows]
    with pytest.raises(TableError, match=reason):
        list(explained(known)(rows))


def test_endpoints_are_named_by_the_sdk_and_not_by_iam() -> None:
    assert endpoints_of({"states", "sqs", "cloudwatch"}) == {"states", "sqs", "monitoring"}


def test_facts_of_a_row_come_before_its_description() -> None:
    rows = explained({"one": ("Count",)})([["`one`", "Seconds", "words"]])
    assert list(rows) == [("`one`", "Count", "words")]


def test_nesting_is_accepted_to_the_depth_on_the_page_and_refused_at_a_greater_one() -> None:
    """In a thread whose stack is as small as that of a function."""
    taken: list[int] = []
    usual = {"biz_type": "orders", "delay_seconds": 5, "callback": {"url": "https://example.com/"}}

    def nest(levels: int) -> None:
        payload = "[" * (levels - 1) + "]" * (levels - 1)
        try:
            single_request(f'{json.dumps(usual)[:-1]}, "payload": {payload}}}', NOW_MS)
        except MalformedBody:
            return
        taken.append(levels)

    for levels in (NESTING_TAKEN, 30_000):
        thread = Thread(target=nest, args=[levels])
        thread.start()
        thread.join()
    assert taken == [NESTING_TAKEN]
