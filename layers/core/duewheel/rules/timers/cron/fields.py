"""The fields of a cron expression: numbers, names, ranges, steps and lists of them.

What both dialects have in common. A range that runs backwards and a step larger than its field are
refused: programs differ in how they read them.
"""

import re
from collections.abc import Mapping

from msgspec import Struct, field

_ENTRY = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/([0-9]+))?", re.ASCII)
_NUMBER = re.compile("[0-9]{1,4}")


class NotUnderstood(ValueError):
    """The text is no such expression; the message says why."""


class Field(Struct, frozen=True):
    """One field: its smallest and largest number, and the names of some of them."""

    name: str
    low: int
    high: int
    words: Mapping[str, int] = field(default_factory=dict)

    def numbers_of(self, entry: str) -> frozenset[int]:
        """Of one entry of the field's list."""
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise self.refusal(entry)
        star, first_word, last_word, step = match.groups()
        first = self.low if star else self.number(first_word, entry)
        if last_word is not None:
            last = self._end_of_range(first, self.number(last_word, entry), entry)
        else:
            last = self.high if star or step else first
        return frozenset(range(first, last + 1, self._step(step, entry)))

    def number(self, word: str, entry: str) -> int:
        if word in self.words:
            return self.words[word]
        if not _NUMBER.fullmatch(word):
            raise self.refusal(entry)
        number = int(word)
        if not self.low <= number <= self.high:
            raise self.refusal(entry, f"is not from {self.low} to {self.high}")
        return number

    def refusal(self, entry: str, reason: str = "is not understood") -> NotUnderstood:
        return NotUnderstood(f"{self.name} {entry!r} {reason}.")

    def _end_of_range(self, first: int, last: int, entry: str) -> int:
        if last == 0 < first and self.high == 7:
            last = 7  # Sunday, as in FRI-SUN
        if last < first:
            raise self.refusal(entry, "runs backwards; write it as two ranges, with a comma")
        return last

    def _step(self, step: str | None, entry: str) -> int:
        if step is None:
            return 1
        if not _NUMBER.fullmatch(step) or not 1 <= int(step) <= self.high:
            raise self.refusal(entry, f"has a step that is not from 1 to {self.high}")
        return int(step)


MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

SECOND = Field("second", 0, 59)
MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
MONTH_DAY = Field("day of month", 1, 31)
MONTH = Field("month", 1, 12, {name: number for number, name in enumerate(MONTHS, 1)})
# 7 is a Sunday of its own until a list has been read, so that 5-7 is a range like any other.
WEEKDAY = Field("day of week", 0, 7, {name: number for number, name in enumerate(WEEKDAYS)})
