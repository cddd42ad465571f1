"""The outcome of an HTTP answer, and the part of it that is recorded."""

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.callbacks.outcome import (
    NOTE_BYTES_MAX,
    RETRY_AFTER_SECONDS_MAX,
    Outcome,
    Verdict,
    note_from,
    outcome_of_answer,
)
from tests.support.cases import each_case

NOW_MS = 784_111_777_000  # Sun, 06 Nov 1994 08:49:37 GMT


def outcome(status_code: int, body: bytes = b"", **headers: str) -> Outcome:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return outcome_of_answer(status_code, named, body, NOW_MS)


@each_case("status_code", [200, 201, 202, 204, 226, 299])
def test_any_2xx_is_delivered(status_code: int) -> None:
    assert outcome(status_code, b"done") == Outcome(
        Verdict.DELIVERED, "done", status_code=status_code
    )


@each_case(
    "status_code",
    [408, 425, 429, 500, 502, 503, 504, 599, 401, 403, 404, 402, 406, 409, 418, 451, 600, 999],
)
def test_transient_statuses_are_retried(status_code: int) -> None:
    assert outcome(status_code, b"no") == Outcome(Verdict.RETRY, "no", status_code=status_code)


@each_case("status_code", [400, 405, 410, 413, 414, 415, 422])
def test_permanent_statuses_stop(status_code: int) -> None:
    assert outcome(status_code, b"no") == Outcome(Verdict.STOP, "no", status_code=status_code)


@each_case("status_code", [300, 301, 302, 303, 304, 307, 308])
def test_a_redirect_stops_with_a_note(status_code: int) -> None:
    stopped = outcome(status_code, location="http://169.254.169.254/")
    assert stopped == Outcome(Verdict.STOP, "redirects are not followed:", status_code=status_code)


@each_case("status_code", [302, 404, 410, 429, 503])
@each_case("value", ["true", "True", " true "])
def test_the_stop_header_stops_with_any_status(status_code: int, value: str) -> None:
    stopped = outcome(status_code, b"gone", duewheel_stop=value, retry_after="5")
    assert stopped == Outcome(
        Verdict.STOP,
        "the receiver said stop: gone",
        status_code=status_code,
        stopped_by_receiver=True,
    )


def test_a_delivery_is_delivered_even_with_the_stop_header() -> None:
    assert outcome(200, duewheel_stop="true").verdict is Verdict.DELIVERED


@each_case("value", ["", "false", "1", "yes"])
def test_any_other_stop_header_does_not_stop(value: str) -> None:
    assert outcome(503, duewheel_stop=value).verdict is Verdict.RETRY


@each_case(
    ("value", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        (" 7 ", 7),
        ("0000000000000009", 9),
        ("86401", RETRY_AFTER_SECONDS_MAX),
        ("9" * 5_000, RETRY_AFTER_SECONDS_MAX),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
        ("Sun Nov  6 08:50:37 1994", 60),
        ("Sun, 06 Nov 1994 08:49:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", RETRY_AFTER_SECONDS_MAX),
    ],
)
def test_retry_after_is_read_in_both_forms_and_bounded(value: str, seconds: float) -> None:
    assert outcome(503, retry_after=value).retry_after_seconds == seconds


@each_case(
    "value",
    [
        "",
        "soon",
        "-5",
        "1.5",
        "1e3",
        "٣",
        "Sun, 06 Foo 1994 08:49:37 GMT",
        "Sun, 99 Nov 1994 1:1:1",
    ],
)
def test_an_invalid_retry_after_is_ignored(value: str) -> None:
    assert outcome(503, retry_after=value).retry_after_seconds is None


@given(st.text(max_size=60))
def test_any_retry_after_is_handled(value: str) -> None:
    seconds = outcome(503, retry_after=value).retry_after_seconds
    assert seconds is None or 0 <= seconds <= RETRY_AFTER_SECONDS_MAX


@given(st.sampled_from([200, 302, 410, 503]), st.binary(max_size=400), st.booleans())
def test_a_note_is_one_short_printable_line(status_code: int, body: bytes, stops: bool) -> None:
    headers = {"duewheel-stop": "true"} if stops else {}
    note = outcome_of_answer(status_code, headers, body, NOW_MS).note
    assert note.isprintable()
    assert len(note.encode()) <= NOTE_BYTES_MAX


@each_case(
    ("body", "note"),
    [
        (b"ok\n", "ok"),
        (b"a\r\nb\x00c\x1b[31m", "a\\r\\nb\\x00c\\x1b[31m"),
        ("naïve ✓".encode(), "naïve ✓"),
        ("left\u202eright".encode(), "left\\u202eright"),
        (b"x" * 500, "x" * NOTE_BYTES_MAX),
        ("é".encode() * 100, "é" * (NOTE_BYTES_MAX // 2)),
    ],
)
def test_control_characters_are_escaped_and_the_rest_is_kept(body: bytes, note: str) -> None:
    assert note_from(body) == note
