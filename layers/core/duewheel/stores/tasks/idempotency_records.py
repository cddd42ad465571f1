"""Records of requests under idempotency keys, one each in the Registry.

A record is always written whole, by the holder of its latest claim or by the request that takes it
over.
"""

import json
from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert
from msgspec.structs import astuple

from duewheel.rules.refusals import KeyTaken, Refusal, recalled
from duewheel.rules.tasks.idempotency import Claim, Outcome, RequestRecord, State
from duewheel.rules.wheel.addresses import Address, address_named
from duewheel.rules.wheel.sharding import Placement
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import Item, Written, write_if
from duewheel.stores.item_attributes import json_text

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_FREE = "attribute_not_exists(#kind) OR #state = :released OR #expires_at <= :now"
_MEMBERS_OF_ALL = 4  # what each claim has in its row
_AS_SEEN = "#owner = :owner AND #state = :running"


class RequestRecords(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str

    def claim(self, record: RequestRecord) -> RequestRecord | None:
        """Put a new record; return the one that is there already. An expired one does not count,
        since TTL deletes within days."""
        result = write_if(
            self.client.put_item,
            TableName=self.table,
            Item=_item(record),
            ConditionExpression=_FREE,
            ExpressionAttributeNames=_names("kind", "state", "expires_at"),
            ExpressionAttributeValues={
                ":released": {"S": State.RELEASED.value},
                ":now": {"N": str(record.latest.placement.now_ms // 1000)},
            },
        )
        if isinstance(result, Written) or result.item is None:
            return None
        current = _record(record.name, result.item)
        # It may be the result of an earlier try of the same write.
        return None if current.latest.token == record.latest.token else current

    def replace(self, seen: RequestRecord, after: RequestRecord) -> bool:
        """False if another request has claimed or ended the record since it was read."""
        item = _item(after)
        result = write_if(
            self.client.put_item,
            TableName=self.table,
            Item=item,
            ConditionExpression=_AS_SEEN,
            ExpressionAttributeNames=_names("owner", "state"),
            ExpressionAttributeValues={
                ":owner": {"S": seen.latest.token},
                ":running": {"S": State.RUNNING.value},
            },
        )
        return isinstance(result, Written) or result.item == item


def _names(*attributes: str) -> dict[str, str]:
    return {f"#{attribute}": attribute for attribute in attributes}


def _item(record: RequestRecord) -> dict[str, Any]:
    item = {
        **registry_keys.request(record.name),
        "digest": {"S": record.digest},
        "asked_ms": {"N": str(record.requested_ms)},
        "claims": {"S": json_text([_claim_row(claim) for claim in record.claims])},
        "owner": {"S": record.latest.token},
        "lease_until_ms": {"N": str(record.lease_until_ms)},
        "state": {"S": record.state.value},
        "expires_at": {"N": str(record.expires_at)},
    }
    if record.outcomes:
        rows = {str(index): _outcome_row(outcome) for index, outcome in record.outcomes.items()}
        item["outcomes"] = {"S": json_text(rows)}
    return item


def _record(name: str, item: Item) -> RequestRecord:
    rows = json.loads(item["outcomes"]["S"]) if "outcomes" in item else {}
    return RequestRecord(
        name=name,
        digest=item["digest"]["S"],
        requested_ms=int(item["asked_ms"]["N"]),
        claims=tuple(_claim_from(*row) for row in json.loads(item["claims"]["S"])),
        lease_until_ms=int(item["lease_until_ms"]["N"]),
        expires_at=int(item["expires_at"]["N"]),
        state=State(item["state"]["S"]),
        outcomes={int(index): _outcome(row) for index, row in rows.items()},
    )


def _claim_row(claim: Claim) -> list[Any]:
    row = [claim.number, claim.token, *astuple(claim.placement)]
    while len(row) > _MEMBERS_OF_ALL and not row[-1]:
        row.pop()
    return row


def _claim_from(number: int, token: str, *placed: Any) -> Claim:
    return Claim(number, token, convert(placed, Placement, strict=False))


def _outcome_row(outcome: Outcome) -> Any:
    match outcome:
        case int():
            return outcome
        case Address():
            return outcome.name
        case KeyTaken():
            return [outcome.detail, outcome.field]
        case Refusal():
            return [outcome.type, outcome.detail, outcome.field]


def _outcome(row: Any) -> Outcome:
    match row:
        case int():
            return row
        case str():
            return address_named(row)
        case [detail, named]:
            return KeyTaken(detail, named)
        case _:
            return recalled(*row)
