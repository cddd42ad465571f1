"""A breaker opens only at a clear failure rate, and each wait is bounded."""

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.businesses.health import Breaker
from duewheel.rules.callbacks.aws.eventbridge import EventBridgeCallback
from duewheel.rules.callbacks.aws.lambda_function import LambdaCallback
from duewheel.rules.callbacks.aws.sns import SnsCallback
from duewheel.rules.callbacks.aws.sqs import SqsCallback
from duewheel.rules.callbacks.aws.stepfunctions import StepFunctionsCallback
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.types import Callback, HttpCallback
from duewheel.rules.callbacks.url import called_at, host_of
from duewheel.rules.delivery import circuit_breaker as rules
from duewheel.rules.delivery.circuit_breaker import (
    CALLS_MAX,
    CALLS_MIN,
    WINDOW_MS,
    HostSignal,
    RecentCalls,
    signal_of,
)
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import TOKEN_BYTES, address_at
from tests.support.cases import each_case
from tests.support.clock import NOON_MS

UNITS = st.floats(0, 1, exclude_max=True)
BREAKERS = st.builds(
    Breaker,
    host=st.just("dead.example"),
    since_ms=st.integers(0, NOON_MS),
    until_ms=st.integers(NOON_MS - 10**9, NOON_MS + 10**9),
    owner_token=st.just("me"),
    probes_failed=st.integers(0, 10_000),
)
CALLS = st.tuples(st.integers(0, 2_000), st.booleans())  # milliseconds after the last, failed


def task_at(next_ms: int) -> Task:
    home = address_at(next_ms, bytes(TOKEN_BYTES))
    return Task.at(home, "orders", next_ms, NOON_MS)


@given(st.lists(CALLS, max_size=200))
def test_a_breaker_opens_only_if_most_of_many_recent_calls_failed(
    calls: list[tuple[int, bool]],
) -> None:
    recent, now_ms, ended = RecentCalls(), NOON_MS, []
    for after_ms, is_unwell in calls:
        now_ms += after_ms
        ended.append((now_ms, is_unwell))
        recent = recent.with_call(
            HostSignal.FAILING if is_unwell else HostSignal.HEALTHY, now_ms, now_ms
        )
        counted = [unwell for at_ms, unwell in ended[-CALLS_MAX:] if now_ms - at_ms < WINDOW_MS]
        is_clear = len(counted) >= CALLS_MIN and 2 * sum(counted) >= len(counted)
        assert recent.should_open is is_clear
        assert len(recent.calls) <= CALLS_MAX


def test_a_host_that_stops_working_is_noticed_after_some_25_calls() -> None:
    recent = RecentCalls()
    for number in range(10_000):
        recent = recent.with_call(HostSignal.HEALTHY, NOON_MS, NOON_MS + number)
    failures = 0
    while not recent.should_open:
        failures += 1
        recent = recent.with_call(HostSignal.FAILING, NOON_MS, NOON_MS + 10_000)
    assert failures == CALLS_MAX / 2


def test_calls_that_began_before_the_breaker_opened_do_not_count() -> None:
    recent = RecentCalls(from_ms=NOON_MS)
    for _ in range(100):
        recent = recent.with_call(HostSignal.FAILING, NOON_MS - 1, NOON_MS + 1_000)
    assert recent == RecentCalls(from_ms=NOON_MS)


@each_case(
    ("outcome", "sign"),
    [
        (Outcome(Verdict.DELIVERED, "", status_code=200), HostSignal.HEALTHY),
        (Outcome(Verdict.RETRY, "no whole reply within 10 s"), HostSignal.FAILING),
        *[
            (Outcome(Verdict.RETRY, "", status_code=status), HostSignal.FAILING)
            for status in (408, 429, 500, 503)
        ],
        *[
            (Outcome(Verdict.RETRY, "", status_code=status), HostSignal.HEALTHY)
            for status in (401, 403, 404, 425, 301)
        ],
        *[
            (Outcome(Verdict.STOP, "", status_code=status), HostSignal.HEALTHY)
            for status in (400, 410, 503)
        ],
        (Outcome(Verdict.STOP, "refused-address: ..."), None),
    ],
)
def test_an_outcome_is_a_signal_of_its_host(outcome: Outcome, sign: HostSignal | None) -> None:
    assert signal_of(outcome) is sign


ARN = "arn:aws:{}:eu-central-1:123456789012:{}"


@each_case(
    ("callback", "called"),
    [
        (HttpCallback("https://Pay.example/a?b"), "pay.example"),
        (HttpCallback("http://pay.example:8080/"), "pay.example:8080"),
        (HttpCallback("https://pay.example:443/"), "pay.example"),
        (HttpCallback("nonsense"), None),
        (LambdaCallback("close-orders"), "close-orders"),
        (LambdaCallback(ARN.format("lambda", "function:close:prod")), "close:prod"),
        (SqsCallback("https://sqs.eu-central-1.amazonaws.com/123456789012/orders"), "orders"),
        (SnsCallback(ARN.format("sns", "orders.fifo")), "orders.fifo"),
        (EventBridgeCallback(ARN.format("events", "event-bus/a/b"), "shop", "due"), "a/b"),
        (EventBridgeCallback("default", "shop", "due"), "default"),
        (StepFunctionsCallback(ARN.format("states", "stateMachine:close")), "close"),
    ],
)
def test_breakers_are_for_hosts_of_http_callbacks(callback: Callback, called: str | None) -> None:
    assert called_at(callback) == called
    assert host_of(callback) == (called if isinstance(callback, HttpCallback) else None)


@given(BREAKERS, UNITS)
def test_each_wait_is_twice_the_one_before_up_to_a_bound(breaker: Breaker, unit: float) -> None:
    after = rules.reopened(breaker, NOON_MS, unit, "me")
    wait_ms = min(rules.WAIT_FIRST_MS * 2**after.probes_failed, rules.WAIT_MS_MAX)
    assert wait_ms <= after.until_ms - NOON_MS <= wait_ms * (1 + rules.JITTER)
    assert not rules.is_probe_due(after, NOON_MS)
    assert rules.is_probe_due(after, after.until_ms)
    assert after.since_ms == breaker.since_ms


@given(BREAKERS, st.integers(0, 100), st.integers(1, 30_000), UNITS)
def test_a_claimed_probe_ends_before_another_is_due(
    breaker: Breaker, in_ms: int, timeout_ms: int, unit: float
) -> None:
    probe = task_at(NOON_MS + in_ms)
    mine = rules.claimed(breaker, probe, timeout_ms, NOON_MS, "me")
    assert not rules.is_probe_due(mine, NOON_MS)
    assert not rules.is_probe_due(mine, probe.next_ms + timeout_ms)
    assert rules.is_probe_due(mine, mine.until_ms)


@given(BREAKERS, st.lists(st.integers(-10_000, 10_000), min_size=1, max_size=30), UNITS)
def test_postponed_tasks_fall_due_in_order_after_the_wait_and_never_before_their_instants(
    breaker: Breaker, after_ms: list[int], unit: float
) -> None:
    tasks: list[Task] = [task_at(NOON_MS + ms) for ms in sorted(after_ms)]
    instants = rules.postponed_instants_ms(breaker, tasks, NOON_MS, unit)
    assert instants == sorted(instants)
    assert all(at >= task.next_ms for at, task in zip(instants, tasks, strict=True))
    until_ms = NOON_MS if rules.is_probe_due(breaker, NOON_MS) else breaker.until_ms
    latest_ms = max(tasks[-1].next_ms, until_ms + rules.SPREAD_MS_MAX)
    assert until_ms <= instants[0]
    assert instants[-1] <= latest_ms
    assert latest_ms - NOON_MS <= rules.AHEAD_MS_MAX + rules.SPREAD_MS_MAX


@each_case(("open_for_seconds", "spread_seconds"), [(60, 20), (3_600, 360), (86_400, 3_600)])
def test_postponed_tasks_are_spread_over_the_wait_or_a_tenth_of_the_time_open(
    open_for_seconds: int, spread_seconds: int
) -> None:
    breaker = Breaker(
        host="dead.example",
        since_ms=NOON_MS - open_for_seconds * 1000,
        until_ms=NOON_MS,
        owner_token="me",
        probes_failed=1,
    )
    instants = rules.postponed_instants_ms(breaker, [task_at(0)] * 100, NOON_MS, 0.0)
    assert instants[0] == NOON_MS
    assert instants[-1] - instants[0] == spread_seconds * 990


def test_no_task_waits_for_a_breaker_that_has_closed() -> None:
    tasks = [task_at(NOON_MS - 5), task_at(NOON_MS + 5)]
    assert rules.postponed_instants_ms(None, tasks, NOON_MS, 0.9) == [NOON_MS, NOON_MS + 5]
