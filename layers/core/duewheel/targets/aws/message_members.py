"""What a message to a queue and one to a topic have in common, in the words of the SDK."""

from typing import Any

from duewheel.rules.callbacks.types import SnsCallback, SqsCallback
from duewheel.rules.tasks.payload_encoding import attributes_of, deduplication_id
from duewheel.rules.tasks.task import Task


def message_members(callback: SqsCallback | SnsCallback, task: Task) -> dict[str, Any]:
    """Its attributes, the delivery's own last; and for a FIFO its group and what tells repeats."""
    attributes = dict(callback.attributes) | attributes_of(task)
    members: dict[str, Any] = {
        "MessageAttributes": {
            name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
        }
    }
    if callback.group_id is not None:
        members["MessageGroupId"] = callback.group_id
        members["MessageDeduplicationId"] = deduplication_id(callback, task)
    return members
