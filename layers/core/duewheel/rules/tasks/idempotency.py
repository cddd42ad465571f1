"""Idempotency: a request is carried out once. What is recorded, and what a repeat gets.

Nothing is recorded that can be computed again. A repeat has the same body. Parsed with the time of
the first request, it requests the same tasks, and their places follow from the claim under which
they were created.

Invariant: a task whose outcome is not recorded is where the latest claim would put it, or nowhere.
A process that takes a request over looks there, and then claims.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from hashlib import blake2b

from msgspec import Struct, field
from msgspec.structs import replace

from duewheel.rules.fields import invalid
from duewheel.rules.refusals import (
    IdempotencyKeyInUse,
    IdempotencyKeyReused,
    InvalidField,
    KeyTaken,
    Refusal,
    recalled,
)
from duewheel.rules.tasks.task import Made, NewTask, Task
from duewheel.rules.wheel.addresses import TOKEN_BYTES, Address
from duewheel.rules.wheel.sharding import Placement

HEADER = "idempotency-key"
CLAIM_TOKEN_BYTES = 16
REMEMBERED_SECONDS = 86_400
# Longer than the api function's Timeout (29 s) by much more than the clock difference and the time
# of a request that the SDK has abandoned. So after the end of a lease its owner can no longer
# write: Lambda has ended it, and before an answer it waits for all of its own writes.
LEASE_MS = 45_000

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


class Claim(Struct, frozen=True):
    """The right of one invocation to carry a request out. The random token identifies its owner,
    and the places of the tasks that are created under it follow from it."""

    number: int
    token: str
    placement: Placement

    def task(self, index: int, new: NewTask) -> Task:
        """The task at this place of the request, as it is when this claim creates it."""
        mark = blake2b(str(index).encode(), key=self.token.encode(), digest_size=TOKEN_BYTES)
        return new.placed(self.placement, mark.digest())


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


def check_repeat(request: IdempotentRequest, record: RequestRecord, now_ms: int) -> None:
    """Refuse a request that can neither be answered from this record nor taken over."""
    if request.digest != record.digest:
        raise IdempotencyKeyReused("This key came with another request before.", HEADER)
    if record.state is State.RUNNING and now_ms < record.lease_until_ms:
        raise IdempotencyKeyInUse("The first request with this key is still at work.", HEADER)


def taken_over(
    request: IdempotentRequest, record: RequestRecord, found: Iterable[int], claim: Claim
) -> RequestRecord:
    """`found`: the tasks that the latest claim created. A task that is not found is created anew:
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
