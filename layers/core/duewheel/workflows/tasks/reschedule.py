"""Reschedule tasks to later instants without an attempt: write the entries, then name them.

If a task is changed in between, the change wins, and the new entry is never delivered.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.fan_out import fan_out
from duewheel.metrics import LIMITER_WAITS, counts
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.task import PostponedBy, Reservation, Task
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.tasks.write_entries import EntryWriter
from duewheel.workflows.tries import Outcome, Tries, changed_or_logged, may_be_written, tried

WRITERS = 16

Change = tuple[Task, Task]


class Reschedule(Struct, frozen=True):
    clock: Clock
    tasks: TaskStore
    entry_writer: EntryWriter
    writers: ThreadPoolExecutor

    def reserved(self, reserved: Sequence[tuple[Task, Reservation]]) -> Tries[Change]:
        """To the instants that the rate limit of their business has reserved."""
        now_ms = self.clock.now_ms()

        def once(changes: Sequence[Change]) -> list[Outcome]:
            outcomes = self._once(changes)
            counts.add(LIMITER_WAITS, sum(outcome is True for outcome in outcomes))
            return outcomes

        return Tries(
            [(task, lifecycle.rescheduled(task, to, now_ms)) for task, to in reserved], once
        )

    def postponed(self, tasks: Sequence[Task], by: PostponedBy | None = None) -> Tries[Change]:
        """By about as long as each is late."""
        now_ms = self.clock.now_ms()
        changes = [(one, lifecycle.postponed_by_lateness(one, now_ms, by)) for one in tasks]
        return self.tries(changes)

    def tries(self, changes: Sequence[Change]) -> Tries[Change]:
        """Each task becomes the second of its pair, with an entry at its instant. True for a task
        unless another write came first."""
        return Tries(changes, self._once)

    def each(self, changes: Sequence[Change]) -> list[bool]:
        """The same, in one try."""
        return self.tries(changes)()

    def _once(self, changes: Sequence[Change]) -> list[Outcome]:
        """Named entries are announced, even if the others failed."""
        entries = self.entry_writer.addresses([after.next_ms for _, after in changes])
        homes = [before.home for before, _ in changes]
        self.tasks.put_entries(list(zip(entries, homes, strict=True)))
        named = list(zip(changes, entries, strict=True))
        outcomes = fan_out(self.writers, tried(self._name), named)
        self.entry_writer.announce(
            entry
            for entry, outcome in zip(entries, outcomes, strict=True)
            if may_be_written(outcome)
        )
        return outcomes

    def _name(self, named: tuple[Change, Address]) -> bool:
        (before, after), entry = named
        return changed_or_logged(self.tasks, before, replace(after, entry=entry))
