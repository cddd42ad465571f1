"""The client's exceptions; the service's problem types have one class each.

Rely on the class: its `type` is part of the interface, `title` and `detail` are for people.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

TYPE_PREFIX = "urn:duewheel:problem:"
NO_TYPE = "about:blank"  # RFC 9457: no more meaning than the status


class DuewheelError(Exception):
    """The base class of the client's exceptions."""


class Unreachable(DuewheelError):
    """There is no answer, and no change was made: the request was not sent, or only reads."""


class OutcomeUnknown(DuewheelError):
    """The request was sent and its answer was lost: it may have been carried out or not."""


class UnexpectedAnswer(DuewheelError):
    """The answer does not have the form of this service's answers."""


class Problem(DuewheelError):
    """The service, or API Gateway before it, refused the request."""

    name: ClassVar[str] = ""  # of the type, without its prefix

    def __init__(self, status: int, members: Mapping[str, Any]) -> None:
        self.status = status
        self.type = str(members.get("type", NO_TYPE))
        self.title = str(members.get("title", type(self).__doc__ or "Refused"))
        self.detail = str(members.get("detail", ""))
        self.field: str | None = members.get("field")
        self.members = dict(members)
        super().__init__(f"{self.title} ({status}): {self.detail}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.members)


class MalformedBody(Problem):
    name = "malformed-body"


class InvalidField(Problem):
    """`field` names the member, with its path: `callback.url`, `tasks[3].due_ms`."""

    name = "invalid-field"


class CallbackRefused(Problem):
    """A request with the headers of a callback would have made a change."""

    name = "callback-refused"


class TargetNotEnabled(Problem):
    name = "target-not-enabled"


class TooLarge(Problem):
    name = "too-large"


class MalformedTaskId(Problem):
    name = "malformed-task-id"


class NotPermitted(Problem):
    name = "not-permitted"


class UnknownTask(Problem):
    name = "unknown-task"


class UnknownTimer(Problem):
    name = "unknown-timer"


class TimersShareName(Problem):
    name = "timers-share-name"


class UnknownBusiness(Problem):
    name = "unknown-business"


class UnknownOperation(Problem):
    name = "unknown-operation"


class OperationEnded(Problem):
    name = "operation-ended"


class TooManyOperations(Problem):
    name = "too-many-operations"


class UnknownApiKey(Problem):
    name = "unknown-api-key"


class ApiKeyEnded(Problem):
    name = "api-key-ended"


class TooManyApiKeys(Problem):
    name = "too-many-api-keys"


class UnknownCall(Problem):
    name = "unknown-call"


class TooLate(Problem):
    """The cut-off has passed; `members` may say when it was, as `cut_off`."""

    name = "too-late"


class AlreadySettled(Problem):
    name = "already-settled"


class InvalidToken(Problem):
    name = "invalid-token"


class NotRunning(Problem):
    """The attempt that a report is about is over: the work may stop."""

    name = "not-running"


class KeyTaken(Problem):
    name = "key-taken"


class IdempotencyKeyReused(Problem):
    name = "idempotency-key-reused"


class IdempotencyKeyInUse(Problem):
    name = "idempotency-key-in-use"


class OfATimer(Problem):
    name = "of-a-timer"


class NotRedrivable(Problem):
    """`members` may say from when on it can be redriven, as `redrivable_at`."""

    name = "not-redrivable"


class TasksPending(Problem):
    name = "tasks-pending"


class HasTimers(Problem):
    name = "has-timers"


class VersionMismatch(Problem):
    name = "version-mismatch"


class ListIndexOff(Problem):
    name = "list-index-off"


class TooManyCreates(Problem):
    name = "too-many-creates"


class MethodNotAllowed(Problem):
    name = "method-not-allowed"


class Unavailable(Problem):
    name = "unavailable"


class UnreadableItem(Problem):
    name = "unreadable"


class Misconfigured(Problem):
    name = "misconfigured"


class Internal(Problem):
    name = "internal"


class GatewayProblem(Problem):
    """API Gateway answered instead of the service."""

    gateway_status: ClassVar[int] = 0


class NotAuthenticated(GatewayProblem):
    """The request carries no key or signature"""

    gateway_status = 401


class Forbidden(GatewayProblem):
    """The key or signature does not hold here"""

    gateway_status = 403


class NoSuchPath(GatewayProblem):
    """The address leads to no call: is it the ApiUrl of the stack?"""

    gateway_status = 404


class RequestTooLarge(GatewayProblem):
    """API Gateway does not take a request of this size"""

    gateway_status = 413


class TooManyRequests(GatewayProblem):
    """More requests than the deployment takes"""

    gateway_status = 429


class NoAnswerInTime(GatewayProblem):
    """The service did not answer API Gateway in time"""

    gateway_status = 504


def problem_from(status: int, body: object) -> Problem:
    """`body` is the decoded body, or None if it was no JSON. Types of a newer service become a
    plain `Problem`."""
    members: Mapping[str, Any] = body if isinstance(body, dict) else {}
    if "type" in members:
        name = str(members["type"]).removeprefix(TYPE_PREFIX)
        return _BY_NAME.get(name, Problem)(status, members)
    message = {"detail": str(members["message"])} if "message" in members else {}
    return _BY_STATUS.get(status, GatewayProblem)(status, message)


_BY_NAME = {problem.name: problem for problem in Problem.__subclasses__() if problem.name}
_BY_STATUS = {problem.gateway_status: problem for problem in GatewayProblem.__subclasses__()}
