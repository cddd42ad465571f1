"""Which of a page's tasks go in one request: those with the same callback that are due within the
same second.

A batch goes when it has as many tasks, or bytes, as one request may have, or when the last of its
tasks is due. So no task is called before its instant, and none waits a second for others.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from duewheel.rules.businesses.settings import Business
from duewheel.rules.callbacks.aws.registry import target_of
from duewheel.rules.callbacks.aws.target import AwsBatch
from duewheel.rules.callbacks.batch import HEAD_BYTES_MAX, BatchLimits, document_bytes
from duewheel.rules.callbacks.batch_limits import limits_of
from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.callbacks.payload_encoding import unsuitable
from duewheel.rules.callbacks.types import AwsCallback, Callback
from duewheel.rules.tasks.effective_callback import callback_to_make
from duewheel.rules.tasks.task import Task

SPAN_MS = 1_000


class Form(Struct, frozen=True):
    """How a task goes with others. `callback`: the effective one."""

    callback: Callback
    limits: BatchLimits

    @property
    def has_document(self) -> bool:
        """Whether it goes in a batch document, even alone."""
        return self._shared is None or self._shared.has_document

    def size(self, task: Task) -> int:
        """The bytes that it adds to the request."""
        return (
            document_bytes(task) if self._shared is None else self._shared.size(self.callback, task)
        )

    @property
    def _shared(self) -> AwsBatch | None:
        return target_of(self.callback).batch if isinstance(self.callback, AwsCallback) else None


def form_of(task: Task, business: Business) -> Form | None:
    """None for a task that goes alone, as without batches."""
    batch = business.own.batch
    if batch is None or task.notice_of is not None:
        return None
    callback = callback_to_make(task, business)
    if isinstance(callback, Outcome) or unsuitable(callback, task.payload) is not None:
        return None
    limits = limits_of(callback)
    if limits is None:
        return None
    form = Form(callback, limits.within(batch))
    # A message that failed is judged alone.
    return None if task.attempts and not form.has_document else form


class _Open(Struct):
    """A batch that more tasks may join."""

    form: Form
    tasks: list[Task] = field(default_factory=list)
    size: int = HEAD_BYTES_MAX

    def takes(self, task: Task, size: int) -> bool:
        limits = self.form.limits
        return not self.tasks or (
            task.next_ms - self.tasks[0].next_ms < SPAN_MS
            and len(self.tasks) < limits.tasks_max
            and self.size + size <= limits.bytes_max
        )

    def add(self, task: Task, size: int) -> None:
        self.tasks.append(task)
        self.size += size


def grouped(tasks: Iterable[Task], business: Business) -> list[list[Task]]:
    """`tasks`: in the order of their instants. The last task of each group is due last. Those of a
    group have one flow key, since they take one turn of it."""
    groups: list[list[Task]] = []
    open_ones: dict[tuple[Callback, str | None], _Open] = {}
    for task in tasks:
        form = form_of(task, business)
        if form is None:
            groups.append([task])
            continue
        size = form.size(task)
        current = open_ones.get((form.callback, task.flow_key))
        if current is None or not current.takes(task, size):
            current = open_ones[form.callback, task.flow_key] = _Open(form)
            groups.append(current.tasks)
        current.add(task, size)
    return groups


def still_together(tasks: Sequence[Task], business: Business) -> tuple[list[Task], list[Task]]:
    """Those that still fit one request, and the others: while they waited, a timer may have got
    another callback, or a larger payload."""
    groups = sorted(grouped(tasks, business), key=len)
    return groups[-1], [task for group in groups[:-1] for task in group]
