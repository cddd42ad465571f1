"""The plan of a timer's chain as a row, and the shard counts of a timer's seconds."""

from typing import Any

from msgspec.json import Decoder

from duewheel.rules.names import TIMER_ID
from duewheel.rules.tasks.task import UNSIZED, Plan, Sizes
from duewheel.rules.wheel.addresses import SECOND_MAX, SHARDS_MAX
from duewheel.stores.item_attributes import integer, string

VERSION_MAX = 10**15
_rows = Decoder(list[Any])


def plan_row(plan: Plan) -> list[Any]:
    row: list[Any] = [plan.timer_id, plan.planned_until_second, plan.numbered]
    return [*row, *sizes_row(plan.sizes)] if plan.sizes.until_second else row


def plan_from(source: str) -> Plan:
    timer_id, until, numbered, *sizes = _rows.decode(source)
    return Plan(
        _timer_id(timer_id),
        integer(until, SECOND_MAX),
        integer(numbered, VERSION_MAX),
        sizes_from(sizes) if sizes else UNSIZED,
    )


def sizes_row(sizes: Sizes) -> list[Any]:
    """The seconds by their distance to the one before, each followed by its shard count."""
    row, before = [sizes.until_second], 0
    for second, shards in sorted(sizes.shards.items()):
        row += [second - before, shards]
        before = second
    return row


def sizes_from(row: list[Any]) -> Sizes:
    until, *pairs = row
    shards: dict[int, int] = {}
    second = 0
    for ahead, count in zip(pairs[::2], pairs[1::2], strict=True):
        second = integer(second + integer(ahead, SECOND_MAX), SECOND_MAX)
        shards[second] = integer(count, SHARDS_MAX, smallest=1)
    return Sizes(integer(until, SECOND_MAX), shards)


def _timer_id(value: Any) -> str:
    if not TIMER_ID.fullmatch(string(value)):
        raise ValueError("no timer id")
    return str(value)
