"""Step records of timers in the Registry.

A record is named by its content, so planning the same step again writes the same record, and no
record replaces another.
"""

from collections.abc import Iterator
from hashlib import blake2s
from itertools import pairwise
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
from duewheel.stores.tasks.codec import sizes_from, sizes_row

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_READ_AT_ONCE = 20  # a page of a timer of every second needs a dozen
_DIGEST_BYTES = 8


class _Row(Struct, array_like=True, forbid_unknown_fields=True):
    """`seconds`: the first one, then the distances to the one before; a negative number repeats the
    distance before it so many times more. `sizes` as in a chain."""

    seconds: Annotated[list[int], Meta(min_length=1, max_length=OCCURRENCES_MAX)]
    jitter_seconds: Second
    sizes: list[Any]


_row = Decoder(_Row)


class StepRecordStore(Struct, frozen=True):
    client: "DynamoDBClient"
    clock: Clock
    table: str

    def put(self, record: StepRecord, kept_seconds: int) -> None:
        """`kept_seconds`: how long its occurrences are kept after they have ended."""
        row = encode(_Row(_packed(record.seconds), record.jitter_seconds, sizes_row(record.sizes)))
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
            row = _row.decode(item["step"]["S"])
            return StepRecord(
                timer_id=registry_keys.timer_id_of(item),
                seconds=_unpacked(row.seconds),
                jitter_seconds=row.jitter_seconds,
                sizes=sizes_from(row.sizes),
            )
        except NOT_UNDERSTOOD:
            reported(item, "step")
            return None


def _packed(seconds: tuple[int, ...]) -> list[int]:
    packed, before = [seconds[0]], None
    for earlier, second in pairwise(seconds):
        distance = second - earlier
        if distance != before:
            packed.append(distance)
            before = distance
        elif packed[-1] < 0:
            packed[-1] -= 1
        else:
            packed.append(-1)
    return packed


def _unpacked(packed: list[int]) -> tuple[int, ...]:
    """Raises ValueError for what is never written."""
    seconds, distance = [integer(packed[0], SECOND_MAX)], 0
    for number in packed[1:]:
        times = 1 if number > 0 else -number
        distance = number if number > 0 else distance
        if not distance or len(seconds) + times > OCCURRENCES_MAX:
            raise ValueError("no step")
        for _ in range(times):
            seconds.append(integer(seconds[-1] + distance, SECOND_MAX))
    return tuple(seconds)
