"""The outcome of a call: delivered, retry, or stop. A value, never an exception.

Of HTTP answers only a 2xx is a delivery. An answer that would stay the same (the request is wrong,
or the receiver has moved) stops at once. Everything else is retried. A business may have status
lists of its own. An entry is a status or a class of them (`4xx`). A listed status has precedence
over its class. A status in neither list is retried. 2xx is success and in neither list.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules.callbacks.completion import within_from_header
from duewheel.rules.callbacks.retry import RETRY_AFTER_SECONDS_MAX
from duewheel.rules.callbacks.secret_headers import carries_secret, without_secrets
from duewheel.rules.callbacks.types import KeepAnswers, KeptAnswer

StatusEntry = int | str
RETRY_DEFAULT: tuple[StatusEntry, ...] = (401, 403, 404, 408, 425, 429, "5xx")
STOP_DEFAULT: tuple[StatusEntry, ...] = (400, 405, 410, 413, 414, 415, 422, "3xx")
STATUS_CLASSES = ("3xx", "4xx", "5xx")
STATUS_ENTRIES_MAX = 100
STOP_HEADER = "duewheel-stop"
ANSWER_BYTES_MAX = 65_536  # of an answer that is read
NOTE_BYTES_MAX = 128  # keeps a small task under 1 KB after a normal delivery
HEADER_CHARACTERS_MAX = 256  # of a header of an answer that is kept
_STOPPED_NOTE = "the receiver said stop: "
_REDIRECT_NOTE = "redirects are not followed: "


class Verdict(StrEnum):
    DELIVERED = "delivered"
    RETRY = "retry"
    STOP = "stop"


class ReceivedAnswer(Struct, frozen=True):
    """`headers` has lower-case names, and none of the secrets of the call."""

    headers: Mapping[str, str]
    body: bytes
    is_whole: bool


class Outcome(Struct, frozen=True):
    verdict: Verdict
    note: str  # the reason, or the start of the reply's body
    status_code: int | None = None
    retry_after_seconds: float | None = None
    stopped_by_receiver: bool = False  # requested by the receiver, with any status
    answer: ReceivedAnswer | None = None  # if it was wanted
    complete_within_seconds: int | None = None  # delivered, and the receiver reports its end
    host: str | None = None  # that was called, or the name of the resource


class StatusLists(Struct, frozen=True):
    retry: tuple[StatusEntry, ...] = RETRY_DEFAULT
    stop: tuple[StatusEntry, ...] = STOP_DEFAULT

    def stops(self, status: int) -> bool:
        if status in self.stop:
            return True
        return status not in self.retry and _class_of(status) in self.stop

    @property
    def in_both(self) -> list[StatusEntry]:
        return [entry for entry in self.stop if entry in self.retry]


def status_lists(
    retry: tuple[StatusEntry, ...] | None, stop: tuple[StatusEntry, ...] | None
) -> StatusLists:
    """The lists of a business: each overrides the default of the other."""
    return StatusLists(
        retry=_without(RETRY_DEFAULT, stop or ()) if retry is None else retry,
        stop=_without(STOP_DEFAULT, retry or ()) if stop is None else stop,
    )


def is_status_entry(value: StatusEntry) -> bool:
    return value in STATUS_CLASSES if isinstance(value, str) else 300 <= value <= 599


def _without(
    entries: Iterable[StatusEntry], others: Iterable[StatusEntry]
) -> tuple[StatusEntry, ...]:
    return tuple(entry for entry in entries if entry not in others)


def _class_of(status: int) -> str:
    return f"{status // 100}xx"


def outcome_of_answer(
    status_code: int, headers: Mapping[str, str], body_start: bytes, now_ms: int
) -> Outcome:
    """`headers` has lower-case names; a date in `Retry-After` counts from `now_ms`."""
    if 200 <= status_code < 300:
        return _accepted(status_code, headers, body_start)
    if headers.get(STOP_HEADER, "").strip().lower() == "true":
        note = note_from(_STOPPED_NOTE.encode() + body_start)
        return Outcome(Verdict.STOP, note, status_code=status_code, stopped_by_receiver=True)
    about = _REDIRECT_NOTE.encode() if 300 <= status_code < 400 else b""
    outcome = Outcome(
        Verdict.RETRY,
        note_from(about + body_start),
        status_code=status_code,
        retry_after_seconds=retry_after_seconds(headers.get("retry-after", "").strip(), now_ms),
    )
    return with_business_policy(outcome, StatusLists())


def _accepted(status_code: int, headers: Mapping[str, str], body_start: bytes) -> Outcome:
    """Work whose receiver reports its end, in a way that is not understood, is not taken for
    delivered."""
    try:
        within = within_from_header(headers) if status_code == 202 else None
    except ValueError as error:
        return Outcome(Verdict.RETRY, note_from(str(error)), status_code=status_code)
    return Outcome(
        Verdict.DELIVERED,
        note_from(body_start),
        status_code=status_code,
        complete_within_seconds=within,
    )


def with_business_policy(outcome: Outcome, statuses: StatusLists) -> Outcome:
    """Reclassify an unsuccessful answer by the status lists of a business. An answer that says
    stop, and a call without an answer, stay as they are."""
    status = outcome.status_code
    if status is None or outcome.stopped_by_receiver or outcome.verdict is Verdict.DELIVERED:
        return outcome
    return replace(outcome, verdict=Verdict.STOP if statuses.stops(status) else Verdict.RETRY)


def note_from(text: bytes | str) -> str:
    """One printable line of at most NOTE_BYTES_MAX bytes, from any text that the receiver sent."""
    if isinstance(text, bytes):
        text = text[: NOTE_BYTES_MAX + 4].decode("utf-8", "replace")
    text = text.strip()
    if text.isascii() and text.isprintable():
        return text[:NOTE_BYTES_MAX]
    pieces: list[str] = []
    room = NOTE_BYTES_MAX
    for character in text:
        shown = character if character.isprintable() else _escaped(character)
        room -= len(shown.encode())
        if room < 0:
            break
        pieces.append(shown)
    return "".join(pieces)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def retry_after_seconds(text: str, now_ms: int) -> float | None:
    """Seconds or an HTTP date; None for anything else."""
    if text.isascii() and text.isdecimal():
        digits = text.lstrip("0") or "0"
        seconds = float(digits) if len(digits) < 10 else RETRY_AFTER_SECONDS_MAX
    else:
        try:
            instant = parsedate_to_datetime(text)
        except (
            ValueError,
            OverflowError,
        ):  # it is no date, or has a number out of range
            return None
        if instant.tzinfo is None:  # the oldest of the three forms of an HTTP date names no zone
            instant = instant.replace(tzinfo=UTC)
        seconds = instant.timestamp() - now_ms / 1000
    return min(max(seconds, 0.0), RETRY_AFTER_SECONDS_MAX)


def received(
    headers: Mapping[str, str],
    body: bytes,
    *,
    is_whole: bool,
    sent: Iterable[tuple[str, str]] = (),
) -> ReceivedAnswer:
    """`sent`: the headers of the call, whose secrets a receiver may repeat in its own. The body is
    without them already."""
    secrets = list(sent)
    clean = {
        name: without_secrets(value.encode(), secrets).decode("utf-8", "replace")
        for name, value in headers.items()
    }
    return ReceivedAnswer(clean, body, is_whole)


def kept_answer(outcome: Outcome, keep: KeepAnswers | None, at_ms: int) -> KeptAnswer | None:
    """A header that shows by its value that it carries a secret is left out."""
    answer, status = outcome.answer, outcome.status_code
    if keep is None or answer is None or status is None:
        return None
    whole = answer.body.decode("utf-8", "replace")
    body = whole.encode()[: keep.body_bytes].decode("utf-8", "ignore")
    return KeptAnswer(
        at_ms=at_ms,
        status_code=status,
        is_whole=answer.is_whole and body == whole,
        headers={
            name: value[:HEADER_CHARACTERS_MAX]
            for name in keep.headers
            if (value := answer.headers.get(name)) is not None and not carries_secret(name, value)
        },
        body=body,
    )
