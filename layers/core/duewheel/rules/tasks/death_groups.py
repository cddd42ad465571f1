"""The latest deaths of several businesses, grouped by their error."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from duewheel.rules.tasks.dead_tasks import Died, Found
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


def latest(found: Sequence[Found], count: int) -> Found:
    """Of the parts of a business's deaths, each with its latest first: the latest of all. Behind
    the end of a part that goes on, more of it may be later than what other parts have there."""
    died = sorted(chain.from_iterable(part.died for part in found), key=_rank, reverse=True)
    ends = [_rank(part.died[-1]) for part in found if part.goes_on]
    if ends:
        died = [one for one in died if _rank(one) >= max(ends)]
    return Found(died[:count], bool(ends) or len(died) > count)


def _rank(died: Died) -> tuple[int, int]:
    return died.rank


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
