"""The query strings of calls on timers."""

from enum import StrEnum

from msgspec import Struct

from duewheel.rules.query_string import Parameters
from duewheel.rules.task import Status
from duewheel.rules.task_fields import invalid
from duewheel.rules.task_request import checked_biz_type
from duewheel.rules.timer import NAME_CHARACTERS_MAX

LIMIT_DEFAULT = 50
LIMIT_MAX = 100
UPCOMING_DEFAULT = 10
UPCOMING_MAX = 100


class State(StrEnum):
    """Of a timer. `ENDED`: it is enabled, and nothing more is ahead."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    ENDED = "ended"


class TimersRequest(Struct, frozen=True):
    biz_type: str
    name_prefix: str
    state: State | None
    cursor: str | None
    limit: int

    @property
    def question(self) -> tuple[str | None, ...]:
        return "timers", self.biz_type, self.name_prefix, self.state


class UpcomingRequest(Struct, frozen=True):
    count: int
    from_ms: int | None


class RunsRequest(Struct, frozen=True):
    status: Status | None
    cursor: str | None
    limit: int


def timers_request(query_string: str) -> TimersRequest:
    known = ("biz_type", "name_prefix", "state", "cursor", "limit")
    parameters = Parameters.of(query_string, known)
    state = parameters.one_of("state", [state.value for state in State])
    prefix = parameters.text("name_prefix") or ""
    if len(prefix) > NAME_CHARACTERS_MAX:
        raise invalid("name_prefix", f"must have at most {NAME_CHARACTERS_MAX} characters.")
    return TimersRequest(
        checked_biz_type(parameters.required_text("biz_type")),
        prefix,
        None if state is None else State(state),
        parameters.text("cursor"),
        parameters.whole_number("limit", 1, LIMIT_MAX) or LIMIT_DEFAULT,
    )


def upcoming_request(query_string: str) -> UpcomingRequest:
    parameters = Parameters.of(query_string, ("count", "from"))
    count = parameters.whole_number("count", 1, UPCOMING_MAX) or UPCOMING_DEFAULT
    return UpcomingRequest(count, parameters.instant_ms("from"))


def runs_request(query_string: str) -> RunsRequest:
    parameters = Parameters.of(query_string, ("status", "cursor", "limit"))
    status = parameters.one_of("status", [status.value for status in Status])
    return RunsRequest(
        None if status is None else Status(status),
        parameters.text("cursor"),
        parameters.whole_number("limit", 1, LIMIT_MAX) or LIMIT_DEFAULT,
    )
