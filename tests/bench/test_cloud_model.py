"""The model of the cloud, against small cases that can be computed by hand."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from bench import limits
from bench.cloud import calls
from bench.cloud.assumed import CALL_CPU_MS, Knobs, Latency
from bench.cloud.calls import Calls, Record
from bench.cloud.capacity_modes import loads
from bench.cloud.creates import Creates
from bench.cloud.experiment import FIRST_SECOND, burst, run
from bench.cloud.functions import Environment, Functions, Processor
from bench.cloud.links import Queue
from bench.cloud.loop import Loop, Signal, Story
from bench.cloud.provisioned import SCALED_AFTER_MS, ScaledUnits
from bench.cloud.rates import full
from bench.cloud.table import Table
from bench.cloud.wheel_state import Entry
from duewheel.rules.wheel.queue_messages import PageMessage
from duewheel.workflows.delivery.deliver_entries import CALLS_IN_FLIGHT_MAX

WHOLE_MB = int(limits.LAMBDA_VCPU_MB.value)


def test_stories_go_on_at_their_instants_and_by_signals() -> None:
    loop, told, signal = Loop(), [], Signal()

    def waits() -> Story[None]:
        yield signal
        told.append(("signalled", loop.now_ms))

    def wakes() -> Story[None]:
        yield 30.0
        told.append(("at its instant", loop.now_ms))
        loop.fire(signal)

    loop.start(waits())
    loop.start(wakes())
    loop.run(until_ms=29)
    assert told == []
    loop.run(until_ms=100)
    assert told == [("at its instant", 30), ("signalled", 30)]


def test_a_bucket_gives_a_second_at_once_and_then_its_rate() -> None:
    bucket = full(1_000)
    assert bucket.take(0, 5_000) == 1_000
    assert bucket.take(250, 5_000) == 250
    assert bucket.take(9_000, 5_000) == 1_000


def written_until(partitions: int, until_ms: float) -> float:
    """Of 1,500 items, 25 a request, all begun at once."""
    loop = Loop()
    table = Table(loop, Random(1), full(1e6), full(1e6))
    for number in range(60):
        loop.start(table.write_batch(f"{number % partitions}.0", 25, deadline_ms=60_000))
    loop.run(until_ms)
    return table.written


def test_a_partition_takes_a_thousand_writes_at_once_and_a_thousand_a_second() -> None:
    assert written_until(partitions=1, until_ms=0) == 1_000
    assert written_until(partitions=1, until_ms=300) in range(1_001, 1_301)
    assert written_until(partitions=1, until_ms=20_000) == 1_500


def test_two_partitions_take_twice_as_much() -> None:
    assert written_until(partitions=2, until_ms=0) == 1_500


def test_pollers_begin_with_five_and_grow_by_five_a_second() -> None:
    loop, random = Loop(), Random(1)
    knobs = Knobs(messages_per_run=1)
    functions = Functions(loop, random, knobs)
    begun: list[float] = []
    functions.handle = lambda environment, messages, ended: begun.append(loop.now_ms)
    queue = Queue(loop, random, knobs, functions)
    loop.start(queue.send([PageMessage(1, shard) for shard in range(500)]))
    loop.run(until_ms=200)
    assert functions.running == 5
    loop.run(until_ms=10_300)
    assert functions.running in range(53, 57)


def test_a_run_takes_as_many_messages_as_wait_up_to_its_size() -> None:
    loop, random = Loop(), Random(1)
    taken: list[int] = []
    functions = Functions(loop, random, Knobs(messages_per_run=10))
    functions.handle = lambda environment, messages, ended: taken.append(len(messages))
    queue = Queue(loop, random, Knobs(messages_per_run=10), functions)
    loop.start(queue.send([PageMessage(1, shard) for shard in range(23)]))
    loop.run(until_ms=60_000)
    assert sorted(taken) == [3, 10, 10]


def test_delayed_messages_of_a_request_appear_together_each_at_its_instant() -> None:
    loop, random = Loop(), Random(1)
    taken: list[tuple[float, int]] = []
    functions = Functions(loop, random, Knobs(messages_per_run=10))
    functions.handle = lambda environment, messages, ended: taken.append(
        (loop.now_ms, len(messages))
    )
    queue = Queue(loop, random, Knobs(messages_per_run=10), functions)
    messages = [PageMessage(1, shard) for shard in range(5)]
    loop.start(queue.send(messages, [0, 9_000, 9_000, 60_000, 60_000]))
    loop.run(until_ms=100_000)
    assert [number for _, number in taken] == [1, 2, 2]
    assert [when_ms // 9_000 for when_ms, _ in taken] == [0, 1, 6]


def test_a_notifier_has_the_share_of_a_processor_that_its_memory_buys() -> None:
    half = Processor(WHOLE_MB // 2)
    assert half.done_ms(100, 10) == pytest.approx(120, abs=0.1)
    assert half.done_ms(100, 10) == pytest.approx(140, abs=0.2)  # after what is under way
    assert Processor(2 * WHOLE_MB).done_ms(0, 10) == 10  # one thread computes


def test_a_hundred_calls_are_in_flight_and_the_next_waits_for_a_line(monkeypatch: Any) -> None:
    monkeypatch.setattr(calls, "CALLBACK", Latency(1_000, 1_000, "by hand"))
    loop, record = Loop(), Record()
    environment = Environment(Processor(WHOLE_MB))
    owed = [Entry(due_ms=0) for _ in range(CALLS_IN_FLIGHT_MAX + 1)]
    made = Calls(loop, Random(1), Knobs(), record)
    made.begin(environment, owed)
    loop.at(CALL_CPU_MS + 1_000, made.settled, environment, 1)
    loop.run(until_ms=10_000)
    late = record.lateness_ms
    assert late[0] == pytest.approx(CALL_CPU_MS)
    assert late[CALLS_IN_FLIGHT_MAX - 1] == pytest.approx(CALLS_IN_FLIGHT_MAX * CALL_CPU_MS)
    # The first line is free again when its call has been settled.
    assert late[CALLS_IN_FLIGHT_MAX] == pytest.approx(CALL_CPU_MS + 1_000 + CALL_CPU_MS)


def test_a_lone_task_is_as_late_as_its_call_takes_to_be_made() -> None:
    result = run(Knobs(is_warm=True), {FIRST_SECOND: [FIRST_SECOND * 1000 + 300]})
    assert result.max_ms == pytest.approx(CALL_CPU_MS * WHOLE_MB / 512, abs=0.1)
    assert (result.runs, result.settled, result.repeated) == (1, 1, 0)


@pytest.mark.parametrize("in_ms", [0, 50, 300, 620, 999])
def test_a_notifier_waits_for_its_first_task_a_tenth_of_a_second_more_than_the_lead_at_most(
    in_ms: int,
) -> None:
    """The scheduler sends its message a minute and more before, to be delayed by whole seconds."""
    result = run(Knobs(is_warm=True), {FIRST_SECOND: [FIRST_SECOND * 1000 + in_ms]})
    billed_ms = result.gb_seconds / 0.5 * 1000
    assert 100 <= billed_ms - Knobs().lead_ms <= 300  # with the call, and settling


def test_the_message_of_a_creator_has_all_shards_called_in_time() -> None:
    """Created a minute before; the run of the first page sends for the second shard."""
    due = {FIRST_SECOND: [FIRST_SECOND * 1000 + in_ms for in_ms in range(0, 1_000, 2)]}
    result = run(Knobs(is_warm=True), due, creates_a_second=1, created_before_ms=60_000)
    assert (result.called, result.settled, result.repeated, result.resent) == (500, 500, 0, 0)
    assert result.max_ms < 1_000


def test_every_task_is_called_once_and_settled() -> None:
    result = run(Knobs(), burst(600))
    assert (result.called, result.settled, result.repeated) == (600, 600, 0)


def test_what_a_lost_message_announced_is_called_after_the_sweep_delay() -> None:
    sweep_delay_ms = Knobs().sweep_lag_ms
    result = run(Knobs(lost_messages=0.6), burst(60))
    assert result.settled == 60
    assert result.resent >= 1
    assert sweep_delay_ms <= result.max_ms


def test_failed_callbacks_come_again_by_the_backoff() -> None:
    result = run(Knobs(failing_callbacks=0.3), burst(50))
    assert (result.called, result.settled) == (50, 50)
    assert result.retries_p99_ms < 2_000


def test_a_table_too_slow_is_waited_for_and_nothing_is_called_again() -> None:
    slow = run(Knobs(table_write_units=25), burst(200))
    assert slow.throttled > 0
    assert (slow.settled, slow.repeated) == (200, 0)
    assert 200 / 25 - 1 <= slow.settled_after_ms / 1000 <= 2 * 200 / 25


def test_what_cannot_be_settled_in_time_is_settled_by_another_and_not_called() -> None:
    """Sixty tasks, where a run has time for fifty."""
    slow = run(Knobs(table_write_units=1), burst(60))
    assert (slow.settled, slow.repeated) == (60, 0)
    assert slow.runs > 1


def test_unused_units_of_five_minutes_are_there_but_no_more_than_a_partition_takes() -> None:
    units = ScaledUnits(least=10, most=50, load=7)
    assert units.take(0, 5_000) == 300 * (10 - 7)
    assert units.take(1_000, 5_000) == 10
    assert ScaledUnits(least=100, most=500, load=70).take(0, 5_000) == 1_000


def consumed(units: ScaledUnits, a_second: float, minutes: range) -> None:
    for second in range(60 * minutes.start, 60 * minutes.stop):
        units.take(second * 1_000, a_second)


def test_two_minutes_above_the_target_bring_more_units_after_two_more() -> None:
    units = ScaledUnits(least=100, most=500)
    consumed(units, 140, range(2))
    scaled_ms = 2 * 60_000 + SCALED_AFTER_MS
    units.there(scaled_ms - 1)
    assert units.units == 100
    units.there(scaled_ms)
    assert units.units == pytest.approx(140 / 0.7)


def test_a_minute_above_the_target_changes_nothing_and_the_most_is_never_passed() -> None:
    units = ScaledUnits(least=100, most=150)
    consumed(units, 140, range(1))
    consumed(units, 60, range(1, 2))
    consumed(units, 140, range(2, 3))
    consumed(units, 60, range(3, 8))
    assert units.units == 100
    consumed(units, 140, range(8, 14))
    assert units.units == 150


def test_a_refused_create_is_repeated_until_table_and_list_index_have_a_unit() -> None:
    loop = Loop()
    creates = Creates(loop, full(1_000), full(10), {0: 10, 1: 30, 2: 0})
    loop.start(creates.run())
    loop.run(until_ms=60_000)
    assert creates.refused == pytest.approx(15, abs=2)
    assert creates.waited_most_ms == pytest.approx(1_000, abs=200)


def test_a_page_whose_runs_die_is_taken_apart_and_its_tasks_are_called() -> None:
    result = run(Knobs(dying_notifiers=1, is_warm=True), burst(30))
    assert (result.called, result.settled, result.repeated) == (30, 30, 0)
    assert result.max_ms > Knobs().sweep_lag_ms


def test_three_times_the_load_is_throttled_until_units_are_scaled_and_nothing_is_lost() -> None:
    due = loads((10, 60), (30, 540))
    creates = {second: len(tasks) for second, tasks in due.items()}
    on_demand, provisioned = (
        run(Knobs(is_warm=True, provisioned=size), due, creates=creates, given_ms=1_800_000)
        for size in (0, 10)
    )
    for result in (on_demand, provisioned):
        assert (result.called, result.settled) == (result.tasks, result.tasks)
    assert (on_demand.throttled, on_demand.refused) == (0, 0)
    assert provisioned.throttled > 0
    assert provisioned.refused > 0
    assert 10_000 < provisioned.created_after_ms < 600_000


def test_of_calls_that_are_due_the_one_of_high_priority_is_made_first() -> None:
    for has_priorities, calls_before in ((True, 0), (False, 2)):
        loop, record = Loop(), Record()
        knobs = Knobs(notifier_mb=WHOLE_MB, has_priorities=has_priorities)
        environment = Environment(Processor(WHOLE_MB))
        entries = [Entry(10), Entry(10), Entry(10, below=0)]
        Calls(loop, Random(1), knobs, record).begin(environment, entries)
        loop.run(until_ms=100)
        assert record.high_late_ms == pytest.approx([(calls_before + 1) * CALL_CPU_MS])


def test_a_late_page_passes_its_low_tasks_on_and_calls_the_high_ones_sooner() -> None:
    scarce = Knobs(account_concurrency=2, notifiers_max=2)
    flood, high = burst(6_000), burst(20)
    by_instant = run(replace(scarce, has_priorities=False), flood, high=high)
    by_priority = run(scarce, flood, high=high)
    assert by_instant.settled == by_priority.settled == 6_020
    assert by_priority.high_max_ms < by_instant.high_max_ms
