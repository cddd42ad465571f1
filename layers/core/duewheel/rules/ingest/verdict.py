"""The end of a message that requests tasks: done, another try, or a dead letter.

Invariant: a task that is left for another try, or is in a dead letter, keeps the idempotency key of
the request that created the other tasks, or that gave this one up. So no task is created twice.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Raw, Struct

from duewheel.rules.callbacks.payload_encoding import ATTEMPT, NOT_IN_A_MESSAGE
from duewheel.rules.ingest.message import KEY_ATTRIBUTE, IngestMessage
from duewheel.rules.instants import rfc3339
from duewheel.rules.refusals import (
    CreatedBefore,
    IdempotencyKeyInUse,
    Refusal,
    TooManyCreates,
    Unavailable,
    UnknownTask,
    UnreadableItem,
)
from duewheel.rules.tasks.idempotency import is_key, key_of_rest
from duewheel.rules.tasks.requests import BATCH_MEMBER
from duewheel.rules.tasks.task import Made

# The queue's maxReceiveCount, the most that SQS takes. A message is also received when Lambda has
# no run for it. At one receive each 90 s LAST_TRY_AFTER_MS is reached first.
RECEIVES_MAX = 1_000
WAIT_SECONDS_MAX = 900
LAST_TRY_AFTER_MS = 20 * 3_600_000  # since it was first received

CAME_AS = "message-id"  # of a dead letter: the id of the message that came
REASONS_CHARACTERS_MAX = 30_000  # what a message may have, less what one that is taken may
_DETAIL_CHARACTERS_MAX = 500
_VALUE_CHARACTERS_MAX = 256
_PASSING = (TooManyCreates, Unavailable, IdempotencyKeyInUse, UnreadableItem)


class Reason(Struct, frozen=True):
    """Why a message, or a task of it, was not carried out: the text of a problem document."""

    problem: str
    detail: str
    field: str | None = None

    def members(self) -> dict[str, str]:
        members = {"problem": self.problem, "detail": _cut(self.detail, _DETAIL_CHARACTERS_MAX)}
        if self.field is not None:
            members["field"] = _cut(self.field, _VALUE_CHARACTERS_MAX)
        return members


class DeadLetter(Struct, frozen=True):
    body: str
    attributes: Mapping[str, str]


class Verdict(Struct, frozen=True):
    """`wait_seconds`: until the queue delivers it again; None if it is done."""

    wait_seconds: int | None = None
    letter: DeadLetter | None = None


def failed(request_id: str) -> Reason:
    """Names the log record, and gives no details of the error."""
    detail = f"The ingest function's log says more under request id {request_id}."
    return Reason("internal", detail)


def is_last_try(message: IngestMessage, now_ms: int) -> bool:
    age_ms = now_ms - message.first_received_ms
    return message.receives >= RECEIVES_MAX or age_ms >= LAST_TRY_AFTER_MS


def judged(
    message: IngestMessage,
    bodies: Sequence[Raw] | None,
    results: Sequence[Made | Refusal],
    random_unit: float,
    *,
    is_last: bool,
) -> Verdict:
    """Created tasks stay created; only refused ones become dead letters. Without the bodies of a
    batch there is one result, for the whole message."""
    refusals = refused(results)
    if not refusals:
        return Verdict()
    if not gives_up(list(refusals.values()), is_last=is_last):
        return Verdict(_wait_seconds(refusals.values(), message.receives, random_unit))
    reasons = {index: _reason(refusal) for index, refusal in refusals.items()}
    first, *_ = reasons.values()
    if bodies is None:
        return Verdict(letter=whole_letter(message, first))
    listed = {"problems": _listed(reasons)}
    if len(refusals) == len(results):
        return Verdict(letter=whole_letter(message, first, listed))
    rest = ",".join(bytes(bodies[index]).decode() for index in refusals)
    body = f'{{"{BATCH_MEMBER}":[{rest}]}}'
    key = {KEY_ATTRIBUTE: key_of_rest(message.key, body)}
    return Verdict(letter=DeadLetter(body, {**_attributes(message, first), **key, **listed}))


def refused(results: Sequence[Made | Refusal]) -> dict[int, Refusal]:
    """The refused tasks. A task that an earlier try created is not among them, even if it was
    deleted since."""
    return {
        index: result
        for index, result in enumerate(results)
        if isinstance(result, Refusal) and not isinstance(result, UnknownTask | CreatedBefore)
    }


def gives_up(refusals: Sequence[Refusal], *, is_last: bool) -> bool:
    """True if no refused task will be tried again."""
    return is_last or not any(isinstance(refusal, _PASSING) for refusal in refusals)


def whole_letter(
    message: IngestMessage, reason: Reason, more: Mapping[str, str] | None = None
) -> DeadLetter:
    """The attributes of the message, with its idempotency key if that is valid: a message that is
    sent again is the same request. The mark of a callback stays as well."""
    kept = {KEY_ATTRIBUTE: message.key} if is_key(message.key) else {}
    if ATTEMPT in message.attributes:
        kept[ATTEMPT] = _cut(message.attributes[ATTEMPT], _VALUE_CHARACTERS_MAX)
    return DeadLetter(message.body, {**_attributes(message, reason), **kept, **(more or {})})


def _attributes(message: IngestMessage, reason: Reason) -> dict[str, str]:
    origin = {CAME_AS: message.message_id, "sent-at": rfc3339(message.sent_ms)}
    return {**reason.members(), **origin}


def _listed(reasons: Mapping[int, Reason]) -> str:
    """As many as fit, in the order of the dead letter's tasks. `index`: the position of the task in
    the original message."""
    room = REASONS_CHARACTERS_MAX
    texts = []
    for index, reason in reasons.items():
        text = json.dumps({"index": index, **reason.members()}, separators=(",", ":"))
        room -= len(text) + 1
        if room < 0:
            break
        texts.append(text)
    return f"[{','.join(texts)}]"


def _wait_seconds(refusals: Iterable[Refusal], receives: int, random_unit: float) -> int:
    """Longer each time, with jitter: messages that wait for a limit must not return together."""
    least = max(_retry_after_seconds(refusal) for refusal in refusals)
    ceiling = min(WAIT_SECONDS_MAX, least << min(receives, 10))
    return min(WAIT_SECONDS_MAX, max(least, math.ceil(ceiling * random_unit)))


def _retry_after_seconds(refusal: Refusal) -> int:
    return refusal.retry_after_seconds if isinstance(refusal, TooManyCreates) else 1


def _reason(refusal: Refusal) -> Reason:
    return Reason(refusal.type, refusal.detail, refusal.field)


def _cut(text: str, characters_max: int) -> str:
    """As an attribute can hold it. None is ever empty."""
    return NOT_IN_A_MESSAGE.sub("\N{REPLACEMENT CHARACTER}", text[:characters_max]) or "?"
