"""The leases of pages: which run delivers a page, and the mark that it is done.

A lease may expire by TTL: without it the page is only read again. A damaged lease may be held: no
run begins its page until the sweep deletes it, when such a run has ended.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.log import report_unreadable
from duewheel.rules.delivery.page_lease import (
    TRIES_MAX,
    LeaseHeld,
    PageFinished,
    PageLease,
    is_implausible,
)
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.wheel import addresses
from duewheel.stores import item_attributes
from duewheel.stores.dynamodb import Item, Refused, Written, write_all, write_if, written
from duewheel.stores.item_attributes import InvalidAttribute, reads_an_item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_KEPT_SECONDS = 7 * 86_400
_ABSURD = "until_ms or resent_ms"
_NAMES = {
    f"#{name}": name
    for name in (
        *("owner", "until_ms", "done", "after", "end", "rest", "slow"),
        *("tries", "resends", "resent_ms", "expires_at", "begun_ms"),
    )
}


class PageLeaseStore(Struct, frozen=True):
    client: "DynamoDBClient"
    clock: Clock
    table: str
    buckets: int

    def take(
        self, page: PageLease, owner: str, now_ms: int, lease_ms: int
    ) -> PageLease | LeaseHeld | PageFinished:
        """Of a page that was begun too often, or has a damaged lease, the sweep takes care."""
        result = self._take(page, owner, now_ms, lease_ms)
        item = result.attributes if isinstance(result, Written) else result.item
        if item is None or (isinstance(result, Refused) and "done" in item):
            return PageFinished()
        try:
            lease = readable_lease(item, now_ms)
        except UnreadableItem as damaged:
            report_unreadable(damaged)
            return PageFinished()
        if isinstance(result, Written):
            return lease
        return LeaseHeld(lease.until_ms) if lease.until_ms >= now_ms else PageFinished()

    def forget(self, damaged: UnreadableItem) -> None:
        """Delete a damaged lease: the next run starts the page from its beginning."""
        key = {"slot": {"S": damaged.slot}, "place": {"S": damaged.place}}
        delete = [{"DeleteRequest": {"Key": key}}]
        write_all(self.client, self.clock, self.table, delete, "damaged lease could not be deleted")

    def is_lease(self, damaged: UnreadableItem) -> bool:
        return addresses.is_lease(damaged.place)

    def as_unreadable(self, lease: PageLease) -> UnreadableItem:
        key = self._key(lease)
        return UnreadableItem(key["slot"]["S"], key["place"]["S"], _ABSURD)

    def _take(self, page: PageLease, owner: str, now_ms: int, lease_ms: int) -> Written | Refused:
        values: dict[str, Any] = {
            ":owner": {"S": owner},
            ":until_ms": {"N": str(now_ms + lease_ms)},
            ":now": {"N": str(now_ms)},
            ":expires_at": _expiry(now_ms),
            ":zero": {"N": "0"},
            ":one": {"N": "1"},
            ":tries_max": {"N": str(TRIES_MAX)},
        }
        update = (
            "SET #owner = :owner, #until_ms = :until_ms, #begun_ms = :now, "
            "#expires_at = :expires_at, #tries = if_not_exists(#tries, :zero) + :one"
        )
        if page.after is not None:
            update += ", #after = :after"
            values[":after"] = {"S": page.after}
        return self._update(
            page,
            update,
            "attribute_not_exists(#done) "
            "AND (attribute_not_exists(#tries) OR #tries < :tries_max OR #owner = :owner) "
            "AND (attribute_not_exists(#owner) OR #until_ms < :now OR #owner = :owner)",
            values,
            ReturnValues="ALL_NEW",
        )

    def renew(self, lease: PageLease, now_ms: int, lease_ms: int) -> int | None:
        """Until when the lease is held now; None if another run has it, or has marked the page
        done."""
        until_ms = now_ms + lease_ms
        result = self._update(
            lease,
            "SET #until_ms = :until_ms",
            "#owner = :owner AND attribute_not_exists(#done)",
            {":owner": {"S": str(lease.owner)}, ":until_ms": {"N": str(until_ms)}},
        )
        return until_ms if isinstance(result, Written) else None

    def record_end(self, lease: PageLease, end: str) -> PageLease | None:
        """Fix where this page ends before the next one is announced; None if the lease was lost."""
        return self._note(lease, replace(lease, end=end), "#end = :value", {"S": end})

    def record_rest(self, lease: PageLease, rest: tuple[str, ...]) -> PageLease | None:
        return self._note(lease, replace(lease, rest=rest), "#rest = :value", _listed(rest))

    def record_slow(self, lease: PageLease, slow: tuple[str, ...]) -> PageLease | None:
        return self._note(lease, replace(lease, slow=slow), "#slow = :value", _listed(slow))

    def record_direct(
        self, page: PageLease, slow: tuple[str, ...], now_ms: int, lease_ms: int
    ) -> PageLease:
        """Record what a direct message, which has no lease, passes to the slow lane. A second
        record of the same message leaves the first."""
        answer = written(
            self.client.update_item,
            TableName=self.table,
            Key=self._key(page),
            UpdateExpression="SET #slow = if_not_exists(#slow, :slow), #until_ms = :until_ms, "
            "#expires_at = :expires_at",
            ExpressionAttributeNames={
                name: _NAMES[name] for name in ("#slow", "#until_ms", "#expires_at")
            },
            ExpressionAttributeValues={
                ":slow": _listed(slow),
                ":until_ms": {"N": str(now_ms + lease_ms)},
                ":expires_at": _expiry(now_ms),
            },
            ReturnValues="ALL_NEW",
        )
        return lease_from(answer["Attributes"])

    def mark_done(self, lease: PageLease) -> None:
        """If another run has taken the page meanwhile, its mark counts."""
        self._note(lease, replace(lease, done=True), "#done = :value", {"BOOL": True})

    def note_resend(self, seen: PageLease, now_ms: int) -> bool:
        """Claim the right to resend this page, at most once a minute over all sweepers. False if
        the page has moved on or another sweeper was first."""
        values: dict[str, Any] = {
            ":resends": {"N": str(seen.resends + 1)},
            ":seen": {"N": str(seen.resends)},
            ":resent_ms": {"N": str(now_ms)},
            ":now": {"N": str(now_ms)},
            ":expires_at": _expiry(now_ms),
        }
        update = "SET #resends = :resends, #resent_ms = :resent_ms, #expires_at = :expires_at"
        if seen.after is not None:
            update += ", #after = :after"
            values[":after"] = {"S": seen.after}
        result = self._update(
            seen,
            update,
            "attribute_not_exists(#done) "
            "AND (attribute_not_exists(#owner) OR #until_ms < :now) "
            "AND (attribute_not_exists(#resends) OR #resends = :seen)",
            values,
        )
        return isinstance(result, Written)

    def close(self, seen: PageLease, end: str | None, now_ms: int) -> bool:
        """Mark a page done that is about to be taken apart; entries behind `end` belong to the next
        page. False if the page is held, or was begun since it was judged: then its calls may be in
        flight, even if it is done by now, in a page that it was passed on to."""
        values: dict[str, Any] = {
            ":done": {"BOOL": True},
            ":expires_at": _expiry(now_ms),
        }
        update = "SET #done = :done, #expires_at = :expires_at"
        if end is not None:
            update += ", #end = :end"
            values[":end"] = {"S": end}
        condition = "attribute_not_exists(#done) AND attribute_not_exists(#tries)"
        if seen.tries:
            values |= {":now": {"N": str(now_ms)}, ":tries": {"N": str(seen.tries)}}
            condition = "attribute_not_exists(#done) AND #until_ms < :now AND #tries = :tries"
        result = self._update(seen, update, condition, values)
        if isinstance(result, Written):
            return True
        # Done, begun no more often, and with this expiry: an earlier try of this write.
        item = result.item or {}
        is_as_judged = "done" in item and _number(item, "tries") == seen.tries
        return is_as_judged and item.get("expires_at") == values[":expires_at"]

    def close_unbegun(self, seen: PageLease, now_ms: int) -> bool:
        """Mark a page done that no run has begun; False if one has."""
        result = self._update(
            seen,
            "SET #done = :done, #expires_at = :expires_at",
            "attribute_not_exists(#done) AND attribute_not_exists(#owner)",
            {":done": {"BOOL": True}, ":expires_at": _expiry(now_ms)},
        )
        if isinstance(result, Written):
            return True
        # Done and never begun: an earlier try of this very write.
        return result.item is not None and "done" in result.item and "owner" not in result.item

    def of_slice(self, second: int, shard: int) -> list[PageLease]:
        """Those of a slice, as far as one query reads. Damaged ones are reported."""
        low, high = addresses.leases_range(second)
        answer: Any = self.client.query(
            TableName=self.table,
            KeyConditionExpression="slot = :slot AND place BETWEEN :low AND :high",
            ExpressionAttributeValues={
                ":slot": {"S": addresses.slot(second, shard, self.buckets)},
                ":low": {"S": low},
                ":high": {"S": high},
            },
            ConsistentRead=True,
        )
        return item_attributes.readable_ones(answer["Items"], lease_from)

    def _note(
        self, lease: PageLease, after: PageLease, assignment: str, value: Any
    ) -> PageLease | None:
        result = self._update(
            lease,
            f"SET {assignment}",
            "#owner = :owner",
            {":owner": {"S": str(lease.owner)}, ":value": value},
        )
        return after if isinstance(result, Written) else None

    def _update(
        self,
        page: PageLease,
        update: str,
        condition: str,
        values: Mapping[str, Any],
        **arguments: Any,
    ) -> Written | Refused:
        used = {name: real for name, real in _NAMES.items() if name in update + condition}
        return write_if(
            self.client.update_item,
            TableName=self.table,
            Key=self._key(page),
            UpdateExpression=update,
            ConditionExpression=condition,
            ExpressionAttributeNames=used,
            ExpressionAttributeValues=values,
            **arguments,
        )

    def _key(self, page: PageLease) -> dict[str, Any]:
        return {
            "slot": {"S": addresses.slot(page.second, page.shard, self.buckets)},
            "place": {"S": addresses.lease_place(page.second, page.page)},
        }


def readable_lease(item: Item, now_ms: int) -> PageLease:
    lease = lease_from(item)
    if is_implausible(lease, now_ms):
        raise item_attributes.unreadable(item, _ABSURD)
    return lease


@reads_an_item
def lease_from(item: Item) -> PageLease:
    place = item["place"]["S"]
    second = addresses.second_of(place)
    page = addresses.lease_page(place)
    if not (addresses.is_page(page) or addresses.is_direct_page(page)):
        raise InvalidAttribute("place")
    return PageLease(
        second=second,
        shard=addresses.shard_of(item["slot"]["S"]),
        page=page,
        after=_bound(item, "after", second),
        owner=item_attributes.text(item, "owner") if "owner" in item else None,
        until_ms=_number(item, "until_ms"),
        done="done" in item,
        end=_bound(item, "end", second),
        rest=item_attributes.built(item, "rest", lambda: _places(item, "rest", second)),
        slow=item_attributes.built(item, "slow", lambda: _places(item, "slow", second)),
        tries=_number(item, "tries"),
        resends=_number(item, "resends"),
        resent_ms=_number(item, "resent_ms"),
        begun_ms=item_attributes.number(item, "begun_ms") if "begun_ms" in item else None,
    )


def _number(item: Item, name: str) -> int:
    return item_attributes.number(item, name) if name in item else 0


def _bound(item: Item, name: str, second: int) -> str | None:
    if name not in item:
        return None
    place = item_attributes.text(item, name)
    if not addresses.is_among_entries_of(place, second):
        raise InvalidAttribute(name)
    return place


def _places(item: Item, name: str, second: int) -> tuple[str, ...]:
    places = tuple(place["S"] for place in item[name]["L"]) if name in item else ()
    if any(addresses.address_from(0, place).second != second for place in places):
        raise InvalidAttribute(name)
    return places


def _listed(places: tuple[str, ...]) -> dict[str, Any]:
    return {"L": [{"S": place} for place in places]}


def _expiry(now_ms: int) -> dict[str, str]:
    return {"N": str(now_ms // 1000 + _KEPT_SECONDS)}
