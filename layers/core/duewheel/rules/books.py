"""The books: which minute's statistics a task enters, and when, so that each fact enters once.

The sweep finishes every second once, and meets in it the homes that stand there and
those that its re-entries point to. What it books then is what the record says of that very
second: that the task came up in it for the first time, that an attempt on an entry of it
failed, that the entry which settled the task stands in it. None of this can change once the
second is finished, so whoever finishes it again books the same. A second is booked as a whole,
when nothing of it is open any more; so one that stays open is booked after those behind it.

What a minute's record holds already, it tells: all facts of the seconds up to `up_to`, but for
those that are named in `lacks`, which were open when it was brought up to there.

A task counts in the minute in which it first came up, a failed attempt in its own. What plans a
timer is no task of anybody's, and counts nowhere.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules.addresses import Address
from duewheel.rules.sweep_verdict import HomeState
from duewheel.rules.tally import NOTHING, Tally, delivered_so_late
from duewheel.rules.task import Status

KEPT_DAYS = 90

_ENDED = {
    Status.DEAD: Tally(dead=1),
    Status.EXPIRED: Tally(expired=1),
    Status.CANCELLED: Tally(cancelled=1),
}


class Sheet(Struct, frozen=True):
    """One minute of one business."""

    biz_type: str
    minute: int  # since the epoch
    tally: Tally = NOTHING
    up_to: int = -1  # the last second whose facts are in it
    lacks: frozenset[int] = frozenset()  # seconds before that whose facts are not

    def holds(self, second: int) -> bool:
        return second <= self.up_to and second not in self.lacks

    @property
    def expires_at(self) -> int:
        return self.minute * 60 + KEPT_DAYS * 86_400


class Statistics(Struct, frozen=True):
    """What the books say of a stretch of minutes."""

    first_minute: int
    last_minute: int
    closed_until_second: int  # before it, only tasks still pending will change their minute
    counted_until_second: int  # what came up from here on is not in it
    sheets: list[Sheet]  # of minutes in which there was something, in order

    @property
    def total(self) -> Tally:
        return sum((sheet.tally for sheet in self.sheets), NOTHING)


SheetName = tuple[str, int]  # business and minute
Facts = dict[SheetName, dict[int, Tally]]  # by the second in which they were met


class Met:
    """What is to be booked when a second is passed: of the homes met in it, slice by slice, each
    once however many of its entries stand there."""

    def __init__(self, second: int) -> None:
        self.facts: Facts = {}
        self._second = second
        self._from_elsewhere: set[Address] = set()

    def add(self, homes: Iterable[HomeState]) -> None:
        """The homes of one slice, each once; one that stands in this second only where it does."""
        for home in homes:
            if home.home.second != self._second:
                if home.home in self._from_elsewhere:
                    continue
                self._from_elsewhere.add(home.home)
            for minute, tally in _facts(home, self._second):
                by_second = self.facts.setdefault((home.biz_type, minute), {})
                by_second[self._second] = by_second.get(self._second, NOTHING) + tally


def joined(all_facts: Iterable[Facts]) -> Facts:
    """The facts of several seconds together."""
    together: Facts = defaultdict(dict)
    for facts in all_facts:
        for name, by_second in facts.items():
            together[name].update(by_second)
    return dict(together)


def booked(
    sheet: Sheet,
    by_second: Mapping[int, Tally],
    up_to: int,
    still_open: frozenset[int] = frozenset(),
) -> Sheet:
    """The sheet with what it does not hold yet of `by_second`. All seconds up to `up_to` but those
    that are `still_open` have been booked with this, or had nothing for this sheet."""
    new = [tally for second, tally in by_second.items() if not sheet.holds(second)]
    lacked = {second for second in sheet.lacks if second > up_to or second in still_open}
    now_open = {second for second in still_open if sheet.up_to < second <= up_to}
    return replace(
        sheet,
        tally=sum(new, sheet.tally),
        up_to=max(sheet.up_to, up_to),
        lacks=frozenset(lacked | now_open) - by_second.keys(),
    )


def _facts(home: HomeState, second: int) -> Iterator[tuple[int, Tally]]:
    if home.is_plan:
        return
    settled_in = None if home.status is Status.PENDING else home.entry.second
    ended_in = [died for died, _ in home.revivals]
    # The sweep may have been past the home's second when the home was put.
    expected_in = home.home.second if home.first_second is None else home.first_second
    first_up = min(s for s in (expected_in, settled_in, *ended_in) if s is not None)
    minute = first_up // 60
    if first_up == second:
        yield minute, Tally(created=1)
    if settled_in == second:
        if home.status is Status.DELIVERED:
            yield minute, delivered_so_late(home.lateness_ms or 0)
        else:
            yield minute, _ENDED[home.status]
    for died, revived in home.revivals:
        if revived_or_died := (died == second) - (revived == second):
            yield minute, Tally(dead=revived_or_died)
    if failed := home.failed_seconds.count(second):
        yield second // 60, Tally(failed_attempts=failed)
