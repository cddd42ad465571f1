"""The line of a timer whose runs do not overlap."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.tasks.task import Occurrence, PostponedBy, Postponement, Task
from duewheel.rules.timers.overlap import Line, Place, is_cancellable, may_be_woken, placed
from duewheel.rules.timers.timer import Overlap
from duewheel.rules.wheel.addresses import TOKEN_BYTES, Address, address_at

BUFFER, CANCEL, SKIP = Overlap.BUFFER_ONE, Overlap.CANCEL_RUNNING, Overlap.SKIP
LEAD_MS = 1_000


def run(second: int) -> Task:
    home = address_at(second * 1000, second.to_bytes(TOKEN_BYTES, "big"))
    task = Task.at(home, "orders", second * 1000, 0)
    return replace(task, occurrence=Occurrence("1", second, second))


A, B, C, D = (run(second) for second in (1, 2, 3, 4))


def live(*tasks: Task) -> dict[Address, Task]:
    return {task.home: task for task in tasks}


@pytest.mark.parametrize("overlap", [SKIP, BUFFER, CANCEL])
def test_the_first_run_begins_and_begins_again_when_it_is_tried_again(overlap: Overlap) -> None:
    line, place = placed(Line(), A, overlap, {})
    assert (line, place) == (Line(A.home), Place.BEGINS)
    assert placed(line, A, overlap, live(A)) == (line, Place.BEGINS)


@pytest.mark.parametrize("overlap", [SKIP, BUFFER, CANCEL])
def test_a_run_begins_when_the_one_before_it_has_ended(overlap: Overlap) -> None:
    assert placed(Line(A.home), B, overlap, {}) == (Line(B.home), Place.BEGINS)


def test_while_a_run_is_live_one_waits_and_the_next_is_skipped() -> None:
    line, place = placed(Line(A.home), B, BUFFER, live(A))
    assert (line, place) == (Line(A.home, B.home), Place.WAITS)
    assert placed(line, B, BUFFER, live(A, B)) == (line, Place.WAITS)
    assert placed(line, C, BUFFER, live(A, B)) == (line, Place.SKIPPED)
    assert placed(line, C, SKIP, live(A, B)) == (line, Place.SKIPPED)


def test_the_one_that_waits_comes_before_a_later_one_which_waits_then() -> None:
    line = Line(A.home, B.home)
    assert placed(line, C, BUFFER, live(B)) == (Line(B.home, C.home), Place.WAITS)
    assert placed(line, B, BUFFER, live(B)) == (Line(B.home), Place.BEGINS)


def test_one_that_waited_and_has_ended_leaves_its_place() -> None:
    assert placed(Line(A.home, B.home), C, BUFFER, live(A)) == (
        Line(A.home, C.home),
        Place.WAITS,
    )
    assert placed(Line(A.home, B.home), C, BUFFER, {}) == (Line(C.home), Place.BEGINS)


def test_a_later_run_replaces_the_running_one_or_waits_while_its_call_may_be_under_way() -> None:
    assert placed(Line(A.home), B, CANCEL, live(A))[1] is Place.REPLACES
    waits = placed(Line(A.home), B, CANCEL, live(A), cancels=False)
    assert waits == (Line(A.home, B.home), Place.WAITS)
    assert placed(waits[0], C, CANCEL, live(A, B), cancels=False) == (
        Line(A.home, C.home),
        Place.WAITS,
    )


def test_an_earlier_run_never_replaces_a_later_one() -> None:
    assert placed(Line(B.home), A, CANCEL, live(B)) == (Line(B.home), Place.SKIPPED)
    line = Line(A.home, C.home)
    assert placed(line, B, CANCEL, live(A, C), cancels=False) == (line, Place.SKIPPED)


def test_a_run_can_be_cancelled_unless_its_call_may_be_under_way() -> None:
    assert is_cancellable(A, A.next_ms - 10 * LEAD_MS, LEAD_MS)
    assert not is_cancellable(A, A.next_ms, LEAD_MS)
    assert is_cancellable(replace(A, parked=True), A.next_ms, LEAD_MS)


def test_who_waits_is_woken_when_the_running_one_has_ended_or_can_be_cancelled() -> None:
    line, now_ms = Line(A.home, B.home), 5_000
    waits = replace(
        B, next_ms=20_000, postponement=Postponement(PostponedBy.OVERLAP, 20_000), version=2
    )
    retried = replace(A, next_ms=30_000)

    def woken(homes: Mapping[Address, Task], overlap: Overlap) -> Task | None:
        return may_be_woken(line, homes, overlap, LEAD_MS, now_ms)

    assert woken(live(waits), BUFFER) == waits
    assert woken(live(retried, waits), BUFFER) is None
    assert woken(live(retried, waits), CANCEL) == waits
    assert woken(live(A, waits), CANCEL) is None
    assert woken(live(replace(waits, parked=True)), BUFFER) is None
    assert woken(live(replace(waits, postponement=None)), BUFFER) is None
    assert woken({}, BUFFER) is None


class Runs:
    """Of a timer, with its line, which is written as it was read, as the store sees to."""

    def __init__(self, overlap: Overlap) -> None:
        self._overlap = overlap
        self._line = Line()
        self.all = [run(second) for second in range(1, 7)]
        self._ended: set[Address] = set()
        self._begun: set[Address] = set()

    @property
    def live(self) -> list[Task]:
        return [task for task in self.all if task.home not in self._ended]

    @property
    def under_way(self) -> set[Address]:
        return self._begun - self._ended

    def ends(self, task: Task) -> None:
        if task.home in self.under_way:
            self._ended.add(task.home)

    def falls_due(self, task: Task) -> None:
        if task.home in self._ended:
            return
        self._line, place = placed(self._line, task, self._overlap, live(*self.live))
        if place is Place.REPLACES:
            assert self._line.running is not None
            self._ended.add(self._line.running)
            self._line, place = placed(self._line, task, self._overlap, live(*self.live))
        if place is Place.BEGINS:
            self._begun.add(task.home)
        elif place is Place.SKIPPED:
            self._ended.add(task.home)


STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=40)


@given(STEPS, st.sampled_from([SKIP, BUFFER, CANCEL]))
def test_in_any_order_one_run_is_under_way_at_most_and_one_that_waits_is_not_forgotten(
    steps: list[tuple[bool, int]], overlap: Overlap
) -> None:
    runs = Runs(overlap)
    for ends, number in steps:
        (runs.ends if ends else runs.falls_due)(runs.all[number])
        assert len(runs.under_way) <= 1
    for task in runs.all * 7:  # whatever waits falls due again and again, and what runs ends
        runs.falls_due(task)
        runs.ends(task)
    assert not runs.live
