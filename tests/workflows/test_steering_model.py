"""An entry that its home no longer names never fires: random sequences of writes, crashes and late
retries are each checked against their story."""

from typing import Any

from hypothesis import HealthCheck, given, settings

from tests.support.sequences import Sequence, beginnings, steps
from tests.support.world import World


@settings(
    max_examples=settings.default.max_examples // 5,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(begin=beginnings, drawn=steps)
def test_promises_are_kept_in_any_sequence_of_steps(
    world: World, begin: list[Any], drawn: list[Any]
) -> None:
    sequence = Sequence(world)
    for step in begin:
        sequence.take(step, None)
    for step, by in drawn:
        sequence.take(step, by)
    sequence.story.settle_all()
    sequence.story.check()
