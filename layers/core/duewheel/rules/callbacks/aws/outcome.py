"""The outcome of a call that AWS refuses: retry, or stop.

An error of the request itself would occur again, so it stops. Everything else is retried:
throttling ends, and a later deployment may restore a missing right or resource.
"""

import json

from duewheel.rules.callbacks.completion import within_from_answer
from duewheel.rules.callbacks.outcome import Outcome, Verdict, note_from, retry_after_seconds

# Of all four services; a code that only one of them has means the same wherever it comes from.
ABOUT_THE_REQUEST = frozenset(
    {
        "InvalidArgument",
        "InvalidMessageContents",
        "InvalidParameter",
        "InvalidParameterCombination",
        "InvalidParameterValue",
        "InvalidParameterValueException",
        "InvalidRequestContentException",
        "MalformedDetail",
        "MissingParameter",
        "RequestEntityTooLargeException",
        "RequestTooLargeException",
        "SerializationException",
        "UnsupportedMediaTypeException",
        "ValidationError",
        "ValidationException",
    }
)
_STOP = "duewheel-stop"


def outcome_of_refusal(
    code: str, message: str, status_code: int | None, retry_after: str, now_ms: int
) -> Outcome:
    name = code.rpartition(".")[2]  # SQS: AWS.SimpleQueueService.NonExistentQueue
    note = note_from(f"{name}: {message}")
    if name in ABOUT_THE_REQUEST or status_code == 413:
        return Outcome(Verdict.STOP, note, status_code=status_code)
    return Outcome(
        Verdict.RETRY,
        note,
        status_code=status_code,
        retry_after_seconds=retry_after_seconds(retry_after, now_ms),
    )


def outcome_of_function(answer: bytes, status_code: int, *, has_failed: bool) -> Outcome:
    """The outcome of a synchronous invocation. `answer`: what the function returned, or its
    error."""
    value = _parsed(answer)
    if has_failed:
        return Outcome(
            Verdict.RETRY, note_from(_error_note(value, answer)), status_code=status_code
        )
    if isinstance(value, dict) and value.get(_STOP) is True:
        note = note_from(b"the function said stop: " + answer)
        return Outcome(Verdict.STOP, note, status_code=status_code, stopped_by_receiver=True)
    try:
        within = within_from_answer(value) if isinstance(value, dict) else None
    except ValueError as error:
        return Outcome(Verdict.RETRY, note_from(str(error)), status_code=status_code)
    return Outcome(
        Verdict.DELIVERED,
        note_from(answer),
        status_code=status_code,
        complete_within_seconds=within,
    )


def _error_note(value: object, answer: bytes) -> bytes | str:
    if isinstance(value, dict) and "errorMessage" in value:
        return f"{value.get('errorType', 'error')}: {value['errorMessage']}"
    return answer


def _parsed(answer: bytes) -> object:
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        return None  # truncated, or not JSON: the note has the bytes as they are
