"""DynamoDB's rules for the expressions of one request: names, values and paths.

A rule depends on the text alone, so each text is parsed once.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords

from tests.support.refused import refuse_if

EXPRESSIONS = (
    "ConditionExpression",
    "FilterExpression",
    "KeyConditionExpression",
    "ProjectionExpression",
    "UpdateExpression",
)
EXPRESSION_BYTES_MAX = 4096
GRAMMAR = {"SET", "REMOVE", "ADD", "DELETE", "AND", "OR", "NOT", "BETWEEN", "IN"}
_TOKEN = re.compile(r"[#:]?\w+")
_BARE = re.compile(r"(?<![#:\w])[A-Za-z_]\w*(?!\w|\s*\()")
_VERB = re.compile(r"(?<![#:\w])(SET|REMOVE|ADD|DELETE)(?=\s)", re.IGNORECASE)
_NOT_NESTED_COMMA = re.compile(r",(?![^()]*\))")
_KEY_TESTS = (
    re.compile(r"([#\w]+)\s*(=|<=?|>=?)\s*(:\w+)"),
    re.compile(r"([#\w]+)\s+(BETWEEN)\s+(:\w+)\s+AND\s+(:\w+)", re.IGNORECASE),
    re.compile(r"(begins_with)\s*\(\s*([#\w]+)\s*,\s*(:\w+)"),
)


class Mentions(NamedTuple):
    names: frozenset[str]
    values: frozenset[str]
    bare: frozenset[str]


class Change(NamedTuple):
    verb: str
    path: str
    operand: str


class KeyTest(NamedTuple):
    """One condition on a key: `values` are placeholders."""

    path: str
    operator: str
    values: tuple[str, ...]


@cache
def mentions(text: str) -> Mentions:
    tokens = _TOKEN.findall(text)
    return Mentions(
        frozenset(token for token in tokens if token[0] == "#"),
        frozenset(token for token in tokens if token[0] == ":"),
        frozenset(word for word in _BARE.findall(text) if word.upper() not in GRAMMAR),
    )


@cache
def changes(update: str) -> tuple[Change, ...]:
    parts = _VERB.split(update)
    found = []
    for verb, clause in zip(parts[1::2], parts[2::2], strict=True):
        for assignment in _NOT_NESTED_COMMA.split(clause):
            path, *rest = re.split(r"[=\s]+", assignment.strip(), maxsplit=1)
            found.append(Change(verb.upper(), path, rest[0].strip() if rest else ""))
    return tuple(found)


@cache
def verbs(update: str) -> tuple[str, ...]:
    return tuple(verb.upper() for verb in _VERB.findall(update))


@cache
def key_tests(condition: str) -> tuple[KeyTest, ...]:
    found = []
    for pattern in _KEY_TESTS:
        for first, second, *values in pattern.findall(condition):
            if first == "begins_with":
                found.append(KeyTest(second, first, tuple(values)))
            else:
                found.append(KeyTest(first, second.upper(), tuple(values)))
    return tuple(found)


def resolved(path: str, request: Mapping[str, Any]) -> str:
    names: Mapping[str, str] = request.get("ExpressionAttributeNames", {})
    return names.get(path, path)


@cache
def _reserved() -> frozenset[str]:
    return frozenset(ReservedKeywords.get_reserved_keywords())


def check_expressions(request: Mapping[str, Any]) -> None:
    texts = [request[name] for name in EXPRESSIONS if name in request]
    names, values = frozenset[str](), frozenset[str]()
    for text in texts:
        refuse_if(not text.strip(), "an expression is empty")
        refuse_if(len(text.encode()) > EXPRESSION_BYTES_MAX, "an expression is over 4 KB")
        mentioned = mentions(text)
        names, values = names | mentioned.names, values | mentioned.values
        words = {word for word in mentioned.bare if word.upper() in _reserved()}
        refuse_if(bool(words), f"{words} are reserved words: {text}")
    _check_placeholders(request, "ExpressionAttributeNames", names)
    _check_placeholders(request, "ExpressionAttributeValues", values)
    if "UpdateExpression" in request:
        _check_update(request)


def _check_placeholders(request: Mapping[str, Any], field: str, used: frozenset[str]) -> None:
    if field not in request:
        refuse_if(bool(used), f"{set(used)} are used and {field} is not there")
        return
    defined = request[field].keys()
    refuse_if(not defined, f"{field} is empty")
    refuse_if(defined != used, f"{field} has unused or lacks used ones: {set(defined ^ used)}")


def _check_update(request: Mapping[str, Any]) -> None:
    update = request["UpdateExpression"]
    once = verbs(update)
    refuse_if(len(once) != len(set(once)), f"a clause stands twice: {update}")
    paths = [resolved(change.path, request) for change in changes(update)]
    refuse_if(len(paths) != len(set(paths)), f"two paths overlap: {update}")
