"""Step records of timers in the Registry.

A record is named by its content, so planning the same step again writes the same record, and no
record replaces another.
"""

from collections.abc import Iterator
from hashlib import blake2s
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct
from msgspec.json import Decoder, encode

from duewheel.clock import Clock
from duewheel.rules.timers.planning import OCCURRENCES_MAX
from duewheel.rules.timers.step_records import KEPT_LONGER_SECONDS, Search, StepRecord
from duewheel.rules.wheel.addresses import SECOND_MAX, Address, Second
from duewheel.rules.wheel.queue_messages import NOT_UNDERSTOOD
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import Item, written
from duewheel.stores.item_attributes import integer, reported
from duewheel.stores.tasks.plan_codec import sizes_from, sizes_row

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_READ_AT_ONCE = 20  # a page of a timer of every second needs a dozen
_DIGEST_BYTES = 8


_Numbers = Annotated[list[int], Meta(max_length=OCCURRENCES_MAX)]


class _StepRow(Struct, array_like=True, forbid_unknown_fields=True):
    """`first`: the first nominal second. `distances` of each to the one before, `delays` from each
    to the second in which it is due: a negative number repeats the one before it so many times
    more. `sizes` as in a chain."""

    first: Second
    distances: _Numbers
    delays: _Numbers
    sizes: list[Any]


_row = Decoder(_StepRow)


class StepRecordStore(Struct, frozen=True):
    client: "DynamoDBClient"
    clock: Clock
    table: str

    def put(self, record: StepRecord, kept_seconds: int) -> None:
        """`kept_seconds`: how long its occurrences are kept after they have ended."""
        row = encode(_row_of(record))
        digest = blake2s(row, digest_size=_DIGEST_BYTES).hexdigest()
        expires_at = record.last_due + kept_seconds + KEPT_LONGER_SECONDS
        item = {
            **registry_keys.timer_step(record.timer_id, record.first_due, digest),
            "step": {"S": row.decode()},
            "expires_at": {"N": str(expires_at)},
        }
        written(self.client.put_item, TableName=self.table, Item=item)

    def page(
        self,
        timer_id: str,
        *,
        newest_first: bool,
        behind: str | None,
        limit: int,
        consistent: bool = False,
    ) -> tuple[list[Address], bool]:
        """The next occurrences that are named behind a place, in order, and whether there may be
        more. Not each of them exists."""
        search = Search(newest_first=newest_first, behind=behind)
        for items, read_to in self._read(timer_id, search.begins, newest_first, consistent):
            for item in items:
                if (record := self._record(item)) is not None:
                    search.add(record)
            homes, goes_on = search.page(limit, read_to)
            if len(homes) == limit or not goes_on:
                break
        return homes, goes_on

    def _read(
        self, timer_id: str, begins: tuple[int, int], newest_first: bool, consistent: bool
    ) -> Iterator[tuple[list[Item], int | None]]:
        """A batch after the other, with the second in which the last one begins; None: there are no
        more."""
        low, high = registry_keys.timer_steps(*begins)
        start: dict[str, Any] = {}
        while True:
            answer: Any = self.client.query(
                TableName=self.table,
                KeyConditionExpression="#kind = :kind AND #record BETWEEN :low AND :high",
                ExpressionAttributeNames={"#kind": "kind", "#record": "record"},
                ExpressionAttributeValues={
                    ":kind": {"S": registry_keys.timer_kind(timer_id)},
                    ":low": {"S": low},
                    ":high": {"S": high},
                },
                ScanIndexForward=not newest_first,
                Limit=_READ_AT_ONCE,
                ConsistentRead=consistent,
                **start,
            )
            last = answer.get("LastEvaluatedKey")
            if last is None:
                yield answer["Items"], None
                return
            yield answer["Items"], registry_keys.first_second_of_step(last)
            start = {"ExclusiveStartKey": last}

    def _record(self, item: Item) -> StepRecord | None:
        """None for one that has expired, and for a damaged one, which is reported."""
        try:
            if int(item["expires_at"]["N"]) * 1000 <= self.clock.now_ms():
                return None
            return _record_from(_row.decode(item["step"]["S"]), registry_keys.timer_id_of(item))
        except NOT_UNDERSTOOD:
            reported(item, "step")
            return None


def _row_of(record: StepRecord) -> _StepRow:
    seconds = [second for second, _ in record.runs]
    return _StepRow(
        seconds[0],
        _packed([later - earlier for earlier, later in pairwise(seconds)]),
        _packed([due - second for second, due in record.runs]),
        sizes_row(record.sizes),
    )


def _record_from(row: _StepRow, timer_id: str) -> StepRecord:
    """Raises ValueError for what is never written."""
    seconds = [*accumulate(_unpacked(row.distances), initial=row.first)]
    runs = [
        (integer(second, SECOND_MAX), integer(second + delay, SECOND_MAX))
        for second, delay in zip(seconds, _unpacked(row.delays), strict=True)
    ]
    return StepRecord(timer_id, tuple(runs), sizes_from(row.sizes))


def _packed(numbers: list[int]) -> list[int]:
    packed: list[int] = []
    for number, group in groupby(numbers):
        packed.append(number)
        if (more := len([*group]) - 1) > 0:
            packed.append(-more)
    return packed


def _unpacked(packed: list[int]) -> list[int]:
    numbers: list[int] = []
    for number in packed:
        if number >= 0:
            numbers.append(number)
        elif numbers and len(numbers) - number <= OCCURRENCES_MAX:
            numbers += [numbers[-1]] * -number
        else:
            raise ValueError("nothing to repeat, or too often")
    return numbers
