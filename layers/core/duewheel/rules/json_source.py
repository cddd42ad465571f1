"""JSON values with the very text they were written in.

A value is handed through as its source, so that `1.0`, `1e400`, forty-digit integers,
escapes, member order and inner white space survive. One level is opened at a time;
what is opened may not repeat a member, what is not opened may hold any JSON.
"""

import json
import re
from collections.abc import Iterator

from msgspec import Struct

MEMBERS_MAX = 100  # of an object that is opened: several times what any call takes

_SPACE = re.compile(r"[ \t\n\r]*")
_EXACT_DIGITS_MAX = 40  # more digits cost quadratic time and fit no field of this service


class NotJson(ValueError):
    """The text is not the expected JSON. `member`: where it breaks, if known."""

    def __init__(self, reason: str, member: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.member = member


class RepeatedMember(ValueError):
    def __init__(self, member: str) -> None:
        super().__init__(member)
        self.member = member


class Source(Struct, frozen=True):
    """One JSON value as it was written. Read on demand, so that big ones are not held twice."""

    text: str

    @property
    def is_object(self) -> bool:
        return self.text.startswith("{")

    @property
    def is_array(self) -> bool:
        return self.text.startswith("[")

    @property
    def scalar(self) -> object:
        """The string, number or truth value; None for the rest, which is opened, not read."""
        return None if self.is_object or self.is_array else _DECODER.decode(self.text)


def members_of(text: str) -> dict[str, Source]:
    """The members of the JSON object that the text is, in their order."""
    members: dict[str, Source] = {}
    at = _opened(text, "{", "an object")
    if text[at : at + 1] == "}":
        _expect_end(text, at + 1)
        return members
    while True:
        name, at = _name_at(text, at)
        at = _after(text, at, ":")
        try:
            source, end = _value_at(text, at)
        except NotJson as error:
            raise NotJson(error.reason, name) from error
        if name in members:
            raise RepeatedMember(name)
        members[name] = source
        if len(members) > MEMBERS_MAX:
            raise NotJson(f"an object has more than {MEMBERS_MAX} members")
        at = _skip_space(text, end)
        if text[at : at + 1] == "}":
            _expect_end(text, at + 1)
            return members
        at = _after(text, at, ",")


def is_json(text: str) -> bool:
    """Whether the text is one JSON value. Nested deeper than this thread can look into, it is
    taken for one: it was when it was stored."""
    try:
        _DECODER.decode(text)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def elements_of(text: str) -> Iterator[Source]:
    """The elements of the JSON array that the text is."""
    at = _opened(text, "[", "an array")
    if text[at : at + 1] == "]":
        _expect_end(text, at + 1)
        return
    while True:
        source, end = _value_at(text, at)
        yield source
        at = _skip_space(text, end)
        if text[at : at + 1] == "]":
            _expect_end(text, at + 1)
            return
        at = _after(text, at, ",")


def _opened(text: str, mark: str, kind: str) -> int:
    at = _skip_space(text, 0)
    if text[at : at + 1] != mark:
        raise NotJson(f"{kind} is expected")
    return _skip_space(text, at + 1)


def _name_at(text: str, at: int) -> tuple[str, int]:
    if text[at : at + 1] != '"':
        raise NotJson(f"a member's name in double quotes is missing at position {at}")
    source, end = _value_at(text, at)
    return str(source.scalar), _skip_space(text, end)


def _value_at(text: str, at: int) -> tuple[Source, int]:
    try:
        _, end = _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg} at position {error.pos}") from error
    except RecursionError as error:
        raise NotJson("nested too deeply") from error
    return Source(text[at:end]), end


def _after(text: str, at: int, mark: str) -> int:
    if text[at : at + 1] != mark:
        raise NotJson(f"{mark!r} is missing at position {at}")
    return _skip_space(text, at + 1)


def _expect_end(text: str, at: int) -> None:
    end = _skip_space(text, at)
    if end != len(text):
        raise NotJson(f"unexpected text after the value at position {end}")


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _EXACT_DIGITS_MAX else float(digits)


def _refuse_constant(name: str) -> object:
    raise NotJson(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_int=_integer, parse_constant=_refuse_constant)
