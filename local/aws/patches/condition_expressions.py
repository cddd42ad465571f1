"""Lets moto read a condition once, and not twice for each request that makes it.

Invariant: same outcome. moto's own parser reads the text with its placeholders; the values of a
request are put into a copy of the tree. An invalid text, and a placeholder without a value, are
left to moto.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from unittest.mock import patch

from moto.core.exceptions import ServiceException
from moto.dynamodb.comparisons import ConditionExpressionParser
from werkzeug.exceptions import HTTPException

TEXTS_KEPT = 200

_Kind = ConditionExpressionParser.Kind
_any_parse = ConditionExpressionParser.parse


class _Themselves(dict[str, str]):
    def __missing__(self, placeholder: str) -> str:
        return placeholder


@dataclass(frozen=True, slots=True)
class _Read:
    tree: Any
    names: list[str]  # as they are written, placeholders or not
    values: list[str]


@contextmanager
def conditions_read_once() -> Iterator[None]:
    with patch.object(ConditionExpressionParser, "parse", _parse):
        yield


def _parse(parser: Any) -> Any:
    text = parser.condition_expression
    if not text:
        return _any_parse(parser)
    try:
        read = _read(text)
        names = parser.expression_attribute_names or {}
        tree = _filled(read.tree, names, parser.expression_attribute_values or {})
    except (LookupError, ValueError, ServiceException, HTTPException):
        return _any_parse(parser)
    parser.expr_attr_names_found.extend(read.names)
    parser.expr_attr_values_found.extend(read.values)
    return parser._make_op_condition(tree)


@lru_cache(TEXTS_KEPT)
def _read(text: str) -> _Read:
    trees: list[Any] = []
    parser: Any = ConditionExpressionParser(text, _Themselves(), _Themselves())  # type: ignore[arg-type]
    parser._make_op_condition = trees.append  # the final form of moto's tree
    _any_parse(parser)
    return _Read(trees[0], parser.expr_attr_names_found, parser.expr_attr_values_found)


def _filled(node: Any, names: Mapping[str, str], values: Mapping[str, Any]) -> Any:
    if node.children:
        return node._replace(children=[_filled(child, names, values) for child in node.children])
    if node.kind == _Kind.EXPRESSION_ATTRIBUTE_VALUE:
        return node._replace(value=values[node.text])
    if node.text.startswith("#"):
        return node._replace(value=names[node.text])
    return node
