"""From the query string of an audit to the seconds that are asked for, and where to go on."""

from msgspec import Struct

from duewheel.rules import cursors
from duewheel.rules.addresses import SECOND_MAX
from duewheel.rules.query_string import Parameters
from duewheel.rules.task_fields import invalid

AROUND_NOW_MS = 3_600_000  # an hour back, and an hour ahead


class AuditRequest(Struct, frozen=True):
    """Whole seconds, both included."""

    first_second: int
    last_second: int
    cursor: str | None = None


class Position(Struct, frozen=True):
    """What comes next: the items of this slice behind `after`."""

    second: int
    shard: int = 0
    shards: int = 1
    after: str | None = None


def audit_request(query_string: str, now_ms: int) -> AuditRequest:
    parameters = Parameters.of(query_string, ("from", "to", "cursor"))
    to_ms, from_ms = parameters.instant_ms("to"), parameters.instant_ms("from")
    if to_ms is None:
        to_ms = now_ms + AROUND_NOW_MS
    if from_ms is None:
        from_ms = max(0, min(now_ms, to_ms) - AROUND_NOW_MS)
    if not 0 <= from_ms < to_ms:
        raise invalid("from", "must be from 1970 on and earlier than to.")
    last_second = min((to_ms - 1) // 1000, SECOND_MAX)
    return AuditRequest(from_ms // 1000, last_second, parameters.text("cursor"))


def cursor_at(position: Position, asked: AuditRequest, secret: bytes) -> str:
    text = f"{position.second} {position.shard} {position.shards} {position.after or ''}"
    return cursors.sealed(text, _question(asked), secret)


def position_of(asked: AuditRequest, secret: bytes) -> Position:
    if asked.cursor is None:
        return Position(asked.first_second)
    text = cursors.opened(asked.cursor, _question(asked), secret)
    second, shard, shards, after = text.split(" ", 3)
    return Position(int(second), int(shard), int(shards), after or None)


def _question(asked: AuditRequest) -> tuple[str | int, ...]:
    return ("audit", asked.first_second, asked.last_second)
