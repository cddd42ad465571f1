"""Each kind of damage to a task or its related items, and the finding of the audit for it."""

from collections.abc import Callable
from typing import Any

from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.sweep.audit import AuditRequest, Finding
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import holds_seconds, second_of
from duewheel.stores.delivery import parked_items
from duewheel.stores.tasks import keys
from duewheel.stores.wheel import pointers
from tests.support.damage import delete, edit, entry_key, key_of, move_pointer
from tests.support.receiver import BUSY
from tests.support.world import World

LADDER = RetryPolicy(attempts_max=3, delays_seconds=(30.0, 90.0))
FAR = RetryPolicy(attempts_max=3, delays_seconds=(200.0,))  # into a second that is not dispatched


def audited(world: World) -> list[Finding]:
    """The audit's findings in all seconds that have items."""
    seconds = {
        second_of(item["place"]["S"]) for item in world.items() if holds_seconds(item["slot"]["S"])
    }
    return [
        finding
        for second in sorted(seconds)
        for finding in world.audit(AuditRequest(second, second)).findings
    ]


def words(findings: list[Finding]) -> set[str]:
    return {finding.wrong.value for finding in findings}


def retried(world: World, retry: RetryPolicy = LADDER) -> Task:
    """A pending task whose named entry is elsewhere."""
    world.receiver.answer = lambda received: BUSY
    task = world.created_by_key(world.new(20_000, retry=retry, key="order-17")).task
    world.dispatch_until(task.home.second)
    world.drain()
    task = world.read(task)
    assert not task.names_its_home
    return task


def parked(world: World) -> Task:
    task = retried(world)
    world.configured("orders", paused=True)
    world.dispatch_until(task.entry.second)
    world.drain()
    task = world.read(task)
    assert task.parked
    return task


def forget_parking(world: World, _: Task | None = None) -> None:
    key = {"kind": {"S": "parking"}, "record": {"S": "orders"}}
    world.unrecorded.delete_item(TableName=world.settings.registry_table, Key=key)


def drop_entry(world: World, task: Task) -> None:
    delete(world, entry_key(world, task.entry))


def pass_over(world: World, task: Task) -> None:
    world.clock.set_ms(task.entry.second * 1000)
    move_pointer(world, pointers.TIME, task.entry.second)
    move_pointer(world, pointers.SWEEP, task.entry.second)


def other_home(world: World) -> dict[str, Any]:
    return {"S": world.created(in_ms=600_000).home.name}


DAMAGE: dict[str, tuple[Callable[[World, Task], object], set[str]]] = {
    "named entry deleted": (drop_entry, {"entry-missing"}),
    "named entry unreadable": (
        lambda w, t: edit(w, entry_key(w, t.entry), home={"S": "nowhere"}),
        {"entry-missing", "unreadable"},
    ),
    "named entry of another": (
        lambda w, t: edit(w, entry_key(w, t.entry), home=other_home(w)),
        {"entry-foreign"},
    ),
    "named entry expires": (
        lambda w, t: edit(w, entry_key(w, t.entry), expires_at={"N": "1900000000"}),
        {"entry-expires"},
    ),
    "named entry swept over": (pass_over, {"passed"}),
    "sweep ahead": (
        lambda w, t: move_pointer(w, pointers.SWEEP, w.pointer().position + 1),
        {"sweep-ahead"},
    ),
    "time ahead": (
        lambda w, t: move_pointer(w, pointers.TIME, w.clock.now_ms() // 1000 + 161),
        {"time-ahead"},
    ),
    "pending task expires": (
        lambda w, t: edit(w, key_of(w, t), expires_at={"N": "1900000000"}),
        {"pending-expires"},
    ),
    "settled task never expires": (
        lambda w, t: edit(w, key_of(w, t), status={"S": "delivered"}),
        {"never-expires"},
    ),
    "key deleted": (lambda w, t: delete(w, keys.key_of(t)), {"key-missing"}),
    "key unreadable": (
        lambda w, t: edit(w, keys.key_of(t), task={"N": "17"}),
        {"key-missing"},
    ),
    "key of another": (
        lambda w, t: edit(w, keys.key_of(t), task=other_home(w)),
        {"key-foreign"},
    ),
    "key expires": (
        lambda w, t: edit(w, keys.key_of(t), expires_at={"N": "1900000000"}),
        {"key-expires"},
    ),
    "home deleted": (lambda w, t: delete(w, key_of(w, t)), {"home-gone"}),
    "task in another partition of the list": (
        lambda w, t: edit(w, key_of(w, t), biz_part={"S": "invoices#1"}),
        {"misplaced"},
    ),
    "task before its creation": (
        lambda w, t: edit(w, key_of(w, t), created_ms={"N": str(t.home.instant_ms + 60_000)}),
        {"misplaced"},
    ),
    "task unreadable": (
        lambda w, t: edit(w, key_of(w, t), next_ms={"N": "1000000000000000000"}),
        {"unreadable"},
    ),
    "header unreadable": (
        lambda w, t: edit(
            w,
            {**key_of(w, t), "place": {"S": f"{t.home.second:011d}#"}},
            shards={"S": "many"},
        ),
        {"unreadable"},
    ),
    "lease unreadable": (
        lambda w, t: edit(
            w,
            {**key_of(w, t), "place": {"S": f"{t.home.second:011d}~0"}},
            until_ms={"S": "later"},
        ),
        {"unreadable"},
    ),
}


DAMAGE_WHILE_PARKED: dict[str, tuple[Callable[[World, Task], object], set[str]]] = {
    "parked item deleted": (
        lambda w, t: delete(w, parked_items.key_of(t)),
        {"parked-missing"},
    ),
    "parked item unreadable": (
        lambda w, t: edit(w, parked_items.key_of(t), task={"N": "17"}),
        {"parked-missing"},
    ),
    "parked item of another": (
        lambda w, t: edit(w, parked_items.key_of(t), task=other_home(w)),
        {"parked-foreign"},
    ),
    "parked item expires": (
        lambda w, t: edit(w, parked_items.key_of(t), expires_at={"N": "1900000000"}),
        {"parked-expires"},
    ),
    "record of parking deleted": (forget_parking, {"release-missing"}),
    "entry of a parked task deleted": (drop_entry, set()),
}
