"""JSON laid out for reading: what fits into a line stands in one.

Invariant: nothing but white space changes; names and values keep the words they were sent in.
"""

import json

from duewheel.rules.json_source import Source, elements_of, members_of

COLUMNS = 100
_STEP = "  "


def laid_out(text: str, column: int = 0, indent: str = "") -> str:
    """`column` is where the value begins, `indent` what its last line begins with."""
    source = Source(text.strip())
    in_a_line = _in_a_line(source)
    parts = _parts(source)
    if not parts or column + len(in_a_line) <= COLUMNS:
        return in_a_line
    inner = indent + _STEP
    lines = [
        f"{inner}{label}{laid_out(part.text, len(inner) + len(label) + len(','), inner)}"
        for label, part in parts
    ]
    return source.text[0] + "\n" + ",\n".join(lines) + f"\n{indent}{source.text[-1]}"


def _in_a_line(source: Source) -> str:
    if not (source.is_object or source.is_array):
        return source.text
    parts = ", ".join(label + _in_a_line(part) for label, part in _parts(source))
    return source.text[0] + parts + source.text[-1]


def _parts(source: Source) -> list[tuple[str, Source]]:
    """The members or elements, each with what stands before it."""
    if source.is_object:
        return [(f"{json.dumps(name)}: ", part) for name, part in members_of(source.text).items()]
    if source.is_array:
        return [("", part) for part in elements_of(source.text)]
    return []
