"""Read a second whole: its slices, and the homes that its re-entries point to."""

from collections.abc import Iterable

from msgspec import Struct

from duewheel.rules.addresses import Address, task_id_at
from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.sweep_verdict import HomeState, Reentry, SeenEntry
from duewheel.stores.slices import SliceStore, WholeSlice
from duewheel.stores.tasks import TaskStore


class WholeSecond(Struct, frozen=True):
    second: int
    slices: list[WholeSlice]  # by shard
    elsewhere: dict[Address, HomeState]  # homes that re-entries point to
    damaged: list[UnreadableItem]  # what could not be read of all these

    def seen_in(self, shard: int) -> list[SeenEntry]:
        whole = self.slices[shard]
        return [
            *(SeenEntry(state.home, state) for state in whole.homes),
            *(SeenEntry(entry, self.elsewhere.get(r.home)) for entry, r in whole.reentries.items()),
        ]

    @property
    def size(self) -> int:
        return len(self.elsewhere) + sum(len(w.homes) + len(w.reentries) for w in self.slices)

    @property
    def has_header(self) -> bool:
        return self.slices[0].has_header

    @property
    def was_made_good(self) -> bool:
        """Whether a page of it had been sent again, and then was begun and done."""
        leases = (lease for whole in self.slices for lease in whole.leases.values())
        return any(lease.done and lease.resends and lease.tries for lease in leases)

    @property
    def homes(self) -> Iterable[HomeState]:
        """Each home once, however many of its entries stand here."""
        here = {state.home: state for whole in self.slices for state in whole.homes}
        return (self.elsewhere | here).values()

    @property
    def homeless(self) -> dict[Address, Reentry]:
        """Re-entries whose homes are gone; a home that cannot be read is not."""
        damaged = {task_id_at(one.slot, one.place) for one in self.damaged}
        return {
            entry: reentry
            for whole in self.slices
            for entry, reentry in whole.reentries.items()
            if reentry.home not in self.elsewhere and reentry.home.task_id not in damaged
        }

    @property
    def reentries(self) -> list[Address]:
        return [entry for whole in self.slices for entry in whole.reentries]


class ReadSecond(Struct, frozen=True):
    slices: SliceStore
    tasks: TaskStore

    def __call__(self, second: int) -> WholeSecond:
        first = self.slices.read_whole(second, 0)
        slices = [first, *(self.slices.read_whole(second, n) for n in range(1, first.shards))]
        homes, damaged = self.tasks.home_states(
            reentry.home for whole in slices for reentry in whole.reentries.values()
        )
        damaged += [one for whole in slices for one in whole.damaged]
        return WholeSecond(second, slices, homes, damaged)
