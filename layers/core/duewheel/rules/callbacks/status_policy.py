"""Which HTTP statuses are worth another attempt and which end a task, by two lists.

An entry is a status or a class of them (`4xx`). A status that is listed by itself goes before
its class; what neither list names is tried again. 2xx is success and in neither list.
"""

import re
from collections.abc import Iterable

from msgspec import Struct

StatusEntry = int | str

RETRY_DEFAULT: tuple[StatusEntry, ...] = (401, 403, 404, 408, 425, 429, "5xx")
STOP_DEFAULT: tuple[StatusEntry, ...] = (400, 405, 410, 413, 414, 415, 422, "3xx")
CLASSES = ("3xx", "4xx", "5xx")
ENTRIES_MAX = 100

_STATUS = re.compile("[345][0-9]{2}")


class StatusLists(Struct, frozen=True):
    retry: tuple[StatusEntry, ...] = RETRY_DEFAULT
    stop: tuple[StatusEntry, ...] = STOP_DEFAULT

    def stops(self, status: int) -> bool:
        if status in self.stop:
            return True
        return status not in self.retry and _class_of(status) in self.stop

    @property
    def in_both(self) -> list[StatusEntry]:
        return [entry for entry in self.stop if entry in self.retry]


def lists_of(
    retry: tuple[StatusEntry, ...] | None, stop: tuple[StatusEntry, ...] | None
) -> StatusLists:
    """The lists of a business: each overrides the default of the other."""
    return StatusLists(
        retry=_without(RETRY_DEFAULT, stop or ()) if retry is None else retry,
        stop=_without(STOP_DEFAULT, retry or ()) if stop is None else stop,
    )


def is_entry(value: object) -> bool:
    if isinstance(value, bool):
        return False
    return value in CLASSES or (
        isinstance(value, int) and _STATUS.fullmatch(str(value)) is not None
    )


def _without(
    entries: Iterable[StatusEntry], others: Iterable[StatusEntry]
) -> tuple[StatusEntry, ...]:
    return tuple(entry for entry in entries if entry not in others)


def _class_of(status: int) -> str:
    return f"{status // 100}xx"
