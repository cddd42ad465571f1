"""`duewheel import`: create the tasks of a file batch by batch, and continue after an interruption.

Invariant: a line is sent under one idempotency key until its outcome is known. The key follows from
the file up to the batch's end, the lines and the round, so a repeat makes no second task, even
without the journal, as long as the service keeps the key.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import dropwhile
from pathlib import Path

from duewheel._sync.client import Duewheel
from duewheel._sync.creating import wait_seconds
from duewheel.batches import cut
from duewheel.cli.failures import Failed, problem_line
from duewheel.cli.journal import Journal, Request
from duewheel.cli.task_lines import TaskLine, fault_of, task_lines
from duewheel.errors import (
    MalformedBody,
    Problem,
    RequestTooLarge,
    TooLarge,
    TooManyCreates,
    Unavailable,
)
from duewheel.values import Task

PATIENCE_SECONDS = 300.0  # a business may be limited to a few creates a second
FAULTS_SHOWN = 10

Result = Task | Problem


class Import:
    def __init__(self, path: Path, journal: Journal, client: Duewheel) -> None:
        self._path = path
        self._journal = journal
        self._client = client

    def run(self, progress: Callable[[int], None]) -> None:
        """`progress` is called for each line with a final outcome."""
        self._finish_open_request()
        through = self._through()
        progress(through)
        ahead = dropwhile(lambda line: line.number <= through, task_lines(self._path))
        for batch in cut(ahead, lambda line: line.text):
            self._send_batch(batch, 0, batch[-1])
            progress(batch[-1].number)

    def _through(self) -> int:
        return self._journal.last.through if self._journal.last else 0

    def _finish_open_request(self) -> None:
        """Repeat the last request, with its lines, round and key."""
        last = self._journal.last
        if last is None or not (self._journal.is_in_doubt or self._journal.again):
            return
        numbers = set(last.lines if self._journal.is_in_doubt else self._journal.again)
        wanted = [line for line in task_lines(self._path) if line.number in numbers]
        end = TaskLine(last.through, b"", last.digest)
        self._send_batch(wanted, last.round + (not self._journal.is_in_doubt), end)

    def _send_batch(self, lines: Sequence[TaskLine], round_number: int, end: TaskLine) -> None:
        """Send one batch repeatedly, until a limit refuses none of its tasks."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while lines:
            results = self._settled(lines, round_number, end, deadline)
            again = [
                line
                for line, result in zip(lines, results, strict=True)
                if isinstance(result, TooManyCreates)
            ]
            self._keep(lines, results, again)
            if again:
                _wait(results, deadline)
            lines, round_number = again, round_number + 1

    def _settled(
        self, lines: Sequence[TaskLine], round_number: int, end: TaskLine, deadline: float
    ) -> Sequence[Result]:
        """Send the same request until no result is a 503: a repeat carries out the missing tasks,
        and the other results stay the same."""
        request = request_of(lines, round_number, end, datetime.now(UTC))
        last = self._journal.last
        if not (self._journal.is_in_doubt and last and last.key == request.key):
            self._journal.sent(request)
        texts = [line.text for line in lines]
        while True:
            results = self._results(texts, request.key)
            if not any(isinstance(result, Unavailable) for result in results):
                return results
            _wait(results, deadline)

    def _results(self, texts: Sequence[bytes], key: str) -> Sequence[Result]:
        """A task that is too large even alone is refused by itself."""
        try:
            return self._client.tasks.create_batch_of_json(texts, idempotency_key=key)
        except (TooLarge, RequestTooLarge) as problem:
            if len(texts) == 1:
                return [problem]
            raise
        except MalformedBody:
            self._journal.withdrawn()
            raise

    def _keep(
        self, lines: Sequence[TaskLine], results: Sequence[Result], again: Sequence[TaskLine]
    ) -> None:
        refused = [
            {"line": line.number, "problem": result.members, "said": problem_line(result)}
            for line, result in zip(lines, results, strict=True)
            if isinstance(result, Problem) and line not in again
        ]
        made = len(lines) - len(refused) - len(again)
        self._journal.answered(made, refused, [line.number for line in again])


def request_of(
    lines: Sequence[TaskLine], round_number: int, end: TaskLine, now: datetime
) -> Request:
    numbers = tuple(line.number for line in lines)
    meant = json.dumps([end.digest, numbers, round_number])
    key = f"import-{hashlib.sha256(meant.encode()).hexdigest()}"
    return Request(numbers, round_number, end.number, end.digest, key, now.isoformat())


def look_through(path: Path, journal: Journal) -> int:
    """Returns the number of lines. Refuses the file before a request is sent if a line is invalid,
    or if lines that were sent before have changed."""
    last, faults, number = journal.last, [], 0
    is_as_it_was = last is None
    for line in task_lines(path):
        number = line.number
        is_as_it_was |= last is not None and (number, line.digest) == (last.through, last.digest)
        if fault := fault_of(line):
            faults.append(f"line {number} {fault}")
    if not is_as_it_was and last is not None:
        raise Failed(
            f"{path} has changed since: its lines up to {last.through} have been sent. Give new "
            f"tasks a file of their own; to import all of it again remove {journal.path}"
        )
    if faults:
        raise Failed("Nothing was sent.\n" + "\n".join(_shortened(faults)))
    return number


def _shortened(faults: Sequence[str]) -> Iterable[str]:
    more = len(faults) - FAULTS_SHOWN
    return [*faults[:FAULTS_SHOWN], f"and {more:,} more"] if more > 0 else faults


def _wait(results: Sequence[Result], deadline: float) -> None:
    wait = max(wait_seconds(result) for result in results)
    if time.monotonic() + wait > deadline:
        raise Failed("The service has no room for more just now. The same command goes on later")
    time.sleep(wait)
