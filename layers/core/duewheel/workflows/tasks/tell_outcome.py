"""Tell what became of a task: its end and its notice are one transaction.

So each end that somebody asks for has exactly one notice, which the home names. An end that nobody
asks for is written as it would be without this.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules.businesses.settings import Business
from duewheel.rules.callbacks.types import OnOutcome, Told
from duewheel.rules.tasks import outcome_notice
from duewheel.rules.tasks.task import Task
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.tasks.write_entries import EntryWriter


class TellOutcome(Struct, frozen=True):
    tasks: TaskStore
    entry_writer: EntryWriter

    def end(self, before: Task, after: Task, told: Told | None, business: Business) -> Task | None:
        """Write the end; the task as it then is, or None if the home changed since `before` was
        read. `told` None: such an end is not told."""
        asked = told and outcome_notice.asked_for(after, told, business)
        if not asked or told is None:
            return after if self.tasks.change(before, after) else None
        ended, notice = self.noted(after, told, asked)
        if not self.tasks.change_along(before, ended, self.put(notice)):
            return None
        self.announce([notice])
        return ended

    def delivered(self, record: Task, asked: OnOutcome) -> Task | None:
        """Write the record of a delivered task; its notice, which is still to be announced. None:
        the task had ended."""
        ended, notice = self.noted(record, Told.DELIVERED, asked)
        return notice if self.tasks.put_told(ended, notice) else None

    def noted(self, after: Task, told: Told, asked: OnOutcome) -> tuple[Task, Task]:
        """The ended task as it names its notice, and this."""
        placement = self.entry_writer.placement_now()
        notice = outcome_notice.notice(after, told, asked, placement)
        return replace(after, notice_id=notice.task_id), notice

    def of_runs(
        self,
        chain: Task,
        timer_id: str,
        reason: str,
        due_seconds: Sequence[int],
        asked: OnOutcome,
    ) -> Task:
        """The notice of missed runs that are only counted, to be put with their count."""
        placement = self.entry_writer.placement_now()
        return outcome_notice.notice_of_runs(chain, timer_id, reason, due_seconds, asked, placement)

    def of_disabled(
        self, run: Task, timer_id: str, version: int, reason: str, asked: OnOutcome
    ) -> Task:
        """The notice that a timer was disabled after this run, to be put with that change."""
        placement = self.entry_writer.placement_now()
        return outcome_notice.notice_of_disabled(run, timer_id, version, reason, asked, placement)

    def put(self, notice: Task) -> dict[str, object]:
        """The part of a transaction."""
        return {"Put": self.tasks.put_request(notice)}

    def announce(self, notices: Sequence[Task]) -> None:
        self.entry_writer.announce([notice.home for notice in notices])
