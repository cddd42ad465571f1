"""What clients know of their tasks: the model that the service is held against.

An instant of a task is certain from the moment its request was answered with 2xx; a request whose
answer was lost may or may not have been carried out, and both are allowed for.
"""

from collections import Counter
from dataclasses import dataclass, field

AT_ONCE_MS = 0  # a run or a redrive: from then on the call may be made at any instant


@dataclass(frozen=True)
class Asked:
    """One request that concerns a task. `answered_seconds` is None when the answer was lost."""

    begun_seconds: float
    answered_seconds: float | None
    status: int | None  # None: lost, or a 5xx

    @property
    def is_granted(self) -> bool:
        return self.status is not None and self.status < 300

    @property
    def may_have_been_done(self) -> bool:
        # A change may be written and yet be answered 409, when it came too late.
        return self.status is None or self.status in (200, 201, 409)


@dataclass(frozen=True)
class DueAsked(Asked):
    due_ms: int = AT_ONCE_MS


@dataclass
class Known:
    """A task whose creation was answered with 2xx."""

    task_id: str
    dues: list[DueAsked]
    cancels: list[Asked] = field(default_factory=list)
    redrives: list[Asked] = field(default_factory=list)
    called_again: list[Asked] = field(default_factory=list)  # after each it is called again

    def earliest_ms(self, at_seconds: float) -> int:
        """The earliest instant at which a call that is made now may be made."""
        granted = [
            due
            for due in self.dues
            if due.is_granted
            and due.answered_seconds is not None
            and due.answered_seconds <= at_seconds
        ]
        last = granted[-1] if granted else self.dues[0]
        possible = [
            due.due_ms
            for due in self.dues
            if last.begun_seconds <= due.begun_seconds <= at_seconds and due.may_have_been_done
        ]
        return min([last.due_ms, *possible])

    @property
    def cancelled_from_seconds(self) -> float | None:
        """From then on it stays cancelled: no later redrive may have been done."""
        return min(
            (
                cancel.begun_seconds
                for cancel in self.cancels
                if cancel.is_granted and not self._may_be_redriven_after(cancel)
            ),
            default=None,
        )

    def _may_be_redriven_after(self, cancel: Asked) -> bool:
        return any(
            redrive.may_have_been_done
            and (
                redrive.answered_seconds is None or redrive.answered_seconds >= cancel.begun_seconds
            )
            for redrive in self.redrives
        )


@dataclass(frozen=True)
class Pause:
    """From the answer that said so until somebody asked for its end."""

    biz_type: str
    answered_seconds: float
    resume_begun_seconds: float
    flow_key: str | None = None  # None: of the whole business


@dataclass
class KnownTimer:
    """`instants`: seconds that its schedule has. `changes`: what was asked for, and whether it is
    enabled with that; its creation is the first. `misfire`: where it is not `all`, of those that
    were planned too late only the latest are written."""

    timer_id: str
    misfire: str
    instants: tuple[int, ...]
    changes: list[tuple[Asked, bool]]

    def is_surely(self, enabled: bool, begins: float, ends: float) -> bool:
        """All through that time."""
        before = [
            number
            for number, (asked, _) in enumerate(self.changes)
            if asked.is_granted
            and asked.answered_seconds is not None
            and asked.answered_seconds <= begins
        ]
        if not before:
            return False
        since = [each for each in self.changes[before[-1] :] if each[0].begun_seconds <= ends]
        return all(is_enabled is enabled for _, is_enabled in since)


class Ledger:
    def __init__(self) -> None:
        self.tasks: dict[str, Known] = {}
        self.pauses: list[Pause] = []
        self.timers: list[KnownTimer] = []
        self.named: dict[str, set[str]] = {}  # the ids that answers gave for a timer's name
        self.redriven_by_two = 0  # redrives of one task by two callers at once
        self.refused = 0  # creates that were answered 5xx, or not at all
        # Of tasks that were requested under idempotency keys, by their numbers: the answer.
        self.once: dict[int, str | None] = {}
        self.answered_otherwise: list[str] = []
        self.reasons: Counter[str] = Counter()  # of tasks that were seen to wait
        self.silent: list[str] = []  # overdue, and said no reason

    def created(self, task_id: str, due: DueAsked) -> Known:
        known = self.tasks.setdefault(task_id, Known(task_id, []))
        known.dues.append(due)
        return known

    def repeated(self, number: int, task_id: str | None) -> None:
        """None: it was not answered as created."""
        before = self.once.setdefault(number, task_id)
        if before is None:
            self.once[number] = task_id
        elif task_id != before:
            self.answered_otherwise.append(f"{number} was {before} and then {task_id}")
