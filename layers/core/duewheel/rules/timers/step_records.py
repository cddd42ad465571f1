"""Step records: what a planning step writes, from which the homes of its occurrences are computed.

The planner writes the record before it puts the first occurrence. So each occurrence that is in no
index is named by a record, whichever planner put it. A record may name occurrences that were never
put, or were deleted since, and several records may name the same one.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from duewheel.rules.tasks.task import Occurrence, Sizes
from duewheel.rules.timers.planning import OCCURRENCES_MAX, due_second_of, occurrence_home
from duewheel.rules.timers.timer import Timer
from duewheel.rules.wheel.addresses import SECOND_MAX, Address, second_of

# The due seconds of a record are closer together: usually a record has all of a step, of two hours
# at most and the jitter. A reader that looks for a second reads the records that begin so long
# before it.
SPAN_SECONDS = 10_800
# One occurrence alone is indexed: its record would cost as much as its entry in the index.
RECORDED_MIN = 2
KEPT_LONGER_SECONDS = 86_400  # than the tasks of the business, for runs that end late


class StepRecord(Struct, frozen=True):
    """`runs`: nominal and due second of each, in order; with `sizes`, which has those of its own
    seconds only, the homes follow from them."""

    timer_id: str
    runs: tuple[tuple[int, int], ...]
    sizes: Sizes

    @property
    def first_due(self) -> int:
        return min(due for _, due in self.runs)

    @property
    def last_due(self) -> int:
        return max(due for _, due in self.runs)

    def home_of(self, second: int, due: int) -> Address:
        return occurrence_home(self.timer_id, second, due, self.sizes.of(second))


def records_of(timer: Timer, occurrences: Iterable[Occurrence], sizes: Sizes) -> list[StepRecord]:
    """The records of a step. They name all its occurrences but those that are alone."""
    runs = [(one.second, due_second_of(timer, one.second)) for one in occurrences]
    runs.sort(key=lambda run: run[1])
    return [
        StepRecord(timer.timer_id, tuple(sorted(group)), _sizes_of(group, sizes))
        for group in _groups(runs)
        if len(group) >= RECORDED_MIN
    ]


def _groups(by_due: Iterable[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Those whose due seconds fit into one record."""
    group: list[tuple[int, int]] = []
    for run in by_due:
        if group and (run[1] - group[0][1] >= SPAN_SECONDS or len(group) == OCCURRENCES_MAX):
            yield group
            group = []
        group.append(run)
    if group:
        yield group


def _sizes_of(runs: Sequence[tuple[int, int]], sizes: Sizes) -> Sizes:
    several = {second: sizes.of(second) for second, _ in runs if sizes.of(second) > 1}
    return Sizes(max(runs)[0] + 1, several)


class Search:
    """The homes behind a place that the records read so far name, and which of them are certain:
    no record that is still unread names one before them."""

    def __init__(self, *, newest_first: bool, behind: str | None) -> None:
        self._newest_first = newest_first
        self._behind = behind
        self._found: dict[tuple[int, int], list[StepRecord]] = {}

    @property
    def begins(self) -> tuple[int, int]:
        """The first and the last second in which the records begin that are to be read."""
        if self._newest_first:
            return 0, SECOND_MAX if self._behind is None else second_of(self._behind)
        second = 0 if self._behind is None else second_of(self._behind)
        return max(0, second - SPAN_SECONDS + 1), SECOND_MAX

    def add(self, record: StepRecord) -> None:
        second = None if self._behind is None else second_of(self._behind)
        for nominal, due in record.runs:
            if second is None or (due <= second if self._newest_first else due >= second):
                self._found.setdefault((due, nominal), []).append(record)

    def page(self, limit: int, read_to: int | None) -> tuple[list[Address], bool]:
        """The first ones, and whether there may be more. `read_to`: the second in which the last
        record begins that was read; None: all were read."""
        homes: list[Address] = []
        last_due: int | None = None
        for (due, nominal), records in sorted(self._found.items(), reverse=self._newest_first):
            if due != last_due and (len(homes) > limit or not self._is_certain(due, read_to)):
                break
            last_due = due
            own = {record.home_of(nominal, due) for record in records}
            homes += [home for home in own if self._is_behind(home)]
        homes.sort(key=lambda home: home.place, reverse=self._newest_first)
        return homes[:limit], read_to is not None or len(homes) > limit

    def _is_certain(self, due: int, read_to: int | None) -> bool:
        if read_to is None:
            return True
        return due >= read_to + SPAN_SECONDS if self._newest_first else due < read_to

    def _is_behind(self, home: Address) -> bool:
        if self._behind is None:
            return True
        if self._newest_first:
            return home.place < self._behind
        return home.place > self._behind


def merged(
    pages: Sequence[tuple[Sequence[Address], bool]], limit: int, *, newest_first: bool
) -> tuple[list[Address], bool]:
    """One page of the homes of several lists, each in order and up to some place. Behind the
    earliest end of a list that goes on, homes of that list may be missing."""
    homes = sorted(
        {home for page, _ in pages for home in page},
        key=lambda home: home.place,
        reverse=newest_first,
    )
    for end in [page[-1].place for page, goes_on in pages if goes_on and page]:
        homes = [
            home for home in homes if (home.place >= end if newest_first else home.place <= end)
        ]
    return homes[:limit], len(homes) > limit or any(goes_on for _, goes_on in pages)
