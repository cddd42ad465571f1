"""Businesses as a process knows them: read once every few seconds, however many tasks ask.

That a business has no record is known as well. While one thread reads a business, the others
that ask for it wait for what comes of it.
"""

from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock

from duewheel.clock import Clock
from duewheel.rules.business import Business
from duewheel.stores.businesses import BusinessStore

KNOWN_MAX = 2_000  # anybody may ask with any name


@dataclass(frozen=True, slots=True)
class _Known:
    business: Business
    read_ms: int


class KnownBusinesses:
    def __init__(self, store: BusinessStore, clock: Clock, kept_ms: int) -> None:
        self._store = store
        self._clock = clock
        self._kept_ms = kept_ms
        self._lock = Lock()  # over both of these
        self._known: dict[str, _Known] = {}
        self._being_read: dict[str, Future[Business]] = {}

    def one(self, biz_type: str) -> Business:
        return self.many([biz_type])[biz_type]

    def many(self, biz_types: Iterable[str]) -> dict[str, Business]:
        """No older than they are kept for; of version 0 where there is no record."""
        now_ms = self._clock.now_ms()
        found: dict[str, Business] = {}
        mine: dict[str, Future[Business]] = {}
        others: dict[str, Future[Business]] = {}
        with self._lock:
            for biz_type in dict.fromkeys(biz_types):
                known = self._known.get(biz_type)
                if known is not None and 0 <= now_ms - known.read_ms < self._kept_ms:
                    found[biz_type] = known.business
                elif biz_type in self._being_read:
                    others[biz_type] = self._being_read[biz_type]
                else:
                    mine[biz_type] = self._being_read[biz_type] = Future()
        if mine:
            found |= self._read(mine, now_ms)
        return found | {biz_type: reading.result() for biz_type, reading in others.items()}

    def forget(self, biz_type: str) -> None:
        """It has just been changed here; whoever is reading it may have read it before."""
        with self._lock:
            self._known.pop(biz_type, None)
            self._being_read.pop(biz_type, None)

    def _read(self, mine: dict[str, Future[Business]], now_ms: int) -> dict[str, Business]:
        try:
            read = self._store.read_many(mine)
        except BaseException as error:
            with self._lock:
                for biz_type in mine:
                    self._ended(biz_type, mine[biz_type])
            for reading in mine.values():
                reading.set_exception(error)
            raise
        with self._lock:
            for biz_type, business in read.items():
                if self._ended(biz_type, mine[biz_type]):
                    self._known.pop(biz_type, None)  # so that it stands last, as the youngest
                    self._known[biz_type] = _Known(business, now_ms)
            while len(self._known) > KNOWN_MAX:
                del self._known[next(iter(self._known))]
        for biz_type, business in read.items():
            mine[biz_type].set_result(business)
        return read

    def _ended(self, biz_type: str, reading: Future[Business]) -> bool:
        """False when it was forgotten while it was read: then what was read is not kept."""
        if self._being_read.get(biz_type) is not reading:
            return False
        del self._being_read[biz_type]
        return True
