"""Placeholders in a timer's payload: what stands in its strings for what each occurrence is.

They stand in the source text. A text that is to keep its braces has the first one escaped, as
JSON has it: `\\u007b{due_at}}` comes out as `{{due_at}}`.
"""

import re

from duewheel.rules.instants import rfc3339
from duewheel.rules.tasks.task import Occurrence, Task

PLACEHOLDERS = ("due_at", "due_ms", "number", "task_id", "timer_id")
PLACEHOLDERS_MAX = 100

# Braces meet only within a JSON string, and no placeholder goes past its end.
PLACEHOLDER = re.compile(r"\{\{([^{}\"\\]*)\}\}")

_BRACE_BEFORE_ANOTHER = re.compile(r"\{(?=\{)")


def wrong_placeholder(payload: str) -> str | None:
    """What is wrong with those of this payload, as a caller is told; None when nothing is."""
    names = PLACEHOLDER.findall(payload)
    if len(names) > PLACEHOLDERS_MAX:
        return f"must have at most {PLACEHOLDERS_MAX} placeholders."
    for name in names:
        if name not in PLACEHOLDERS:
            known = ", ".join(f"{{{{{known}}}}}" for known in PLACEHOLDERS)
            return f"has a placeholder that is unknown; known are {known}."
    return None


def filled_in(payload: str, task: Task, occurrence: Occurrence) -> str:
    """For this occurrence; all else stays byte for byte. What is put in needs no escapes. The
    instant is the one by the schedule, which jitter does not move."""
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
