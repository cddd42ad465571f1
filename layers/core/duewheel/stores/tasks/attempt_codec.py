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

    @property
    def attempt(self) -> Attempt:
        return Attempt(
            at_ms=self.at_ms,
            lateness_ms=self.lateness_ms,
            duration_ms=self.duration_ms,
            outcome=self.outcome[:TEXT_BYTES_MAX],
            entry_second=integer(self.at_ms // 1000 - self.late_seconds, SECOND_MAX),
            status_code=self.status_code,
            note=self.note[:TEXT_BYTES_MAX],
        )


class _AnswerRow(Struct, array_like=True, forbid_unknown_fields=True):
    """The body is an attribute of its own: as JSON it could be six times as long."""

    at_ms: InstantMs
    status_code: Annotated[int, Meta(ge=0, le=999)]
    is_whole: bool
    headers: dict[str, str]


_answer = Decoder(_AnswerRow)
_attempts = Decoder(list[AttemptRow])


def history_text(history: Iterable[Attempt]) -> str:
    return encode(list(map(attempt_row, history))).decode()


def attempt_row(attempt: Attempt) -> AttemptRow:
    return AttemptRow(
        at_ms=attempt.at_ms,
        lateness_ms=attempt.lateness_ms,
        duration_ms=attempt.duration_ms,
        outcome=attempt.outcome,
        late_seconds=attempt.at_ms // 1000 - attempt.entry_second,
        status_code=attempt.status_code,
        note=attempt.note,
    )


def history_from(source: str) -> tuple[Attempt, ...]:
    """Of a history that was edited to be longer, the part that is kept."""
    return tuple(row.attempt for row in _attempts.decode(source)[-HISTORY_MAX:])


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
