"""The protocol by which a key gets its task, as a model: every interleaving is explored.

Creators read the key and the home that it names, claim the key for a home of their own, and put
that home if absent. A claim without its home is buried first: a tombstone takes the place of the
home, so its creator's put fails. A redriver makes a dead task live again, together with its key.
Each actor may crash before any step. A write may arrive a second time, at any later moment while an
actor is at work. A task may end, and the release of its key may come late or never. Once all actors
are finished, a day may pass: ended tasks and tombstones are deleted.

The rules of the model are those of `stores/tasks/keys.py` and `workflows/tasks/keyed_tasks.py`.
Each fault of `FAULTS` leaves one of them out, and has to be found.
"""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import pytest

ABSENT, PENDING, ENDED, BURIED = "absent", "pending", "ended", "buried"
DEAD_TASK = 0  # the home of the task that had the key before
PLACES_EACH = 2  # a creator whose home was buried gets another place, once


class Key(NamedTuple):
    home: int
    redrives: int = 0
    expires: bool = False


class Home(NamedTuple):
    status: str = ABSENT
    redrives: int = 0


class Write(NamedTuple):
    kind: str
    home: int
    seen: Key | None = None  # the key as its writer read it
    redrives: int = 0


class Actor(NamedTuple):
    kind: str  # creator, redriver
    step: str = "key"
    place: int = 0
    seen: Key | None = None
    was: Home | None = None


class State(NamedTuple):
    key: Key | None
    homes: tuple[Home, ...]
    actors: tuple[Actor, ...]
    answered: frozenset[int] = frozenset()  # homes that were returned to callers
    lived: frozenset[int] = frozenset()  # homes that were pending at some time
    late: frozenset[Write] = frozenset()  # writes that may still arrive
    crashes: int = 1
    repeats: int = 1
    ends: int = 1
    days: int = 1


class Broken(AssertionError):
    pass


class Model:
    """`faults`: the rules that are left out."""

    def __init__(self, *faults: str) -> None:
        self.faults = faults
        self._looked_at: set[object] = set()

    # DynamoDB

    def written(self, state: State, write: Write) -> tuple[State, bool]:
        key, home = state.key, state.homes[write.home]
        match write.kind:
            case "claim" if self._is_as_seen(key, write.seen):
                return state._replace(key=Key(write.home)), True
            case "put" | "bury" if home.status == ABSENT:
                status = PENDING if write.kind == "put" else BURIED
                return self._home(state, write.home, Home(status)), True
            case "release" if key is not None and key[:2] == (write.home, write.redrives):
                return state._replace(key=key._replace(expires=True)), True
            case "redrive" if home == Home(ENDED, write.redrives):
                over = None if write.seen is None else write.seen.home
                if key is None or key.home in (write.home, over):
                    back = self._home(state, write.home, Home(PENDING, write.redrives + 1))
                    return back._replace(key=Key(write.home, write.redrives + 1)), True
        return state, False

    def _is_as_seen(self, key: Key | None, seen: Key | None) -> bool:
        if "a claim compares only the home" in self.faults:
            return self._names_what(key, seen)
        return key == seen

    def _names_what(self, key: Key | None, seen: Key | None) -> bool:
        return (key and key.home) == (seen and seen.home)

    def _home(self, state: State, number: int, home: Home) -> State:
        homes = (*state.homes[:number], home, *state.homes[number + 1 :])
        lived = state.lived | {number} if home.status == PENDING else state.lived
        return state._replace(homes=homes, lived=lived)

    # The actors

    def home_of(self, number: int, actor: Actor) -> int:
        return 1 + number * PLACES_EACH + actor.place

    def next_write(self, number: int, actor: Actor) -> Write | None:
        """The write of the actor's next step; None if the step reads."""
        mine, seen = self.home_of(number, actor), actor.seen
        match actor.kind, actor.step:
            case _, "bury" if seen is not None:
                return Write("bury", seen.home)
            case "creator", "write":
                return Write("claim", mine, seen)
            case "redriver", "write":
                return Write("redrive", DEAD_TASK, seen, actor.was.redrives if actor.was else 0)
            case _, "put":
                return Write("put", mine)
        return None

    def step(self, state: State, number: int) -> State:
        """The next step of this actor."""
        actor = state.actors[number]
        write = self.next_write(number, actor)
        if write is None:
            return self._acts(state, number, self._read(state, actor))
        after, is_done = self.written(state, write)
        return getattr(self, f"_{write.kind}")(after, number, is_done)

    def _read(self, state: State, actor: Actor) -> Actor:
        if actor.kind == "redriver" and actor.step == "key":
            was = state.homes[DEAD_TASK]
            return actor._replace(step="write" if was.status == ENDED else "refused", was=was)
        if actor.step == "key" and "the home is read before the key" in self.faults:
            # The home that the key names at that moment, and then the key again.
            was = None if state.key is None else state.homes[state.key.home]
            return actor._replace(step="key again", was=was)
        if actor.step in ("key", "key again", "whose key"):
            return self._has_read_key(state, actor)
        if actor.seen is None:
            raise AssertionError("no home to read")
        return self._has_read_home(actor, state.homes[actor.seen.home])

    def _has_read_key(self, state: State, actor: Actor) -> Actor:
        key = state.key
        actor = actor._replace(seen=key)
        if actor.kind == "redriver":
            is_of_another = key is not None and key.home != DEAD_TASK
            return actor._replace(step="home" if is_of_another else "refused")
        if key is None:
            return actor._replace(step="write")
        if actor.step == "key again":
            was = actor.was or Home()
            return self._has_read_home(actor._replace(was=None), was)
        return actor._replace(step="home")

    def _has_read_home(self, actor: Actor, home: Home) -> Actor:
        is_gone = home.status in (ABSENT, BURIED)
        if actor.kind == "redriver":
            return actor._replace(step="bury" if is_gone else "refused")
        if home.status == PENDING:
            return actor._replace(step="found")
        if is_gone and "no tombstone" not in self.faults:
            return actor._replace(step="bury")
        return actor._replace(step="write")

    def _bury(self, state: State, number: int, is_done: bool) -> State:
        actor = state.actors[number]
        assert actor.seen is not None
        is_there = is_done or state.homes[actor.seen.home].status == BURIED
        if is_there:
            return self._acts(state, number, actor._replace(step="write"))
        # The home had been put after all.
        step = "refused" if actor.kind == "redriver" else "key"
        return self._acts(state, number, actor._replace(step=step, seen=None))

    def _claim(self, state: State, number: int, is_done: bool) -> State:
        actor = state.actors[number]
        is_mine = state.key is not None and state.key.home == self.home_of(number, actor)
        step = "put" if is_done or is_mine else "key"
        return self._acts(state, number, actor._replace(step=step, seen=None))

    def _put(self, state: State, number: int, is_done: bool) -> State:
        actor = state.actors[number]
        mine = self.home_of(number, actor)
        is_buried = state.homes[mine].status == BURIED
        if is_done or not is_buried or "a refused put counts as the own" in self.faults:
            return self._answer(state, number, mine)
        if actor.place + 1 == PLACES_EACH:
            return self._acts(state, number, actor._replace(step="refused"))
        return self._acts(state, number, actor._replace(step="key", place=actor.place + 1))

    def _redrive(self, state: State, number: int, is_done: bool) -> State:
        actor = state.actors[number]
        if is_done or state.homes[DEAD_TASK].redrives > (actor.was or Home()).redrives:
            return self._answer(state, number, DEAD_TASK)
        step = "refused" if actor.seen is not None else "whose key"
        return self._acts(state, number, actor._replace(step=step))

    def _answer(self, state: State, number: int, home: int) -> State:
        state = state._replace(answered=state.answered | {home})
        return self._acts(state, number, state.actors[number]._replace(step="answered"))

    def _acts(self, state: State, number: int, actor: Actor) -> State:
        if actor.step == "found" and actor.seen is not None:
            state = state._replace(answered=state.answered | {actor.seen.home})
            actor = actor._replace(step="answered")
        if actor.step in ("answered", "refused", "crashed"):
            actor = Actor(actor.kind, actor.step, actor.place)
        return state._replace(actors=(*state.actors[:number], actor, *state.actors[number + 1 :]))

    # Events

    def following(self, state: State) -> Iterator[State]:
        for number, actor in enumerate(state.actors):
            if is_finished(actor):
                continue
            yield self.step(state, number)
            write = self.next_write(number, actor)
            if write is not None and state.repeats:
                yield state._replace(late=state.late | {write}, repeats=state.repeats - 1)
            if state.crashes and actor.step != "key":
                crashed = self._acts(state, number, actor._replace(step="crashed"))
                yield crashed._replace(crashes=state.crashes - 1)
        for write in state.late:
            yield self.written(state, write)[0]._replace(late=state.late - {write})
        yield from self._ends(state)
        if state.days and all(is_idle(actor) for actor in state.actors):
            yield self._a_day_passes(state)

    def _ends(self, state: State) -> Iterator[State]:
        for number, home in enumerate(state.homes):
            if home.status == PENDING and state.ends:
                ended = self._home(state, number, Home(ENDED, home.redrives))
                release = Write("release", number, redrives=home.redrives)
                yield ended._replace(late=state.late | {release}, ends=state.ends - 1)

    def _a_day_passes(self, state: State) -> State:
        gone = (ENDED, BURIED)
        homes = tuple(Home() if home.status in gone else home for home in state.homes)
        is_key_gone = state.key is not None and state.key.expires
        return state._replace(
            key=None if is_key_gone else state.key,
            homes=homes,
            late=frozenset(),
            days=state.days - 1,
        )

    # Invariants

    def check(self, state: State) -> None:
        for number, home in enumerate(state.homes):
            if home.status == PENDING and (state.key is None or state.key.home != number):
                raise Broken(f"{number} is live, and the key does not name it: {state}")
        if lost := state.answered - state.lived:
            raise Broken(f"{lost} were answered, and never lived: {state}")

    def check_progress(self, state: State) -> None:
        """An actor that runs alone comes to its end; a creator that has a place left creates or
        finds a task."""
        for number, actor in enumerate(state.actors):
            situation = state.key, state.homes, number, actor
            if situation in self._looked_at or is_finished(actor):
                continue
            self._looked_at.add(situation)
            alone, seen = state, set()
            while not is_finished(alone.actors[number]):
                if alone in seen:
                    raise Broken(f"{number} never ends: {state}")
                seen.add(alone)
                alone = self.step(alone, number)
            has_place = actor.kind == "creator" and actor.place + 1 < PLACES_EACH
            if has_place and alone.actors[number].step != "answered":
                raise Broken(f"{number} ends without an answer: {state}")

    def explore(self, begin: State) -> int:
        """Returns the number of states, all of which keep the promises."""
        known, left = {begin}, deque([begin])
        while left:
            state = left.popleft()
            self.check(state)
            self.check_progress(state)
            for after in map(in_order, self.following(state)):
                if after not in known:
                    known.add(after)
                    left.append(after)
        return len(known)


def in_order(state: State) -> State:
    """Creators differ only by their numbers: states that are otherwise equal become one state."""
    alike = [n for n, actor in enumerate(state.actors) if actor.kind == "creator"]

    def looks(number: int) -> int:
        homes = range(1 + number * PLACES_EACH, 1 + (number + 1) * PLACES_EACH)
        named = [home for home in homes if state.key is not None and state.key.home == home]
        actor = state.actors[number]
        seen = actor.seen is not None and (actor.seen.home in homes, actor.seen.redrives)
        returned = tuple((home in state.answered, home in state.lived) for home in homes)
        stored = state.homes[homes.start : homes.stop]
        return hash((actor.step, actor.place, seen, bool(named), stored, returned))

    sorted_ones = sorted(alike, key=looks)
    if sorted_ones == alike:
        return state
    home_as = list(range(len(state.homes)))
    actors, homes = list(state.actors), list(state.homes)
    for new, old in zip(alike, sorted_ones, strict=True):
        actors[new] = state.actors[old]
        for place in range(PLACES_EACH):
            before, after = 1 + old * PLACES_EACH + place, 1 + new * PLACES_EACH + place
            home_as[before], homes[after] = after, state.homes[before]

    def key_as(key: Key | None) -> Key | None:
        return key if key is None else key._replace(home=home_as[key.home])

    return state._replace(
        key=key_as(state.key),
        homes=tuple(homes),
        actors=tuple(actor._replace(seen=key_as(actor.seen)) for actor in actors),
        answered=frozenset(home_as[home] for home in state.answered),
        lived=frozenset(home_as[home] for home in state.lived),
        late=frozenset(
            write._replace(home=home_as[write.home], seen=key_as(write.seen))
            for write in state.late
        ),
    )


def is_finished(actor: Actor) -> bool:
    return actor.step in ("answered", "refused", "crashed")


def is_idle(actor: Actor) -> bool:
    return is_finished(actor) or actor == Actor(actor.kind)


def begun(key: Key | None, dead: Home, *kinds: str, **fields: int) -> State:
    homes = (dead, *(Home() for _ in range(len(kinds) * PLACES_EACH)))
    return State(key, homes, tuple(map(Actor, kinds)), **fields)


FREE = None, Home()
OF_A_DEAD_TASK = Key(DEAD_TASK), Home(ENDED)
RELEASED = Key(DEAD_TASK, expires=True), Home(ENDED)
ALONE_DELETED = None, Home(ENDED)
WITHOUT_ITS_TASK = Key(DEAD_TASK, expires=True), Home()
BEGINNINGS = {
    "free": FREE,
    "of a dead task": OF_A_DEAD_TASK,
    "released": RELEASED,
    "deleted before its task": ALONE_DELETED,
    "deleted after its task": WITHOUT_ITS_TASK,
}

CREATOR, REDRIVER = "creator", "redriver"
STILL = {"ends": 0, "days": 0}


def test_only_one_of_two_creators_gets_the_key() -> None:
    assert Model().explore(begun(*OF_A_DEAD_TASK, CREATOR, CREATOR, **STILL)) > 500


@pytest.mark.exhaustive
def test_only_one_of_two_creators_and_a_redriver_gets_the_key() -> None:
    assert Model().explore(begun(*OF_A_DEAD_TASK, CREATOR, CREATOR, REDRIVER, **STILL)) > 10_000


@pytest.mark.exhaustive
@pytest.mark.parametrize("beginning", ["free", "released", "deleted before its task"])
def test_tasks_end_and_are_deleted_between_creators_and_a_redriver(beginning: str) -> None:
    assert Model().explore(begun(*BEGINNINGS[beginning], CREATOR, CREATOR, REDRIVER)) > 10_000


@pytest.mark.exhaustive
@pytest.mark.parametrize(("crashes", "repeats"), [(1, 0), (0, 1)])
def test_only_one_of_three_creators_and_a_redriver_gets_the_key(crashes: int, repeats: int) -> None:
    kinds = CREATOR, CREATOR, CREATOR, REDRIVER
    begin = begun(*OF_A_DEAD_TASK, *kinds, **STILL, crashes=crashes, repeats=repeats)
    assert Model().explore(begin) > 10_000


FAULTS = [
    "no tombstone",
    "a claim compares only the home",
    "the home is read before the key",
    "a refused put counts as the own",
]


@pytest.mark.parametrize("fault", FAULTS)
def test_each_rule_is_needed(fault: str) -> None:
    with pytest.raises(Broken):
        Model(fault).explore(begun(*OF_A_DEAD_TASK, CREATOR, CREATOR, REDRIVER, **STILL))
