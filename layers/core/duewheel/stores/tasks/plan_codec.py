"""What the tasks of a timer are stored with: the plan of its chain, with the shard counts of its
seconds, and the occurrence of a run."""

from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.json import Decoder, encode

from duewheel.rules.fields import whole_text
from duewheel.rules.names import TIMER_ID
from duewheel.rules.tasks.task import UNSIZED, Occurrence, Plan, Sizes, Task
from duewheel.rules.wheel.addresses import SECOND_MAX, SHARDS_MAX, Second
from duewheel.stores.item_attributes import InvalidAttribute, integer, string

VERSION_MAX = 10**15
Version = Annotated[int, Meta(ge=0, le=VERSION_MAX)]
TimerId = Annotated[str, Meta(pattern=whole_text(TIMER_ID))]


class _OccurrenceRow(Struct, array_like=True, forbid_unknown_fields=True):
    """The timer's id has an attribute of its own, for the index."""

    second: Second
    number: Version
    manual: bool = False


_rows = Decoder(list[Any])
_occurrence = Decoder(_OccurrenceRow)


def timer_attributes(task: Task) -> dict[str, Any]:
    """A chain is in no index."""
    item: dict[str, Any] = {}
    if task.occurrence is not None:
        item["timer"] = {"S": task.occurrence.timer_id}
        item["occurrence"] = {"S": encode(_occurrence_row(task.occurrence)).decode()}
    if task.plan is not None:
        item["plan"] = {"S": encode(plan_row(task.plan)).decode()}
    return item


def occurrence_from(timer_id: str | None, source: str) -> Occurrence:
    """`timer_id`: the attribute."""
    if timer_id is None:
        raise InvalidAttribute("timer")
    found = _occurrence.decode(source)
    return Occurrence(timer_id, found.second, number=found.number, manual=found.manual)


def _occurrence_row(occurrence: Occurrence) -> tuple[int, ...]:
    row = occurrence.second, occurrence.number
    return (*row, True) if occurrence.manual else row


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
    """The seconds by their distance to the one before, each followed by how much later it is due,
    and by its shard count."""
    row, before = [sizes.until_second], 0
    for (second, due_second), shards in sorted(sizes.shards.items()):
        row += [second - before, due_second - second, shards]
        before = second
    return row


def sizes_from(row: list[Any]) -> Sizes:
    until, *parts = row
    shards: dict[tuple[int, int], int] = {}
    second = 0
    for ahead, late, count in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        second = integer(second + integer(ahead, SECOND_MAX), SECOND_MAX)
        due_second = integer(second + integer(late, SECOND_MAX), SECOND_MAX)
        shards[second, due_second] = integer(count, SHARDS_MAX, smallest=1)
    return Sizes(integer(until, SECOND_MAX), shards)


def _timer_id(value: Any) -> str:
    if not TIMER_ID.fullmatch(string(value)):
        raise ValueError("no timer id")
    return str(value)
