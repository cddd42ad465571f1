"""How many pages a run of the sweep sends again, so that a backlog is not multiplied.

Whether the message of one page was lost or only waits, the sweep cannot see. It sees whether pages
are worked off: where they are, what was not begun is lost, and where none is, it waits. And it sees
how many messages are in the queues: what is unbegun beyond that number is lost.
"""

from collections.abc import Iterable

from msgspec import Struct

from duewheel.rules.delivery.page_lease import PageLease
from duewheel.rules.sweep.verdict import SeenEntry
from duewheel.rules.wheel.addresses import is_slow_page
from duewheel.rules.wheel.queue_messages import PageMessage

SHARE_OF_DONE = 4
OWED_MAX = 10_000  # held in memory


class Unbegun(Struct, frozen=True):
    """A page that may be sent again, or, sent in vain so often, entered anew (`owed`)."""

    lease: PageLease
    message: PageMessage | None = None
    owed: tuple[SeenEntry, ...] = ()


def has_room(asked: Iterable[Unbegun]) -> bool:
    """For a page that is to be entered anew; if not, it is left to the next run."""
    return sum(len(each.owed) for each in asked) < OWED_MAX


class Evidence(Struct):
    """What one run has seen of the notifiers, in seconds."""

    done: int = 0  # worked off when the sweep first came by
    made_good: int = 0  # worked off after a page had been sent again

    @property
    def seconds_max(self) -> int:
        """So many seconds' pages are sent again: one in any case; the more, the more of what was
        sent again is worked off, twice as many with each run; and freely while most are done."""
        return 1 + 2 * self.made_good + self.done // SHARE_OF_DONE


def chosen(asked: Iterable[Unbegun], seconds_max: int, waiting: int | None) -> list[Unbegun]:
    """Those that have been sent again least often first, then the oldest seconds: a page that is
    sent in vain keeps none from being sent for the first time. `waiting`: how many messages are in
    the queue of the main lane; None when that is not known."""
    ranked = sorted(asked, key=lambda each: (each.lease.resends, each.lease.second))
    seconds = set(list(dict.fromkeys(each.lease.second for each in ranked))[: max(0, seconds_max)])
    main = [page for page in ranked if not is_slow_page(page.lease.page)]
    lost = [] if waiting is None else main[: max(0, len(main) - waiting)]
    return [page for page in ranked if page.lease.second in seconds or page in lost]
