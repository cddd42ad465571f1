"""Tasks under the caller's own keys: create once, upsert, beat, read, cancel.

A key names one live task. A request that finds the key naming an ended task takes the key over in a
transaction that checks just that. So of two such requests, or of one and a redrive, one wins.
"""

from msgspec import Struct

from duewheel.metrics import CREATED, counts
from duewheel.rules.refusals import (
    AlreadySettled,
    KeyTaken,
    TooManyWrites,
    Unavailable,
    UnknownTask,
)
from duewheel.rules.tasks import upsert
from duewheel.rules.tasks.task import Made, NewTask, Task
from duewheel.rules.tasks.upsert import KeyState
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.dynamodb import unavailable_when_throttled
from duewheel.stores.tasks.keys import KeyStore
from duewheel.workflows.tasks.change_task import CancelTask, ChangePendingTask
from duewheel.workflows.tasks.check_admission import Admission
from duewheel.workflows.tasks.write_entries import EntryWriter
from duewheel.workflows.tries import until_won

# A lost race shows that another writer was first; after a few in a row the call is refused.
_TRIES = 4
_CONTENDED = "Too many requests use this key at once."


class KeyedTasks(Struct, frozen=True, kw_only=True):
    keys: KeyStore
    entry_writer: EntryWriter
    admission: Admission
    change_pending: ChangePendingTask
    cancel_task: CancelTask

    def create(self, task: Task) -> Made:
        """The same body finds its live task again; another body is refused."""

        def try_once() -> Made | None:
            named, found = self._look(task.biz_type, task.key)
            match upsert.key_state(found, task):
                case KeyState.SAME if found is not None:
                    return Made(found, is_new=False)
                case KeyState.OTHER:
                    raise KeyTaken("The key names a live task made by another body.", "key")
                case _:
                    return Made(task) if self._take(task, named) else None

        return until_won(try_once, _TRIES, Unavailable(_CONTENDED))

    def upsert(self, new: NewTask) -> Made:
        """Create, or change the live task; the beat of a watchdog is one write."""
        new = upsert.bounded(new)

        def try_once() -> Made | None:
            named, task = self._look(new.biz_type, new.key)
            if task is None or not task.is_live:
                (placed,) = self.entry_writer.placed([new])
                return Made(placed) if self._take(placed, named) else None
            self.admission.check_change(new)
            try:
                rescheduled = self.change_pending(
                    task.home, lambda task, now_ms: upsert.rescheduled(task, new, now_ms)
                )
            except (AlreadySettled, UnknownTask):
                return None  # it ended in between: the key is free
            return Made(rescheduled, is_new=False)

        return until_won(try_once, _TRIES, Unavailable(_CONTENDED))

    def read(self, biz_type: str, key: str) -> Task:
        """The task that the key names; an ended one as long as its record is kept."""
        _, task = self._look(biz_type, key)
        if task is None:
            raise UnknownTask("There is no task with this key.", "key")
        return task

    def cancel(self, biz_type: str, key: str) -> Task:
        return self.cancel_task.at(self.read(biz_type, key).home)

    def _look(self, biz_type: str, key: str | None) -> tuple[Address | None, Task | None]:
        named = self.keys.home(biz_type, str(key))
        if named is None:
            return None, None
        try:
            return named, self.change_pending.find(named)
        except UnknownTask:
            return named, None

    def _take(self, task: Task, replacing: Address | None) -> bool:
        self.admission.check_create(task)
        with unavailable_when_throttled(TooManyWrites()):
            taken = self.keys.create(task, replacing)
        # It may be the result of an earlier try of the same transaction.
        if not taken and self.keys.home(task.biz_type, str(task.key)) != task.home:
            return False
        counts.add(CREATED)
        self.entry_writer.announce([task.home])
        return True
