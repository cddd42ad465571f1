"""Whatever is deleted from a live wheel, past the service: `make reconcile` brings it back."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infra.reconciling import DELIVER
from tests.support.damage import delete
from tests.support.each_damage import audited
from tests.support.restores import mended, reconcile, restored
from tests.support.sequences import Sequence, answer, asked, beginnings, works
from tests.support.world import World

lives = st.lists(st.one_of(asked, asked, works, answer), min_size=4, max_size=10)
chances = st.lists(st.booleans(), min_size=5, max_size=23)  # of each item in turn, again and again
waits = st.sampled_from((0, 40, 400))


@settings(
    max_examples=settings.default.max_examples // 3,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(begin=beginnings, life=lives, lost=chances, seconds=waits)
def test_whatever_was_deleted_the_audit_is_silent_again_and_promises_are_kept(
    world: World, begin: list[Any], life: list[Any], lost: list[bool], seconds: int
) -> None:
    sequence = Sequence(world)
    for step in (*begin, *life):
        sequence.take(step, None)
    restored(world)
    for number, item in enumerate(world.items()):
        if lost[number % len(lost)]:
            delete(world, item)
    sequence.story.idle(seconds)
    reconcile(world, DELIVER)
    assert audited(world) == []
    assert mended(world) == []
    sequence.story.settle_all()
    sequence.story.check()
