"""Placeholders in the strings of a timer's payload, filled in for each occurrence.

They are found in the source text. To keep braces as text, escape the first one as in JSON:
`\\u007b{due_at}}` becomes `{{due_at}}`.
"""

import re

from duewheel.rules.instants import rfc3339
from duewheel.rules.tasks.task import Occurrence, Task

PLACEHOLDERS = ("due_at", "due_ms", "number", "task_id", "timer_id")
PLACEHOLDERS_MAX = 100

# Double braces occur only within a JSON string, and a placeholder ends in the same string.
PLACEHOLDER = re.compile(r"\{\{([^{}\"\\]*)\}\}")

_BRACE_BEFORE_ANOTHER = re.compile(r"\{(?=\{)")


def wrong_placeholder(payload: str) -> str | None:
    """The error of the first wrong placeholder, as text for the caller; None if all are right."""
    names = PLACEHOLDER.findall(payload)
    if len(names) > PLACEHOLDERS_MAX:
        return f"must have at most {PLACEHOLDERS_MAX} placeholders."
    for name in names:
        if name not in PLACEHOLDERS:
            known = ", ".join(f"{{{{{known}}}}}" for known in PLACEHOLDERS)
            return f"has a placeholder that is unknown; known are {known}."
    return None


def filled_in(payload: str, task: Task, occurrence: Occurrence) -> str:
    """The payload with the values of this occurrence; all else stays byte for byte. The values need
    no escapes. The instant is the one of the schedule, which jitter does not move."""
    values = {
        "due_at": rfc3339(occurrence.second * 1000),
        "due_ms": str(occurrence.second * 1000),
        "number": str(occurrence.number),
        "task_id": task.task_id,
        "timer_id": occurrence.timer_id,
    }
    return PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), payload)


def without_placeholders(text: str) -> str:
    """The source of this JSON, in which no braces mean anything."""
    return _BRACE_BEFORE_ANOTHER.sub(r"\\u007b", text)
