"""Which dead tasks are asked for: by the query string of a list, or by the body of a redrive."""

from duewheel.rules.dead import (
    LIMIT_DEFAULT,
    LIMIT_MAX,
    TEXT_CHARACTERS_MAX,
    DeadFilter,
    DeadRequest,
)
from duewheel.rules.instants import NoInstant, ms_from_rfc3339
from duewheel.rules.query_string import Parameters
from duewheel.rules.settlement import EXHAUSTED, STOPPED, TOO_OLD
from duewheel.rules.task_fields import Fields, invalid

_FILTER = ("since", "until", "reason", "status_code", "last_error")
DEATHS = (STOPPED, EXHAUSTED, TOO_OLD)
STATUS_CODES = (100, 999)


def dead_request(query_string: str) -> DeadRequest:
    parameters = Parameters.of(query_string, (*_FILTER, "limit", "cursor"))
    wanted = DeadFilter(
        since_ms=parameters.instant_ms("since"),
        until_ms=parameters.instant_ms("until"),
        reason=parameters.one_of("reason", DEATHS),
        status_code=parameters.whole_number("status_code", *STATUS_CODES),
        last_error=parameters.text("last_error"),
    )
    limit = parameters.whole_number("limit", 1, LIMIT_MAX) or LIMIT_DEFAULT
    return DeadRequest(_checked(wanted), limit, parameters.text("cursor"))


def redrive_request(body: str) -> DeadRequest:
    """A body without a member means all that are dead."""
    fields = Fields.of(body)
    fields.refuse_unknown((*_FILTER, "cursor"))
    reason = fields.text("reason") if "reason" in fields else None
    if reason is not None and reason not in DEATHS:
        raise fields.invalid("reason", f"must be one of {', '.join(DEATHS)}.")
    has_status = "status_code" in fields
    wanted = DeadFilter(
        since_ms=_instant_ms(fields, "since"),
        until_ms=_instant_ms(fields, "until"),
        reason=reason,
        status_code=fields.whole_number("status_code", *STATUS_CODES) if has_status else None,
        last_error=fields.text("last_error") if "last_error" in fields else None,
    )
    cursor = fields.text("cursor") if "cursor" in fields else None
    return DeadRequest(_checked(wanted), cursor=cursor)


def _checked(wanted: DeadFilter) -> DeadFilter:
    since_ms, until_ms = wanted.since_ms, wanted.until_ms
    if since_ms is not None and until_ms is not None and until_ms <= since_ms:
        raise invalid("until", "must be later than since.")
    if wanted.last_error is not None and not 1 <= len(wanted.last_error) <= TEXT_CHARACTERS_MAX:
        raise invalid("last_error", f"must have 1 to {TEXT_CHARACTERS_MAX} characters.")
    return wanted


def _instant_ms(fields: Fields, name: str) -> int | None:
    if name not in fields:
        return None
    try:
        return ms_from_rfc3339(fields.text(name))
    except NoInstant as error:
        raise fields.invalid(name, f"{error}.") from error
