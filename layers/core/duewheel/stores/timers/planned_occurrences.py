"""Deletes occurrences that were planned and have not fallen due. An occurrence that has changed
since it was planned is left alone.
"""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from duewheel.rules.tasks.task import Status
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.conditional_writes import refused_parts
from duewheel.stores.tasks import codec
from duewheel.stores.tasks.tasks import TaskStore


class PlannedRuns(Struct, frozen=True):
    tasks: TaskStore

    def take_back(
        self, homes: Sequence[Address], check: Any, counted: Callable[[Sequence[Address]], Any]
    ) -> int | None:
        """Delete the occurrences that are as they were planned, on the condition `check`, which is
        a part of the transaction. `counted` returns the part that counts the deleted ones, or None.
        Returns how many were deleted; None if `check` failed."""
        while homes:
            count = counted(homes)
            others = [check] if count is None else [check, count]
            deletes = [{"Delete": self._delete(home)} for home in homes]
            refused = refused_parts(self.tasks.client, [*others, *deletes])
            if not refused:
                return len(homes)
            if 0 in refused:
                return None
            homes = [one for n, one in enumerate(homes, len(others)) if n not in refused]
        return 0

    def _delete(self, home: Address) -> dict[str, Any]:
        """One that is gone is refused: nothing is counted twice."""
        return {
            "TableName": self.tasks.table,
            "Key": codec.key(home, self.tasks.buckets),
            "ConditionExpression": "#version = :planned AND #status = :pending"
            " AND attribute_not_exists(#entry)",
            "ExpressionAttributeNames": {
                "#version": "version",
                "#status": "status",
                "#entry": "entry",
            },
            "ExpressionAttributeValues": {
                ":planned": {"N": "1"},
                ":pending": {"S": Status.PENDING.value},
            },
        }
