"""How a page ends, as a model: every interleaving is explored.

A slice has one page. Its messages may come twice. A run takes the lease, reads the entries, calls
those that are pending, settles them, and marks the page as done if `needs_done_mark` says so. A run
may crash before any step, or be frozen for longer than its lease. A slow writer may put an entry
into the slice when the page has been read. An item may be damaged in an attribute that the notifier
reads and the sweep does not. When no run is left, the sweep judges the slice, by `judge_slice`, and
acts on it; messages may still wait.

The rules of the model are those of `workflows/delivery/deliver_message.py`,
`stores/delivery/page_leases.py` and `workflows/sweep/sweep_second.py`. Each fault of `FAULTS`
leaves one of them out, and has to be found.
"""

from collections import deque
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from duewheel.rules.delivery.page_lease import TRIES_MAX, PageLease, needs_done_mark
from duewheel.rules.sweep.verdict import HomeState, SeenEntry, Verdict, Waiting, judge_slice
from duewheel.rules.tasks.task import Status
from duewheel.rules.wheel.addresses import address_at

SECOND, PAGE_SIZE, RUNS = 1_000, 100, 2
HOMES = [address_at(SECOND * 1000 + n, bytes([n]) * 8) for n in range(3)]
FREE, HELD = 0, 10**9  # ends of a lease; the sweep comes between them
SWEEP_MS = 10**6


class Is(Enum):
    UNWRITTEN, PENDING, DELIVERED, ELSEWHERE = range(4)  # elsewhere: it names another entry


UNFINISHED = Is.UNWRITTEN, Is.PENDING


class Entry(NamedTuple):
    status: Is = Is.PENDING
    is_damaged: bool = False
    calls: int = 0


class Run(NamedTuple):
    owner: str
    tries: int
    resends: int
    step: str = "read"
    size: int = 0
    entries: tuple[int, ...] = ()
    delivered: int = 0


class State(NamedTuple):
    entries: tuple[Entry, ...]
    messages: int = 1
    hidden: int = 0  # messages that come when the lease is over
    lease: PageLease = PageLease(SECOND, 0)
    runs: tuple[Run, ...] = ()
    copies: int = 0
    crashes: int = 0
    freezes: int = 0
    failures: int = 0  # of calls
    early_sweeps: int = 1  # while messages wait
    is_smooth: bool = True  # no crash, no freeze, no late entry

    @property
    def is_held(self) -> bool:
        return self.lease.until_ms == HELD


class Broken(AssertionError):
    pass


class Model:
    """`faults`: the rules that are left out."""

    def __init__(self, *faults: str) -> None:
        self.faults = faults

    def following(self, state: State) -> Iterator[State]:
        if state.messages and len(state.runs) < RUNS:
            yield self._received(state)
        for run in state.runs:
            yield from self._steps(state, run)
            yield from self._accidents(state, run)
        if state.hidden and not state.is_held:
            yield state._replace(messages=state.messages + 1, hidden=state.hidden - 1)
        if state.messages and state.copies:
            yield state._replace(messages=state.messages + 1, copies=state.copies - 1)
        for number, entry in enumerate(state.entries):
            if entry.status is Is.UNWRITTEN:
                is_late = state.lease.tries > 0
                written = _with(state, number, entry._replace(status=Is.PENDING))
                yield written._replace(is_smooth=state.is_smooth and not is_late)
        if state.is_held and not any(run.owner == state.lease.owner for run in state.runs):
            yield state._replace(lease=replace(state.lease, until_ms=FREE))
        is_idle = not (state.messages or state.hidden)
        if not state.runs and not state.is_held and (is_idle or state.early_sweeps):
            early = state.early_sweeps - (not is_idle)
            yield self._swept(state._replace(early_sweeps=early))

    # A run

    def _received(self, state: State) -> State:
        lease, state = state.lease, state._replace(messages=state.messages - 1)
        if lease.done or (lease.tries >= TRIES_MAX and not state.is_held):
            return state  # it is deleted
        if state.is_held and "a page is begun without its lease" not in self.faults:
            return state._replace(hidden=state.hidden + 1)
        tries = lease.tries + 1
        owner = f"run {tries}"
        begun = replace(lease, owner=owner, until_ms=HELD, tries=tries)
        return self._works(state._replace(lease=begun), None, Run(owner, tries, lease.resends))

    def _steps(self, state: State, run: Run) -> Iterator[State]:
        is_sure = state.is_held and state.lease.owner == run.owner
        match run.step:
            case "read":
                yield self._works(state, run, self._read(state, run))
            case "call" if is_sure or not run.entries:
                called = state
                for number in run.entries:
                    entry = called.entries[number]
                    called = _with(called, number, entry._replace(calls=entry.calls + 1))
                yield self._works(called, run, run._replace(step="settle"))
            case "call":  # the lease is lost: it begins no call
                yield self._works(state, run, None)
            case "settle":
                yield from self._settled(state, run)
            case "end":
                yield self._ended(state, run)

    def _read(self, state: State, run: Run) -> Run:
        there = [n for n, one in enumerate(state.entries) if one.status is not Is.UNWRITTEN]
        readable = [n for n in there if not state.entries[n].is_damaged]
        pending = [n for n in readable if state.entries[n].status is Is.PENDING]
        if "a run calls what is delivered" in self.faults:
            pending = readable
        if "a damaged item is not counted" in self.faults:
            there = readable
        return run._replace(step="call", size=len(there), entries=tuple(pending))

    def _settled(self, state: State, run: Run) -> Iterator[State]:
        """All are delivered, or the first one has to be tried again, by another entry."""
        for failed in range(1 + bool(run.entries and state.failures)):
            settled = state._replace(failures=state.failures - failed)
            for place, number in enumerate(run.entries):
                status = Is.ELSEWHERE if place < failed else Is.DELIVERED
                entry = settled.entries[number]
                settled = _with(settled, number, entry._replace(status=status))
            delivered = len(run.entries) - failed
            yield self._works(settled, run, run._replace(step="end", delivered=delivered))

    def _ended(self, state: State, run: Run) -> State:
        first = replace(PageLease(SECOND, 0), tries=run.tries, resends=run.resends)
        delivered = run.delivered
        if "a page that was begun again is not marked" in self.faults:
            first, delivered = replace(first, tries=1), run.size
        is_ours = state.lease.owner == run.owner
        if needs_done_mark(first, run.size, delivered, shards=1) and is_ours:
            state = state._replace(lease=replace(state.lease, done=True))
        return self._works(state, run, None)

    def _accidents(self, state: State, run: Run) -> Iterator[State]:
        if state.crashes:
            crashed = self._works(state, run, None)._replace(is_smooth=False)
            yield crashed._replace(crashes=state.crashes - 1, hidden=state.hidden + 1)
        if state.freezes and state.is_held and state.lease.owner == run.owner:
            lapsed = replace(state.lease, until_ms=FREE)
            frozen = state._replace(freezes=state.freezes - 1, lease=lapsed, is_smooth=False)
            yield frozen._replace(messages=state.messages + 1)  # it is not hidden any more

    def _works(self, state: State, before: Run | None, after: Run | None) -> State:
        runs = [one for one in state.runs if one != before] + ([after] if after else [])
        return state._replace(runs=tuple(sorted(runs)))

    # The sweep

    def _swept(self, state: State) -> State:
        verdict = self.judged(state)
        if verdict.resend and state.lease.tries and state.is_smooth:
            raise Broken(f"a page that was delivered is sent again: {state}")
        for seen in verdict.due:
            state = self._rescued(state, seen)
        for lease, due in verdict.take_apart:
            state = state._replace(lease=replace(lease, done=True))
            for seen in due:
                state = self._rescued(state, seen)
        for lease, _ in verdict.resend:
            again = replace(lease, resends=lease.resends + 1)
            state = state._replace(lease=again, messages=state.messages + 1)
        return state

    def _rescued(self, state: State, seen: SeenEntry) -> State:
        """A damaged item is reported."""
        number = HOMES.index(seen.address)
        return _with(state, number, state.entries[number]._replace(status=Is.ELSEWHERE))

    def judged(self, state: State) -> Verdict:
        statuses = {Is.PENDING: Status.PENDING, Is.DELIVERED: Status.DELIVERED}
        seen = [
            SeenEntry(
                home,
                HomeState(
                    home=home,
                    entry=home,
                    status=statuses.get(one.status, Status.CANCELLED),
                    next_ms=home.instant_ms,
                    version=1,
                    biz_type="orders",
                ),
            )
            for home, one in zip(HOMES, state.entries, strict=False)
            if one.status is not Is.UNWRITTEN
        ]
        waiting = Waiting(SECOND, lambda _: False, lambda _: True)
        leases = {state.lease.page: state.lease} if state.lease.tries or state.lease.resends else {}
        return judge_slice(
            SECOND, 0, seen, leases, waiting=waiting, now_ms=SWEEP_MS, page_size=PAGE_SIZE
        )

    # Invariants

    def check(self, state: State) -> None:
        if state.is_smooth and any(entry.calls > 1 for entry in state.entries):
            raise Broken(f"called twice: {state}")
        if state.is_smooth and state.lease.tries > 2:
            raise Broken(f"begun again and again: {state}")

    def explore(self, begin: State) -> int:
        """Returns the number of states, all of which keep the promises."""
        known, left = {begin}, deque([begin])
        while left:
            state = left.popleft()
            self.check(state)
            is_stuck = True
            for after in map(in_short, self.following(state)):
                is_stuck = is_stuck and after == state
                if after not in known:
                    known.add(after)
                    left.append(after)
            if is_stuck and any(one.status in UNFINISHED for one in state.entries):
                raise Broken(f"lost: {state}")
        return len(known)


def in_short(state: State) -> State:
    """Without what makes no difference: messages of a page that is done, and a third copy."""
    most = 0 if state.lease.done else 2
    messages, hidden = min(state.messages, most), min(state.hidden, most)
    return state._replace(messages=messages, hidden=hidden)


def _with(state: State, number: int, entry: Entry) -> State:
    entries = (*state.entries[:number], entry, *state.entries[number + 1 :])
    return state._replace(entries=entries)


LONE = (Entry(),)
DAMAGED = (Entry(is_damaged=True),)
TWO = Entry(), Entry()
BESIDE_DAMAGE = Entry(), Entry(is_damaged=True)
WITH_A_LATE_ONE = Entry(), Entry(Is.UNWRITTEN)


@pytest.mark.parametrize("entries", [LONE, DAMAGED, TWO, BESIDE_DAMAGE, WITH_A_LATE_ONE], ids=str)
@pytest.mark.parametrize("more", [{"crashes": 1}, {"freezes": 1}, {"failures": 1}], ids=str)
def test_no_task_is_lost_or_called_twice_whether_its_page_is_marked_or_not(
    entries: tuple[Entry, ...], more: dict[str, int]
) -> None:
    assert Model().explore(State(entries, copies=1, **more)) > 50


@pytest.mark.exhaustive
@pytest.mark.parametrize("entries", [LONE, TWO, BESIDE_DAMAGE, WITH_A_LATE_ONE], ids=str)
def test_no_task_is_lost_or_called_twice_whatever_fails(entries: tuple[Entry, ...]) -> None:
    begin = State(entries, copies=2, crashes=2, freezes=2, failures=1)
    assert Model().explore(begin) > 10_000


FAULTS = {
    "a damaged item is not counted": State(BESIDE_DAMAGE),
    "a page that was begun again is not marked": State(LONE, copies=2),
    "a run calls what is delivered": State(LONE, copies=1),
    "a page is begun without its lease": State(LONE, copies=1),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_rule_is_needed(fault: str) -> None:
    with pytest.raises(Broken):
        Model(fault).explore(FAULTS[fault])
