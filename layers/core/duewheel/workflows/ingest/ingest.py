"""Create the tasks of a message once, then delete the message, retry it, or write a dead letter.

The order: create the tasks, write the dead letter of the tasks that were refused for good, then
delete the message. If a run crashes in between, the message comes back: its tasks are found, and
its dead letter is written again. The record of the request marks a task as given up before its dead
letter is written, so the task is not created as well.
"""

from collections.abc import Callable, Sequence

from msgspec import Raw, Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.access.grants import Permit
from duewheel.rules.callbacks.allowed_targets import AllowedTargets
from duewheel.rules.ingest import verdict as ingest_verdict
from duewheel.rules.ingest.message import IngestMessage, request_of, wanted
from duewheel.rules.ingest.verdict import Reason, Verdict
from duewheel.rules.refusals import Refusal
from duewheel.rules.tasks.task import Made, NewTask
from duewheel.stores.ingest.queue import IngestQueue
from duewheel.workflows.tasks.create_idempotent import CreateIdempotent

_FAILED_STATUS = 500


class Ingested(Struct, frozen=True):
    """`status`: the HTTP status of the same request. `problem`: the first refusal."""

    status: int
    task_ids: Sequence[str] = ()
    problem: str | None = None
    is_left: bool = False


class Ingest(Struct, frozen=True, kw_only=True):
    clock: Clock
    create_idempotent: CreateIdempotent
    queue: IngestQueue
    permit: Permit
    allowed: AllowedTargets
    random_unit: Callable[[], float]

    def __call__(self, message: IngestMessage, request_id: str) -> Ingested:
        is_last = ingest_verdict.is_last_try(message, self.clock.now_ms())
        try:
            bodies, results = self._created(message, is_last=is_last)
        except Refusal as refusal:  # of the message as a whole
            bodies, results = None, [refusal]
        except Exception:
            if not is_last:
                raise
            logger.exception(
                "message given up", action="message-failed", message_id=message.message_id
            )
            return self._given_up(message, ingest_verdict.failed(request_id))
        verdict = ingest_verdict.judged(
            message, bodies, results, self.random_unit(), is_last=is_last
        )
        self._carry_out(message, verdict)
        return _ingested(results, verdict, is_single=bodies is None)

    def _created(
        self, message: IngestMessage, *, is_last: bool
    ) -> tuple[Sequence[Raw] | None, list[Made | Refusal]]:
        asks = wanted(message)

        def parse(read_ms: int) -> list[NewTask | Refusal]:
            return asks.tasks(read_ms, self.allowed, self.permit)

        def gives_up(refusals: Sequence[Refusal]) -> bool:
            return ingest_verdict.gives_up(refusals, is_last=is_last)

        request = request_of(message, is_single=asks.is_single)
        return asks.bodies, self.create_idempotent(request, parse, gives_up)

    def _given_up(self, message: IngestMessage, reason: Reason) -> Ingested:
        self.queue.give_up(ingest_verdict.whole_letter(message, reason))
        return Ingested(_FAILED_STATUS, problem=reason.problem)

    def _carry_out(self, message: IngestMessage, verdict: Verdict) -> None:
        if verdict.letter is not None:
            self.queue.give_up(verdict.letter)
        if verdict.wait_seconds is not None:
            self.queue.hide(message.receipt_handle, verdict.wait_seconds)


def _ingested(results: Sequence[Made | Refusal], verdict: Verdict, *, is_single: bool) -> Ingested:
    refusals = list(ingest_verdict.refused(results).values())
    made = [result for result in results if isinstance(result, Made)]
    status = 200
    if is_single:
        status = refusals[0].status if refusals else 201 if made and made[0].is_new else 200
    return Ingested(
        status,
        [result.task.task_id for result in made],
        refusals[0].type if refusals else None,
        is_left=verdict.wait_seconds is not None,
    )
