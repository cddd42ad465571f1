"""Verified callbacks.

Invariant: the payload of a delivery is the text that was sent with the task, byte for byte.
"""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from duewheel.errors import DuewheelError

if TYPE_CHECKING:
    from duewheel.values import OutcomeNotice

Answer = tuple[str, int, dict[str, str]]  # body, status and headers


class StopTask(DuewheelError):
    """Raise it in the work of a task that no other attempt can help: the task is dead then. Its
    text becomes the note of the attempt."""


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """`task_id`, `sent_at_seconds` and `body` are covered by the signature. `biz_type`, `due_at`,
    `attempt`, `completion_token`, and `content_type`, by which `payload` is read, are headers that
    it does not cover: None, or an empty content type, if a proxy has removed them."""

    task_id: str
    sent_at_seconds: int
    biz_type: str | None
    due_at: datetime | None
    attempt: int | None
    content_type: str
    body: bytes = field(repr=False)
    completion_token: str | None = field(default=None, repr=False)

    def running(self, within_seconds: int) -> Answer:
        """The answer that the work goes on: its end is reported within so many seconds, by
        `completion_token`."""
        return "", 202, {"duewheel-complete-within": str(within_seconds)}

    @property
    def payload(self) -> Any:
        """The task's payload: decoded if it was sent as JSON, else a text; None if the task has
        none."""
        if not self.body:
            return None
        media_type = self.content_type.partition(";")[0].strip().lower()
        is_json = media_type == "application/json" or media_type.endswith("+json")
        return json.loads(self.body) if is_json else self.body.decode()

    @property
    def notice(self) -> "OutcomeNotice":
        """What became of a task: the payload of a notice. Raises UnexpectedAnswer for any other."""
        from duewheel.values import OutcomeNotice

        return OutcomeNotice.read(self.payload)
