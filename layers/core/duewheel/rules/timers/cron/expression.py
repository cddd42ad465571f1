"""Cron evaluation: a parsed cron expression, and the local times that it names.

A local time has no zone: it is counted in seconds since 1970 on a clock without changes. croniter
finds the dates and gets only plain numbers, which all programs read alike. Syntax that it lacks or
reads differently (L, LW, 15W, 5L, 5#2) is decided here: croniter returns every possible date, and
`is_on` decides.
"""

from collections.abc import Container, Iterable, Iterator
from datetime import date, datetime

from msgspec import Struct

DAY_SECONDS = 86_400
_FIRST_ORDINAL = date(1970, 1, 1).toordinal()
# Every kind of date recurs within 40 years; a named year may be this far away.
_YEARS_BETWEEN_MAX = 130


def day_of(local_time: int) -> date:
    return date.fromordinal(_FIRST_ORDINAL + local_time // DAY_SECONDS)


def midnight_of(day: date) -> int:
    return (day.toordinal() - _FIRST_ORDINAL) * DAY_SECONDS


class MonthDays(Struct, frozen=True):
    """The days that the day-of-month field names. `before_last`: 0 for L, 3 for L-3. `nearest`: 15
    for 15W, the working day nearest to the 15th in the same month. `last_working`: LW."""

    numbers: frozenset[int]
    before_last: frozenset[int] = frozenset()
    nearest: frozenset[int] = frozenset()
    last_working: bool = False

    def has(self, day: date) -> bool:
        if day.day in self.numbers:
            return True
        if not (self.before_last or self.nearest or self.last_working):
            return False
        last = _last_of_month(day)
        if last - day.day in self.before_last:
            return True
        wanted = (number for number in self.nearest if number <= last)
        if any(_working_day_near(day, number, last) == day.day for number in wanted):
            return True
        return self.last_working and _working_day_near(day, last, last) == day.day

    def plain(self) -> set[int]:
        """Every number that may be one of them, in a month of any length."""
        days = set(self.numbers)
        for before in self.before_last:
            days.update(range(28 - before, 32 - before))
        for number in self.nearest:
            days.update(range(number - 2, number + 3))
        if self.last_working:
            days.update(range(26, 32))
        return days & set(range(1, 32))


class WeekDays(Struct, frozen=True):
    """The days that the day-of-week field names; Sunday is 0. `nth`: (5, 2) for 5#2. `last`: 5 for
    5L."""

    numbers: frozenset[int]
    nth: frozenset[tuple[int, int]] = frozenset()
    last: frozenset[int] = frozenset()

    def has(self, day: date) -> bool:
        weekday = day.isoweekday() % 7
        return (
            weekday in self.numbers
            or (weekday, (day.day + 6) // 7) in self.nth
            or (weekday in self.last and day.day + 7 > _last_of_month(day))
        )

    def plain(self) -> set[int]:
        return {*self.numbers, *(weekday for weekday, _ in self.nth), *self.last}


class Cron(Struct, frozen=True, kw_only=True):
    """`either`: a date that fits one of the two day fields will do; else it has to fit both.
    `years`: None for every year."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    month_days: MonthDays
    months: frozenset[int]
    week_days: WeekDays
    either: bool
    years: frozenset[int] | None = None

    def local_times(self, first: int, last: int, without: Container[date] = ()) -> Iterator[int]:
        """Rising local times from `first` to `last`, both included; none on the dates `without`."""
        for day in self._dates(day_of(first), day_of(last)):
            if day not in without:
                yield from self._local_times_of(midnight_of(day), first, last)

    def is_on(self, day: date) -> bool:
        if day.month not in self.months or (self.years is not None and day.year not in self.years):
            return False
        if self.either:
            return self.month_days.has(day) or self.week_days.has(day)
        return self.month_days.has(day) and self.week_days.has(day)

    def _dates(self, first: date, last: date) -> Iterator[date]:
        if self.is_on(first):
            yield first
        if first >= last:
            return  # mostly one date is needed, without croniter
        for day in self._dates_that_may_do(first):
            if day > last:
                return
            if self.is_on(day):
                yield day

    def _dates_that_may_do(self, after: date) -> Iterator[date]:
        from croniter import CroniterBadDateError, croniter  # slow to import, seldom needed

        fields = ["0 0", _listed(self.month_days.plain()), _listed(self.months)]
        fields.append(_listed(self.week_days.plain()))
        if self.years is not None:
            fields += ["0", _listed(self.years)]
        walk = croniter(
            " ".join(fields),
            datetime(after.year, after.month, after.day),
            day_or=self.either,
            max_years_between_matches=_YEARS_BETWEEN_MAX,
        )
        while True:
            try:
                found: datetime = walk.get_next(datetime)
            except CroniterBadDateError:
                return
            yield found.date()

    def _local_times_of(self, midnight: int, first: int, last: int) -> Iterator[int]:
        for hour in self.hours:
            hour_start = midnight + hour * 3600
            if hour_start + 3599 < first or hour_start > last:
                continue
            for minute in self.minutes:
                minute_start = hour_start + minute * 60
                if minute_start + 59 < first or minute_start > last:
                    continue
                for second in self.seconds:
                    if first <= minute_start + second <= last:
                        yield minute_start + second


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(str(number) for number in sorted(numbers))


def _last_of_month(day: date) -> int:
    if day.month == 12:
        return 31
    return (date(day.year, day.month + 1, 1) - date(day.year, day.month, 1)).days


def _working_day_near(day: date, number: int, last: int) -> int:
    """The day, Monday to Friday, nearest to that number in the month of `day`."""
    weekday = day.replace(day=number).isoweekday()
    if weekday == 6:
        return number - 1 if number > 1 else 3
    if weekday == 7:
        return number + 1 if number < last else number - 2
    return number
