"""The record of an import, in a file beside the tasks: `tasks.jsonl.import`.

Invariant: a request is written before it is sent, with its idempotency key, and its outcome
afterwards. So if the import ends in between, the next run finds the one request that is in doubt.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from duewheel.cli.failures import Failed

# The service keeps a key for 24 hours; the margin is for the clocks and the repeat itself.
REMEMBERED = timedelta(hours=23, minutes=30)


@dataclass(frozen=True)
class Request:
    """`lines` are the numbers of its tasks; `through` is the last line of their batch, and `digest`
    the digest of the file up to there."""

    lines: tuple[int, ...]
    round: int
    through: int
    digest: str
    key: str
    at: str

    def is_remembered(self, now: datetime) -> bool:
        return now - datetime.fromisoformat(self.at) < REMEMBERED


class Journal:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.url: str | None = None
        self.last: Request | None = None
        self.is_in_doubt = False
        self.again: tuple[int, ...] = ()
        self.made = 0
        self.refused: list[dict[str, Any]] = []
        self._before: Request | None = None
        if path.exists():
            self._read()

    def _read(self) -> None:
        try:
            for line in _whole_lines(self.path):
                self._take(json.loads(line))
        except (ValueError, TypeError, KeyError) as error:
            raise Failed(f"{self.path} is not what an import has written: {error}") from error

    def _take(self, entry: Mapping[str, Any]) -> None:
        match entry:
            case {"into": url}:
                self.url = url
            case {"sent": sent}:
                self._before, self.last = (
                    self.last,
                    Request(**{**sent, "lines": tuple(sent["lines"])}),
                )
                self.is_in_doubt = True
            case {"withdrawn": _}:
                self.last, self.is_in_doubt = self._before, False
            case {"made": made, "refused": refused, "again": again}:
                self.made += made
                self.refused += refused
                self.again, self.is_in_doubt = tuple(again), False
            case _:
                raise ValueError(entry)

    def begin(self, url: str) -> None:
        self._write({"into": url})

    def sent(self, request: Request) -> None:
        self._write({"sent": asdict(request)})

    def withdrawn(self) -> None:
        """The request was refused whole, as each repeat would be; it made no tasks."""
        self._write({"withdrawn": True})

    def answered(
        self, made: int, refused: Sequence[Mapping[str, Any]], again: Sequence[int]
    ) -> None:
        self._write({"made": made, "refused": refused, "again": again})

    def _write(self, entry: Mapping[str, Any]) -> None:
        """Write the entry to the disk, before the request that it describes is sent."""
        text = json.dumps(entry)
        with self.path.open("a") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._take(json.loads(text))


def _whole_lines(path: Path) -> list[str]:
    """Remove an incomplete last line, left by a crash of the machine: its request was not sent yet,
    or is in doubt."""
    whole, end, torn = path.read_bytes().rpartition(b"\n")
    if torn:
        os.truncate(path, len(whole + end))
    return whole.decode().splitlines()
