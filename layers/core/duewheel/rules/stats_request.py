"""From the query string of a statistics call to the minutes that are asked for."""

from msgspec import Struct

from duewheel.rules.query_string import Parameters
from duewheel.rules.task_fields import invalid

MINUTE_MS = 60_000
MINUTES_MAX = 1_440
MINUTES_DEFAULT = 60


class StatsRequest(Struct, frozen=True):
    """Whole minutes since the epoch, both included."""

    first_minute: int
    last_minute: int


def stats_request(query_string: str, now_ms: int) -> StatsRequest:
    """Bounds within a minute mean the whole of it; left out, the last hour."""
    parameters = Parameters.of(query_string, ("from", "to"))
    to_ms, from_ms = parameters.instant_ms("to"), parameters.instant_ms("from")
    if to_ms is None:
        to_ms = now_ms + 1
    if from_ms is None:
        from_ms = max(0, to_ms - MINUTES_DEFAULT * MINUTE_MS)
    if not 0 <= from_ms < to_ms:
        raise invalid("from", "must be from 1970 on and earlier than to.")
    asked = StatsRequest(from_ms // MINUTE_MS, (to_ms - 1) // MINUTE_MS)
    if asked.last_minute - asked.first_minute >= MINUTES_MAX:
        raise invalid("from", f"to and from span more than {MINUTES_MAX:,} minutes.")
    return asked
