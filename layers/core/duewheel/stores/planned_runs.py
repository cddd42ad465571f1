"""Occurrences that have been planned and are to be taken back before they come up.

Each goes only if it stands as it was planned: whatever has become of it since is left alone.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from duewheel.rules.addresses import Address
from duewheel.rules.task import Status
from duewheel.stores import task_items
from duewheel.stores.conditions import refused_parts
from duewheel.stores.tasks import TaskStore


class PlannedRuns(Struct, frozen=True):
    tasks: TaskStore

    def take_back(self, homes: Sequence[Address], check: Any) -> int | None:
        """Delete those of these that stand as they were planned, all while `check` holds, which is
        a part of the transaction. Returns how many; None when it held no longer."""
        deletes = [{"Delete": self._delete(home)} for home in homes]
        while deletes:
            refused = refused_parts(self.tasks.client, [check, *deletes])
            if not refused:
                return len(deletes)
            if 0 in refused:
                return None
            deletes = [one for number, one in enumerate(deletes, 1) if number not in refused]
        return 0

    def _delete(self, home: Address) -> dict[str, Any]:
        """What is gone already is none the worse for it."""
        return {
            "TableName": self.tasks.table,
            "Key": task_items.key(home, self.tasks.buckets),
            "ConditionExpression": "attribute_not_exists(#place) OR (#version = :planned"
            " AND #status = :pending AND attribute_not_exists(#entry))",
            "ExpressionAttributeNames": {
                "#place": "place",
                "#version": "version",
                "#status": "status",
                "#entry": "entry",
            },
            "ExpressionAttributeValues": {
                ":planned": {"N": "1"},
                ":pending": {"S": Status.PENDING.value},
            },
        }
