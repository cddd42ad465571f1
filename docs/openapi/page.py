"""What a page says of its calls: a line for each, and examples that were really exchanged."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_TABLE = re.compile(r"<!-- made by make examples: calls[^\n]*-->\n(.*?)<!-- end -->", re.S)
_LINE = re.compile(r"^\| `([A-Z]+) (/[^`?]*)[^`]*` \| (.*) \|$", re.M)
_LINK = re.compile(r"\[([^]]*)]\([^)]*\)")
_REQUEST = re.compile(
    r"```http\n([A-Z]+) (/\S+) HTTP/1\.1\n(.*?)```\n\n```http\nHTTP/1\.1 (\d+)\n(.*?)```\n", re.S
)


@dataclass(frozen=True, slots=True)
class Shown:
    """An exchange that the page shows. `path`: without the query. Bodies as they were read."""

    name: str
    method: str
    path: str
    status: int
    body: Any
    answer: Any


def lines(page: str) -> dict[tuple[str, str], str]:
    """What the table of all calls says of each. Other tables name calls, too."""
    rows = _LINE.findall("".join(_TABLE.findall(page)))
    return {(method, path): _LINK.sub(r"\1", said) for method, path, said in rows}


def exchanges(examples: dict[str, str]) -> Iterator[Shown]:
    """Those of which both bodies are JSON, or none: what was cut, and what was malformed on
    purpose, is left out. So is what a receiver got."""
    for name, text in examples.items():
        found = _REQUEST.fullmatch(text)
        if found is None:
            continue
        method, target, request, status, answer = found.groups()
        try:
            read = Shown(
                name,
                method,
                target.partition("?")[0],
                int(status),
                _body(request),
                _body(answer),
            )
        except json.JSONDecodeError:
            continue
        yield read


def _body(message: str) -> Any:
    """What stands behind the headers; None where nothing does."""
    text = f"\n{message}".partition("\n\n")[2]
    return json.loads(text, parse_constant=_refuse) if text else None


def _refuse(word: str) -> None:
    raise json.JSONDecodeError("is not JSON", word, 0)
