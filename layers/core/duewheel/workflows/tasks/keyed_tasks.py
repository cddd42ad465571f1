"""Tasks under the caller's own keys: create once, upsert, beat, read, cancel.

A key names one live task. A request that finds no live task there claims the key, on condition that
it is as it was read, and then puts the task. So of two such requests, or of one and a redrive,
one wins.
"""

from contextlib import suppress

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.metrics import CREATED, counts
from duewheel.rules.access.grants import ANYTHING, Permit
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
from duewheel.rules.tolerance import Window
from duewheel.stores.dynamodb import unavailable_when_throttled
from duewheel.stores.tasks.keys import KeyStore, NamedKey, Taken
from duewheel.workflows.tasks.change_task import CancelTask, ChangePendingTask
from duewheel.workflows.tasks.check_admission import Admission
from duewheel.workflows.tasks.keep_order import KeepOrder
from duewheel.workflows.tasks.write_entries import EntryWriter
from duewheel.workflows.tries import until_won

# A lost race shows that another writer was first; after a few in a row the call is refused.
_TRIES = 4
# For another creator to put the task that it has claimed the key for: far below the margin within
# which a new entry is direct.
_PAUSES_SECONDS = (0.05, 0.1, 0.2)
_CONTENDED = "Too many requests use this key at once."


class KeyedTasks(Struct, frozen=True, kw_only=True):
    clock: Clock
    keys: KeyStore
    entry_writer: EntryWriter
    admission: Admission
    keep_order: KeepOrder
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
                    return self._made(task, named, found)

        return until_won(try_once, _TRIES, Unavailable(_CONTENDED))

    def _made(self, task: Task, named: NamedKey | None, found: Task | None) -> Made | None:
        match self._take(task, named, found):
            case Taken.YES:
                return Made(task)
            case Taken.LOST:
                return None
            case Taken.BURIED:
                raise TooManyWrites  # the caller of this places the task anew

    def upsert(self, new: NewTask) -> Made:
        """Create, or change the live task; the beat of a watchdog is one write."""
        new = upsert.bounded(new)

        def altered(task: Task, now_ms: int) -> Task:
            after = upsert.rescheduled(task, new, now_ms, self._due_ms)
            self.admission.check_earlier(task, after)
            return after

        def try_once() -> Made | None:
            named, task = self._look(new.biz_type, new.key)
            if task is None or not task.is_live:
                tolerances = self.admission.tolerances([new.window])
                (placed,) = self.entry_writer.placed([new], tolerances)
                is_taken = self._take(placed, named, task) is Taken.YES
                return Made(placed) if is_taken else None
            self.admission.check_change(new)
            try:
                rescheduled = self.change_pending(task.home, altered)
            except (AlreadySettled, UnknownTask):
                return None  # it ended in between: the key is free
            return Made(rescheduled, is_new=False)

        return until_won(try_once, _TRIES, Unavailable(_CONTENDED))

    def _due_ms(self, window: Window) -> int:
        return self.entry_writer.due_ms(window, self.admission.tolerances([window]))

    def read(self, biz_type: str, key: str) -> Task:
        """The task that the key names; an ended one as long as its record is kept."""
        named = self.keys.read(biz_type, key)
        if named is not None:
            with suppress(UnknownTask):
                return self.change_pending.find(named.home)
        raise UnknownTask("There is no task with this key.", "key")

    def cancel(self, biz_type: str, key: str, permit: Permit = ANYTHING) -> Task:
        return self.cancel_task.at(self.read(biz_type, key).home, permit=permit)

    def _look(self, biz_type: str, key: str | None) -> tuple[NamedKey | None, Task | None]:
        """The key first: a claim fails if its task is redriven after that. A claim without its task
        is given time, since to bury it costs its creator another try."""
        pauses = iter(_PAUSES_SECONDS)
        while True:
            named = self.keys.read(biz_type, str(key))
            task = None if named is None else self.keys.tasks.get(named.home)
            if named is None or task is not None or not named.is_claim:
                return named, task
            pause_seconds = next(pauses, None)
            if pause_seconds is None:
                return named, None
            self.clock.sleep(pause_seconds)

    def _take(self, task: Task, named: NamedKey | None, found: Task | None) -> Taken:
        self.admission.check_create(task)
        with unavailable_when_throttled(TooManyWrites()):
            if self.keep_order.reserve([task]):
                raise TooManyWrites
            taken = self.keys.take(task, named, is_absent=found is None)
        if taken is not Taken.YES:
            self.keep_order.withdraw([task])
        if taken is Taken.YES:
            counts.add(CREATED)
            self.entry_writer.announce([task.home])
        return taken
