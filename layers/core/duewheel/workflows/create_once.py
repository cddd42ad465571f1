"""Create under an idempotency key: whoever repeats a request gets what the first came to.

The request is claimed, its tasks are created, and what they came to is recorded; only then is it
answered. Who finds it unfinished, and its claim's lease over, takes it over.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from duewheel.rules import idempotency
from duewheel.rules.addresses import Address
from duewheel.rules.idempotency import Asked, Claim, RequestRecord, State
from duewheel.rules.placing import Placing
from duewheel.rules.refusals import IdempotencyKeyInUse, Refusal, Unavailable, UnknownTask
from duewheel.rules.task import Made, NewTask
from duewheel.stores.conditions import Throttled
from duewheel.stores.request_records import RequestRecords
from duewheel.stores.tasks import TaskStore
from duewheel.workflows.create_batch import CreateBatch

Requested = Sequence[NewTask | Refusal]
Parse = Callable[[int], Requested]  # reads the body, with the time that it is given


@dataclass(frozen=True, slots=True)
class CreateOnce:
    records: RequestRecords
    tasks: TaskStore
    create_batch: CreateBatch
    placing: Callable[[], Placing]
    random_text: Callable[[], str]

    def __call__(self, asked: Asked, parse: Parse) -> list[Made | Refusal]:
        """Answers per task, in order."""
        try:
            return self._results(asked, parse)
        except Throttled as throttled:
            raise Unavailable("Too many requests at once. Repeat this one.") from throttled

    def _results(self, asked: Asked, parse: Parse) -> list[Made | Refusal]:
        claim = self._claim(0)
        now_ms = claim.placing.now_ms
        requested = parse(now_ms)  # what is refused whole is refused before anything is claimed
        mine = idempotency.claimed(asked, claim)
        stands = self.records.claim(mine)
        if stands is None:
            return self._carry_out(asked, mine, requested)
        idempotency.check_repeat(asked, stands, now_ms)
        requested = parse(stands.asked_ms)
        if stands.state is State.DONE:
            return self._answers(stands, requested, {})
        return self._carry_out(asked, self._take_over(stands, requested), requested)

    def _take_over(self, stands: RequestRecord, requested: Requested) -> RequestRecord:
        """Look first, then claim: should this invocation die as well, what it has found is
        recorded, and the next one has to look at no other claim's places than its own."""
        sought = {task.home: index for index, task in stands.unsettled(requested).items()}
        states, _ = self.tasks.home_states(sought)
        found = [sought[home] for home in states]
        mine = idempotency.taken_over(stands, found, self._claim(stands.latest.number + 1))
        self._replace(stands, mine)
        return mine

    def _carry_out(
        self, asked: Asked, mine: RequestRecord, requested: Requested
    ) -> list[Made | Refusal]:
        missing = mine.unsettled(requested)
        # If this raises, a write may still be on its way: the lease stands, and whoever repeats
        # the request waits until it has run out.
        created = self.create_batch.store(list(missing.values()))
        results = dict(zip(missing, created, strict=True))
        self._replace(mine, idempotency.ended(asked, mine, results))
        return self._answers(mine, requested, results)

    def _answers(
        self, record: RequestRecord, requested: Requested, results: Mapping[int, Made | Refusal]
    ) -> list[Made | Refusal]:
        """`results` are those of this very invocation; the others are told by the record."""
        answers: list[Made | Refusal | Address] = [
            new if isinstance(new, Refusal) else results.get(index) or record.result(index, new)
            for index, new in enumerate(requested)
        ]
        live = self.tasks.get_many(answer for answer in answers if isinstance(answer, Address))
        gone = UnknownTask("The task that the key named has been deleted since.", "key")
        return [
            (Made(live[answer], is_new=False) if answer in live else gone)
            if isinstance(answer, Address)
            else answer
            for answer in answers
        ]

    def _replace(self, seen: RequestRecord, after: RequestRecord) -> None:
        if not self.records.replace(seen, after):
            raise IdempotencyKeyInUse(
                "Another request with this key was faster.", idempotency.HEADER
            )

    def _claim(self, number: int) -> Claim:
        return Claim(number, self.random_text(), self.placing())
