"""Emulates DynamoDB's TTL, which moto lacks: expired items are deleted.

As in AWS an item is deleted some time after its expiry, and never if its expiry is five years past
or not a number.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

FIVE_YEARS_SECONDS = 5 * 366 * 86_400

Item = Mapping[str, Any]  # in DynamoDB JSON


def delete_expired(
    table: Any, now_seconds: float, is_its_time: Callable[[Item, int], bool]
) -> Iterator[Item]:
    """Delete from a table of moto's. `is_its_time` decides, for items that may be deleted, by their
    expiry."""
    attribute = (getattr(table, "ttl", None) or {}).get("AttributeName")
    if attribute is None or table.ttl.get("TimeToLiveStatus") != "ENABLED":
        return
    for items in list(table.items.values()) if table.has_range_key else [table.items]:
        for key, item in list(items.items()):
            value = item.attrs.get(attribute)
            if value is None or value.type != "N":
                continue
            expires_at = int(float(value.value))
            if not now_seconds - FIVE_YEARS_SECONDS < expires_at <= now_seconds:
                continue
            plain = {name: one.to_json() for name, one in item.attrs.items()}
            if is_its_time(plain, expires_at):
                del items[key]
                yield plain
