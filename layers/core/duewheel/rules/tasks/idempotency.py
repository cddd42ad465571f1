"""Idempotency: a request is carried out once. What is recorded, and what a repeat gets.

Nothing is recorded that can be computed again. A repeat has the same body. Parsed with the time of
the first request, it requests the same tasks, and their places follow from the claim under which
they were created.

Invariant: a task whose outcome is not recorded is where the latest claim would put it, or nowhere.
A repeat looks there. If every task is there, the request was carried out, and nothing else needs to
say so; otherwise the repeat may claim it. This holds as long as no task is deleted while its record
is kept; a record that is kept for longer is marked as done.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from hashlib import blake2b

from msgspec import Struct, field
from msgspec.structs import replace

from duewheel.rules.businesses.settings import RETENTION_SECONDS_MIN
from duewheel.rules.fields import invalid
from duewheel.rules.refusals import (
    IdempotencyKeyInUse,
    IdempotencyKeyReused,
    InvalidField,
    KeyTaken,
    NotPermitted,
    Refusal,
    TargetNotEnabled,
    recalled,
)
from duewheel.rules.tasks.task import Made, NewTask, Task
from duewheel.rules.tolerance import Window
from duewheel.rules.wheel.addresses import TOKEN_BYTES, Address
from duewheel.rules.wheel.sharding import Placement

HEADER = "idempotency-key"
CLAIM_TOKEN_BYTES = 16
REMEMBERED_SECONDS = 86_400
# Longer than the api function's Timeout (29 s) by much more than the clock difference and the time
# of a request that the SDK has abandoned. So after the end of a lease its owner can no longer
# write: Lambda has ended it, and before an answer it waits for all of its own writes.
LEASE_MS = 45_000
# A task may be deleted this much earlier than `RETENTION_SECONDS_MIN` after its claim: two clocks
# may differ by 2 s each, and `expires_at` is in whole seconds.
DELETED_EARLY_MS_MAX = 5_000

BY_SETTINGS = (NotPermitted, TargetNotEnabled)  # which may be others when a request is repeated

_VISIBLE_ASCII = re.compile(r"[!-~]{1,255}")

# The result of one task of a request: created under the claim of this number; found live under its
# own key at this home; or refused, since that key names another or since it was given up.
Outcome = int | Address | Refusal

_GIVEN_UP_CHARACTERS_MAX = 300  # of a detail, and of a field: 500 of both fit into an item


class IdempotentRequest(Struct, frozen=True, kw_only=True):
    """A request under an idempotency key: the parts by which repeats are recognised."""

    name: str  # of caller and key
    digest: str  # of path and body
    is_single: bool
    # When it was sent, if it was not received then. Its body is parsed with this time.
    sent_ms: int | None = None
    remembered_seconds: int = REMEMBERED_SECONDS

    def read_ms(self, now_ms: int) -> int:
        return now_ms if self.sent_ms is None else self.sent_ms

    @property
    def is_outlived(self) -> bool:
        """Whether each of its tasks is kept for as long as its record, however soon it ends."""
        return self.remembered_seconds <= RETENTION_SECONDS_MIN


class Claim(Struct, frozen=True):
    """The right of one invocation to carry a request out. The random token identifies its owner,
    and the places of the tasks that are created under it follow from it."""

    number: int
    token: str
    placement: Placement

    def task(self, index: int, new: NewTask) -> Task:
        """The task at this place of the request, as it is when this claim creates it."""
        return new.placed(self.placement, self.random_bytes(index))

    def home(self, index: int, window: Window) -> Address:
        """The home of that task."""
        random_bytes = self.random_bytes(index)
        due_ms = self.placement.due_ms(window, random_bytes)
        return self.placement.address(due_ms, random_bytes)

    def random_bytes(self, index: int) -> bytes:
        mark = blake2b(str(index).encode(), key=self.token.encode(), digest_size=TOKEN_BYTES)
        return mark.digest()


class State(StrEnum):
    RUNNING = "running"  # also when left unfinished: then without a lease
    DONE = "done"
    RELEASED = "released"  # refused, and nothing was created: as if there had been no request


class RequestRecord(Struct, frozen=True, kw_only=True):
    name: str
    digest: str
    requested_ms: int  # the time that the body is read with; what `delay_seconds` counts from
    claims: tuple[Claim, ...]  # under which tasks were created, and at the end the latest
    lease_until_ms: int
    # Counted from the latest claim, under which tasks may have been created a moment ago.
    expires_at: int
    state: State = State.RUNNING
    # By the task's index. What is left out of a finished record was created by the latest claim.
    outcomes: Mapping[int, Outcome] = field(default_factory=dict)

    @property
    def latest(self) -> Claim:
        return self.claims[-1]

    def result(self, index: int, new: NewTask) -> Made | Refusal | Address:
        """The result of the task; the home of a task that was live already, which has to be
        read."""
        match self.outcomes.get(index, self.latest.number):
            case int(number):
                (claim,) = (claim for claim in self.claims if claim.number == number)
                return Made(claim.task(index, new))
            case outcome:
                return outcome

    def unsettled(self, requested: Sequence[NewTask | Refusal]) -> dict[int, Task]:
        """The tasks without an outcome, where the latest claim would put them."""
        return {
            index: self.latest.task(index, new)
            for index, new in enumerate(requested)
            if isinstance(new, NewTask) and index not in self.outcomes
        }

    def sought(self, requested: Sequence[NewTask | Refusal]) -> dict[int, Address]:
        """The homes of the tasks without an outcome, where the latest claim would put them; also of
        those that are refused by now, and may have been created when they were allowed."""
        return {
            index: self.latest.home(index, new.window)
            for index, new in enumerate(requested)
            if isinstance(new, NewTask | NotPermitted | TargetNotEnabled)
            and new.window is not None
            and index not in self.outcomes
        }


def is_key(text: str) -> bool:
    return _VISIBLE_ASCII.fullmatch(text) is not None


def idempotent_request(
    caller: str,
    key: str,
    path: str,
    body: str,
    *,
    is_single: bool,
    sent_ms: int | None = None,
    remembered_seconds: int = REMEMBERED_SECONDS,
) -> IdempotentRequest:
    if not is_key(key):
        raise invalid(HEADER, "must be 1 to 255 visible ASCII characters.")
    return IdempotentRequest(
        name=_hash(caller, key),
        digest=_hash(path, body),
        is_single=is_single,
        sent_ms=sent_ms,
        remembered_seconds=remembered_seconds,
    )


def key_of_rest(key: str, body: str) -> str:
    """The key under which the given-up rest of a request becomes another request. It is the same
    however often it is computed."""
    return f"rest-of-{_hash(key, body)}"


def claimed(request: IdempotentRequest, claim: Claim) -> RequestRecord:
    now_ms = claim.placement.now_ms
    return RequestRecord(
        name=request.name,
        digest=request.digest,
        requested_ms=request.read_ms(now_ms),
        claims=(claim,),
        lease_until_ms=now_ms + LEASE_MS,
        expires_at=_expires_at(request, now_ms),
    )


def _expires_at(request: IdempotentRequest, now_ms: int) -> int:
    return -(-now_ms // 1000) + request.remembered_seconds


def check_repeat(request: IdempotentRequest, record: RequestRecord) -> None:
    check_same(request, record.digest)


def check_same(request: IdempotentRequest, digest: str) -> None:
    if request.digest != digest:
        raise IdempotencyKeyReused("This key came with another request before.", HEADER)


def check_takeover(request: IdempotentRequest, record: RequestRecord, now_ms: int) -> None:
    """Refuse a request of which a task is missing, if it may still be created, or may have been
    deleted."""
    if now_ms < record.lease_until_ms:
        raise IdempotencyKeyInUse("The first request with this key is still at work.", HEADER)
    age_ms = now_ms - record.latest.placement.now_ms
    if request.is_outlived and age_ms >= RETENTION_SECONDS_MIN * 1000 - DELETED_EARLY_MS_MAX:
        raise IdempotencyKeyInUse("The key is free again in a few seconds.", HEADER)


def finished(record: RequestRecord) -> RequestRecord:
    """The record of a request whose tasks have all been found."""
    return replace(record, state=State.DONE, lease_until_ms=0)


def shows_its_end(
    request: IdempotentRequest, record: RequestRecord, after: RequestRecord, now_ms: int
) -> bool:
    """Whether a repeat derives from `record` and the tasks what it would derive from `after`, so
    that this need not be written. It is written by an owner whose lease is over: another may
    have claimed the request."""
    return request.is_outlived and after == finished(record) and now_ms < record.lease_until_ms


def taken_over(
    request: IdempotentRequest, record: RequestRecord, found: Iterable[int], claim: Claim
) -> RequestRecord:
    """`found`: the tasks that the latest claim created. A task that is not found is created again:
    its old place may lie in the past."""
    created = dict.fromkeys(found, record.latest.number)
    outcomes: dict[int, Outcome] = {**record.outcomes, **created}
    return replace(
        record,
        claims=(*(old for old in record.claims if old.number in outcomes.values()), claim),
        lease_until_ms=claim.placement.now_ms + LEASE_MS,
        expires_at=_expires_at(request, claim.placement.now_ms),
        outcomes=outcomes,
    )


def ended(
    request: IdempotentRequest,
    record: RequestRecord,
    results: Mapping[int, Made | Refusal],
    *,
    is_rest_given_up: bool = False,
) -> RequestRecord:
    """Done; or left for a repeat if a task was refused that another try may create, also by the
    settings of a business, since these may change. The results are recorded, since a repeat may
    come after the created tasks were deleted. No repeat creates a task that was given up."""
    outcomes = dict(record.outcomes)
    state = State.DONE
    for index, result in results.items():
        match result:
            case KeyTaken():
                outcomes[index] = result
            case Refusal() if is_rest_given_up:
                outcomes[index] = _given_up(result)
            case Refusal():
                state = State.RUNNING
            case Made(is_new=False):
                outcomes[index] = result.task.home
            case _:
                pass
    if state is State.RUNNING:
        created = (n for n, r in results.items() if isinstance(r, Made) and r.is_new)
        outcomes.update(dict.fromkeys(created, record.latest.number))
    if request.is_single and any(isinstance(r, KeyTaken | InvalidField) for r in results.values()):
        state = State.RELEASED
    return replace(record, outcomes=outcomes, state=state, lease_until_ms=0)


def _given_up(refusal: Refusal) -> Refusal:
    def short(text: str) -> str:
        return text[:_GIVEN_UP_CHARACTERS_MAX].encode("ascii", "replace").decode()

    field = None if refusal.field is None else short(refusal.field)
    return recalled(refusal.type, short(refusal.detail), field)


def _hash(*texts: str) -> str:
    digest = blake2b(digest_size=32)
    for raw in map(str.encode, texts):
        digest.update(len(raw).to_bytes(8, "big"))  # so that no two lists of texts run together
        digest.update(raw)
    return digest.hexdigest()
