"""DynamoDB's rules for keys, items and batches of the existing tables.

Invariant: the tables are those of moto, or else those that a request has created, and come from
template.yaml; a key is checked by the declaration of its table. The contents of the tables are not
read, so an update that makes an item too large is not detected.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from moto.dynamodb.models import dynamodb_backends

from local.aws.template import ACCOUNT_ID, REGION
from tests.support.expression_rules import (
    changes,
    check_expressions,
    key_tests,
    mentions,
    resolved,
)
from tests.support.refused import RefusedByAws, refuse_if

Item = Mapping[str, Mapping[str, Any]]

ITEM_BYTES_MAX = 400 * 1024
TRANSACTION_BYTES_MAX = 4 * 1024 * 1024
BATCH_BYTES_MAX = 16 * 1024 * 1024
HASH_BYTES_MAX, RANGE_BYTES_MAX = 2048, 1024
NUMBER_DIGITS_MAX = 38


@dataclass(frozen=True)
class Table:
    key: tuple[str, ...]  # partition, and sort if there is one
    indexes: Mapping[str, tuple[str, ...]]
    types: Mapping[str, str]  # of all key attributes

    @staticmethod
    def created_by(request: Mapping[str, Any]) -> "Table":
        return Table(
            _key_of(request["KeySchema"]),
            {
                index["IndexName"]: _key_of(index["KeySchema"])
                for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes")
                for index in request.get(kind, ())
            },
            {one["AttributeName"]: one["AttributeType"] for one in request["AttributeDefinitions"]},
        )

    @staticmethod
    def held_by_moto(name: str) -> "Table | None":
        made: Any = dynamodb_backends[ACCOUNT_ID][REGION].tables.get(name)
        if made is None:
            return None
        if "declared" not in vars(made):  # an empty copy has the same declaration
            indexes = [{"IndexName": i.name, "KeySchema": i.schema} for i in made.global_indexes]
            request = {"KeySchema": made.schema, "AttributeDefinitions": made.attr}
            made.declared = Table.created_by({**request, "GlobalSecondaryIndexes": indexes})
        declared: Table = made.declared
        return declared

    def check_key(self, key: Item) -> None:
        refuse_if(set(key) != set(self.key), f"the key is {list(self.key)}, not {list(key)}")
        self._check_key_attributes(key)

    def check_item(self, item: Item) -> int:
        """Check an item; returns its size."""
        missing = set(self.key) - set(item)
        refuse_if(bool(missing), f"the item lacks its key: {missing}")
        self._check_key_attributes(item)
        size = item_bytes(item)
        refuse_if(size > ITEM_BYTES_MAX, f"an item of {size} bytes is over 400 KB")
        return size

    def _check_key_attributes(self, item: Item) -> None:
        for name in self.types:
            if name in item:
                self.check_key_value(name, item[name])

    def check_key_value(self, name: str, value: Mapping[str, Any]) -> None:
        ((kind, content),) = value.items()
        declared = self.types[name]
        refuse_if(kind != declared, f"{name} is declared {declared} and is {kind}")
        refuse_if(content in ("", b""), f"{name} is a key and is empty")
        if kind == "N":
            _check_number(content)
            return
        is_partition = name == self.key[0] or any(name == key[0] for key in self.indexes.values())
        most = HASH_BYTES_MAX if is_partition else RANGE_BYTES_MAX
        size = len(content.encode() if kind == "S" else content)
        refuse_if(size > most, f"{name} has {size} bytes, over {most}")

    def check_update(self, request: Mapping[str, Any]) -> None:
        self.check_key(request["Key"])
        values = request.get("ExpressionAttributeValues", {})
        for change in changes(request.get("UpdateExpression", "")):
            name = resolved(change.path, request)
            refuse_if(name in self.key, f"{name} is part of the key and cannot be updated")
            if name in self.types and change.operand in values:
                self.check_key_value(name, values[change.operand])

    def check_query(self, request: Mapping[str, Any]) -> None:
        index = request.get("IndexName")
        refuse_if(index is not None and index not in self.indexes, f"there is no index {index}")
        key = self.key if index is None else self.indexes[index]
        is_strong = bool(request.get("ConsistentRead"))
        refuse_if(is_strong and index is not None, "no strong read of a global index")
        start = request.get("ExclusiveStartKey")
        if start is not None:
            refuse_if(set(start) != {*self.key, *key}, f"no place to start at: {list(start)}")
            self._check_key_attributes(start)
        self._check_key_condition(request, key)
        if "FilterExpression" in request:
            mentioned = mentions(request["FilterExpression"])
            filtered = {resolved(name, request) for name in mentioned.names | mentioned.bare} & set(
                key
            )
            refuse_if(bool(filtered), f"a filter must not be on {filtered}, part of the key")

    def _check_key_condition(self, request: Mapping[str, Any], key: tuple[str, ...]) -> None:
        text = request.get("KeyConditionExpression", "")
        values = request.get("ExpressionAttributeValues", {})
        mentioned = mentions(text)
        tested = {resolved(test.path, request): test for test in key_tests(text)}
        named = {resolved(name, request) for name in mentioned.names | mentioned.bare}
        refuse_if(not named <= set(key), f"{named - set(key)} are not part of {key}: {text}")
        is_one = key[0] in tested and tested[key[0]].operator == "="
        refuse_if(not is_one, f"a query names one {key[0]}: {text}")
        for name, test in tested.items():
            found = [values[value] for value in test.values]
            for value in found:
                self.check_key_value(name, value)
            if test.operator == "BETWEEN":
                low, high = (_in_order(value) for value in found)
                refuse_if(low > high, f"BETWEEN has its bounds the wrong way round: {found}")


class Tables:
    """The rules of DynamoDB by operation."""

    def __init__(self) -> None:
        self._created: dict[str, Table] = {}

    def check(self, operation: str, request: Mapping[str, Any]) -> None:
        match operation:
            case "CreateTable":
                self._created[request["TableName"]] = Table.created_by(request)
            case "GetItem" | "PutItem" | "UpdateItem" | "DeleteItem":
                self._check_one(operation.removesuffix("Item"), request)
            case "Query" | "Scan":
                refuse_if(request.get("Limit", 1) < 1, "a Limit is at least 1")
                check_expressions(request)
                table = self._table(request["TableName"])
                if table is not None and operation == "Query":
                    table.check_query(request)
            case "BatchWriteItem":
                self._check_batch_write(request["RequestItems"])
            case "BatchGetItem":
                self._check_batch_get(request["RequestItems"])
            case "TransactWriteItems" | "TransactGetItems":
                self._check_transaction(request["TransactItems"])

    def _table(self, name: str) -> Table | None:
        return Table.held_by_moto(name) or self._created.get(name)

    def _check_one(self, action: str, request: Mapping[str, Any]) -> int:
        """Check one action; returns the size of its item."""
        check_expressions(request)
        for value in request.get("ExpressionAttributeValues", {}).values():
            _value_bytes(value)
        table = self._table(request["TableName"])
        if table is None:
            return 0
        match action:
            case "Put":
                return table.check_item(request["Item"])
            case "Update":
                table.check_update(request)
            case _:
                table.check_key(request["Key"])
        return 0

    def _check_batch_write(self, asked: Mapping[str, Any]) -> None:
        _check_count(sum(map(len, asked.values())), 25, "BatchWriteItem")
        size = 0
        for name, writes in asked.items():
            table = self._table(name)
            if table is None:
                continue
            keys = []
            for write in writes:
                ((kind, what),) = write.items()
                if kind == "PutRequest":
                    size += table.check_item(what["Item"])
                    keys.append(_place(table, what["Item"]))
                else:
                    table.check_key(what["Key"])
                    keys.append(_place(table, what["Key"]))
            _check_distinct(keys, "BatchWriteItem")
        refuse_if(size > BATCH_BYTES_MAX, f"a batch of {size} bytes is over 16 MB")

    def _check_batch_get(self, asked: Mapping[str, Any]) -> None:
        _check_count(sum(len(one["Keys"]) for one in asked.values()), 100, "BatchGetItem")
        for name, one in asked.items():
            check_expressions(one)
            table = self._table(name)
            if table is not None:
                for key in one["Keys"]:
                    table.check_key(key)
                _check_distinct([_place(table, key) for key in one["Keys"]], "BatchGetItem")

    def _check_transaction(self, actions: Iterable[Mapping[str, Any]]) -> None:
        actions, size, places = list(actions), 0, []
        _check_count(len(actions), 100, "a transaction")
        for action in actions:
            ((kind, what),) = action.items()
            size += self._check_one(kind, what)
            table = self._table(what["TableName"])
            if table is not None:
                item = what["Item"] if kind == "Put" else what["Key"]
                places.append((what["TableName"], *_place(table, item)))
        _check_distinct(places, "a transaction")
        refuse_if(size > TRANSACTION_BYTES_MAX, f"a transaction of {size} bytes is over 4 MB")


def _key_of(schema: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    by_kind = {one["KeyType"]: one["AttributeName"] for one in schema}
    return tuple(by_kind[kind] for kind in ("HASH", "RANGE") if kind in by_kind)


def _place(table: Table, item: Item) -> tuple[Any, ...]:
    return tuple(next(iter(item[name].values())) for name in table.key)


def _check_count(count: int, most: int, where: str) -> None:
    refuse_if(not 1 <= count <= most, f"{where} has {count} parts, not 1 to {most}")


def _check_distinct(places: list[Any], where: str) -> None:
    refuse_if(len(set(places)) != len(places), f"{where} has the same item twice: {places}")


def _in_order(value: Mapping[str, Any]) -> Any:
    ((kind, content),) = value.items()
    return Decimal(content) if kind == "N" else content.encode() if kind == "S" else content


def item_bytes(item: Item) -> int:
    """The size of an item by DynamoDB's rules."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Mapping[str, Any]) -> int:
    refuse_if(len(value) != 1, f"a value has one type: {value}")
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return _check_number(content)
        case "B":
            return len(content)
        case "L":
            return 3 + sum(1 + _value_bytes(element) for element in content)
        case "M":
            return 3 + len(content) + item_bytes(content)
        case "SS" | "NS" | "BS":
            is_set = len(set(content)) == len(content) > 0
            refuse_if(not is_set, f"a set is empty or has a member twice: {content}")
            return sum(_value_bytes({kind[0]: member}) for member in content)
        case _:
            return 1


def _check_number(text: str) -> int:
    """Check a number; returns its size: a byte for two digits, and one more."""
    if text.isdigit() and text.isascii() and len(text) <= NUMBER_DIGITS_MAX:
        return len(text) // 2 + 1  # the fast path, for most numbers
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise RefusedByAws(f"{text!r} is no number") from None
    refuse_if(not number.is_finite(), f"{text} is no number")
    if len(text) > NUMBER_DIGITS_MAX:
        digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
        refuse_if(len(digits) > NUMBER_DIGITS_MAX, f"{text} has more than 38 digits")
    return len(text) // 2 + 1
