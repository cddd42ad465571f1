"""Random steps of a story, drawn by hypothesis."""

from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import strategies as st

from tests.support.receiver import BUSY, GONE, OK, WORKS_ON
from tests.support.stories import End, Interruption, Story
from tests.support.world import World

KEYS = ("a", "b")
ANSWERS = {"ok": OK, "busy": BUSY, "gone": GONE, "works on": WORKS_ON}

# Some are near, some share a second, most are far enough ahead to be changed in time.
in_ms = st.sampled_from((7_000, 12_000, 12_400, 15_000, 20_000, 4_000, 40_000, 0))
some = st.sampled_from(range(6))  # a number of a task, modulo the number of tasks
key = st.sampled_from(KEYS)
create = st.tuples(st.just("create"), in_ms)
upsert = st.tuples(st.just("upsert"), in_ms, key)
move = st.tuples(st.just("move"), some, in_ms)
other = st.tuples(st.sampled_from(("run", "cancel", "redrive", "pause_task", "resume_task")), some)
report = st.tuples(st.sampled_from(("complete", "fail", "progress")), some)
paused = st.tuples(st.sampled_from(("pause", "resume")))
asked = st.one_of(create, move, move, move, upsert, other, report, paused)
tick = st.tuples(st.just("tick"), st.sampled_from((5, 3, 8, 1)))
sweep = st.tuples(st.just("sweep"), st.sampled_from((130, 60)))
works = st.one_of(tick, tick, tick, sweep)
answer = st.tuples(st.just("answer"), st.sampled_from(tuple(ANSWERS)))
late = st.tuples(st.sampled_from(("duplicate", "echo")), st.sampled_from(range(40)))
idle = st.tuples(st.just("idle"), st.sampled_from((8, 35, 100)))
moments = st.tuples(st.sampled_from(range(1, 10)), st.sampled_from(("before", "after")))
end = st.sampled_from(tuple(End))
calm_steps = st.one_of(
    st.tuples(st.one_of(asked, asked, works, works, answer, late), st.none()),
    st.tuples(st.one_of(asked, works), st.tuples(moments, asked)),
)
wild_steps = st.one_of(
    calm_steps,
    calm_steps,
    st.tuples(idle, st.none()),
    st.tuples(asked, st.tuples(moments, works)),
    st.tuples(st.one_of(asked, works), st.tuples(moments, end)),
)
steps = st.one_of(*(st.lists(one, min_size=8, max_size=16) for one in (calm_steps, wild_steps)))
beginnings = st.lists(st.one_of(create, upsert), min_size=2, max_size=3)


class Sequence:
    """Turns the drawn values into steps of the story."""

    def __init__(self, world: World) -> None:
        self.story = Story(world)

    def step(self, drawn: Any) -> Callable[[], None]:
        story = self.story
        match drawn:
            case ("create", ms):
                return partial(story.create, ms)
            case ("upsert", ms, key):
                return partial(story.upsert, key, ms)
            case ("move", number, ms):
                return self._of_some(number, lambda told: story.move(told, ms))
            case (
                "run"
                | "cancel"
                | "redrive"
                | "pause_task"
                | "resume_task"
                | "complete"
                | "fail"
                | "progress" as name,
                number,
            ):
                return self._of_some(number, getattr(story, name))
            case ("pause" | "resume" as name,):
                return getattr(story, name)  # type: ignore[no-any-return]
            case ("tick", seconds):
                return partial(story.pass_time, seconds)
            case ("sweep", seconds):
                return partial(self._sweep, seconds)
            case ("idle" | "duplicate" | "echo" as name, number):
                return partial(getattr(story, name), number)
            case ("answer", name):
                return partial(setattr, story, "answer", ANSWERS[name])
        raise ValueError(drawn)

    def take(self, drawn: Any, by: Any) -> None:
        interruption = None
        if by is not None:
            (number, moment), what = by
            between = what if isinstance(what, End) else self.step(what)
            interruption = Interruption(number, between, moment)
        self.story.interrupted(self.step(drawn), interruption)

    def _of_some(self, number: int, call: Callable[[Any], None]) -> Callable[[], None]:
        told = list(self.story.told.values())
        return partial(call, told[number % len(told)]) if told else lambda: None

    def _sweep(self, seconds: int) -> None:
        self.story.pass_time(seconds)
        self.story.sweep()
