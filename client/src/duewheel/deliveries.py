"""Verified callbacks: a delivery for each task, and a batch with the answer to it.

Invariant: the payload of a delivery is the text that was sent with the task, byte for byte, also in
a batch. A task of a batch is delivered unless its failure was reported.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from duewheel.errors import DuewheelError
from duewheel.instants import instant_from

if TYPE_CHECKING:
    from duewheel.values import OutcomeNotice

A_BATCH_ID = re.compile(r"batch_[0-9a-f]{24}")  # of another length than the id of a task
VERSION = 1
SAYS_STOP = {"duewheel-stop": "true"}
Answer = tuple[str, int, dict[str, str]]  # body, status and headers
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]|[^\s\[\]{}",:]+')


class StopTask(DuewheelError):
    """Raise it in the handler of a task that no other attempt can help: the task is dead then. Its
    text becomes the note of the attempt."""


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """`task_id`, `sent_at_seconds` and `body` are covered by the signature. `biz_type`, `due_at`,
    `attempt`, `completion_token`, and `content_type`, by which `payload` is read, are headers that
    it does not cover: None, or an empty content type, if a proxy has removed them. Of a task in a
    batch all are covered. Only there `key` is known."""

    task_id: str
    sent_at_seconds: int
    biz_type: str | None
    due_at: datetime | None
    attempt: int | None
    content_type: str
    body: bytes = field(repr=False)
    key: str | None = None
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


class ReceivedBatch:
    """The deliveries of one request. `is_batch` False: a single call, which is answered by its
    status."""

    def __init__(self, batch_id: str, deliveries: tuple[Delivery, ...], *, is_batch: bool) -> None:
        self.batch_id = batch_id
        self.deliveries = deliveries
        self.is_batch = is_batch
        self._failed: dict[str, dict[str, Any]] = {}

    def __iter__(self) -> Iterator[Delivery]:
        return iter(self.deliveries)

    def __len__(self) -> int:
        return len(self.deliveries)

    def __repr__(self) -> str:
        return f"ReceivedBatch({self.batch_id}, {len(self)} tasks)"

    def retry(
        self, delivery: Delivery, note: str = "", *, after_seconds: float | None = None
    ) -> None:
        """Report that the attempt failed: the task is tried again, by its retry policy."""
        member = {} if after_seconds is None else {"retry_after_seconds": after_seconds}
        self._report(delivery, {"outcome": "retry", "note": note, **member})

    def stop(self, delivery: Delivery, note: str = "") -> None:
        """Report that no other attempt can help: the task is dead."""
        self._report(delivery, {"outcome": "stop", "note": note})

    def answer(self) -> Answer:
        """Body, status and headers of the answer, as Flask takes them. All tasks that were not
        reported are delivered."""
        if self.is_batch:
            document = {"failed": list(self._failed.values())} if self._failed else {}
            return json.dumps(document), 200, {"content-type": "application/json"}
        for failed in self._failed.values():
            if failed["outcome"] == "stop":
                return failed["note"], 422, SAYS_STOP
            after = failed.get("retry_after_seconds")
            headers = {} if after is None else {"retry-after": str(max(0, round(after)))}
            return failed["note"], 503, headers
        return "", 204, {}

    def _report(self, delivery: Delivery, members: dict[str, Any]) -> None:
        self._failed[delivery.task_id] = {"task_id": delivery.task_id, **members}


def deliveries_of(body: bytes, batch_id: str, sent_at_seconds: int) -> tuple[Delivery, ...]:
    """Of the document of a batch. Raises ValueError if it is none that this client reads."""
    try:
        document = _members(body.decode())
        version, named = json.loads(document["version"]), json.loads(document["batch_id"])
        if version != VERSION or named != batch_id:
            raise ValueError(f"a batch of version {version} with the id {named}")
        biz_type = json.loads(document["biz_type"])
        tasks = [_members(text) for text in _values(document["tasks"], "[")]
        return tuple(_delivery(task, biz_type, sent_at_seconds) for task in tasks)
    except (KeyError, StopIteration) as error:
        raise ValueError("no batch that this client reads") from error


def _delivery(task: dict[str, str], biz_type: str, sent_at_seconds: int) -> Delivery:
    return Delivery(
        task_id=json.loads(task["task_id"]),
        sent_at_seconds=sent_at_seconds,
        biz_type=biz_type,
        due_at=instant_from(json.loads(task["due_at"])),
        attempt=json.loads(task["attempt"]),
        content_type="application/json",
        body=task["payload"].encode(),
        key=json.loads(task.get("key", "null")),
        completion_token=json.loads(task.get("completion_token", "null")),
    )


def _members(text: str) -> dict[str, str]:
    """Of an object: the text of each value, as it is written."""
    texts = _values(text, "{")
    return {json.loads(name): value for name, value in zip(texts[::2], texts[1::2], strict=True)}


def _values(text: str, opening: str) -> list[str]:
    """The texts of the values in an object or an array. No value is decoded, so that one that is
    nested too deeply is the failure of its task alone."""
    tokens = _TOKEN.finditer(text)
    if next(tokens)[0] != opening:
        raise ValueError(f"{opening} is missing")
    found: list[str] = []
    depth = 1
    begin = 0
    for token in tokens:
        if depth == 1 and token[0] not in "]}":
            begin = token.start()
        depth += (token[0] in "[{") - (token[0] in "]}")
        if depth == 0:
            return found
        if depth == 1:
            found.append(text[begin : token.end()])
    raise ValueError("it is cut off")
