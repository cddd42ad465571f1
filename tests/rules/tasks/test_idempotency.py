"""The record of an idempotent request, and the decisions that follow from it."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.businesses.settings import RETENTION_SECONDS_MIN
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.refusals import (
    IdempotencyKeyInUse,
    IdempotencyKeyReused,
    InvalidField,
    KeyTaken,
    NotPermitted,
    Refusal,
    TooManyCreates,
    Unavailable,
)
from duewheel.rules.tasks.idempotency import (
    DELETED_EARLY_MS_MAX,
    LEASE_MS,
    REMEMBERED_SECONDS,
    Claim,
    IdempotentRequest,
    RequestRecord,
    State,
    check_repeat,
    check_takeover,
    claimed,
    ended,
    idempotent_request,
    is_key,
    key_of_rest,
    shows_its_end,
    taken_over,
)
from duewheel.rules.tasks.task import Made, NewTask, Task
from duewheel.rules.wheel.addresses import address_at
from duewheel.rules.wheel.sharding import Placement
from tests.support.cases import each_case

NOW_MS = 1_900_000_000_123
REQUEST = IdempotentRequest(name="name", digest="digest", is_single=False)
TAKEN = KeyTaken("The key names a live task made by another body.", "key")


def new(in_ms: int = 600_000, **fields: Any) -> NewTask:
    return NewTask(
        biz_type="orders",
        due_ms=NOW_MS + in_ms,
        callback=HttpCallback("https://example.com/"),
        **fields,
    )


def claim(number: int = 0, in_ms: int = 0) -> Claim:
    now_ms = NOW_MS + in_ms
    return Claim(
        number,
        f"token-{number}",
        Placement(now_ms=now_ms, lead_ms=500),
    )


def running(tasks: int = 3) -> tuple[RequestRecord, list[NewTask]]:
    return claimed(REQUEST, claim()), [new(in_ms) for in_ms in range(tasks)]


def made_by(record: RequestRecord, index: int, request: list[NewTask]) -> Task:
    result = record.result(index, request[index])
    assert isinstance(result, Made)
    assert result.is_new
    return result.task


# The request


@each_case("key", ["x", "x" * 255, "!~", '"8e03978e-40d5"', "a,b"])
def test_a_key_is_visible_ascii_and_used_unchanged(key: str) -> None:
    assert idempotent_request("me", key, "/v1/tasks", "{}", is_single=True).name


@each_case("key", ["", "x" * 256, "a b", " a", "a\n", "é", "\x7f", "\ud800"])
def test_an_invalid_key_is_refused_by_the_name_of_its_header(key: str) -> None:
    with pytest.raises(InvalidField) as refused:
        idempotent_request("me", key, "/v1/tasks", "{}", is_single=True)
    assert refused.value.field == "idempotency-key"


def test_a_request_is_named_by_caller_and_key_and_compared_by_path_and_body() -> None:
    def sent(
        caller: str = "me", key: str = "k", path: str = "/p", body: str = "{}"
    ) -> IdempotentRequest:
        return idempotent_request(caller, key, path, body, is_single=False)

    assert sent() == sent()
    assert sent(path="/q").name == sent(body="{ }").name == sent().name
    assert len({sent().digest, sent(path="/q").digest, sent(body="{ }").digest}) == 3
    assert sent(caller="you").digest == sent(key="l").digest == sent().digest
    names = [sent(), sent(caller="you"), sent(key="l"), sent("mek", "k"), sent("me", "kk")]
    assert len({one.name for one in names}) == 5


# Places


@given(st.integers(-100_000, 10_000_000), st.integers(0, 499))
def test_a_task_follows_from_its_claim_and_its_index(in_ms: int, index: int) -> None:
    task = claim().task(index, new(in_ms))
    assert task == claim().task(index, new(in_ms))
    assert task.home.instant_ms == max(task.due_ms, NOW_MS)
    assert task.created_ms == task.updated_ms == NOW_MS
    assert task.home.token != claim().task(index + 1, new(in_ms)).home.token
    assert task.home.token != claim(1).task(index, new(in_ms)).home.token


def test_a_later_claim_places_no_task_in_its_past() -> None:
    later = claim(1, in_ms=300_000)
    task = later.task(0, new(in_ms=1_000))
    assert task.home.instant_ms == NOW_MS + 300_000
    assert task.home.direct
    assert task.due_ms == NOW_MS + 1_000


# The record


def test_the_record_of_a_request_that_created_all_its_tasks_has_no_outcomes() -> None:
    record, request = running()
    results = {index: Made(record.latest.task(index, one)) for index, one in enumerate(request)}
    done = ended(REQUEST, record, results)
    assert (done.state, done.outcomes) == (State.DONE, {})
    assert [made_by(done, index, request) for index in results] == [
        result.task for result in results.values()
    ]


def test_found_and_refused_tasks_are_recorded_and_the_rest_is_left_to_a_repeat() -> None:
    record, request = running(4)
    live = replace(claim(7).task(9, request[1]), payload="1")
    results = {
        0: Made(record.latest.task(0, request[0])),
        1: Made(live, is_new=False),
        2: TAKEN,
        3: Unavailable("Try it again."),
    }
    left = ended(REQUEST, record, results)
    assert left.state is State.RUNNING
    assert left.outcomes == {0: 0, 1: live.home, 2: TAKEN}
    assert left.result(1, request[1]) == live.home
    assert left.result(2, request[2]) is TAKEN
    assert list(left.unsettled(request)) == [3], "created tasks are known without a read"
    check_takeover(REQUEST, left, NOW_MS)


def test_tasks_of_a_rest_that_was_given_up_are_not_created_by_a_repeat() -> None:
    """For any refusal, and any length of its reason."""
    record, request = running(4)
    results = {
        0: Made(record.latest.task(0, request[0])),
        1: TooManyCreates(5_000),
        2: InvalidField("callback: " + "x" * 500, "callback"),
        3: TAKEN,
    }
    done = ended(REQUEST, record, results, is_rest_given_up=True)
    assert (done.state, list(done.unsettled(request))) == (State.DONE, [0])
    refusals = [done.result(index, request[index]) for index in (1, 2, 3)]
    assert refusals[2] is TAKEN
    limit, callback, _ = refusals
    assert isinstance(limit, Refusal)
    assert isinstance(callback, Refusal)
    assert (limit.type, limit.detail) == ("too-many-creates", results[1].detail)  # type: ignore[union-attr]
    assert (callback.type, callback.field, len(callback.detail)) == (
        "invalid-field",
        "callback",
        300,
    )
    assert not isinstance(limit, TooManyCreates), "the sender need not wait"


def test_the_key_of_a_rest_depends_on_its_request_and_its_body() -> None:
    keys = {key_of_rest("k", "{}"), key_of_rest("l", "{}"), key_of_rest("k", "{ }")}
    assert len(keys) == 3
    assert all(map(is_key, keys))
    assert key_of_rest("k", "{}") in keys


def test_a_single_create_whose_task_key_is_taken_releases_its_record() -> None:
    single = replace(REQUEST, is_single=True)
    record, request = running(1)
    made = Made(record.latest.task(0, request[0]))
    assert ended(single, record, {0: TAKEN}).state is State.RELEASED
    assert ended(REQUEST, record, {0: TAKEN}).state is State.DONE
    assert ended(single, record, {0: made}).state is State.DONE


def test_a_takeover_keeps_created_tasks_and_gives_the_others_new_places() -> None:
    record, request = running()
    first = made_by(record, 1, request)
    over = taken_over(REQUEST, record, [1], claim(1, in_ms=60_000))
    assert made_by(over, 1, request) == first
    assert list(over.unsettled(request)) == [0, 2]
    assert over.unsettled(request)[0] == claim(1, in_ms=60_000).task(0, request[0])
    assert over.requested_ms == NOW_MS
    assert over.lease_until_ms == NOW_MS + 60_000 + LEASE_MS


def test_only_claims_that_created_a_task_are_kept_besides_the_latest() -> None:
    record, request = running(10)
    for number in range(1, 50):
        found = [number // 10] if number % 10 == 5 else []
        record = taken_over(REQUEST, record, found, claim(number))
    assert [one.number for one in record.claims] == [4, 14, 24, 34, 44, 49]
    assert made_by(record, 2, request).home == claim(24).task(2, request[2]).home
    assert list(record.unsettled(request)) == [5, 6, 7, 8, 9]


def test_a_task_that_was_refused_when_it_was_read_is_not_created() -> None:
    record, request = running()
    assert list(record.unsettled([request[0], InvalidField("due_ms: no."), request[2]])) == [0, 2]


def test_a_record_is_kept_for_one_day() -> None:
    record, _ = running()
    assert record.expires_at * 1000 - NOW_MS >= REMEMBERED_SECONDS * 1000
    assert record.expires_at * 1000 - NOW_MS < REMEMBERED_SECONDS * 1000 + 1_000


def test_a_record_is_kept_for_one_day_after_its_last_takeover() -> None:
    """A task that was created at hour 23 is not created again at hour 25."""
    record, _ = running()
    hours = 23 * 3_600_000
    over = taken_over(REQUEST, record, [], claim(1, in_ms=hours))
    assert over.expires_at == record.expires_at + hours // 1000


def test_a_record_is_kept_for_as_long_as_its_sender_may_repeat_the_request() -> None:
    longer = replace(REQUEST, remembered_seconds=REMEMBERED_SECONDS + 7)
    record, _ = running()
    assert claimed(longer, claim()).expires_at == record.expires_at + 7
    assert taken_over(longer, record, [], claim(1)).expires_at == record.expires_at + 7


# Repeats


def test_a_repeat_waits_for_the_lease_and_no_longer() -> None:
    record, _ = running()
    with pytest.raises(IdempotencyKeyInUse):
        check_takeover(REQUEST, record, NOW_MS + LEASE_MS - 1)
    check_takeover(REQUEST, record, NOW_MS + LEASE_MS)


def test_a_missing_task_is_created_only_while_it_cannot_have_been_deleted() -> None:
    """The end of a request is recorded if its record is kept for longer than its tasks may be."""
    record, _ = running()
    deleted_ms = NOW_MS + RETENTION_SECONDS_MIN * 1000 - DELETED_EARLY_MS_MAX
    check_takeover(REQUEST, record, deleted_ms - 1)
    with pytest.raises(IdempotencyKeyInUse):
        check_takeover(REQUEST, record, deleted_ms)
    longer = replace(REQUEST, remembered_seconds=RETENTION_SECONDS_MIN + 1)
    check_takeover(longer, record, deleted_ms)


def test_every_task_is_kept_for_as_long_as_the_record_of_its_call() -> None:
    """Neither a business nor a deployment can be configured to keep a task for less than a day."""
    assert REQUEST.remembered_seconds == REMEMBERED_SECONDS
    assert REQUEST.is_outlived


def test_the_end_of_a_request_is_recorded_unless_its_tasks_show_it() -> None:
    record, request = running(2)
    made = {n: Made(record.latest.task(n, new)) for n, new in enumerate(request)}

    def shows(
        results: Mapping[int, Made | Refusal],
        sent: IdempotentRequest = REQUEST,
        now_ms: int = NOW_MS + LEASE_MS - 1,
    ) -> bool:
        return shows_its_end(sent, record, ended(sent, record, results), now_ms)

    assert shows(made)
    assert shows({}), "every task is refused because of its own fields, at any time"
    assert not shows({**made, 1: TAKEN})
    assert not shows({**made, 1: Unavailable("Try it again.")})
    assert not shows({**made, 1: Made(made[1].task, is_new=False)})
    assert not shows(made, now_ms=NOW_MS + LEASE_MS), "another request may have claimed it"
    assert not shows(made, replace(REQUEST, remembered_seconds=RETENTION_SECONDS_MIN + 1))


def test_a_task_that_is_refused_now_is_looked_for_at_the_place_of_its_claim() -> None:
    record, request = running(3)
    refused = NotPermitted("Not any more.")
    refused.window = request[1].window
    current = [request[0], refused, InvalidField("due_ms: no.")]
    assert record.sought(current) == {
        index: record.latest.task(index, request[index]).home for index in (0, 1)
    }
    assert record.sought(request).keys() == {0, 1, 2}
    known = replace(record, outcomes={0: 0, 1: TAKEN, 2: 0})
    assert known.sought(current) == {}


@each_case("state", list(State))
def test_another_request_with_the_key_is_refused_in_every_state(state: State) -> None:
    record, _ = running()
    with pytest.raises(IdempotencyKeyReused):
        check_repeat(replace(REQUEST, digest="other"), replace(record, state=state))


def test_a_recorded_home_of_a_found_task_is_returned() -> None:
    record, request = running(1)
    home = address_at(NOW_MS, bytes(8))
    assert replace(record, outcomes={0: home}).result(0, request[0]) == home
