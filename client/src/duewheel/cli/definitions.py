"""Files that declare timers: one business and one set of definitions each, in YAML or JSON.

A text stays a text: YAML's dates, times, octal numbers and `on` are none here, so that a file means
the same in both forms.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from duewheel.requests import TimerFields

FIELDS = frozenset(get_type_hints(TimerFields)) - {"managed_by"}
MEMBERS = ("biz_type", "managed_by", "timers")


@dataclass(frozen=True, kw_only=True)
class Definition:
    """One timer of a file; `fields` are the arguments of `put`."""

    biz_type: str
    name: str
    managed_by: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Definitions:
    """`sets`: business and name of the sets that the files contain, also if they are empty."""

    timers: Sequence[Definition]
    sets: Sequence[tuple[str, str]]


def read_definitions(files: Iterable[Path]) -> Definitions:
    """Raises a ValueError that names the file."""
    timers: dict[tuple[str, str], Definition] = {}
    sets: dict[tuple[str, str], None] = {}
    for file in files:
        try:
            content = _content(file)
            sets[content["biz_type"], content["managed_by"]] = None
            for number, timer in enumerate(content["timers"]):
                found = _definition(content, timer, f"timers[{number}]")
                if (found.biz_type, found.name) in timers:
                    raise ValueError(f"{found.biz_type}/{found.name} is declared twice")
                timers[found.biz_type, found.name] = found
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error
    return Definitions(tuple(timers.values()), tuple(sets))


def _content(file: Path) -> dict[str, Any]:
    text = file.read_text(encoding="utf-8")
    content = _json(text) if file.suffix == ".json" else _yaml(text)
    _check_is_json(content)
    if not isinstance(content, dict) or set(content) != set(MEMBERS):
        raise ValueError(f"a file has exactly {', '.join(MEMBERS)}")
    for name in ("biz_type", "managed_by"):
        if not isinstance(content[name], str) or not content[name]:
            raise ValueError(f"{name} must be a text")
    if not isinstance(content["timers"], list):
        raise ValueError("timers must be a list")
    return content


def _definition(content: Mapping[str, Any], timer: Any, where: str) -> Definition:
    if not isinstance(timer, dict) or not isinstance(timer.get("name"), str):
        raise ValueError(f"{where} must have a name that is a text")
    fields = {name: value for name, value in timer.items() if name != "name"}
    if unknown := sorted(str(name) for name in fields if name not in FIELDS):
        known = ", ".join(sorted(FIELDS))
        raise ValueError(f"{where} has {', '.join(unknown)}. There are: {known}")
    return Definition(
        biz_type=content["biz_type"],
        name=timer["name"],
        managed_by=content["managed_by"],
        fields=fields,
    )


def _check_is_json(content: Any) -> None:
    """YAML can write what JSON has not: sets, dates by a tag, a list within itself."""
    try:
        json.dumps(content, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON: {error}") from error


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique)


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{twice} is given twice")
    return found


def _yaml(text: str) -> Any:
    import yaml  # which a file of JSON does not need

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """The scalars of YAML 1.2's core schema; no name twice."""

        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as the library declares it

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            line = node.start_mark.line + 1
            names = [self.construct_object(name, deep=True) for name, _ in node.value]
            if not all(isinstance(name, str) for name in names):
                raise ValueError(f"a name in line {line} is no text")
            if len(set(names)) < len(names):
                raise ValueError(f"a name is given twice in line {line}")
            return super().construct_mapping(node, deep)

    for kind, pattern, begins in (
        ("null", "~|null|", ["~", "n", ""]),
        ("bool", "true|false", ["t", "f"]),
        ("int", "[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
        (
            "float",
            r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)",
            list("-+0123456789"),
        ),
    ):
        tag = f"tag:yaml.org,2002:{kind}"
        Loader.add_implicit_resolver(tag, re.compile(f"^(?:{pattern})$"), begins)
    try:
        return yaml.load(text, Loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
