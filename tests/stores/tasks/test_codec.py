"""A task is written as an item of the wheel, and read as it was."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.callbacks.types import HttpCallback, KeptAnswer, OnOutcome, RetryPolicy, Told
from duewheel.rules.labels import LABELS_MAX, VALUE_CHARACTERS_MAX
from duewheel.rules.labels import NAME as LABEL_NAME
from duewheel.rules.names import FLOW_KEY
from duewheel.rules.priority import Priority
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.tasks.task import (
    Attempt,
    InLine,
    Occurrence,
    Plan,
    PostponedBy,
    Postponement,
    Reservation,
    Revival,
    Running,
    Status,
    Task,
)
from duewheel.rules.wheel.addresses import TOKEN_BYTES, Address, address_at
from duewheel.stores.tasks import codec
from tests.support.cases import each_case

BUCKETS = 10_000_000

# Requests with unpaired surrogates are refused, so no stored text contains them.
texts = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers(0, 99_999_999_999_999)  # the last millisecond of a place
seconds = st.floats(0, 1e9, allow_nan=False)
businesses = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,62}", fullmatch=True)
addresses = st.builds(
    lambda ms, token, shard, direct: address_at(ms, token, shard=shard, direct=direct),
    st.integers(0, 99_999_999_999_999),
    st.binary(min_size=TOKEN_BYTES, max_size=TOKEN_BYTES),
    st.integers(0, 0xFFFF),
    st.booleans(),
)
attempts = st.builds(
    Attempt,
    at_ms=numbers,
    lateness_ms=numbers,
    duration_ms=numbers,
    outcome=st.sampled_from(["delivered", "retry", "stop"]),
    status_code=st.none() | st.integers(100, 999),
    note=texts,
    entry_second=st.integers(0, 99_999_999_999),
    host=st.sampled_from([None, "receiver.example", "pay.example:8443"]),
)
timer_ids = st.integers(2**40, 2**53 - 1).map(str)
whole_seconds = st.integers(0, 99_999_999_999)
counts = st.integers(0, 10**15)
labels = st.dictionaries(
    st.from_regex(LABEL_NAME, fullmatch=True),
    st.text(
        st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=VALUE_CHARACTERS_MAX
    ),
    max_size=LABELS_MAX,
).map(lambda members: tuple(sorted(members.items())))
SOURCES = ["1.0", "1e400", "7" * 5000, '{"b":1, "a":"\\u00e9"}', '"é"', "null", " [ ] "]
payloads = st.sampled_from(SOURCES) | st.lists(texts).map(json.dumps)
ended_twice = (
    Revival(ended=5, revived=9, status=Status.DELIVERED, lateness_ms=3, attempts=2),
    Revival(ended=9, revived=12),
    Revival(ended=9, revived=12, status=Status.CANCELLED, reason="cancelled by caller", attempts=0),
)
on_outcomes = st.builds(
    OnOutcome,
    outcomes=st.lists(st.sampled_from(Told), min_size=1, unique=True).map(tuple),
    callback=st.builds(HttpCallback, url=texts),
    with_payload=st.booleans(),
)
tasks = st.builds(
    Task,
    home=addresses,
    entry=addresses,
    biz_type=businesses,
    due_ms=numbers,
    next_ms=numbers,
    callback=st.builds(
        HttpCallback,
        url=texts | st.just("https://receiver.example/paid"),
        method=st.sampled_from(["GET", "POST", "PUT"]),
        headers=st.lists(st.tuples(texts, texts), max_size=3).map(tuple),
    ),
    created_ms=numbers,
    updated_ms=numbers,
    payload=st.none() | payloads,
    retry=st.none()
    | st.builds(
        RetryPolicy,
        attempts_max=st.integers(1, 100),
        first_delay_seconds=seconds,
        factor=st.floats(1, 100),
        delay_max_seconds=seconds,
        delays_seconds=st.lists(seconds, max_size=4).map(tuple),
    ),
    expires_after_seconds=st.none() | seconds,
    tolerance_seconds=st.none() | st.integers(0, 3_600),
    priority=st.none() | st.sampled_from(Priority),
    reservation=st.none() | st.builds(Reservation, numbers, counts, is_late=st.booleans()),
    revivals=st.sampled_from([(), ended_twice]),
    answer=st.none()
    | st.builds(
        KeptAnswer,
        at_ms=numbers,
        status_code=st.integers(100, 999),
        is_whole=st.booleans(),
        headers=st.dictionaries(st.just("x-request"), texts),
        body=st.sampled_from(["", "line\n\x00 é", "x" * 2_048]),
    ),
    running=st.none()
    | st.builds(
        Running,
        call=attempts,
        until_ms=numbers,
        within_seconds=st.integers(1, 3_600),
        scopes=st.lists(businesses, max_size=2).map(tuple),
        note=st.none() | texts,
    ),
    postponement=st.none()
    | st.builds(Postponement, by=st.sampled_from(PostponedBy), until_ms=numbers),
    requested_ms=st.none() | numbers,
    flow_key=st.none() | st.from_regex(FLOW_KEY, fullmatch=True),
    labels=labels,
    notice_of=st.none() | st.just("AQG5dxdnQAAAeOt8N-CZJxW76LPH"),
    notice_id=st.none() | st.just("gQG5dxdnQAAAeOt8N-CZJxW76LPH"),
    on_outcome=st.none() | on_outcomes,
    ordered_ms=st.none() | numbers,
    in_line=st.none() | st.builds(InLine, numbers, numbers),
    status=st.sampled_from(Status),
    reason=st.none() | texts,
    attempts=st.integers(0, 100),
    history=st.lists(attempts, max_size=3).map(tuple),
    settled_ms=st.none() | numbers,
    expires_at=st.none() | st.integers(0, 99_999_999_999),
    lateness_ms=st.none() | numbers,
    last_error=st.none() | texts,
    occurrence=st.none()
    | st.builds(
        Occurrence,
        timer_id=timer_ids,
        second=whole_seconds,
        number=counts,
        manual=st.booleans(),
    ),
    plan=st.none()
    | st.builds(Plan, timer_id=timer_ids, planned_until_second=whole_seconds, numbered=counts),
    first_second=st.none() | whole_seconds,
    result=st.none() | texts,
    version=st.integers(1, 10_000),
).map(lambda task: replace(task, redrives=len(task.revivals))) | st.builds(
    lambda home, due_ms: Task.at(home, "orders", due_ms, 0, HttpCallback("https://example.com/")),
    addresses,
    numbers,
)


def item_of(task: Task, *, listed: bool = True) -> dict[str, Any]:
    return codec.task_item(task, BUCKETS, listed=listed)


def test_the_host_of_an_attempt_is_stored_only_where_the_callback_does_not_name_it() -> None:
    """So a plain delivery costs no unit more."""
    called = Attempt(
        at_ms=1, lateness_ms=0, duration_ms=1, outcome="delivered", entry_second=0, host="a.example"
    )
    home, elsewhere = address_at(0, b"8 bytes."), HttpCallback("https://b.example/")
    own = HttpCallback("https://a.example/")
    for callback, is_stored in ((own, False), (None, True), (elsewhere, True)):
        item = item_of(replace(Task.at(home, "orders", 0, 0, callback), history=(called,)))
        assert ("a.example" in item["history"]["S"]) is is_stored
        assert codec.task_from(item).history == (called,)


@given(tasks, st.booleans())
def test_a_task_is_read_as_it_was_written(task: Task, listed: bool) -> None:
    assert codec.task_from(item_of(task, listed=listed)) == task


@each_case(
    ("attribute", "values"),
    [
        ("timer", [{"S": "no id"}, {"N": "4503599627370497"}, None]),
        ("occurrence", ["[1]", "[-1,1]", '[1,1,"yes"]', "[1,1,true,1]", None]),
        ("occurrence", ['[1,1,true,"no id"]']),
        ("plan", ['["4503599627370497",1]', "[4503599627370497,1,1]"]),
        ("plan", ['["4503599627370497",1,-1]']),
        ("first_second", [{"N": "-1"}]),
        (
            "tolerance",
            ["[]", "[60]", "[-1,1]", "[3601,1]", "[60,1,1]", '["60",1]', "60", "[60,-1]"],
        ),
        ("waits_for", ["[]", '["slow-lane"]', '["slow-lane",-1]', '["slow-lane",1,1]']),
        ("waits_for", ['["full-moon",1]', "[1,1]", "1"]),
    ],
)
def test_damaged_attributes_make_the_item_unreadable(attribute: str, values: list[Any]) -> None:
    task = Task.at(address_at(0, bytes(TOKEN_BYTES)), "orders", 0, 0)
    item = item_of(replace(task, occurrence=Occurrence("4503599627370497", 7, 3), first_second=9))
    for value in values:
        damaged = {**item, attribute: {"S": value} if isinstance(value, str) else value}
        with pytest.raises(UnreadableItem) as unreadable:
            codec.task_from({name: one for name, one in damaged.items() if one is not None})
        assert unreadable.value.wrong == attribute


@given(tasks)
def test_the_death_index_has_only_dead_tasks(task: Task) -> None:
    assert ("dead_biz" in item_of(task)) == (task.status is Status.DEAD)


@given(tasks)
def test_only_settled_tasks_have_a_time_to_live(task: Task) -> None:
    pending = replace(task, status=Status.PENDING, expires_at=None)
    assert "expires_at" not in item_of(pending)
    settled = replace(task, status=Status.DELIVERED, expires_at=7)
    assert item_of(settled)["expires_at"] == {"N": "7"}


@given(tasks)
def test_the_key_of_an_item_is_its_home(task: Task) -> None:
    item = item_of(task)
    assert {name: item[name] for name in ("slot", "place")} == codec.key(task.home, BUCKETS)
    assert codec.address_of(item) == task.home


@given(tasks)
def test_sweep_and_delivery_read_the_same_values_of_an_item(task: Task) -> None:
    state = codec.home_state_from(item_of(task))
    assert (state.home, state.entry, state.status, state.next_ms, state.version) == (
        task.home,
        task.entry,
        task.status,
        task.next_ms,
        task.version,
    )
    assert state.is_plan is (task.plan is not None)
    assert (state.first_second, state.revivals) == (task.first_second, task.revivals)


@given(tasks)
def test_a_home_that_names_itself_has_no_entry_attribute(task: Task) -> None:
    itself = replace(task, entry=task.home)
    assert "entry" not in item_of(itself)
    assert codec.entry_named_by(item_of(itself)) == task.home


@given(addresses, addresses, tasks)
def test_a_reentry_points_to_its_home_and_differs_from_a_task(
    entry: Address, home: Address, task: Task
) -> None:
    assume(entry != home)
    item = codec.reentry_item(entry, home, BUCKETS, 1_800_000_000_000)
    assert codec.is_reentry(item)
    assert codec.address_of(item) == entry
    assert codec.home_of_reentry(item) == home
    assert "expires_at" not in item
    assert not codec.is_reentry(item_of(task))
