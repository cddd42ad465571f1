"""What to do with an entry that falls due, given the home it belongs to.

The rule that keeps entries consistent: the home names the one entry that may fire.
"""

from enum import Enum

from msgspec import Struct

from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.wheel.addresses import Address


class FoundEntry(Struct, frozen=True):
    """An entry as read. `task` is set if the entry is itself the home."""

    address: Address
    home: Address
    task: Task | None


class Decision(Enum):
    DELIVER = "deliver"
    DROP = "drop"
    PLACE_LATER = "place later"
    EXPIRE = "expire"


def decide(entry: Address, home: Task | None, now_ms: int) -> Decision:
    if home is None or home.status is not Status.PENDING or home.entry != entry or home.parked:
        return Decision.DROP
    if home.next_ms // 1000 > entry.second and home.next_ms > now_ms:
        return Decision.PLACE_LATER
    if is_expired(home, now_ms):
        return Decision.EXPIRE
    return Decision.DELIVER


def is_expired(task: Task, instant_ms: int) -> bool:
    """Whether the task's grace is over at this instant."""
    if task.expires_after_seconds is None:
        return False
    return instant_ms > task.due_ms + task.expires_after_seconds * 1000
