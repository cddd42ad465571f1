"""The attempts of a task as rows of its history, and the last answer that was kept."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.json import Decoder, encode

from duewheel.rules.callbacks.types import KeptAnswer
from duewheel.rules.tasks.lifecycle import HISTORY_MAX
from duewheel.rules.tasks.task import Attempt
from duewheel.rules.wheel.addresses import SECOND_MAX
from duewheel.stores.item_attributes import (
    INSTANT_MS_MAX,
    TEXT_BYTES_MAX,
    InstantMs,
    S,
    Text,
    integer,
)


class AttemptRow(Struct, array_like=True, forbid_unknown_fields=True, kw_only=True):
    """`late_seconds`, of the entry's second to the attempt's, is mostly 0, and short."""

    at_ms: InstantMs
    lateness_ms: InstantMs
    # The clock may have been set back during the measurement.
    duration_ms: Annotated[int, Meta(ge=-INSTANT_MS_MAX, le=INSTANT_MS_MAX)]
    outcome: str
    late_seconds: Annotated[int, Meta(ge=-SECOND_MAX, le=INSTANT_MS_MAX)]
    status_code: InstantMs | None
    note: str
    host: str | None = None

    @property
    def attempt(self) -> Attempt:
        return self.attempt_at(None)

    def attempt_at(self, own_host: str | None) -> Attempt:
        """`own_host`: of the task's own callback, which a row without a host called."""
        host = own_host if self.host is None else self.host[:TEXT_BYTES_MAX]
        return Attempt(
            at_ms=self.at_ms,
            lateness_ms=self.lateness_ms,
            duration_ms=self.duration_ms,
            outcome=self.outcome[:TEXT_BYTES_MAX],
            entry_second=integer(self.at_ms // 1000 - self.late_seconds, SECOND_MAX),
            status_code=self.status_code,
            note=self.note[:TEXT_BYTES_MAX],
            host=host or None,
        )


class _AnswerRow(Struct, array_like=True, forbid_unknown_fields=True):
    """The body is an attribute of its own: as JSON it could be six times as long."""

    at_ms: InstantMs
    status_code: Annotated[int, Meta(ge=0, le=999)]
    is_whole: bool
    headers: dict[str, str]


_answer = Decoder(_AnswerRow)
_attempts = Decoder(list[AttemptRow])


def history_text(history: Iterable[Attempt], own_host: str | None) -> str:
    return encode([attempt_row(attempt, own_host) for attempt in history]).decode()


def attempt_row(attempt: Attempt, own_host: str | None = None) -> AttemptRow:
    """The host is stored if it is not that of the task's own callback: `""` for none."""
    return AttemptRow(
        at_ms=attempt.at_ms,
        lateness_ms=attempt.lateness_ms,
        duration_ms=attempt.duration_ms,
        outcome=attempt.outcome,
        late_seconds=attempt.at_ms // 1000 - attempt.entry_second,
        status_code=attempt.status_code,
        note=attempt.note,
        host=None if attempt.host == own_host else attempt.host or "",
    )


def history_from(source: str, own_host: str | None = None) -> tuple[Attempt, ...]:
    """Of a history that was edited to be longer, the part that is kept."""
    return tuple(row.attempt_at(own_host) for row in _attempts.decode(source)[-HISTORY_MAX:])


def answer_texts(answer: KeptAnswer) -> dict[str, str]:
    """By attribute."""
    row = _AnswerRow(answer.at_ms, answer.status_code, answer.is_whole, dict(answer.headers))
    texts = {"answer": encode(row).decode()}
    return texts | ({"answer_body": answer.body} if answer.body else {})


def answer_from(body: S[Text] | None, source: str) -> KeptAnswer:
    row = _answer.decode(source)
    return KeptAnswer(
        at_ms=row.at_ms,
        status_code=row.status_code,
        is_whole=row.is_whole,
        headers=row.headers,
        body="" if body is None else body.S,
    )
