"""The outcome of a call to AWS, from a refusal or from a function's answer."""

from duewheel.rules.callbacks.aws.outcome import outcome_of_function, outcome_of_refusal
from duewheel.rules.callbacks.outcome import NOTE_BYTES_MAX, Outcome, Verdict
from tests.support.cases import each_case

NOW_MS = 1_800_000_000_000


def refused(code: str, status_code: int = 400, retry_after: str = "") -> Outcome:
    return outcome_of_refusal(code, "because", status_code, retry_after, NOW_MS)


@each_case(
    "code",
    [
        "ThrottlingException",
        "TooManyRequestsException",
        "RequestThrottled",
        "ServiceException",
        "InternalError",
        "InternalFailure",
        "AccessDeniedException",
        "AuthorizationError",
        "ResourceNotFoundException",
        "NotFound",
        "AWS.SimpleQueueService.NonExistentQueue",
        "KMSAccessDenied",
        "ExpiredTokenException",
        "SomethingNew",
        "",
    ],
)
def test_transient_errors_are_retried(code: str) -> None:
    assert refused(code).verdict is Verdict.RETRY


@each_case(
    "code",
    [
        "InvalidMessageContents",
        "InvalidParameterValue",
        "InvalidParameter",
        "InvalidRequestContentException",
        "RequestTooLargeException",
        "ValidationException",
        "MalformedDetail",
    ],
)
def test_errors_of_the_request_stop(code: str) -> None:
    outcome = refused(code)
    assert outcome.verdict is Verdict.STOP
    assert outcome.note == f"{code}: because"


def test_status_413_stops_with_any_error_code() -> None:
    assert refused("Whatever", 413).verdict is Verdict.STOP


def test_retry_after_of_a_throttle_is_used() -> None:
    outcome = refused("TooManyRequestsException", 429, "7")
    assert outcome == Outcome(
        Verdict.RETRY, "TooManyRequestsException: because", status_code=429, retry_after_seconds=7.0
    )


def answered(answer: bytes, *, has_failed: bool = False) -> Outcome:
    return outcome_of_function(answer, 200, has_failed=has_failed)


@each_case(
    "answer",
    [
        b"null",
        b'{"ok": true}',
        b'"duewheel-stop"',
        b'{"duewheel-stop": "true"}',
        b"",
        b"\xff",
        b"[",
    ],
)
def test_a_function_that_returns_counts_as_delivered(answer: bytes) -> None:
    assert answered(answer).verdict is Verdict.DELIVERED


def test_a_function_stops_its_task_by_its_return_value() -> None:
    outcome = answered(b'{"duewheel-stop": true, "reason": "paid"}')
    assert outcome.verdict is Verdict.STOP
    assert outcome.note.startswith('the function said stop: {"duewheel-stop": true')


def test_a_failed_function_is_retried_and_its_error_is_recorded() -> None:
    error = b'{"errorMessage": "no such order", "errorType": "KeyError", "stackTrace": []}'
    assert answered(error, has_failed=True) == Outcome(
        Verdict.RETRY, "KeyError: no such order", status_code=200
    )


@each_case("error", [b"", b"broken", b'{"errorMessage":', b"[" * 60_000, b"17"])
def test_an_error_in_an_unknown_form_is_recorded_unchanged(error: bytes) -> None:
    outcome = answered(error, has_failed=True)
    assert outcome.verdict is Verdict.RETRY
    assert outcome.note == error.decode()[:NOTE_BYTES_MAX]


def test_a_stop_in_an_error_is_ignored() -> None:
    assert answered(b'{"duewheel-stop": true}', has_failed=True).verdict is Verdict.RETRY
