"""Reads of the wheel by the second: probes, pages of a slice, whole slices for the sweep."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from duewheel.log import report_unreadable
from duewheel.rules.delivery.page_lease import PageLease
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.sweep.verdict import HomeState, Reentry
from duewheel.rules.tasks.lifecycle import FoundEntry
from duewheel.rules.wheel import addresses
from duewheel.rules.wheel.addresses import Address
from duewheel.stores import item_attributes
from duewheel.stores.delivery.page_leases import lease_from
from duewheel.stores.dynamodb import Item
from duewheel.stores.item_attributes import readable_ones, reads_an_item
from duewheel.stores.tasks import codec
from duewheel.stores.tasks.tasks import found_entry

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

# All are aliased: several of these are reserved words of DynamoDB.
_SWEPT = (
    *(
        "slot",
        "place",
        "shards",
        "status",
        "entry",
        "next_ms",
        "version",
        "home",
        "written_ms",
    ),
    *("biz_type", "lateness_ms", "history", "revivals", "parked", "first_second", "plan"),
    *("key", "redrives", "expires_at"),
    *("owner", "until_ms", "done", "after", "end", "rest", "slow", "tries", "resends", "resent_ms"),
)
_BETWEEN = "slot = :slot AND place BETWEEN :low AND :high"


class WholeSlice(Struct, kw_only=True):
    """All items of one slice, with direct entries and leases."""

    shards: int = 1  # from the header, which is in shard 0
    has_header: bool = False
    homes: list[HomeState] = field(default_factory=list)
    reentries: dict[Address, Reentry] = field(default_factory=dict)
    leases: dict[str, PageLease] = field(default_factory=dict)
    damaged: list[UnreadableItem] = field(default_factory=list)  # in no other field


class Occupied(Struct, frozen=True):
    """An occupied second, and the instant before which none of its entries is due."""

    shards: int
    first_ms: int


class ReadPage(Struct, frozen=True):
    """`size`: the number of entries, with the damaged ones. `end`: the last place of the page if
    the slice continues behind it. `shards`: of the second, read with the first page of shard 0."""

    entries: list[FoundEntry]
    size: int
    end: str | None
    shards: int


class SliceStore(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str
    buckets: int

    def reach(self) -> list[str]:
        self._query(0, 0, *addresses.second_range(0), Limit=1)
        return [self.table]

    def probe(self, second: int) -> Occupied | None:
        """None if the second is empty. Of one with several shards the start counts as its first
        instant.

        One eventually consistent query: half a read unit for an empty second. The sweep finds an
        entry that was written within the replication lag before its second.
        """
        low, high = addresses.probe_range(second)
        answer = self._query(
            second, 0, low, high, Limit=2, ProjectionExpression="slot, place, shards"
        )
        items = answer["Items"]
        shards = self._taken_from(items)
        if shards > 1:
            return Occupied(shards, second * 1000)
        if not items:
            return None
        return Occupied(shards, addresses.instant_of_place(items[0]["place"]["S"]))

    def read_page(
        self, second: int, shard: int, after: str | None, end: str | None, size: int
    ) -> ReadPage:
        """Up to `size` entries behind `after`, strongly consistent. A page that was cut before ends
        at `end`. Damaged entries are reported and left out."""
        low, high = addresses.entries_range(second)
        arguments: dict[str, Any] = {"ConsistentRead": True}
        has_header = shard == 0 and after is None
        if has_header:
            low, _ = addresses.probe_range(second)
        if after is not None:
            arguments["ExclusiveStartKey"] = {
                "slot": {"S": addresses.slot(second, shard, self.buckets)},
                "place": {"S": after},
            }
        # One more than a page holds shows whether the slice continues.
        limit = size + 1 + has_header
        answer = self._query(second, shard, low, end or high, Limit=limit, **arguments)
        items = answer["Items"]
        shards = self._taken_from(items)
        goes_on = end is None and (len(items) > size or "LastEvaluatedKey" in answer)
        items = items[:size]
        page = readable_ones(items, found_entry)
        if end is None and goes_on:
            end = items[-1]["place"]["S"]
        return ReadPage(page, len(items), end, shards)

    def read_whole(
        self, second: int, shard: int, *, strongly: bool = False, reentries_only: bool = False
    ) -> WholeSlice:
        """With `reentries_only` DynamoDB leaves out the homes, which saves most of the time."""
        whole = WholeSlice()
        low, high = addresses.second_range(second)
        arguments: dict[str, Any] = {"ConsistentRead": strongly}
        if reentries_only:
            arguments["FilterExpression"] = "attribute_exists(#home) OR attribute_exists(#shards)"
        for item in self._pages(second, shard, low, high, arguments):
            try:
                _add(whole, item)
            except UnreadableItem as damaged:
                whole.damaged.append(damaged)
                if addresses.is_header(damaged.place):
                    whole.shards = addresses.SHARDS_MAX  # nothing may be lost in any of them
        return whole

    def shards_of(self, second: int) -> int:
        """The shard count that the header says; the largest one if the header is damaged."""
        place = addresses.header_place(second)
        items = self._query(second, 0, place, place)["Items"]
        try:
            return shards_from(items[0]) if items else 1
        except UnreadableItem:
            return addresses.SHARDS_MAX

    def _taken_from(self, items: list[Item]) -> int:
        """The shard count of the header, if that is the first of these. A damaged one counts as
        none; the sweep reads the other shards."""
        if not items or not addresses.is_header(items[0]["place"]["S"]):
            return 1
        try:
            return shards_from(items.pop(0))
        except UnreadableItem as damaged:
            report_unreadable(damaged)
            return 1

    def _pages(
        self, second: int, shard: int, low: str, high: str, arguments: dict[str, Any]
    ) -> Iterator[Any]:
        arguments = arguments | {
            "ProjectionExpression": ", ".join(f"#{name}" for name in _SWEPT),
            "ExpressionAttributeNames": {f"#{name}": name for name in _SWEPT},
        }
        while True:
            answer = self._query(second, shard, low, high, **arguments)
            yield from answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return
            arguments["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _query(self, second: int, shard: int, low: str, high: str, **arguments: Any) -> Any:
        return self.client.query(
            TableName=self.table,
            KeyConditionExpression=_BETWEEN,
            ExpressionAttributeValues={
                ":slot": {"S": addresses.slot(second, shard, self.buckets)},
                ":low": {"S": low},
                ":high": {"S": high},
            },
            **arguments,
        )


def _add(whole: WholeSlice, item: Item) -> None:
    place = item["place"]["S"]
    if addresses.is_header(place):
        whole.shards, whole.has_header = shards_from(item), True
    elif addresses.is_lease(place):
        lease = lease_from(item)
        whole.leases[lease.page] = lease
    elif codec.is_reentry(item):
        whole.reentries[codec.address_of(item)] = codec.reentry_from(item)
    else:
        whole.homes.append(codec.home_state_from(item))


@reads_an_item
def shards_from(item: Item) -> int:
    """Of a header."""
    return max(1, item_attributes.number(item, "shards", addresses.SHARDS_MAX))
