"""The wheel's own records in the Registry, its shape and its pointers.

They are read from the restored Registry if the stack's own has lost them, and brought back.

They come back last. Without them it is not known what was dispatched, so after an interruption the
next run must find them missing, too.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from msgspec import Struct

from duewheel.rules.sweep.audit import Pointers
from duewheel.stores import registry_keys
from duewheel.stores.dynamodb import Item, write_if
from duewheel.stores.wheel import pointers

_TIME, _SWEEP = registry_keys.pointer(pointers.TIME), registry_keys.pointer(pointers.SWEEP)
_ALL = (registry_keys.SHAPE, _TIME, _SWEEP)


class WheelRecords(Struct, frozen=True):
    client: Any
    own: str
    restored: str | None = None

    def shape(self) -> Item | None:
        return self._read(self.own, registry_keys.SHAPE) or self._restored(registry_keys.SHAPE)

    def pointers(self, origin: int) -> Pointers:
        """The sweep has passed only dispatched seconds: a time pointer that comes back is not
        behind it."""
        sweep = self._position(_SWEEP, origin)
        time = self._position(_TIME, origin)
        item = self._read(self.own, _SWEEP) or self._restored(_SWEEP) or {}
        time = time if self._read(self.own, _TIME) else max(sweep, time)
        return Pointers(sweep, time, pointers.open_places_from(item))

    def knows_what_was_dispatched(self) -> bool:
        return self._read(self.own, _TIME) is not None

    def lost(self) -> Iterator[Item]:
        """Missing records, as they come back."""
        for key in _ALL:
            item = self._restored(key)
            if item is None or self._read(self.own, key) is not None:
                continue
            if key is _TIME:
                swept = self._position(_SWEEP, int(item["position"]["N"]))
                position = max(swept, int(item["position"]["N"]))
                item = {**item, "position": {"N": str(position)}}
            yield item

    def bring_back(self, item: Item) -> None:
        put = partial(self.client.put_item, TableName=self.own, Item=item)
        write_if(put, **registry_keys.IF_ABSENT)

    def _position(self, key: Any, origin: int) -> int:
        item = self._read(self.own, key) or self._restored(key)
        return int(item["position"]["N"]) if item else origin

    def _restored(self, key: Any) -> Item | None:
        return None if self.restored is None else self._read(self.restored, key)

    def _read(self, table: str, key: Any) -> Item | None:
        item: Item | None = self.client.get_item(TableName=table, Key=key, ConsistentRead=True).get(
            "Item"
        )
        return item
