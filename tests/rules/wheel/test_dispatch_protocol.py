"""The protocol by which the entries of a second are found, as a model: every interleaving is
explored.

One second has one shard at first. Writers put entries into it and announce its first page; one of
them raises the header to two shards before it writes into the second one. A leader probes the
second ahead of the time, sends a message for each shard that it sees, and moves the pointer; while
links refuse, it stays, and probes again when the second opens. Notifiers take the lease of a page,
wait for the opening, read the page, send the messages of the other shards, and call the entries.
The first run that ends a page marks it as done only if its second has more shards; otherwise
another message begins the page again, and that run marks it. All entries are written before the
second opens.

An actor may crash before any step. The queue may refuse a message, and deliver one twice. A probe
may miss what was written a moment before it.

The rules of the model are those of `workflows/tasks/write_entries.py`,
`workflows/wheel/dispatch.py` and `workflows/delivery/deliver_message.py`. Each fault of `FAULTS`
leaves one of them out, and has to be found.
"""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import pytest

# How near the second is. In FAR writers do not announce. From AHEAD on a leader may probe: between
# the two are the differences of the clocks, and the time after which a probe sees a write.
FAR, NEAR, AHEAD, OPEN = range(4)
WRITER, LEADER, NOTIFIER = "writer", "leader", "notifier"
NOTIFIERS = 2
T = TypeVar("T")


class Message(NamedTuple):
    """`shards`: how many messages its sender sends."""

    shard: int
    shards: int = 1


class Entry(NamedTuple):
    shard: int
    is_written: bool = False
    is_seen: bool = False  # by every probe from now on
    is_due: bool = False  # it has to be called without the sweep
    is_settled: bool = False
    calls: int = 0


class Writer(NamedTuple):
    """A process that writes these entries, one after the other."""

    entries: tuple[int, ...]
    step: str = "write"
    has_announced: bool = False


class Leader(NamedTuple):
    to_send: tuple[Message, ...]
    refused: tuple[Message, ...] = ()


class Notifier(NamedTuple):
    message: Message
    step: str = "read"
    shards: int = 0  # read from the header
    to_send: tuple[Message, ...] = ()
    entries: tuple[int, ...] = ()
    is_crowded: bool = False


class State(NamedTuple):
    entries: tuple[Entry, ...]
    writers: tuple[Writer, ...]
    nearness: int = FAR
    shards: int = 1  # as the header says
    is_header_seen: bool = False  # by every probe from now on
    is_passed: bool = False  # by the pointer
    leader: Leader | None = None
    queue: tuple[Message, ...] = ()
    notifiers: tuple[Notifier, ...] = ()
    begun: tuple[bool, ...] = (False, False)  # the first page of each shard, by a run that ended
    done: tuple[bool, ...] = (False, False)
    has_run_crashed: bool = False
    crashes: int = 0
    refusals: int = 0
    copies: int = 0
    looks: int = 0  # at the opening, by a leader that stays though the pointer has passed


class Broken(AssertionError):
    pass


class Model:
    """`faults`: the rules that are left out. `crashing`: the only kind of actor that may crash."""

    def __init__(self, *faults: str, crashing: str = "") -> None:
        self.faults = faults
        self.crashing = crashing

    def may_crash(self, state: State, kind: str) -> bool:
        return state.crashes > 0 and self.crashing in ("", kind)

    # Writers

    def writer_steps(self, state: State, number: int) -> Iterator[State]:
        writer = state.writers[number]
        entry = state.entries[writer.entries[0]]
        is_too_early = "a writer announces before it writes" in self.faults
        if entry.shard >= state.shards:
            yield state._replace(shards=2, is_header_seen=state.nearness == FAR)
        elif (writer.step == "announce") != is_too_early:
            yield from self._announce(state, number)
        elif is_too_early:
            yield self._next_entry(self._written(state, writer.entries[0]), number)
        else:
            written = self._written(state, writer.entries[0])
            yield self._writes(written, number, writer._replace(step="announce"))

    def _written(self, state: State, number: int) -> State:
        is_seen = state.nearness == FAR
        entry = state.entries[number]._replace(is_written=True, is_seen=is_seen)
        return self._entry(state, number, entry)

    def _announce(self, state: State, number: int) -> Iterator[State]:
        writer = state.writers[number]
        is_needed = state.nearness > FAR and not writer.has_announced
        if not is_needed or "a writer does not announce" in self.faults:
            yield self._announced(state, number, is_due=True)
            return
        sent = self._sent(state, Message(0))  # whose run sends the message of the other shard
        yield self._announced(sent, number, is_due=True, is_sent=True)
        if state.refusals:
            refused = state._replace(refusals=state.refusals - 1)
            counts = "a refused message counts as announced" in self.faults
            yield self._announced(refused, number, is_due=False, is_sent=counts)

    def _announced(
        self, state: State, number: int, *, is_due: bool, is_sent: bool = False
    ) -> State:
        writer = state.writers[number]
        entry = state.entries[writer.entries[0]]
        state = self._entry(state, writer.entries[0], entry._replace(is_due=entry.is_due or is_due))
        writer = writer._replace(has_announced=writer.has_announced or is_sent)
        if "a writer announces before it writes" in self.faults:
            return self._writes(state, number, writer._replace(step="announce"))
        return self._next_entry(self._writes(state, number, writer), number)

    def _next_entry(self, state: State, number: int) -> State:
        writer = state.writers[number]
        return self._writes(
            state, number, Writer(writer.entries[1:], "write", writer.has_announced)
        )

    def _writes(self, state: State, number: int, writer: Writer) -> State:
        if not writer.entries:
            writer = Writer(())
        return state._replace(writers=_with(state.writers, number, writer))

    # The leader

    def leader_steps(self, state: State) -> Iterator[State]:
        leader = state.leader
        if leader is None:
            if state.nearness >= AHEAD and not state.is_passed:
                yield from self._probes(state)
            elif state.nearness == OPEN and state.looks:
                yield from self._probes(state._replace(looks=state.looks - 1))
            return
        if leader.to_send:
            message, *others = leader.to_send
            after = leader._replace(to_send=tuple(others))
            yield self._sent(state, message)._replace(leader=after)
            if state.refusals:
                refused = after._replace(refused=(*leader.refused, message))
                yield state._replace(leader=refused, refusals=state.refusals - 1)
        elif leader.refused and "the pointer passes refused messages" not in self.faults:
            yield state._replace(leader=Leader(leader.refused))
            yield state._replace(leader=None)  # it gives way to the next one
        else:
            yield state._replace(leader=None, is_passed=True)

    def _probes(self, state: State) -> Iterator[State]:
        yield self._probed(state)
        seen = tuple(entry._replace(is_seen=entry.is_written) for entry in state.entries)
        if seen != state.entries or state.is_header_seen != (state.shards > 1):
            yield self._probed(state._replace(entries=seen, is_header_seen=state.shards > 1))

    def _probed(self, state: State) -> State:
        shards = state.shards if state.is_header_seen else 1
        is_occupied = shards > 1 or any(e.is_seen and e.shard == 0 for e in state.entries)
        if not is_occupied:
            return state._replace(leader=Leader(()))
        others = tuple(Message(shard) for shard in range(1, shards))
        if state.is_passed and "a later probe says its shards" not in self.faults:
            # If this leader ends, no other one sends again what was refused.
            return state._replace(leader=Leader((Message(0), *others)))
        if "a leader says more shards than it sends" in self.faults:
            shards = 2
        state = state._replace(leader=Leader((Message(0, shards), *others)))
        if state.is_passed:
            return state
        found = range(1 + len(others))
        return state._replace(
            entries=tuple(
                entry._replace(is_due=entry.is_due or (entry.is_seen and entry.shard in found))
                for entry in state.entries
            )
        )

    # Notifiers

    def receipts(self, state: State) -> Iterator[State]:
        for message in sorted(set(state.queue)):
            queue = _without(state.queue, message)
            is_held = any(one.message.shard == message.shard for one in state.notifiers)
            if not is_held or "a page is read without a lease" in self.faults:
                notifier = Notifier(message)
                if "the header is read before the opening" in self.faults:
                    notifier = notifier._replace(shards=state.shards)
                yield self._works(state._replace(queue=queue), None, notifier)
            # Of a page that another run holds the message comes again.

    def notifier_steps(self, state: State, notifier: Notifier) -> Iterator[State]:
        match notifier.step:
            case "read" if state.nearness == OPEN:
                yield self._works(state, notifier, self._read(state, notifier))
            case "send":
                message, *others = notifier.to_send
                step = "send" if others else "call"
                after = notifier._replace(to_send=tuple(others), step=step)
                yield self._works(self._sent(state, message), notifier, after)
                if state.refusals:
                    refused = state._replace(refusals=state.refusals - 1)
                    yield self._comes_again(refused, notifier)
            case "call":
                called = self._called(state, notifier, is_settled=False)
                settled = self._called(state, notifier, is_settled=True)
                if self.may_crash(state, NOTIFIER):
                    yield self._crashed(called, notifier)
                    yield self._crashed(settled, notifier)
                shard = notifier.message.shard
                ended = settled._replace(
                    begun=_with(state.begun, shard, True),
                    done=_with(state.done, shard, notifier.is_crowded or state.begun[shard]),
                )
                yield self._works(ended, notifier, None)

    def _called(self, state: State, notifier: Notifier, *, is_settled: bool) -> State:
        for number in notifier.entries:
            entry = state.entries[number]
            called = entry._replace(calls=entry.calls + 1, is_settled=is_settled)
            state = self._entry(state, number, called)
        return state

    def _read(self, state: State, notifier: Notifier) -> Notifier:
        message = notifier.message
        shards = notifier.shards or state.shards
        others = range(message.shards, shards) if message.shard == 0 else ()
        if "a run does not send the other shards" in self.faults:
            others = ()
        return notifier._replace(
            step="send" if others else "call",
            shards=0,
            to_send=tuple(Message(shard) for shard in others),
            is_crowded=message.shard == 0 and state.shards > 1,
            entries=tuple(
                number
                for number, entry in enumerate(state.entries)
                if entry.shard == message.shard and entry.is_written and not entry.is_settled
            ),
        )

    def _works(self, state: State, before: Notifier | None, after: Notifier | None) -> State:
        notifiers = list(state.notifiers)
        if before is not None:
            notifiers.remove(before)
        if after is not None:
            notifiers.append(after)
        return state._replace(notifiers=tuple(sorted(notifiers)))

    def _comes_again(self, state: State, notifier: Notifier) -> State:
        """The run ends, and its message comes when its lease is over."""
        return self._sent(self._works(state, notifier, None), notifier.message)

    def _crashed(self, state: State, notifier: Notifier) -> State:
        begun = _with(state.begun, notifier.message.shard, True)
        crashed = state._replace(crashes=state.crashes - 1, has_run_crashed=True, begun=begun)
        return self._comes_again(crashed, notifier)

    # Events

    def following(self, state: State) -> Iterator[State]:
        for number, writer in enumerate(state.writers):
            if writer.entries:
                yield from self.writer_steps(state, number)
        yield from self.leader_steps(state)
        if len(state.notifiers) < NOTIFIERS:
            yield from self.receipts(state)
        for notifier in state.notifiers:
            yield from self.notifier_steps(state, notifier)
        yield from self._crashes(state)
        if state.copies:
            for message in sorted(set(state.queue)):
                yield self._sent(state, message)._replace(copies=state.copies - 1)
        yield from self._comes_nearer(state)

    def _crashes(self, state: State) -> Iterator[State]:
        """Those before a step; those between two writes of a step are beside it."""
        if self.may_crash(state, WRITER):
            for number, writer in enumerate(state.writers):
                if writer.entries:
                    crashed = self._writes(state, number, Writer(()))
                    yield crashed._replace(crashes=state.crashes - 1)
        if self.may_crash(state, LEADER) and state.leader is not None:
            yield state._replace(leader=None, crashes=state.crashes - 1)
        if self.may_crash(state, NOTIFIER):
            for notifier in state.notifiers:
                yield self._crashed(state, notifier)

    def _comes_nearer(self, state: State) -> Iterator[State]:
        if state.nearness == FAR:
            yield state._replace(nearness=NEAR)
        elif state.nearness == NEAR:
            yield state._replace(nearness=AHEAD)
        elif state.nearness == AHEAD and all(is_written(writer) for writer in state.writers):
            yield state._replace(nearness=OPEN)

    def _sent(self, state: State, message: Message) -> State:
        return state._replace(queue=tuple(sorted((*state.queue, message))))

    def _entry(self, state: State, number: int, entry: Entry) -> State:
        return state._replace(entries=_with(state.entries, number, entry))

    # Invariants

    def check(self, state: State) -> None:
        if not state.has_run_crashed and any(entry.calls > 1 for entry in state.entries):
            raise Broken(f"called twice: {state}")
        if self.is_over(state):
            for entry in state.entries:
                if entry.is_written and entry.is_due and not entry.is_settled:
                    raise Broken(f"left to the sweep: {state}")

    def is_over(self, state: State) -> bool:
        is_idle = state.leader is None and not state.queue and not state.notifiers
        is_all_written = not any(writer.entries for writer in state.writers)
        return is_idle and is_all_written and state.is_passed and state.nearness == OPEN

    def explore(self, begin: State) -> int:
        """Returns the number of states, all of which keep the promises."""
        known, left = {begin}, deque([begin])
        while left:
            state = left.popleft()
            self.check(state)
            is_stuck = not self.is_over(state)
            for after in map(in_short, self.following(state)):
                is_stuck = False
                if after not in known:
                    known.add(after)
                    left.append(after)
            if is_stuck:
                raise Broken(f"nothing more happens: {state}")
        return len(known)


def in_short(state: State) -> State:
    """Without what makes no difference: messages of pages that are done, which are dropped, a third
    copy of a message, and what a probe would see after the last one."""
    queue = state.queue
    if any(state.done):
        queue = tuple(message for message in queue if not state.done[message.shard])
    if len(queue) > 2:
        queue = tuple(m for n, m in enumerate(queue) if queue[n - 2 : n] != (m, m))
    if queue != state.queue:
        state = state._replace(queue=queue)
    if state.is_passed and state.leader is None and not state.looks:
        entries = tuple(entry._replace(is_seen=False) for entry in state.entries)
        state = state._replace(entries=entries, is_header_seen=False)
    return state


def is_written(writer: Writer) -> bool:
    """Whether it has nothing left to write."""
    return not writer.entries or (len(writer.entries) == 1 and writer.step == "announce")


def _with(of: tuple[T, ...], number: int, one: T) -> tuple[T, ...]:
    return (*of[:number], one, *of[number + 1 :])


def _without(queue: tuple[Message, ...], message: Message) -> tuple[Message, ...]:
    number = queue.index(message)
    return (*queue[:number], *queue[number + 1 :])


def begun(*shards: tuple[int, ...], **fields: int) -> State:
    """Each writer writes entries into these shards."""
    entries = tuple(Entry(shard) for of_writer in shards for shard in of_writer)
    numbers = iter(range(len(entries)))
    writers = tuple(Writer(tuple(next(numbers) for _ in of_writer)) for of_writer in shards)
    return State(entries, writers, **fields)


INTO_BOTH_SHARDS = (1,), (0,)
ONE_CRASH = {"crashes": 1}
ONE_REFUSAL = {"refusals": 1}
ONE_COPY = {"copies": 1}
ONE_LOOK = {"looks": 1}


def test_every_entry_of_two_writers_is_called_once() -> None:
    assert Model().explore(begun(*INTO_BOTH_SHARDS)) > 2_000


@pytest.mark.exhaustive
@pytest.mark.parametrize("crashing", [WRITER, LEADER, NOTIFIER])
@pytest.mark.parametrize("more", [ONE_REFUSAL, ONE_COPY, ONE_LOOK])
def test_no_entry_is_lost_if_an_actor_crashes(crashing: str, more: dict[str, int]) -> None:
    begin = begun(*INTO_BOTH_SHARDS, **ONE_CRASH, **more)
    assert Model(crashing=crashing).explore(begin) > 10_000


@pytest.mark.exhaustive
@pytest.mark.parametrize("more", [ONE_COPY, ONE_LOOK])
def test_no_entry_is_lost_if_a_message_is_refused(more: dict[str, int]) -> None:
    assert Model().explore(begun(*INTO_BOTH_SHARDS, **ONE_REFUSAL, **more)) > 10_000


@pytest.mark.exhaustive
def test_an_entry_of_a_new_shard_is_not_lost_whatever_fails() -> None:
    begin = begun((1,), **ONE_CRASH, **ONE_REFUSAL, **ONE_COPY, **ONE_LOOK)
    assert Model().explore(begin) > 10_000


@pytest.mark.exhaustive
@pytest.mark.parametrize("crashing", [WRITER, LEADER, NOTIFIER])
def test_a_page_is_announced_once_for_all_entries_of_a_process(crashing: str) -> None:
    assert Model(crashing=crashing).explore(begun((1,), (0, 1), **ONE_CRASH)) > 10_000


FAULTS = {
    "a writer does not announce": begun(*INTO_BOTH_SHARDS),
    "a writer announces before it writes": begun(*INTO_BOTH_SHARDS),
    "a refused message counts as announced": begun((0, 0), **ONE_REFUSAL),
    "a leader says more shards than it sends": begun(*INTO_BOTH_SHARDS),
    "a later probe says its shards": begun((1,), **ONE_REFUSAL, **ONE_LOOK),
    "the pointer passes refused messages": begun(*INTO_BOTH_SHARDS, **ONE_REFUSAL),
    "a run does not send the other shards": begun(*INTO_BOTH_SHARDS),
    "the header is read before the opening": begun(*INTO_BOTH_SHARDS),
    "a page is read without a lease": begun((0,), **ONE_COPY),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_rule_is_needed(fault: str) -> None:
    with pytest.raises(Broken):
        Model(fault).explore(FAULTS[fault])
