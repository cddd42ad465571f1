"""Redrive a task that has ended: it is called again, and its history continues.

A redrive is one conditional update of the home, or a transaction of home and key. It takes the TTL
off in the same write, and the entry that it names is put before.
"""

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.access.grants import ANYTHING, Permit
from duewheel.rules.refusals import NotRedrivable, no_such_task
from duewheel.rules.tasks import lifecycle
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import Address, address_of_task
from duewheel.stores.dynamodb import unavailable_when_throttled
from duewheel.stores.tasks.keys import KeyStore
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.tasks.change_task import Also, changed_by, same
from duewheel.workflows.tasks.check_admission import Admission
from duewheel.workflows.tasks.keep_order import KeepOrder
from duewheel.workflows.tasks.write_entries import EntryWriter


class RedriveTask(Struct, frozen=True, kw_only=True):
    clock: Clock
    tasks: TaskStore
    keys: KeyStore
    keep_order: KeepOrder
    admission: Admission
    entry_writer: EntryWriter

    def __call__(self, task_id: str, permit: Permit = ANYTHING) -> Task:
        return self.at(address_of_task(task_id), permit)

    def at(self, home: Address, permit: Permit = ANYTHING, also: Also = same) -> Task:
        now_ms = self.clock.now_ms()
        task = self.tasks.get(home)
        if task is None or task.is_internal or lifecycle.is_gone(task, now_ms):
            raise no_such_task()
        permit.check_found(task.biz_type, no_such_task())
        self._check(task, now_ms)
        self.admission.check_call(task.biz_type)
        entry = self.entry_writer.put(task, lifecycle.redrive_at_ms(task, now_ms))
        redriven = changed_by(permit, also(lifecycle.redriven(task, entry, now_ms)))
        with unavailable_when_throttled():
            self.keep_order.prepare(task, redriven)
            is_back = self._bring_back(task, redriven)
        self.keep_order.conclude(task, redriven, is_written=is_back)
        if not is_back:
            raise NotRedrivable(
                "The task has just been changed by another, or its key names another task."
            )
        self.entry_writer.announce([entry])
        return redriven

    def _check(self, task: Task, now_ms: int) -> None:
        if task.is_live:
            raise NotRedrivable("Only a task that has ended can be redriven; this one is pending.")
        if lifecycle.is_about_to_go(task, now_ms):
            # TTL may delete the record at any moment, even after a write to it.
            raise NotRedrivable("The task is about to be deleted; create it again.")
        from_ms = lifecycle.redrivable_from_ms(task)
        if now_ms < from_ms:
            raise NotRedrivable(
                "The task has just been delivered: its delivery may be written once more.",
                redrivable_ms=from_ms,
            )

    def _bring_back(self, ended: Task, redriven: Task) -> bool:
        if ended.key is None:
            return self.tasks.change(ended, redriven)
        if self.keys.redrive(ended, redriven):
            return True
        named = self.keys.read(ended.biz_type, ended.key)
        if named is None or named.home == ended.home or self.tasks.get(named.home) is not None:
            return False
        # Claimed, by a creator who crashed or is slower; or its task has been deleted since.
        return self.tasks.bury(named.home) and self.keys.redrive(ended, redriven, named.home)
