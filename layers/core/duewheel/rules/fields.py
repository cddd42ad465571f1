"""Reading the members of a request's object, one field at a time.

Every refusal names its field by its path (`callback.url`, `tasks[3].due_ms`). A null is
a value like any other, so a field that is not wanted is left out.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Self

from duewheel.rules.json_source import NotJson, RepeatedMember, Source, elements_of, members_of
from duewheel.rules.refusals import InvalidField, MalformedBody

SECONDS_MIN = 0.001  # of a time that may not be 0: instants are kept to the millisecond

_FIELD_CHARACTERS_MAX = 100
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def invalid(path: str, reason: str) -> InvalidField:
    return InvalidField(f"{path}: {reason}", path)


def _malformed(reason: str, field: str | None) -> MalformedBody:
    return MalformedBody(f"The body is not the JSON that this call takes: {reason}.", field)


class Fields:
    """The members of one object; unknown members are refused."""

    def __init__(self, members: dict[str, Source], path: str = "") -> None:
        self.members = members
        self.path = path

    @classmethod
    def of(cls, text: str, path: str = "") -> Self:
        try:
            return cls(members_of(text), path)
        except NotJson as error:
            field = joined_path(path, error.member) if error.member is not None else path or None
            raise _malformed(error.reason, field) from error
        except RepeatedMember as error:
            raise invalid(joined_path(path, error.member), "is given more than once.") from error

    def refuse_unknown(self, known: Collection[str]) -> None:
        for name in self.members:
            if name not in known:
                raise self.invalid(name, f"is unknown here; known are {', '.join(known)}.")

    def __contains__(self, name: str) -> bool:
        return name in self.members

    def __iter__(self) -> Iterator[str]:
        return iter(self.members)

    def where(self, name: str) -> str:
        return joined_path(self.path, name)

    def invalid(self, name: str, reason: str) -> InvalidField:
        return invalid(self.where(name), reason)

    def text(self, name: str) -> str:
        value = self.source(name).scalar
        if not isinstance(value, str):
            raise self.invalid(name, "must be a string.")
        if _LONE_SURROGATE.search(value):
            raise self.invalid(name, "has half of a surrogate pair, which no text may hold.")
        return value

    def one_of(self, name: str, choices: Sequence[str]) -> str:
        """The first is the default."""
        choice = self.text(name) if name in self else choices[0]
        if choice not in choices:
            raise self.invalid(name, f"must be one of {', '.join(choices)}.")
        return choice

    def whole_number(self, name: str, smallest: int, largest: int) -> int:
        value = self.source(name).scalar
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.invalid(name, "must be a whole number.")
        if not smallest <= value <= largest:
            raise self.invalid(name, f"must be from {smallest} to {largest}.")
        return value

    def number(self, name: str, smallest: float, largest: float) -> float:
        return self._checked_number(name, self.source(name).scalar, smallest, largest)

    def boolean(self, name: str) -> bool:
        value = self.source(name).scalar
        if not isinstance(value, bool):
            raise self.invalid(name, "must be true or false.")
        return value

    def is_null(self, name: str) -> bool:
        return self.source(name).text == "null"

    def numbers(
        self, name: str, count_max: int, smallest: float, largest: float
    ) -> tuple[float, ...]:
        elements = self.elements(name, count_max)
        if not 1 <= len(elements) <= count_max:
            raise self.invalid(name, f"must have from 1 to {count_max} elements.")
        return tuple(
            self._checked_number(f"{name}[{index}]", element.scalar, smallest, largest)
            for index, element in enumerate(elements)
        )

    def elements(self, name: str, count_max: int) -> list[Source]:
        """The elements of an array; of one that is too long, one more than `count_max`."""
        source = self.source(name)
        if not source.is_array:
            raise self.invalid(name, "must be an array.")
        try:
            return list(islice(elements_of(source.text), count_max + 1))
        except NotJson as error:
            raise _malformed(error.reason, self.where(name)) from error

    def nested(self, name: str) -> "Fields":
        source = self.source(name)
        if not source.is_object:
            raise self.invalid(name, "must be an object.")
        return Fields.of(source.text, self.where(name))

    def source(self, name: str) -> Source:
        if name not in self.members:
            raise self.invalid(name, "is missing.")
        return self.members[name]

    def _checked_number(self, name: str, value: object, smallest: float, largest: float) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.invalid(name, "must be a number.")
        if not smallest <= value <= largest:
            raise self.invalid(name, f"must be from {smallest} to {largest}.")
        return float(value)


def joined_path(path: str, name: str) -> str:
    if len(name) > _FIELD_CHARACTERS_MAX:
        name = name[:_FIELD_CHARACTERS_MAX] + "…"
    return f"{path}.{name}" if path and name else path or name
