"""JSON laid out for reading: a value that fits into a line is on one line.

Invariant: nothing but white space changes; names and values keep the words they were sent in.
"""

import json

from msgspec import Raw
from msgspec.json import decode

COLUMNS = 100
_STEP = "  "


def laid_out(text: str, column: int = 0, indent: str = "") -> str:
    """`column` is where the value begins, `indent` what its last line begins with. What is no JSON
    raises ValueError."""
    text = text.strip()
    in_a_line = _in_a_line(text)
    parts = _parts(text)
    if not parts or column + len(in_a_line) <= COLUMNS:
        return in_a_line
    inner = indent + _STEP
    lines = [
        f"{inner}{label}{laid_out(part, len(inner) + len(label) + len(','), inner)}"
        for label, part in parts
    ]
    return text[0] + "\n" + ",\n".join(lines) + f"\n{indent}{text[-1]}"


def _in_a_line(text: str) -> str:
    if text[:1] not in ("{", "["):
        return text
    return text[0] + ", ".join(label + _in_a_line(part) for label, part in _parts(text)) + text[-1]


def _parts(text: str) -> list[tuple[str, str]]:
    """The members or elements, each with its prefix."""
    if text.startswith("{"):
        members = decode(text, type=dict[str, Raw])
        return [(f"{json.dumps(name)}: ", bytes(part).decode()) for name, part in members.items()]
    if text.startswith("["):
        return [("", bytes(part).decode()) for part in decode(text, type=list[Raw])]
    decode(text, type=Raw)
    return []
