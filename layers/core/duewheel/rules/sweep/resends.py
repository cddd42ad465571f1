"""How many pages a run of the sweep resends, so that a backlog is not multiplied.

The sweep cannot see whether the message of a page was lost or waits. It sees whether other pages
are delivered: if they are, the message of an unbegun page is lost; if none is, it waits. It also
sees how many messages are in the queues: if there are more unbegun pages than messages, the
messages of the others are lost. Each business has one page sent again for the first time in any
case, so that the backlog of one does not hide the lost message of another.
"""

from collections.abc import Iterable

from msgspec import Struct

from duewheel.rules.delivery.page_lease import PageLease
from duewheel.rules.sweep.verdict import SeenEntry
from duewheel.rules.wheel.addresses import is_slow_page
from duewheel.rules.wheel.queue_messages import PageMessage

SHARE_OF_DONE = 4
DUE_MAX = 10_000  # held in memory


class Unbegun(Struct, frozen=True):
    """A page that may be resent, or, after too many resends, whose tasks get new entries
    (`owed`)."""

    lease: PageLease
    message: PageMessage | None = None
    due: tuple[SeenEntry, ...] = ()
    businesses: frozenset[str] = frozenset()  # of a page that may be resent


def has_room(resent: Iterable[Unbegun]) -> bool:
    """Whether the tasks of such a page get new entries now; if not, the next run decides again."""
    return sum(len(each.due) for each in resent) < DUE_MAX


class Evidence(Struct):
    """What one run has observed of the notifiers, in numbers of seconds."""

    done: int = 0  # worked off when the sweep first came by
    made_good: int = 0  # worked off after a page had been sent again

    @property
    def seconds_max(self) -> int:
        """The number of seconds whose pages are resent: at least one; twice as many with each run
        if the resent ones are worked off; without limit while most pages are done."""
        return 1 + 2 * self.made_good + self.done // SHARE_OF_DONE


def chosen(
    resent: Iterable[Unbegun], seconds_max: int, waiting: int | None, served: set[str]
) -> list[Unbegun]:
    """Those that have been sent again least often first, then the oldest seconds: so a page that is
    sent again and again delays no first resend. `waiting`: how many messages are in the queue of
    the main lane; None if unknown. `served`: the businesses of pages that this run has chosen, to
    which these are added."""
    ranked = sorted(resent, key=lambda each: (each.lease.resends, each.lease.second))
    seconds = set(list(dict.fromkeys(each.lease.second for each in ranked))[: max(0, seconds_max)])
    main = [page for page in ranked if not is_slow_page(page.lease.page)]
    lost = [] if waiting is None else main[: max(0, len(main) - waiting)]
    pages = []
    for page in ranked:
        is_first_of_business = not (page.lease.resends or page.businesses <= served)
        if is_first_of_business or page.lease.second in seconds or page in lost:
            pages.append(page)
            served |= page.businesses
    return pages
