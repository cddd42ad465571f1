"""The leases of pages: who delivers a page, and the mark that it is done.

A lease is bookkeeping, not work: it may expire by TTL, and without it the page would
merely be looked at again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from duewheel.rules import addresses
from duewheel.rules.page_lease import TRIES_MAX, Finished, Held, PageLease
from duewheel.stores.conditions import Item, Refused, Written, write_if

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_KEPT_SECONDS = 7 * 86_400
_NAMES = {
    f"#{name}": name
    for name in (
        "owner",
        "until_ms",
        "done",
        "after",
        "end",
        "rest",
        "tries",
        "resends",
        "resent_ms",
        "expires_at",
    )
}


@dataclass(frozen=True, slots=True)
class PageStore:
    client: "DynamoDBClient"
    table: str
    buckets: int

    def take(
        self, page: PageLease, owner: str, now_ms: int, lease_ms: int
    ) -> PageLease | Held | Finished:
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
            "SET #owner = :owner, #until_ms = :until_ms, #expires_at = :expires_at, "
            "#tries = if_not_exists(#tries, :zero) + :one"
        )
        if page.after is not None:
            update += ", #after = :after"
            values[":after"] = {"S": page.after}
        result = self._update(
            page,
            update,
            "attribute_not_exists(#done) "
            "AND (attribute_not_exists(#tries) OR #tries < :tries_max OR #owner = :owner) "
            "AND (attribute_not_exists(#owner) OR #until_ms < :now OR #owner = :owner)",
            values,
            ReturnValues="ALL_NEW",
        )
        if isinstance(result, Written):
            return lease_from(result.attributes)
        if result.item is None or "done" in result.item:
            return Finished()
        until_ms = int(result.item["until_ms"]["N"])
        # Lapsed and refused: it was begun too often, and the sweep takes it apart.
        return Held(until_ms) if until_ms >= now_ms else Finished()

    def record_end(self, lease: PageLease, end: str) -> PageLease | None:
        """Fix where this page ends before the next one is announced; None if deposed."""
        return self._note(lease, replace(lease, end=end), "#end = :value", {"S": end})

    def record_rest(self, lease: PageLease, rest: tuple[str, ...]) -> PageLease | None:
        places = {"L": [{"S": place} for place in rest]}
        return self._note(lease, replace(lease, rest=rest), "#rest = :value", places)

    def mark_done(self, lease: PageLease) -> None:
        """If another has taken the page meanwhile, its mark is the one that counts."""
        self._note(lease, replace(lease, done=True), "#done = :value", {"BOOL": True})

    def note_resend(self, seen: PageLease, now_ms: int) -> bool:
        """Claim the right to send this page again, before doing so: at most once a minute,
        whoever sweeps. False when the page has moved on or another was first."""
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

    def close(self, seen: PageLease, end: str | None, now_ms: int) -> None:
        """Mark a page done that was taken apart; what lies behind `end` is the next page's."""
        values: dict[str, Any] = {
            ":done": {"BOOL": True},
            ":expires_at": _expiry(now_ms),
        }
        update = "SET #done = :done, #expires_at = :expires_at"
        if end is not None:
            update += ", #end = :end"
            values[":end"] = {"S": end}
        self._update(seen, update, "attribute_not_exists(#done)", values)

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
            Key={
                "slot": {"S": addresses.slot(page.second, page.shard, self.buckets)},
                "place": {"S": addresses.lease_place(page.second, page.page)},
            },
            UpdateExpression=update,
            ConditionExpression=condition,
            ExpressionAttributeNames=used,
            ExpressionAttributeValues=values,
            **arguments,
        )


def lease_from(item: Item) -> PageLease:
    place = item["place"]["S"]
    return PageLease(
        second=addresses.second_of(place),
        shard=addresses.shard_of(item["slot"]["S"]),
        page=addresses.lease_page(place),
        after=item["after"]["S"] if "after" in item else None,
        owner=item["owner"]["S"] if "owner" in item else None,
        until_ms=int(item["until_ms"]["N"]) if "until_ms" in item else 0,
        done="done" in item,
        end=item["end"]["S"] if "end" in item else None,
        rest=tuple(place["S"] for place in item["rest"]["L"]) if "rest" in item else (),
        tries=int(item["tries"]["N"]) if "tries" in item else 0,
        resends=int(item["resends"]["N"]) if "resends" in item else 0,
        resent_ms=int(item["resent_ms"]["N"]) if "resent_ms" in item else 0,
    )


def _expiry(now_ms: int) -> dict[str, str]:
    return {"N": str(now_ms // 1000 + _KEPT_SECONDS)}
