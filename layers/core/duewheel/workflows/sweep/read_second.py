"""Read a second slice by slice, each with the homes that its re-entries point to.

One slice is held at a time: a crowded second does not fit into memory.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from duewheel.rules.refusals import UnreadableItem
from duewheel.rules.sweep.verdict import HomeState, Reentry, SeenEntry
from duewheel.rules.tasks.task import Status
from duewheel.rules.wheel.addresses import Address, task_id_at
from duewheel.stores.sweep.slices import SliceStore, WholeSlice
from duewheel.stores.tasks.tasks import TaskStore


class SliceOfSecond(Struct, frozen=True, kw_only=True):
    second: int
    shard: int
    whole: WholeSlice
    elsewhere: dict[Address, HomeState]  # homes that re-entries point to
    damaged: list[UnreadableItem]  # what could not be read of all these

    @property
    def entries(self) -> list[SeenEntry]:
        reentries = self.whole.reentries.items()
        return [
            *(SeenEntry(state.home, state) for state in self.whole.homes),
            *(SeenEntry(entry, self.elsewhere.get(reentry.home)) for entry, reentry in reentries),
        ]

    @property
    def size(self) -> int:
        return len(self.whole.homes) + len(self.whole.reentries)

    @property
    def was_made_good(self) -> bool:
        """True if a page of it had been sent again, and then was begun and finished."""
        leases = self.whole.leases.values()
        return any(lease.done and lease.resends and lease.tries for lease in leases)

    @property
    def all_homes(self) -> Iterable[HomeState]:
        return (self.elsewhere | {state.home: state for state in self.whole.homes}).values()

    @property
    def homes(self) -> Iterable[HomeState]:
        """Each home once, except homes of this second, which are read in their own slice."""
        outside = {home: s for home, s in self.elsewhere.items() if home.second != self.second}
        return (outside | {state.home: state for state in self.whole.homes}).values()

    @property
    def may_change(self) -> bool:
        """True if a task may yet end in this second, because it names another entry of it."""
        pending = [s for s in self.homes if s.status is Status.PENDING and not s.parked]
        return any(state.entry.second == self.second for state in pending)

    @property
    def homeless(self) -> dict[Address, Reentry]:
        """Re-entries whose homes are gone; a home that cannot be read is not gone."""
        damaged = {task_id_at(one.slot, one.place) for one in self.damaged}
        return {
            entry: reentry
            for entry, reentry in self.whole.reentries.items()
            if reentry.home not in self.elsewhere and reentry.home.task_id not in damaged
        }


class ReadSecond(Struct, frozen=True):
    slices: SliceStore
    tasks: TaskStore

    def __call__(self, second: int) -> Iterator[SliceOfSecond]:
        first = self.slice(second, 0)
        yield first
        for shard in range(1, first.whole.shards):
            yield self.slice(second, shard)

    def slice(
        self, second: int, shard: int, *, strongly: bool = False, reentries_only: bool = False
    ) -> SliceOfSecond:
        whole = self.slices.read_whole(
            second, shard, strongly=strongly, reentries_only=reentries_only
        )
        homes, damaged = self.tasks.home_states(r.home for r in whole.reentries.values())
        return SliceOfSecond(
            second=second,
            shard=shard,
            whole=whole,
            elsewhere=homes,
            damaged=[*damaged, *whole.damaged],
        )
