"""The records of the wheel in the Registry: its shape, and the two pointers with their leases."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.json import Decoder
from msgspec.structs import replace

from duewheel.rules.wheel.leader_election import LEASE_MS, Pointer, Step, standby_after_claim
from duewheel.rules.wheel.open_places import OpenPlace
from duewheel.settings import SettingsError
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import Item, Refused, Written, write_if
from duewheel.stores.item_attributes import json_text

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

TIME = "time"
SWEEP = "sweep"
_SECRET = "secret"
# The first writer's clock may be ahead of the next one's: start before any instant to which they
# write.
_ORIGIN_MARGIN_SECONDS = 10

_open_places = Decoder(tuple[OpenPlace, ...])


class WheelShape(Struct, frozen=True):
    """`origin`: the second at which both pointers start. `secret`: of completion tokens and of
    cursors."""

    origin: int
    secret: bytes


class PointerStore(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str

    def reach(self) -> list[str]:
        self.client.get_item(TableName=self.table, Key=registry_keys.SHAPE)
        return [self.table]

    def shape(self, buckets: int, now_ms: int, fresh_secret: bytes) -> WheelShape:
        """The first process records it, with BUCKETS, which is part of the data: with another value
        the wheel is unreadable."""
        key = registry_keys.SHAPE
        answer = self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True)
        item: Item | None = answer.get("Item")
        if item is None:
            first: Any = {
                **key,
                "buckets": {"N": str(buckets)},
                "origin": {"N": str(now_ms // 1000 - _ORIGIN_MARGIN_SECONDS)},
                _SECRET: {"B": fresh_secret},
            }
            result = write_if(
                self.client.put_item,
                TableName=self.table,
                Item=first,
                **registry_keys.IF_ABSENT,
            )
            item = result.item if isinstance(result, Refused) and result.item else first
        if (recorded := int(item["buckets"]["N"])) != buckets:
            raise SettingsError(
                f"BUCKETS is {buckets}, but this wheel was laid out with {recorded}; "
                f"set it back to {recorded}, or deploy a new stack for another value"
            )
        return WheelShape(int(item["origin"]["N"]), bytes(item[_SECRET]["B"]))

    def read(self, name: str, origin: int, *, strongly: bool = True) -> Pointer:
        """A pointer that was never moved is at the origin."""
        answer = self.client.get_item(TableName=self.table, Key=_key(name), ConsistentRead=strongly)
        return pointer_from(name, origin, answer.get("Item"))

    def claim(self, seen: Pointer, me: str, now_ms: int) -> Pointer | None:
        """Take the lease that was read as free; None if another process was first."""
        claimed = replace(
            seen,
            epoch=seen.epoch + 1,
            owner=me,
            lease_until_ms=now_ms + LEASE_MS,
            standby=standby_after_claim(seen, me),
            candidate=None,
        )
        values: dict[str, Any] = {":seen": {"N": str(seen.epoch)}}
        condition = "(attribute_not_exists(#epoch) OR #epoch = :seen)"
        if seen.epoch:
            values[":lease"] = {"N": str(seen.lease_until_ms)}
            condition += " AND #lease_until_ms = :lease"
        result = self._write(claimed, condition, values)
        return claimed if _mine(result, me, claimed.epoch) else None

    def register(self, seen: Pointer, me: str, step: Step) -> bool:
        """Register as standby or candidate; False if another process was first."""
        place = "heir" if step is Step.REGISTER_AS_STANDBY else "newcomer"
        result = write_if(
            self.client.update_item,
            TableName=self.table,
            Key=_key(seen.name),
            UpdateExpression="SET #place = :me",
            ConditionExpression="#epoch = :epoch AND attribute_not_exists(#place)",
            ExpressionAttributeNames={"#place": place, "#epoch": "epoch"},
            ExpressionAttributeValues={":me": {"S": me}, ":epoch": {"N": str(seen.epoch)}},
        )
        return isinstance(result, Written)

    def advance(
        self,
        mine: Pointer,
        position: int,
        now_ms: int,
        notes: tuple[tuple[int, int], ...] | None = None,
        open_places: tuple[OpenPlace, ...] | None = None,
    ) -> Pointer | None:
        """Move the pointer forward and renew the lease, on condition that epoch and position are as
        this process left them. Returns the pointer with the schedulers that registered meanwhile;
        None if the lease was lost."""
        moved = replace(
            mine,
            position=position,
            lease_until_ms=now_ms + LEASE_MS,
            notes=mine.notes if notes is None else notes,
            open_places=mine.open_places if open_places is None else open_places,
        )
        return self._move(mine, moved)

    def release(
        self,
        mine: Pointer,
        position: int,
        now_ms: int,
        open_places: tuple[OpenPlace, ...] | None = None,
    ) -> bool:
        """Step down: free the lease, for the standby first."""
        freed = replace(
            mine,
            position=position,
            owner=None,
            lease_until_ms=now_ms,
            open_places=mine.open_places if open_places is None else open_places,
        )
        return self._move(mine, freed) is not None

    def skip_to(self, name: str, origin: int, position: int) -> None:
        """Move a pointer over seconds known to be empty. Used by the movable clock of the local
        stack, which sees the whole wheel."""
        seen = self.read(name, origin)
        if position > seen.position:
            self._write(replace(seen, position=position), None, {})

    def _move(self, before: Pointer, after: Pointer) -> Pointer | None:
        condition = "#epoch = :epoch AND #owner = :me AND #position = :seen"
        values: dict[str, Any] = {
            ":epoch": {"N": str(before.epoch)},
            ":me": {"S": str(before.owner)},
            ":seen": {"N": str(before.position)},
        }
        result = self._write(after, condition, values, keep_waiting=True)
        if isinstance(result, Written):
            return _pointer_from(result.attributes)
        current = result.item and _pointer_from(result.item)
        if current and replace(current, standby=after.standby, candidate=after.candidate) == after:
            return current  # an earlier try of this very write
        return None

    def _write(
        self,
        pointer: Pointer,
        condition: str | None,
        values: Mapping[str, Any],
        *,
        keep_waiting: bool = False,
    ) -> Written | Refused:
        """Write the fields of `pointer`; with `keep_waiting` the registered schedulers stay."""
        attributes = _attributes(pointer)
        if keep_waiting:
            attributes.pop("heir", None)
            attributes.pop("newcomer", None)
        clearable = ["owner", *(() if keep_waiting else ("heir", "newcomer"))]
        if pointer.name == SWEEP:
            clearable.append("open_places")
        cleared = [name for name in clearable if name not in attributes]
        update = "SET " + ", ".join(f"#{name} = :new_{name}" for name in attributes)
        if cleared:
            update += " REMOVE " + ", ".join(f"#{name}" for name in cleared)
        arguments: dict[str, Any] = {} if condition is None else {"ConditionExpression": condition}
        text = update + (condition or "")
        return write_if(
            self.client.update_item,
            TableName=self.table,
            Key=_key(pointer.name),
            UpdateExpression=update,
            ExpressionAttributeNames={
                f"#{name}": name
                for name in (
                    "position",
                    "epoch",
                    "owner",
                    "lease_until_ms",
                    "heir",
                    "newcomer",
                    "notes",
                    "open_places",
                )
                if f"#{name}" in text
            },
            ExpressionAttributeValues={
                **{f":new_{name}": value for name, value in attributes.items()},
                **values,
            },
            ReturnValues="ALL_NEW",
            **arguments,
        )


def _mine(result: Written | Refused, me: str, epoch: int) -> bool:
    """True if the write was carried out, also by an earlier try of the same write."""
    if isinstance(result, Written):
        return True
    item = result.item or {}
    return "owner" in item and item["owner"]["S"] == me and item["epoch"]["N"] == str(epoch)


def _key(name: str) -> dict[str, Any]:
    return registry_keys.pointer(name)


def _attributes(pointer: Pointer) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "position": {"N": str(pointer.position)},
        "epoch": {"N": str(pointer.epoch)},
        "lease_until_ms": {"N": str(pointer.lease_until_ms)},
    }
    schedulers = {
        "owner": pointer.owner,
        "heir": pointer.standby,
        "newcomer": pointer.candidate,
    }
    for name, scheduler in schedulers.items():
        if scheduler is not None:
            attributes[name] = {"S": scheduler}
    if pointer.notes:
        attributes["notes"] = {"S": json.dumps(pointer.notes)}
    if pointer.open_places:
        attributes["open_places"] = {"S": json_text(pointer.open_places)}
    return attributes


def open_places_from(item: Item) -> tuple[OpenPlace, ...]:
    return _open_places.decode(item["open_places"]["S"]) if "open_places" in item else ()


def pointer_from(name: str, origin: int, item: Item | None) -> Pointer:
    return _pointer_from(item) if item else Pointer(name, origin)


def _pointer_from(item: Item) -> Pointer:
    def text(name: str) -> str | None:
        return item[name]["S"] if name in item else None

    notes = json.loads(item["notes"]["S"]) if "notes" in item else []
    return Pointer(
        name=item["record"]["S"],
        position=int(item["position"]["N"]),
        epoch=int(item["epoch"]["N"]),
        owner=text("owner"),
        lease_until_ms=int(item["lease_until_ms"]["N"]),
        standby=text("heir"),
        candidate=text("newcomer"),
        notes=tuple((seen, at) for seen, at in notes),
        open_places=open_places_from(item),
    )
