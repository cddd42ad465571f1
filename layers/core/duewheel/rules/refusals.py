"""Refusals that a caller can cause; the API turns each into one problem document."""

import math
from collections.abc import Iterable

from duewheel.rules.tolerance import Window


class Refusal(Exception):
    """Base of the family. `type` is stable and part of the interface."""

    type = "refused"
    title = "The request was refused"
    status = 400

    def __init__(self, detail: str, field: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.field = field


def recalled(problem: str, detail: str, field: str | None) -> Refusal:
    """The recorded refusal. It is final: no retry is advised."""
    refusal = Refusal(detail, field)
    refusal.type = problem
    return refusal


class MalformedBody(Refusal):
    type = "malformed-body"
    title = "The body is not the JSON that this call takes"


class InvalidField(Refusal):
    """`field` names the member, with its path (`callback.url`, `tasks[3].due_ms`)."""

    type = "invalid-field"
    title = "A field is missing, unknown or has a value that is not allowed"
    status = 422


class CallbackRefused(Refusal):
    """A callback may not create work: tasks that create tasks would never end."""

    type = "callback-refused"
    title = "A callback may read, and change nothing"
    status = 403


class TargetNotEnabled(Refusal):
    """For the operator to allow: the detail names the template parameter."""

    type = "target-not-enabled"
    title = "This deployment may not deliver there"
    status = 422
    window: Window | None = None  # of the refused task, if it is known


class TooLarge(Refusal):
    type = "too-large"
    title = "The request is larger than allowed"
    status = 413


class MalformedTaskId(Refusal):
    type = "malformed-task-id"
    title = "This is no task id of this service"


class NotPermitted(Refusal):
    """Names the right that the call needs, and does not reveal what exists."""

    type = "not-permitted"
    title = "The caller may not do this"
    status = 403
    window: Window | None = None  # of the refused task, if it is known


class CreatedBefore(NotPermitted):
    """The task exists: an earlier try created it, when it was allowed."""

    def __init__(self) -> None:
        super().__init__("The task was created before; what it asks for is not allowed any more.")


class UnknownTask(Refusal):
    type = "unknown-task"
    title = "There is no such task"
    status = 404


def no_such_task() -> UnknownTask:
    return UnknownTask("There is no task with this id.", "task_id")


class UnknownTimer(Refusal):
    type = "unknown-timer"
    title = "There is no such timer"
    status = 404


class UnknownOperation(Refusal):
    type = "unknown-operation"
    title = "There is no such operation"
    status = 404


class OperationEnded(Refusal):
    type = "operation-ended"
    title = "The operation has ended"
    status = 409


class TooManyOperations(Refusal):
    type = "too-many-operations"
    title = "As many bulk operations are open as can be"
    status = 429
    retry_after_seconds = 60


class UnknownBusiness(Refusal):
    """Every `biz_type` may be used; this one has no settings of its own."""

    type = "unknown-business"
    title = "There are no settings for this business"
    status = 404


class UnknownApiKey(Refusal):
    type = "unknown-api-key"
    title = "There is no such API key"
    status = 404


class ApiKeyEnded(Refusal):
    type = "api-key-ended"
    title = "The API key has been revoked, or has expired"
    status = 409


class TooManyApiKeys(Refusal):
    type = "too-many-api-keys"
    title = "This deployment has as many API keys as it can have"
    status = 409


class UnknownCall(Refusal):
    type = "unknown-call"
    title = "There is no such call"
    status = 404


class TooLate(Refusal):
    """The cut-off has passed, so the call can no longer be stopped for sure."""

    type = "too-late"
    title = "The task's cut-off has passed; its call may be under way"
    status = 409

    def __init__(
        self, detail: str, field: str | None = None, *, cut_off_ms: int | None = None
    ) -> None:
        super().__init__(detail, field)
        self.cut_off_ms = cut_off_ms


class WrittenTooLate(TooLate):
    """The change is written, but the call of before may be made all the same."""


class AlreadySettled(Refusal):
    type = "already-settled"
    title = "The task has ended"
    status = 409


class InvalidToken(Refusal):
    """Reveals nothing of the task."""

    type = "invalid-token"
    title = "The completion token is missing, or is not one of this task"
    status = 403


class NotRunning(Refusal):
    """Reports the end of an attempt that is over: the work may be stopped."""

    type = "not-running"
    title = "The attempt of this token is over"
    status = 409


class KeyTaken(Refusal):
    type = "key-taken"
    title = "The key names a live task made by another body"
    status = 422


class IdempotencyKeyReused(Refusal):
    type = "idempotency-key-reused"
    title = "The idempotency key belongs to another request"
    status = 422


class IdempotencyKeyInUse(Refusal):
    """Passes soon: the first request ends, or its lease expires."""

    type = "idempotency-key-in-use"
    title = "A request with this idempotency key is still being carried out"
    status = 409


class OfATimer(Refusal):
    """The timer of an occurrence decides when it is called, and with what."""

    type = "of-a-timer"
    title = "The task is an occurrence of a timer"
    status = 409


class NotRedrivable(Refusal):
    """`redrivable_ms`: when it may be, where waiting helps."""

    type = "not-redrivable"
    title = "The task cannot be given new attempts"
    status = 409

    def __init__(self, detail: str, *, redrivable_ms: int | None = None) -> None:
        super().__init__(detail)
        self.redrivable_ms = redrivable_ms


class TasksPending(Refusal):
    type = "tasks-pending"
    title = "The business has pending tasks"
    status = 409


class HasTimers(Refusal):
    type = "has-timers"
    title = "The business has timers"
    status = 409


class TimersShareName(Refusal):
    type = "timers-share-name"
    title = "Several timers of the business have this name"
    status = 409


class VersionMismatch(Refusal):
    type = "version-mismatch"
    title = "The precondition does not hold"
    status = 412


class ListIndexOff(Refusal):
    """A state of the deployment, not a failure of the service: hence no 5xx."""

    type = "list-index-off"
    title = "This deployment keeps no index to list tasks by"
    status = 409


class TooManyCreates(Refusal):
    """Beyond the business's own `creates_per_second`, by a create or in another way; nothing was
    written."""

    type = "too-many-creates"
    title = "The business has more calls made than it may"
    status = 429

    def __init__(self, wait_ms: int) -> None:
        super().__init__("The business's limit is reached: creates_per_second.")
        self.retry_after_seconds = max(1, math.ceil(wait_ms / 1000))


class MethodNotAllowed(Refusal):
    type = "method-not-allowed"
    title = "This call does not take that method"
    status = 405

    def __init__(self, allowed: Iterable[str]) -> None:
        self.allow = ", ".join(allowed)
        super().__init__(f"This call takes {self.allow}.")


TOO_MANY_REQUESTS = "Too many requests at once. Try it again."


class Unavailable(Refusal):
    """Not the caller's fault, and passes soon. Nothing was written, so the request may be
    repeated."""

    type = "unavailable"
    title = "The service cannot take this right now"
    status = 503

    def __init__(self, detail: str = TOO_MANY_REQUESTS) -> None:
        super().__init__(detail)


class TooManyWrites(Unavailable):
    """DynamoDB throttled the writes at these addresses; it may accept them at others."""

    def __init__(self) -> None:
        super().__init__("The task was not stored: too many writes at once. Try it again.")


class UnreadableItem(Refusal):
    """Not an error of the caller: the record has content that this service never writes. It is not
    changed until an operator corrects it. The message names the attribute and never its value."""

    type = "unreadable"
    title = "The record is damaged and cannot be read"
    status = 500

    def __init__(self, slot: str, place: str, wrong: str) -> None:
        super().__init__(
            f"The record at slot {slot}, place {place} is damaged: {wrong} is missing, or holds "
            "what this service does not write."
        )
        self.slot = slot
        self.place = place
        self.wrong = wrong  # the attribute
