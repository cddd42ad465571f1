"""Limits answers of BatchGetItem like DynamoDB: to 1 MB of a partition, and to 16 MB in all.

The rest is in `UnprocessedKeys`. A small answer is passed on unchanged: its text is never shorter
than the size of its items.
"""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from local.aws.patches.item_sizes import size_of

PARTITION_BYTES_MAX = 1024 * 1024
ANSWER_BYTES_MAX = 16 * 1024 * 1024

Reply = tuple[int, dict[str, str], Any]
Item = dict[str, Any]


def cut_where_large(body: Any, reply: Reply, hash_key: Callable[[str], str]) -> Reply:
    """`reply` to a BatchGetItem with this body, limited as by DynamoDB. `hash_key`: the partition
    key of a table. At least one item is returned."""
    status, headers, text = reply
    if status != 200 or len(text) <= PARTITION_BYTES_MAX:
        return reply
    request, answer = json.loads(body)["RequestItems"], json.loads(text)
    sizes: Counter[Any] = Counter()
    for table, wanted in request.items():
        if "ProjectionExpression" in wanted or "AttributesToGet" in wanted:
            raise NotImplementedError("attributes that a projection leaves out have a size, too")
        items, names = answer["Responses"].get(table, []), list(wanted["Keys"][0])
        brought = [
            item for item in items if _has_room(sizes, (table, str(item[hash_key(table)])), item)
        ]
        left = [{name: item[name] for name in names} for item in items if item not in brought]
        left += answer["UnprocessedKeys"].get(table, {}).get("Keys", [])
        if left:
            answer["Responses"][table] = brought
            answer["UnprocessedKeys"][table] = {**wanted, "Keys": left}
    text = json.dumps(answer)
    kept = {name: value for name, value in headers.items() if "crc32" not in name.lower()}
    return status, {**kept, "content-length": str(len(text))}, text


def _has_room(sizes: Counter[Any], partition: tuple[str, str], item: Item) -> bool:
    """Counts the item if it has room, in its partition and in all."""
    size = size_of(item)
    if sizes[partition] and sizes[partition] + size > PARTITION_BYTES_MAX:
        return False
    if sizes[None] + size > ANSWER_BYTES_MAX:
        return False
    sizes.update({partition: size, None: size})
    return True
