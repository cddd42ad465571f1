"""Reads the members of an answer into the fields of a value.

Members that a newer service adds are kept in `extra`.
"""

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Self

from duewheel.errors import UnexpectedAnswer
from duewheel.instants import instant_from

Reader = Callable[[Any], Any]


def read_by(reader: Reader, member: str | None = None) -> dict[str, Any]:
    """The reader of a field, and its name in JSON if it differs."""
    return {"reader": reader, "member": member}


def many(reader: Reader) -> Reader:
    return lambda items: tuple(reader(item) for item in items)


INSTANT = read_by(instant_from)


@dataclass(frozen=True, kw_only=True)
class Value:
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, members: Any) -> Self:
        known = _fields_by_member(cls)
        try:
            extra = {name: value for name, value in members.items() if name not in known}
            read = {
                known[name].name: _read(known[name], value)
                for name, value in members.items()
                if name in known
            }
            return cls(**read, extra=extra)
        except (TypeError, ValueError, AttributeError) as error:
            raise UnexpectedAnswer(f"This is no {cls.__name__}: {error}") from error


def _fields_by_member(cls: type[Any]) -> dict[str, "Field[Any]"]:
    own = [each for each in fields(cls) if each.name != "extra"]
    return {each.metadata.get("member") or each.name: each for each in own}


def _read(known: "Field[Any]", value: Any) -> Any:
    reader: Reader | None = known.metadata.get("reader")
    return value if value is None or reader is None else reader(value)
