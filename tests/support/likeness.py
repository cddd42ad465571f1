"""Compares the output that a page shows with the actual output, except for differences between
runs.

A page shows some members of an object; `...` means any value, and at the end of a list further
elements. Each shown id means one actual id. Instants are compared if the stack's clock was frozen
from the start.
"""

import json
import re
from typing import Any

ANYTHING = "..."

_STRING_OR_DOTS = re.compile(r'"(?:[^"\\]|\\.)*"|\.\.\.(\s*})?')
_ID = r"(?<![\w-])(?:[\w-]{28}|\d{15,17})(?![\w-])"
_SOME_ID = r"([\w-]{28}|\d+)"
_INSTANT = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)|(?<!\d)\d{10}(?!\d)"
_PIECES = re.compile(
    rf"(?P<lines>^\.\.\.$)|(?P<any>\.\.\.)|(?P<id>{_ID})|(?P<instant>{_INSTANT})|(?P<blanks>[^\S\n]+)",
    re.MULTILINE,
)


class Likeness:
    def __init__(self, *, with_instants: bool) -> None:
        self._with_instants = with_instants
        self._ids: dict[str, str] = {}

    def of_json(self, shown: str, came: str) -> bool:
        """Whether the shown documents are the last ones of the output, which may have other text
        before."""
        wanted, got = documents(quoted(shown)), last_documents(came)
        got = got[max(len(got) - len(wanted), 0) :]
        return len(wanted) == len(got) and all(map(self._value, wanted, got))

    def of_text(self, shown: str, came: str) -> bool:
        """Whether the shown lines are the last ones of the output. `...` means any number of
        lines."""
        return self._words(_trimmed(shown), _trimmed(came), r"(?:.*\n)?")

    def _value(self, shown: Any, came: Any) -> bool:
        if shown == ANYTHING:
            return True
        if isinstance(shown, dict) and isinstance(came, dict):
            named = {name: value for name, value in shown.items() if name != ANYTHING}
            return all(name in came and self._value(named[name], came[name]) for name in named)
        if isinstance(shown, list) and isinstance(came, list):
            if shown and shown[-1] == ANYTHING:
                shown = shown[:-1]
                came = came[: len(shown)]
            return len(shown) == len(came) and all(map(self._value, shown, came))
        if isinstance(shown, str) and isinstance(came, str):
            return self._words(shown, came)
        return type(shown) is type(came) and bool(shown == came)

    def _words(self, shown: str, came: str, before: str = "") -> bool:
        """Several blanks, which align a table, count as one."""
        pattern, at, ids = before, 0, []
        for piece in _PIECES.finditer(shown):
            pattern += re.escape(shown[at : piece.start()])
            at = piece.end()
            match piece.lastgroup:
                case "lines":
                    pattern += ".*"
                case "any":
                    pattern += r"[^\n]*"
                case "id":
                    ids.append(piece[0])
                    pattern += _SOME_ID
                case "instant" if not self._with_instants:
                    pattern += f"(?:{_INSTANT})"
                case "blanks":
                    pattern += r"[^\S\n]+"
                case _:
                    pattern += re.escape(piece[0])
        found = re.fullmatch(pattern + re.escape(shown[at:]), came, re.DOTALL)
        return found is not None and all(map(self._is_named, ids, found.groups()))

    def _is_named(self, shown: str, came: str) -> bool:
        return self._ids.setdefault(shown, came) == came


def documents(text: str) -> list[Any]:
    """The JSON documents of a text, one after the other."""
    decoder, found, rest = json.JSONDecoder(), [], text.strip()
    while rest:
        document, end = decoder.raw_decode(rest)
        found.append(document)
        rest = rest[end:].strip()
    return found


def last_documents(text: str) -> list[Any]:
    for begins in re.finditer(r"[{\[]", text):
        try:
            return documents(text[begins.start() :])
        except ValueError:
            continue  # no document, or the middle of one
    return []


def quoted(shown: str) -> str:
    """JSON in which each `...` is a text, or at the end of an object a member."""

    def instead(found: re.Match[str]) -> str:
        if found[0].startswith('"'):
            return found[0]
        return f'"{ANYTHING}": null}}' if found[1] else f'"{ANYTHING}"'

    return _STRING_OR_DOTS.sub(instead, shown)


def _trimmed(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())
