"""TTL at work in the simulation: what has expired goes, some of it at once, some of it much later.

Days are short there, so that it strikes while tasks wait. What went is kept for the verdict, and
held against what it was: nothing that is still needed may ever expire.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch
from zlib import crc32

from duewheel.rules.businesses.settings import Business
from duewheel.rules.tasks import lifecycle
from duewheel.rules.wheel import addresses
from duewheel.stores.delivery import page_leases
from duewheel.stores.tasks import codec, keys
from duewheel.stores.wheel import pointers
from duewheel.wiring import process
from tests.simulation.seams import modules
from tests.simulation.service import Service

DAY_SECONDS = 86_400
DELETED_WITHIN_DAYS = 2
ABOUT_TO_GO_MS = 60_000  # longer than a request takes; an hour would be longer than a day here
EVERY_SECONDS = 20


@contextmanager
def short_days(seconds: int) -> Iterator[None]:
    """What is kept for a day or for longer is kept for so long."""
    with ExitStack() as stack:
        kept = patch.object(Business, "retention_seconds", property(lambda _: seconds))
        stack.enter_context(kept)
        stack.enter_context(patch.object(page_leases, "_KEPT_SECONDS", 7 * seconds))
        for module in modules():
            if "RETENTION_SECONDS_MIN" in vars(module):
                stack.enter_context(patch.object(module, "RETENTION_SECONDS_MIN", seconds))
        stack.enter_context(patch.object(lifecycle, "ABOUT_TO_GO_MS", ABOUT_TO_GO_MS))
        yield


class Expiry:
    def __init__(self, service: Service, day_seconds: int = DAY_SECONDS) -> None:
        self.gone: list[dict[str, Any]] = []  # of the wheel
        self.too_early: list[str] = []
        self._service = service
        self._day_seconds = day_seconds

    def strike(self) -> None:
        """Once; by chance of each item alone, the same in every run."""
        wheel = self._service.settings.wheel_table
        emulator = self._service.emulator
        deleted = emulator.delete_expired(self._is_its_time)
        if not any(deleted.values()):
            return
        sweep = process.pointers().read(pointers.SWEEP, process.origin())
        still_open = {place.second for place in sweep.open_places}

        def is_swept(second: int) -> bool:
            return second <= sweep.position and second not in still_open

        homes = {
            (item["slot"]["S"], item["place"]["S"]): item["status"]["S"]
            for item in emulator.items(wheel, ("slot", "place", "status"))
            if "status" in item
        }
        for item in deleted[wheel]:
            plain = dict(item)
            self.gone.append(plain)
            self.too_early += (
                f"{_named(plain)} {why}" for why in self._wrong(plain, is_swept, homes)
            )
        self._service.faults.injected["deleted by time"] += sum(map(len, deleted.values()))

    def left_behind(self) -> list[str]:
        """What is still there of what has ended, when all that may go has gone."""
        return [
            f"{_named(item)} is kept for ever"
            for item in self._service.emulator.items(self._service.settings.wheel_table)
            if {"status", "task"} & set(item) and not self._is_claim_without_a_task(item)
        ]

    def _is_claim_without_a_task(self, item: dict[str, Any]) -> bool:
        """Its creator died before it put the task. The next create under the key takes it."""
        if "task" not in item or "expires_at" in item:
            return False
        home = keys.home_named_by(item)
        key = codec.key(home, process.settings().buckets)
        return not any(
            (key["slot"], key["place"]) == (gone["slot"], gone["place"]) for gone in self.gone
        )

    def _is_its_time(self, item: Any, expires_at: int) -> bool:
        chance = crc32(repr(sorted(item.items())).encode()) / 2**32
        waits_seconds = max(0.0, 2 * chance - 1) * DELETED_WITHIN_DAYS * self._day_seconds
        return bool(self._service.now_ms() / 1000 >= expires_at + waits_seconds)

    def _wrong(
        self,
        item: dict[str, Any],
        is_swept: Callable[[int], bool],
        homes: dict[tuple[str, str], str],
    ) -> Iterator[str]:
        slot, place = item["slot"]["S"], item["place"]["S"]
        if "status" in item:
            if item["status"]["S"] == "pending":
                yield "is pending"
            elif not is_swept(codec.task_from(item).entry.second):
                yield "has not been swept"
        elif "task" in item:
            home = keys.home_named_by(item)
            buckets = process.settings().buckets
            if homes.get((home.slot(buckets), home.place)) == "pending":
                yield "names a task that is pending"
        elif "home" in item:
            yield "is an entry, which the sweep deletes"
        elif addresses.holds_seconds(slot) and not is_swept(addresses.second_of(place)):
            yield "is of a second that has not been swept"


def _named(item: dict[str, Any]) -> str:
    return f"{item['slot']['S']} {item['place']['S']}"
