"""What stands within a task's item as JSON: rows of values, short and quick.

A row of what is never written here raises, and makes the item unreadable as a whole.
"""

import json
from collections.abc import Mapping
from typing import Any

from duewheel.rules.addresses import SECOND_MAX, SHARDS_MAX
from duewheel.rules.settlement import HISTORY_MAX
from duewheel.rules.task import TIMER_ID, UNSIZED, Attempt, Occurrence, Plan, Promise, Sizes
from duewheel.stores import attributes
from duewheel.stores.attributes import whole, words

VERSION_MAX = 10**15
_ITEM_BYTES_MAX = 400 * 1024
_ROWS_MAX = 100


def attempt_row(attempt: Attempt) -> list[Any]:
    return [
        attempt.at_ms,
        attempt.lateness_ms,
        attempt.duration_ms,
        attempt.outcome,
        attempt.at_ms // 1000 - attempt.entry_second,  # mostly 0, and short
        attempt.status_code,
        attempt.note,
    ]


def _attempt_from(row: list[Any]) -> Attempt:
    at_ms, lateness_ms, duration_ms, outcome, late_seconds, status_code, note = row
    return Attempt(
        whole(at_ms),
        whole(lateness_ms),
        # Of a clock that was set back while it was measured.
        whole(duration_ms, smallest=-attributes.INSTANT_MS_MAX),
        words(outcome)[: attributes.TEXT_BYTES_MAX],
        whole(at_ms // 1000 - whole(late_seconds, smallest=-SECOND_MAX), SECOND_MAX),
        None if status_code is None else whole(status_code),
        words(note)[: attributes.TEXT_BYTES_MAX],
    )


def history_of(item: Mapping[str, Any]) -> tuple[Attempt, ...]:
    """Of one that was made longer by hand, what would be kept of it."""

    if "history" not in item:
        return ()
    rows = attributes.parsed(item, "history", list, _ITEM_BYTES_MAX)[-HISTORY_MAX:]
    return attributes.made(item, "history", lambda: tuple(map(_attempt_from, rows)))


def revivals_of(item: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    def build(rows: list[Any]) -> tuple[tuple[int, int], ...]:
        pairs = tuple((whole(died, SECOND_MAX), whole(back, SECOND_MAX)) for died, back in rows)
        if len(pairs) > _ROWS_MAX:
            raise ValueError("too many")
        return pairs

    return attributes.parsed(item, "revivals", build) if "revivals" in item else ()


def promise_row(promise: Promise) -> list[Any]:
    row: list[Any] = [promise.at_ms, promise.version]
    return row if promise.is_turn else [*row, int(promise.is_late)]


def turn_from(row: list[Any]) -> Promise:
    """As older releases write it, for which it is a turn."""
    at_ms, version = row
    return Promise(whole(at_ms), whole(version, VERSION_MAX), is_turn=True)


def place_from(row: list[Any]) -> Promise:
    at_ms, version, is_late = row
    return Promise(whole(at_ms), whole(version, VERSION_MAX), is_late=whole(is_late, 1) == 1)


def occurrence_row(occurrence: Occurrence) -> list[Any]:
    """The timer's id stands beside it, where the index wants it."""
    row: list[Any] = [occurrence.second, occurrence.number]
    return [*row, True] if occurrence.manual else row


def occurrence_of(item: Mapping[str, Any]) -> Occurrence | None:
    if "timer" not in item and "occurrence" not in item:
        return None
    timer_id = attributes.made(item, "timer", lambda: _timer_id(attributes.text(item, "timer")))

    def build(row: list[Any]) -> Occurrence:
        second, number, *manual = row
        is_manual = bool(manual) and attributes.flag(*manual)
        return Occurrence(
            timer_id, whole(second, SECOND_MAX), whole(number, VERSION_MAX), is_manual
        )

    return attributes.parsed(item, "occurrence", build)


def plan_row(plan: Plan) -> list[Any]:
    row: list[Any] = [plan.timer_id, plan.planned_until_second, plan.numbered]
    return [*row, *sizes_row(plan.sizes)] if plan.sizes.until_second else row


def plan_from(row: list[Any]) -> Plan:
    timer_id, until, numbered, *sizes = row
    return Plan(
        _timer_id(timer_id),
        whole(until, SECOND_MAX),
        whole(numbered, VERSION_MAX),
        sizes_from(sizes) if sizes else UNSIZED,
    )


def sizes_row(sizes: Sizes) -> list[Any]:
    """The seconds by their distance to the one before, each followed by its shards."""
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
        second = whole(second + whole(ahead, SECOND_MAX), SECOND_MAX)
        shards[second] = whole(count, SHARDS_MAX, smallest=1)
    return Sizes(whole(until, SECOND_MAX), shards)


def _timer_id(value: Any) -> str:
    if not TIMER_ID.fullmatch(words(value)):
        raise ValueError("no timer id")
    return str(value)


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
