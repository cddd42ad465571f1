"""The latest deaths of several businesses, grouped by their error."""

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from duewheel.rules.tasks.task import Status, Task


class DeathGroup(Struct, frozen=True, kw_only=True):
    """Dead tasks with the same last error and reason, over all businesses."""

    last_error: str | None
    reason: str | None
    businesses: Mapping[str, int]  # how many tasks of each
    last: Task  # that died last

    @property
    def count(self) -> int:
        return sum(self.businesses.values())


def grouped(tasks: Iterable[Task], since_ms: int) -> list[DeathGroup]:
    """Those that are dead, and died since then; the group with the latest death first. An index
    follows the records a moment later."""
    by_error: dict[tuple[str | None, str | None], list[Task]] = {}
    for task in tasks:
        if task.status is Status.DEAD and _died_ms(task) >= since_ms:
            by_error.setdefault((task.last_error, task.reason), []).append(task)
    groups = [
        DeathGroup(
            last_error=last_error,
            reason=reason,
            businesses=dict(Counter(task.biz_type for task in dead).most_common()),
            last=max(dead, key=_died_ms),
        )
        for (last_error, reason), dead in by_error.items()
    ]
    return sorted(groups, key=lambda group: _died_ms(group.last), reverse=True)


def _died_ms(task: Task) -> int:
    return task.settled_ms or 0
