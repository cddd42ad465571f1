"""The health of businesses in the Registry: a record each, if there is anything to record.

Every write changes one attribute and returns the whole record as it then is, whether the write was
carried out or refused. A damaged attribute is reported, and still bounds what it is about: the host
of a breaker gets no call but a probe, the business stays in the slow lane, and no breaker is opened
without their count.
"""

from typing import TYPE_CHECKING, Annotated, Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Meta, Struct, convert

from duewheel.rules.businesses.health import KEPT_SECONDS, Breaker, BusinessHealth, damaged_breaker
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import Item, Throttled, Written, write_if
from duewheel.stores.item_attributes import (
    INSTANT_MS_MAX,
    InstantMs,
    InvalidAttribute,
    json_text,
    number,
    parsed,
    reported,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_HOST = "host#"
_SLOW, _OPENINGS, _EXPIRES = "slow_until_ms", "openings", "expires_at"
_TRIES = 3
_BreakerRow = tuple[InstantMs, InstantMs, Annotated[str, Meta(min_length=1)], InstantMs]


class HealthUnavailable(Exception):
    """The Registry did not accept a read or a write. No call depends on it."""


class HealthStore(Struct, frozen=True):
    client: "DynamoDBClient"
    table: str

    def read(self, biz_type: str) -> BusinessHealth:
        """The present record."""
        key = registry_keys.health(biz_type)
        try:
            answer = self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True)
        except (ClientError, BotoCoreError) as error:
            raise HealthUnavailable(str(error)) from error
        return health_from(answer.get("Item"))

    def note_slow(self, biz_type: str, until_ms: int) -> BusinessHealth:
        """Record that its calls hold pages up, until this instant or a later one that is recorded
        already."""
        return self._write(
            biz_type,
            until_ms,
            "SET #expires = :expires, #slow = :slow",
            "attribute_not_exists(#slow) OR #slow < :slow",
            {"#slow": _SLOW},
            {":slow": {"N": str(until_ms)}},
        )

    def open(
        self, biz_type: str, breaker: Breaker, known: BusinessHealth, now_ms: int
    ) -> BusinessHealth:
        """Unless that host has one already, or the business has as many as it may."""
        for _ in range(_TRIES):
            if known.breaker_of(breaker.host) is not None or not known.has_room(now_ms):
                break
            known = self._open(biz_type, breaker, known, now_ms)
        return known

    def _open(
        self, biz_type: str, breaker: Breaker, known: BusinessHealth, now_ms: int
    ) -> BusinessHealth:
        """Replaces unused breakers, if none has been opened since `known`."""
        gone = {f"#gone{n}": _HOST + one.host for n, one in enumerate(known.evictable(now_ms))}
        removed = f" REMOVE {', '.join(gone)}" if gone else ""
        return self._write(
            biz_type,
            breaker.until_ms,
            "SET #expires = :expires, #host = :host, #openings = :next" + removed,
            "attribute_not_exists(#host)"
            " AND (attribute_not_exists(#openings) OR #openings = :openings)",
            {"#host": _HOST + breaker.host, "#openings": _OPENINGS, **gone},
            {
                ":host": {"S": _text(breaker)},
                ":openings": {"N": str(known.openings)},
                ":next": {"N": str(known.openings + 1)},
            },
        )

    def move(self, biz_type: str, seen: Breaker, after: Breaker) -> BusinessHealth:
        """Change it to `after`, if the breaker is as `seen`."""
        as_seen = {} if seen.is_damaged else {":seen": {"S": _text(seen)}}
        return self._write(
            biz_type,
            after.until_ms,
            "SET #expires = :expires, #host = :after",
            "attribute_exists(#host)" if seen.is_damaged else "#host = :seen",
            {"#host": _HOST + seen.host},
            {":after": {"S": _text(after)}} | as_seen,
        )

    def close(self, biz_type: str, seen: Breaker) -> BusinessHealth:
        """Close it, if the breaker is as `seen`."""
        return self._write(
            biz_type,
            seen.until_ms,
            "SET #expires = :expires REMOVE #host",
            "#host = :seen",
            {"#host": _HOST + seen.host},
            {":seen": {"S": _text(seen)}},
        )

    def _write(
        self,
        biz_type: str,
        reaches_ms: int,
        update: str,
        condition: str,
        names: dict[str, str],
        values: dict[str, Any],
    ) -> BusinessHealth:
        expires_at = reaches_ms // 1000 + KEPT_SECONDS
        try:
            result = write_if(
                self.client.update_item,
                TableName=self.table,
                Key=registry_keys.health(biz_type),
                UpdateExpression=update,
                ConditionExpression=condition,
                ExpressionAttributeNames={"#expires": _EXPIRES, **names},
                ExpressionAttributeValues={":expires": {"N": str(expires_at)}, **values},
                ReturnValues="ALL_NEW",
            )
        except (ClientError, BotoCoreError, Throttled) as error:
            raise HealthUnavailable(str(error)) from error
        return health_from(result.attributes if isinstance(result, Written) else result.item)


def health_from(item: Item | None) -> BusinessHealth:
    if item is None:
        return BusinessHealth()
    hosts = sorted(name.removeprefix(_HOST) for name in item if name.startswith(_HOST))
    return BusinessHealth(
        _number(item, _SLOW, if_damaged=INSTANT_MS_MAX),
        tuple(_breaker(item, host) for host in hosts),
        _number(item, _OPENINGS, if_damaged=0),
    )


def _number(item: Item, name: str, *, if_damaged: int) -> int:
    try:
        return number(item, name) if name in item else 0
    except InvalidAttribute:
        reported(item, name)
        return if_damaged


def _text(breaker: Breaker) -> str:
    """Always the same text for the same breaker, so that conditions can compare it."""
    return json_text(
        [breaker.since_ms, breaker.until_ms, breaker.owner_token, breaker.probes_failed]
    )


def _breaker(item: Item, host: str) -> Breaker:
    def build(row: Any) -> Breaker:
        since_ms, until_ms, owner_token, probes_failed = convert(row, _BreakerRow)
        return Breaker(
            host=host,
            since_ms=since_ms,
            until_ms=until_ms,
            owner_token=owner_token,
            probes_failed=probes_failed,
        )

    try:
        return parsed(item, _HOST + host, build)
    except InvalidAttribute as error:
        reported(item, error.attribute)
        return damaged_breaker(host)
