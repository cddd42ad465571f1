"""Create under an idempotency key: a repeated request gets the answer of the first.

The request is claimed, its tasks are created, and what does not follow from them is recorded; only
then is it answered. A repeat that finds all tasks answers from the record and them. One that does
not takes the request over, when the lease of its claim is over.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules.refusals import (
    CreatedBefore,
    IdempotencyKeyInUse,
    Refusal,
    TooManyWrites,
    Unavailable,
    UnknownTask,
)
from duewheel.rules.tasks import idempotency
from duewheel.rules.tasks.idempotency import (
    BY_SETTINGS,
    Claim,
    IdempotentRequest,
    RequestRecord,
    State,
)
from duewheel.rules.tasks.task import Made, NewTask, Task
from duewheel.rules.wheel.addresses import Address
from duewheel.rules.wheel.sharding import Placement
from duewheel.stores.dynamodb import unavailable_when_throttled
from duewheel.stores.tasks.idempotency_records import RequestRecords
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.tasks.create_tasks import CreateTasks
from duewheel.workflows.tasks.write_entries import EntryWriter

Requested = Sequence[NewTask | Refusal]
Parse = Callable[[int], Requested]  # parses the body, with the given time
# Whether these refusals of a request are final: it is not repeated because of them.
GivesUp = Callable[[Sequence[Refusal]], bool]
_REPEAT = "Too many requests at once. Repeat this one."


def _never(_: Sequence[Refusal]) -> bool:
    return False


class CreateIdempotent(Struct, frozen=True, kw_only=True):
    records: RequestRecords
    tasks: TaskStore
    create_tasks: CreateTasks
    entry_writer: EntryWriter
    random_text: Callable[[], str]

    def __call__(
        self, request: IdempotentRequest, parse: Parse, gives_up: GivesUp = _never
    ) -> list[Made | Refusal]:
        """Answers per task, in order."""
        with unavailable_when_throttled(Unavailable(_REPEAT)):
            return self._results(request, parse, gives_up)

    def _results(
        self, request: IdempotentRequest, parse: Parse, gives_up: GivesUp
    ) -> list[Made | Refusal]:
        placement = self.entry_writer.placement()
        now_ms = placement.now_ms
        read_ms = request.read_ms(now_ms)
        requested = parse(read_ms)  # may refuse the whole request, before it is claimed
        news = {n: new for n, new in enumerate(requested) if isinstance(new, NewTask)}
        mine = idempotency.claimed(request, self._claim(0, news, placement))
        current = self.records.claim(mine)
        if current is None:
            return self._carry_out(request, mine, requested, gives_up)
        idempotency.check_repeat(request, current)
        requested = parse(current.requested_ms)
        if current.state is State.DONE:
            return self._answers(current, requested, {})
        found, is_whole = self._found(current, requested)
        if is_whole and request.is_outlived:
            return self._answers(idempotency.finished(current), requested, {})
        idempotency.check_takeover(request, current, now_ms)
        mine = self._take_over(request, current, requested, found)
        return self._carry_out(request, mine, requested, gives_up)

    def _found(self, record: RequestRecord, requested: Requested) -> tuple[list[int], bool]:
        """The tasks that the latest claim created, and whether these are all that were missing."""
        sought = record.sought(requested)
        present = self.tasks.present(sought.values())
        found = [index for index, home in sought.items() if home in present]
        return found, len(found) == len(sought)

    def _take_over(
        self,
        request: IdempotentRequest,
        current: RequestRecord,
        requested: Requested,
        found: Sequence[int],
        *,
        is_throttled: bool = False,
    ) -> RequestRecord:
        """The tasks were read before this claims: if this invocation crashes as well, its findings
        are recorded, and the next one reads only the places of this claim."""
        news = {
            index: new
            for index, new in enumerate(requested)
            if isinstance(new, NewTask) and index not in current.outcomes and index not in found
        }
        placement = self.entry_writer.placement()
        number = current.latest.number + 1
        claim = self._claim(number, news, placement, is_throttled=is_throttled)
        mine = idempotency.taken_over(request, current, found, claim)
        self._replace(current, mine)
        return mine

    def _carry_out(
        self,
        request: IdempotentRequest,
        mine: RequestRecord,
        requested: Requested,
        gives_up: GivesUp,
        *,
        is_last: bool = False,
    ) -> list[Made | Refusal]:
        """Tasks that DynamoDB throttles under this claim are claimed again, once."""
        missing = mine.unsettled(requested)
        # If this raises, a write may still be carried out: the lease stays, and a repeat of the
        # request waits for its end.
        created = self.create_tasks.store(list(missing.values()))
        results = dict(zip(missing, created, strict=True))
        is_claimed_anew = not is_last and any(isinstance(r, TooManyWrites) for r in created)
        if not is_claimed_anew:
            results |= self._there_all_the_same(missing, results)
        is_rest_given_up = not is_claimed_anew and _is_rest_given_up(
            {**dict(enumerate(requested)), **mine.outcomes, **results}, gives_up
        )
        answers = {**_not_allowed(requested, mine), **results}
        ended = idempotency.ended(request, mine, answers, is_rest_given_up=is_rest_given_up)
        now_ms = self.entry_writer.clock.now_ms()
        if not idempotency.shows_its_end(request, mine, ended, now_ms):
            self._replace(mine, ended)
        if is_claimed_anew:
            found, _ = self._found(ended, requested)
            again = self._take_over(request, ended, requested, found, is_throttled=True)
            return self._carry_out(request, again, requested, gives_up, is_last=True)
        return self._answers(mine, requested, results)

    def _there_all_the_same(
        self, missing: Mapping[int, Task], results: Mapping[int, Made | Refusal]
    ) -> dict[int, Made]:
        """A throttled write may have been carried out by an earlier try of the SDK."""
        refused = [index for index, r in results.items() if isinstance(r, TooManyWrites)]
        there, _ = self.tasks.home_states(missing[index].home for index in refused)
        self.entry_writer.announce(there)
        return {index: Made(missing[index]) for index in refused if missing[index].home in there}

    def _answers(
        self, record: RequestRecord, requested: Requested, results: Mapping[int, Made | Refusal]
    ) -> list[Made | Refusal]:
        """`results` are those of this invocation; the other answers follow from the record."""
        answers: list[Made | Refusal | Address] = [
            _refused(index, new, record)
            if isinstance(new, Refusal)
            else results.get(index) or record.result(index, new)
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

    def _claim(
        self,
        number: int,
        news: Mapping[int, NewTask],
        placement: Placement,
        *,
        is_throttled: bool = False,
    ) -> Claim:
        """A claim for these tasks, with all that their homes follow from."""
        tolerances = self.create_tasks.admission.tolerances(new.window for new in news.values())
        claim = Claim(number, self.random_text(), replace(placement, tolerances=tolerances))
        wanted = [(new.window, claim.random_bytes(index)) for index, new in news.items()]
        placement = self.entry_writer.with_shards(
            claim.placement, wanted, is_throttled=is_throttled
        )
        return replace(claim, placement=placement)


def _is_rest_given_up(known: Mapping[int, object], gives_up: GivesUp) -> bool:
    """If all tasks were refused, there is no rest: the same request may be sent again."""
    refused = [result for result in known.values() if isinstance(result, Refusal)]
    return len(refused) < len(known) and gives_up(refused)


def _not_allowed(requested: Requested, record: RequestRecord) -> dict[int, Refusal]:
    """They may be allowed when the request is repeated, and are created then. A task that was
    created while it was allowed stays."""
    return {
        index: new
        for index, new in enumerate(requested)
        if isinstance(new, BY_SETTINGS) and index not in record.outcomes
    }


def _refused(index: int, refusal: Refusal, record: RequestRecord) -> Refusal:
    """The answer for a task that is refused now. If only settings refuse it now, and the finished
    record shows that it was created, it stays created."""
    if not isinstance(refusal, BY_SETTINGS):
        return refusal
    match record.outcomes.get(index):
        case None:
            return CreatedBefore() if record.state is State.DONE else refusal
        case Refusal() as answers:
            return answers
        case _:
            return CreatedBefore()
