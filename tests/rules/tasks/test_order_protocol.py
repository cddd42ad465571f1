"""The order of a flow key, as a model: every interleaving is explored.

Two or three tasks of a key, in the order of their places, and whoever writes them: a creator of
each, a notifier for each that is due, a caller who cancels one that waits, and one who redrives a
dead one. Any of them may crash before any step. A task that waits may fall due at any moment, so
nothing depends on how long it waits. An item of a writer that is gone may count as old at any
moment. A version counts ends and lives alone.

The rules of the model are those of `rules/tasks/flow_order.py` and `workflows/tasks/keep_order.py`.
Each fault of `FAULTS` leaves one of them out, and has to be found.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import NamedTuple

import pytest

# Of a home
ABSENT, PENDING, DEAD, ENDED = "absent", "pending", "dead", "ended"
# What a pending task waits for, if its message is not there
RETRY, LINE = "retry", "line"


class Item(NamedTuple):
    version: int
    overtakes: frozenset[int] = frozenset()
    is_old: bool = False


class Run(NamedTuple):
    """Of a notifier, a creator or a caller. `seen`: the items that it has read."""

    step: str
    seen: tuple[tuple[int, Item], ...] = ()
    others: frozenset[int] = frozenset()


class Task(NamedTuple):
    home: str = ABSENT
    version: int = 0
    item: Item | None = None
    waits: str = ""
    writer: Run | None = None  # who creates, redrives or cancels it
    run: Run | None = None  # the notifier that has its page

    @property
    def is_due(self) -> bool:
        return self.home == PENDING and not self.waits


class State(NamedTuple):
    tasks: tuple[Task, ...]
    crashes: int = 0
    failures: int = 0  # calls that are to be tried again
    deaths: int = 0
    redrives: int = 0
    cancels: int = 0
    is_smooth: bool = True  # nothing has crashed


class Broken(AssertionError):
    pass


class Model:
    """`faults`: the rules that are left out."""

    def __init__(self, *faults: str) -> None:
        self.faults = faults

    def without(self, rule: str) -> bool:
        return rule in self.faults

    def following(self, state: State) -> Iterator[State]:
        for number, task in enumerate(state.tasks):
            if task.writer is not None:
                yield from self._writes(state, number, task.writer)
                if state.crashes:
                    yield self._crashed(state, number, writer=None)
            if task.run is not None:
                yield from self._runs(state, number, task.run)
                if state.crashes:
                    yield self._crashed(state, number, run=None)
            elif task.is_due:
                yield self._with(state, number, run=Run("query"))
            elif task.home == PENDING:
                yield self._with(state, number, waits="")
            if task.writer is None:
                yield from self._begun(state, number, task)
                if task.item is not None and not task.item.is_old:
                    old = task.item._replace(is_old=True)
                    yield self._with(state, number, item=old)

    def _begun(self, state: State, number: int, task: Task) -> Iterator[State]:
        """A caller begins to redrive or to cancel it."""
        if task.home == DEAD and state.redrives:
            left = state._replace(redrives=state.redrives - 1)
            yield self._with(left, number, writer=Run("put"))
        if task.home == PENDING and task.waits and task.run is None and state.cancels:
            left = state._replace(cancels=state.cancels - 1)
            after = self._removal(number, task.version + 1)
            yield self._with(left, number, home=ENDED, version=task.version + 1, writer=after)

    def _removal(self, number: int, version: int) -> Run:
        """After an end: it knows the version of that."""
        return Run("remove", ((number, Item(version)),))

    def _crashed(self, state: State, number: int, **gone: None) -> State:
        after = state._replace(crashes=state.crashes - 1, is_smooth=False)
        return self._with(after, number, **gone)

    # A creator, or a caller who redrives: the item, those that it overtakes, the task

    def _writes(self, state: State, number: int, writer: Run) -> Iterator[State]:
        task = state.tasks[number]
        if writer.step in ("remove", "wake", "woken"):
            yield from self._leaves(state, number, writer, "writer")
        elif writer.step == "write":
            version = task.version + 1
            if task.home in (ABSENT, DEAD):
                live = self._with(state, number, home=PENDING, version=version, waits="")
                late = self.without("the item is put before its task")
                after = Run("late put") if late else None
                yield self._with(live, number, writer=after)
            else:
                yield self._with(state, number, writer=None)
        elif writer.step == "late put":
            late = Item(task.version)
            yield self._with(state, number, writer=None, item=late)
        else:
            yield self._reserves(state, number, writer, "writer", task.version + 1, "write")

    def _reserves(
        self, state: State, number: int, run: Run, who: str, version: int, then: str
    ) -> State:
        if run.step == "put" and self.without("the item is put before its task"):
            return self._with(state, number, **{who: Run(then)})
        if run.step == "put" and self.without("the line is read after the item is put"):
            return self._with(
                state, number, **{who: Run("put late", others=self._due(state, number))}
            )
        if run.step in ("put", "put late"):
            after = Run("overtakes", others=run.others) if run.step == "put late" else Run("look")
            return self._with(state, number, item=Item(version), **{who: after})
        if run.step == "look":
            others = self._due(state, number)
            return self._with(
                state, number, **{who: Run("overtakes" if others else then, others=others)}
            )
        item = Item(version, run.others) if run.others else state.tasks[number].item
        return self._with(state, number, item=item, **{who: Run(then)})

    def _due(self, state: State, number: int) -> frozenset[int]:
        """The later ones that have an item, whatever their clocks say."""
        later = range(number + 1, len(state.tasks))
        return frozenset(n for n in later if state.tasks[n].item is not None)

    # A notifier

    def _runs(self, state: State, number: int, run: Run) -> Iterator[State]:
        task = state.tasks[number]
        match run.step:
            case "query":
                seen = tuple(
                    (n, one.item) for n, one in enumerate(state.tasks[: number + 1]) if one.item
                )
                yield self._with(state, number, run=Run("judge", seen))
            case "judge":
                yield from self._judged(state, number, run)
            case "call":
                yield from self._called(state, number)
            case "aside" if task.is_due:
                after = None if self.without("who is put aside looks again") else Run("wake")
                yield self._with(state, number, waits=LINE, run=after)
            case "aside":
                yield self._with(state, number, run=None)
            case "remove" | "wake" | "woken":
                yield from self._leaves(state, number, run, "run")
            case _:
                yield self._reserves(state, number, run, "run", task.version, "query")

    def _judged(self, state: State, number: int, run: Run) -> Iterator[State]:
        for n, item in run.seen:
            if n == number:
                continue
            if self._blocks(state, n, item):
                yield self._with(state, number, run=Run("aside"))
                return
            now = state.tasks[n].item
            is_young = item.version > state.tasks[n].version and not item.is_old
            if now is not None and now.version <= item.version and not is_young:
                state = self._with(state, n, item=None)
        own = dict(run.seen).get(number)
        if own is None:
            yield self._with(state, number, run=Run("put"))
        elif self._is_under_way(state, own):
            yield self._with(state, number, run=Run("aside"))
        else:
            yield self._begins(state, number)

    def _blocks(self, state: State, number: int, item: Item) -> bool:
        task = state.tasks[number]
        if task.home == PENDING:
            return True
        if item.version <= task.version:
            return False
        return not item.is_old and not self.without("an item of a living writer blocks")

    def _is_under_way(self, state: State, own: Item) -> bool:
        if self.without("who overtakes waits"):
            return False
        return any(state.tasks[n].is_due and state.tasks[n].item for n in own.overtakes)

    def _begins(self, state: State, number: int) -> State:
        """Whoever was live when its line was read, is seen here; one that came later is not."""
        for n, one in enumerate(state.tasks):
            if n != number and one.run is not None and one.run.step == "call":
                raise Broken(f"{n} is called beside {number}: {state}")
        return self._with(state, number, run=Run("call"))

    def _called(self, state: State, number: int) -> Iterator[State]:
        task = state.tasks[number]
        if not task.is_due:
            yield self._with(state, number, run=None)
            return
        version = task.version + 1
        early = Run("early") if self.without("the end is written before the item goes") else None
        if early is not None and task.item is not None:
            yield self._with(state, number, item=None)
            return
        ended = self._with(
            state, number, home=ENDED, version=version, run=self._removal(number, version)
        )
        yield ended
        if state.deaths:
            dead = state._replace(deaths=state.deaths - 1)
            yield self._with(
                dead, number, home=DEAD, version=version, run=self._removal(number, version)
            )
        if state.failures:
            failed = state._replace(failures=state.failures - 1)
            yield self._with(failed, number, waits=RETRY, run=None)

    # After an end

    def _leaves(self, state: State, number: int, run: Run, who: str) -> Iterator[State]:
        task = state.tasks[number]
        match run.step:
            case "remove":
                ((_, mine),) = run.seen
                is_mine = task.item is not None and task.item.version <= mine.version
                if self.without("a removal spares a later item"):
                    is_mine = True
                after = None if self.without("an end wakes the next") else Run("wake")
                gone = self._with(state, number, item=None) if is_mine else state
                yield self._with(gone, number, **{who: after})
            case "wake":
                first = next(((n, t.item) for n, t in enumerate(state.tasks) if t.item), None)
                after = None if first is None else Run("woken", (first,))
                yield self._with(state, number, **{who: after})
            case _:
                ((n, item),) = run.seen
                first_one = state.tasks[n]
                if not self._blocks(state, n, item):
                    if first_one.item == item:
                        state = self._with(state, n, item=None)
                    yield self._with(state, number, **{who: Run("wake")})
                    return
                if first_one.waits == LINE and not self._is_under_way(state, item):
                    state = self._with(state, n, waits="")
                yield self._with(state, number, **{who: None})

    def _with(self, state: State, number: int, **fields: object) -> State:
        task = state.tasks[number]._replace(**fields)  # type: ignore[arg-type]
        return state._replace(tasks=(*state.tasks[:number], task, *state.tasks[number + 1 :]))

    # Invariants

    def check(self, state: State) -> None:
        live = [n for n, one in enumerate(state.tasks) if one.home == PENDING]
        for n in live:
            run = state.tasks[n].run
            if run is not None and run.step == "judge" and self._passes(state, n, run):
                earlier = [e for e in live if e < n and self._was_there(state, e, run)]
                if earlier:
                    raise Broken(f"{n} is about to be called before {earlier}: {state}")
        is_quiet = not any(one.run or one.writer for one in state.tasks)
        if state.is_smooth and is_quiet and live:
            first = state.tasks[live[0]]
            # One that overtakes looks again by itself.
            is_held_up = first.item is not None and first.item.overtakes
            if first.waits == LINE and not is_held_up and not any(o.is_due for o in state.tasks):
                raise Broken(f"{live[0]} was not woken: {state}")

    def _passes(self, state: State, number: int, run: Run) -> bool:
        ahead = [(n, item) for n, item in run.seen if n != number]
        own = dict(run.seen).get(number)
        blocked = any(self._blocks(state, n, item) for n, item in ahead)
        return own is not None and not blocked and not self._is_under_way(state, own)

    def _was_there(self, state: State, number: int, run: Run) -> bool:
        """It was live when the line was read: its item is not newer than that, or it has none."""
        item = state.tasks[number].item
        return item is None or (number, item) in run.seen

    def explore(self, begin: State) -> int:
        """Returns the number of states, all of which keep the promises."""
        known, left = {begin}, deque([begin])
        before: dict[State, list[State]] = defaultdict(list)
        while left:
            state = left.popleft()
            self.check(state)
            for after in self.following(state):
                before[after].append(state)
                if after not in known:
                    known.add(after)
                    left.append(after)
        good = deque(state for state in known if is_over(state))
        saved = set(good)
        while good:
            for state in before[good.popleft()]:
                if state not in saved:
                    saved.add(state)
                    good.append(state)
        if lost := known - saved:
            raise Broken(f"never called: {next(iter(lost))}")
        return len(known)


def is_over(state: State) -> bool:
    return all(one.home != PENDING and not one.writer and not one.run for one in state.tasks)


def created(number: int) -> tuple[Task, ...]:
    """Tasks that are about to be created, each by a request of its own."""
    return (Task(writer=Run("put")),) * number


@pytest.mark.parametrize(
    "more",
    [
        {"crashes": 1},
        {"failures": 1, "cancels": 1},
        {"deaths": 1, "redrives": 1},
    ],
    ids=str,
)
def test_two_tasks_are_called_in_order_and_one_at_a_time(more: dict[str, int]) -> None:
    assert Model().explore(State(created(2), **more)) > 300


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("number", "more"),
    [
        (2, {"crashes": 2, "failures": 1, "deaths": 1, "redrives": 1, "cancels": 1}),
        (3, {"failures": 1}),
        (3, {"crashes": 1}),
    ],
    ids=str,
)
def test_tasks_are_called_in_order_whatever_fails(number: int, more: dict[str, int]) -> None:
    assert Model().explore(State(created(number), **more)) > 10_000


FAULTS: dict[str, dict[str, int]] = {
    "the item is put before its task": {},
    "the line is read after the item is put": {},
    "who overtakes waits": {},
    "an item of a living writer blocks": {},
    "the end is written before the item goes": {},
    "who is put aside looks again": {},
    "an end wakes the next": {},
    "a removal spares a later item": {"deaths": 1, "redrives": 1},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_rule_is_needed(fault: str) -> None:
    with pytest.raises(Broken):
        Model(fault).explore(State(created(2), **FAULTS[fault]))
