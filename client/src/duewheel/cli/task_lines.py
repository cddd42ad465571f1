"""A file of tasks, a line of JSON each: its lines with their numbers and faults.

Lines are sent as they are written. Each has the digest of the file up to its end, which shows
whether the file has been changed since it was read.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn


@dataclass(frozen=True)
class TaskLine:
    number: int
    text: bytes
    digest: str


def task_lines(path: Path) -> Iterator[TaskLine]:
    """The lines that are not empty; empty ones are counted, too."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            digest.update(line.rstrip(b"\r\n") + b"\n")  # the last line may have no end yet
            if text := line.strip():
                yield TaskLine(number, text, digest.hexdigest())


def fault_of(line: TaskLine) -> str | None:
    """Why the line cannot be part of a request's body; the service checks its content."""
    try:
        value = json.loads(line.text.decode(), parse_constant=_refuse)
    except UnicodeDecodeError:
        return "is not UTF-8"
    except (ValueError, RecursionError) as error:
        return f"is no JSON: {error}"
    return None if isinstance(value, dict) else "is not a JSON object"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
