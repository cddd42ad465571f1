"""The next free turn of each limit: one record, moved on by conditional writes.

However many turns are taken, it is one write, or two after a pause. An SDK retry may move a record
on twice; then some turns stay unused, which no promise forbids. The record of a business has no
TTL: without it, reserved turns would be reserved again. That of a flow key expires a week after the
last instant that it holds.

The record of calls also holds the ends of two lines (`rules/delivery/reservations.py`).

A damaged record is reported, and no call and no create takes a turn of it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from duewheel.rules.businesses.rate_limit import (
    US_PER_SECOND,
    Cursors,
    Moves,
    RateLimit,
    RateLimited,
    ReservedTurns,
    Step,
    lengthened,
    places,
    shortage,
)
from duewheel.rules.names import is_of_key
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import Item, Throttled, Written, write_if
from duewheel.stores.item_attributes import (
    INSTANT_MS_MAX,
    InvalidAttribute,
    number,
    reported,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

CALLS = "calls"
CREATES = "creates"

KEY_KEPT_SECONDS = 7 * 86_400

_TRIES = 10
_US_MAX = (INSTANT_MS_MAX + 1) * 1_000
_WRITTEN = ("free_us", "interval_us", "version")
_NAMES = {"#free": "free_us", "#interval": "interval_us", "#version": "version"}


class RateLimitStore(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str

    def cursors(self, biz_type: str) -> tuple[Cursors | None, Cursors | None]:
        """Of its calls and of its creates, as they were a moment ago."""
        keys = {limit: registry_keys.turns(limit, biz_type) for limit in (CALLS, CREATES)}
        request: Any = {self.table: {"Keys": list(keys.values())}}
        answer: Any = self.client.batch_get_item(RequestItems=request)
        found = {item["record"]["S"]: item for item in answer["Responses"].get(self.table, [])}
        calls, creates = (found.get(limit) for limit in (CALLS, CREATES))
        return calls and _cursors(calls), creates and _cursors(creates)

    def read(self, scope: str, rate: RateLimit) -> Cursors:
        """Of its calls, as they were a moment ago."""
        key = registry_keys.turns(CALLS, scope)
        found = self.client.get_item(TableName=self.table, Key=key).get("Item")
        return _current(found, rate) or Cursors(rate.interval_us, rate.version)

    def reserve(
        self, biz_type: str, rate: RateLimit, count: int, now_us: int, ahead_us: int
    ) -> ReservedTurns | RateLimited:
        """`count` turns of its creates, all of which end within `ahead_us`, or none. A record of
        newer settings than the caller's takes precedence."""
        key = registry_keys.turns(CREATES, biz_type)
        interval_us, version = rate.interval_us, rate.version
        for number_of_try in range(_TRIES):
            cost_us = count * interval_us
            if cost_us > ahead_us:
                return shortage(now_us, now_us, ahead_us, interval_us)
            move = _moved_on if number_of_try % 2 == 0 else _begun_anew
            update = move(interval_us, version, cost_us, now_us, ahead_us)
            result = write_if(
                self.client.update_item,
                TableName=self.table,
                Key=key,
                ReturnValues="UPDATED_NEW",
                **update,
            )
            if isinstance(result, Written):
                free_us = int(result.attributes["free_us"]["N"])
                return ReservedTurns(free_us - cost_us, interval_us, count, version)
            if result.item is None:
                continue
            current = _cursors(result.item)
            if current.version > version:
                interval_us, version = current.interval_us, current.version
            elif current.version == version and current.free_us > now_us + ahead_us - cost_us:
                return shortage(current.free_us, now_us, ahead_us, interval_us)
        raise Throttled(f"the turns of {biz_type} moved {_TRIES} times while some were taken")

    def move(
        self, scope: str, rate: RateLimit, plan: Callable[[Cursors], Moves], guess: Cursors
    ) -> tuple[Cursors, Cursors]:
        """Move the cursors of its calls as planned. Returns the cursors of the plan, and those
        after the write. A wrong guess costs a second write. If nothing is to be moved, nothing is
        written."""
        key = registry_keys.turns(CALLS, scope)
        seen, is_there = guess, True
        for _ in range(_TRIES):
            moves = plan(seen)
            if moves == Moves():
                return seen, seen
            update = _moved(seen, moves) if is_there else _as_planned(seen, moves)
            if is_of_key(scope):
                update = _expiring(update, _expires_at(seen.moved(moves).last_us))
            result = write_if(
                self.client.update_item,
                TableName=self.table,
                Key=key,
                ReturnValues="ALL_NEW",
                **update,
            )
            if isinstance(result, Written):
                after = _cursors(result.attributes)
                self._keep_for(key, after.last_us, result.attributes)
                return seen, after
            current = _current(result.item, rate)
            seen, is_there = current or Cursors(rate.interval_us, rate.version), current is not None
        raise Throttled(f"the turns of {scope} moved {_TRIES} times while some were planned")

    def _keep_for(self, key: dict[str, Any], last_us: int, item: Item) -> None:
        """Others may have moved the cursors further than the plan saw."""
        expires_at = _expires_at(last_us)
        if "expires_at" in item and int(item["expires_at"]["N"]) < expires_at:
            write_if(
                self.client.update_item,
                TableName=self.table,
                Key=key,
                UpdateExpression="SET #expires = :expires",
                ConditionExpression="#expires < :expires",
                ExpressionAttributeNames={"#expires": "expires_at"},
                ExpressionAttributeValues={":expires": {"N": str(expires_at)}},
            )

    def line_up(self, scope: str, rate: RateLimit, count: int, from_us: int) -> ReservedTurns:
        """So many places at the end of the line of its calls, none before `from_us`."""

        def plan(seen: Cursors) -> Moves:
            cost_us = count * seen.interval_us
            return Moves(line=lengthened(seen.line_us, max(from_us, seen.free_us), cost_us))

        guess = Cursors(rate.interval_us, rate.version, line_us=from_us)
        _, after = self.move(scope, rate, plan, guess)
        return places(after.line_us, count, after)


def _moved_on(
    interval_us: int, version: int, cost_us: int, now_us: int, ahead_us: int
) -> dict[str, Any]:
    """The next free turn lies ahead: behind those that others have taken."""
    return {
        "UpdateExpression": "SET #free = #free + :cost",
        "ConditionExpression": "#version = :version AND #free BETWEEN :now AND :latest",
        "ExpressionAttributeNames": {n: v for n, v in _NAMES.items() if n != "#interval"},
        "ExpressionAttributeValues": {
            ":cost": {"N": str(cost_us)},
            ":version": {"N": str(version)},
            ":now": {"N": str(now_us)},
            ":latest": {"N": str(now_us + ahead_us - cost_us)},
        },
    }


def _begun_anew(
    interval_us: int, version: int, cost_us: int, now_us: int, ahead_us: int
) -> dict[str, Any]:
    """All turns before now have passed, or belong to old settings."""
    return {
        "UpdateExpression": "SET #free = :free, #interval = :interval, #version = :version",
        "ConditionExpression": (
            "(attribute_not_exists(#free) AND attribute_not_exists(#version))"
            " OR #version < :version"
            " OR (#version = :version AND #free < :now)"
        ),
        "ExpressionAttributeNames": _NAMES,
        "ExpressionAttributeValues": {
            ":free": {"N": str(now_us + cost_us)},
            ":interval": {"N": str(interval_us)},
            ":version": {"N": str(version)},
            ":now": {"N": str(now_us)},
        },
    }


def _current(item: Item | None, rate: RateLimit) -> Cursors | None:
    """None: no record, or one of older settings."""
    current = None if item is None else _cursors(item)
    return current if current is not None and current.version >= rate.version else None


def _cursors(item: Item) -> Cursors:
    """The record of creates has no lines. Raises UnreadableItem, and reports it, if the record is
    damaged."""
    written = {*_WRITTEN, *(name for name in Cursors.__struct_fields__ if name in item)}
    try:
        return Cursors(**{name: number(item, name, _US_MAX) for name in written})
    except InvalidAttribute as error:
        raise reported(item, error.attribute) from error


def _moved(seen: Cursors, moves: Moves) -> dict[str, Any]:
    """The record has the version that was read."""
    names = {"#version": "version"}
    values = {":version": seen.version}
    sets: list[str] = []
    conditions = ["#version = :version"]
    steps = {"free": moves.free, "line": moves.line, "late": moves.late}
    for name, step in steps.items():
        if step is None:
            continue
        names[f"#{name}"] = f"{name}_us"
        if step.to_us is None:
            sets.append(f"#{name} = #{name} + :{name}_add")
            conditions.append(f"#{name} >= :{name}_least")
            values |= {f":{name}_add": step.add_us, f":{name}_least": step.least_us}
        else:
            sets.append(f"#{name} = :{name}_to")
            values[f":{name}_to"] = step.to_us
        if step.most_us is not None:
            conditions.append(f"#{name} <= :{name}_most")
            values[f":{name}_most"] = step.most_us
    if moves.line_most_us is not None:
        names["#line"] = "line_us"
        conditions.append("#line <= :line_end")
        values[":line_end"] = moves.line_most_us
    return _update(sets, conditions, names, values)


def _as_planned(seen: Cursors, moves: Moves) -> dict[str, Any]:
    """No record, or one of older settings: replace it."""
    names = {name: f"{name}_us" for name in ("free", "line", "late", "interval")}
    names["version"] = "version"
    values = {
        "free": _after(moves.free),
        "line": _after(moves.line),
        "late": _after(moves.late),
        "interval": seen.interval_us,
        "version": seen.version,
    }
    sets = [f"#{name} = :{name}" for name in values]
    is_none = "(attribute_not_exists(#version) AND attribute_not_exists(#free))"
    conditions = [f"({is_none} OR #version < :version)"]
    return _update(
        sets,
        conditions,
        {f"#{name}": attribute for name, attribute in names.items()},
        {f":{name}": value for name, value in values.items()},
    )


def _expires_at(last_us: int) -> int:
    """In seconds since the epoch."""
    return -(-last_us // US_PER_SECOND) + KEY_KEPT_SECONDS


def _expiring(update: dict[str, Any], expires_at: int) -> dict[str, Any]:
    return {
        **update,
        "UpdateExpression": f"{update['UpdateExpression']}, #expires = :expires",
        "ExpressionAttributeNames": {
            **update["ExpressionAttributeNames"],
            "#expires": "expires_at",
        },
        "ExpressionAttributeValues": {
            **update["ExpressionAttributeValues"],
            ":expires": {"N": str(expires_at)},
        },
    }


def _after(step: Step | None) -> int:
    return 0 if step is None else step.moved(0)


def _update(
    sets: list[str], conditions: list[str], names: dict[str, str], values: dict[str, int]
) -> dict[str, Any]:
    return {
        "UpdateExpression": "SET " + ", ".join(sets),
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": {name: {"N": str(us)} for name, us in values.items()},
    }
