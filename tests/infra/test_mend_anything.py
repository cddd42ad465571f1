"""Any items are deleted from a live wheel, past the service, and `make reconcile` restores them."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from duewheel.rules.tasks.task import Status
from infra.operate.reconciling import DELIVER
from tests.support.damage import delete
from tests.support.each_damage import audited, forget_parking
from tests.support.promises import RETRY, Told
from tests.support.receiver import BUSY, GONE
from tests.support.restores import mended, reconcile, restored
from tests.support.stories import Story
from tests.support.world import World

lives = st.sampled_from(("retried", "parked", "resumed"))
deletions = st.lists(st.booleans(), min_size=5, max_size=23)  # for each item in turn, repeated
waits = st.sampled_from((0, 12, 40, 400))


@pytest.mark.exhaustive
@settings(
    max_examples=settings.default.max_examples // 5,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(life=lives, lost=deletions, is_parking_forgotten=st.booleans(), seconds=waits)
def test_after_any_deletion_the_audit_finds_nothing_and_promises_are_kept(
    world: World, life: str, lost: list[bool], is_parking_forgotten: bool, seconds: int
) -> None:
    story = story_of_life(world, life)
    restored(world)
    for number, item in enumerate(world.items()):
        if lost[number % len(lost)]:
            delete(world, item)
    if is_parking_forgotten:
        forget_parking(world)
    story.idle(seconds)
    reconcile(world, DELIVER)
    assert audited(world) == []
    assert mended(world) == []
    story.settle_all()
    story.check()


def story_of_life(world: World, life: str) -> Story:
    """A story with tasks of each kind: with and without keys, delivered, cancelled, redriven,
    retried, brought forward, near, in another shard; and parked, or about to be released."""
    story = Story(world)
    delivered, dead = created(story, 5_000), created(story, 8_000)
    story.create_keyed("retried", 9_500)  # its message arrives half a second earlier
    story.create_keyed("far", 300_000)
    moved, cancelled = created(story, 600_000), created(story, 60_000)
    in_another_shard(story, 200_000)
    story.cancel(cancelled)
    story.pass_time(6)
    story.answer = GONE
    story.pass_time(2)
    story.answer = BUSY
    story.redrive(dead)
    story.pass_time(2)
    story.move(moved, 120_000)
    if life != "retried":
        story.pause()
        story.pass_time(12)
    if life == "resumed":
        story.resume()
    story.create(2_000)
    assert world.read(delivered.task).status is Status.DELIVERED
    assert {item["status"]["S"] for item in world.items() if "status" in item} == STATUSES
    return story


STATUSES = {"pending", "delivered", "cancelled"}


def created(story: Story, in_ms: int) -> Told:
    story.create(in_ms)
    return list(story.told.values())[-1]


def in_another_shard(story: Story, in_ms: int) -> None:
    world = story.world
    task = world.placed(world.new(in_ms, retry=RETRY))
    home = replace(task.home, shard=1)
    world.headers.raise_to(home.second, 2)
    world.tasks.create(replace(task, home=home, entry=home))
    story.told[home.task_id] = Told(replace(task, home=home, entry=home), {task.due_ms})
