"""Read the parameters of a query string, one at a time.

An unknown, repeated or badly encoded parameter is refused by its name. A plus sign is a plus sign,
as in RFC 3986, so the offset of an instant survives.
"""

import re
from collections.abc import Collection
from typing import Self
from urllib.parse import unquote

from duewheel.rules.fields import invalid
from duewheel.rules.instants import NoInstant, ms_from_rfc3339

_NAME_CHARACTERS_MAX = 100
_WHOLE_NUMBER = re.compile("[0-9]{1,9}")


class Parameters:
    def __init__(self, values: dict[str, str]) -> None:
        self._values = values

    @classmethod
    def of(cls, query: str, known: Collection[str]) -> Self:
        values: dict[str, str] = {}
        for pair in filter(None, query.split("&")):
            encoded_name, _, encoded_value = pair.partition("=")
            name = _decoded(encoded_name, encoded_name)
            if name not in known:
                raise _invalid(name, f"is unknown here; known are {', '.join(known)}.")
            if name in values:
                raise _invalid(name, "is given more than once.")
            values[name] = _decoded(encoded_value, name)
        return cls(values)

    def text(self, name: str) -> str | None:
        return self._values.get(name)

    def required_text(self, name: str) -> str:
        if name not in self._values:
            raise _invalid(name, "is missing.")
        return self._values[name]

    def one_of(self, name: str, choices: Collection[str]) -> str | None:
        value = self._values.get(name)
        if value is not None and value not in choices:
            raise _invalid(name, f"must be one of {', '.join(choices)}.")
        return value

    def whole_number(self, name: str, smallest: int, largest: int) -> int | None:
        value = self._values.get(name)
        if value is None:
            return None
        if not _WHOLE_NUMBER.fullmatch(value) or not smallest <= int(value) <= largest:
            raise _invalid(name, f"must be a whole number from {smallest} to {largest}.")
        return int(value)

    def instant_ms(self, name: str) -> int | None:
        value = self._values.get(name)
        if value is None:
            return None
        try:
            return ms_from_rfc3339(value)
        except NoInstant as error:
            raise _invalid(name, f"{error}.") from error


def _decoded(text: str, name: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise _invalid(name, "is not percent-encoded UTF-8.") from error


def _invalid(name: str, reason: str) -> Exception:
    if len(name) > _NAME_CHARACTERS_MAX:
        name = name[:_NAME_CHARACTERS_MAX] + "…"
    return invalid(name, reason)
