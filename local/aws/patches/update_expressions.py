"""Lets moto read an update expression once and look at each of its nodes as long as it needs to.

Invariant: same outcome, though of several faults another one may be named. moto's own validators
run, in their order, on a copy of the tree of their own. moto itself would parse the text twice for
each request, copy the tree attribute by attribute, ask abstract base classes, ten times for each
node, what kind of node it is, and look through the whole tree below each of its nodes for clauses
and paths that the root has all of.
"""

import pickle
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any
from unittest.mock import patch

from moto.dynamodb import models
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.parsing import ast_nodes, expressions, validators

# moto does not type them.
_Node: Any = vars(ast_nodes)["Node"]
_Traverser: Any = vars(ast_nodes)["DepthFirstTraverser"]
_Parser: Any = vars(expressions)["UpdateExpressionParser"]
_Validator: Any = vars(models)["UpdateExpressionValidator"]
_Executor: Any = vars(models)["UpdateExpressionExecutor"]
_parse = _Parser.make
_find_clauses = _Node.find_clauses
TEXTS_KEPT = 200

# Sets an attribute to a value, or adds a value to what it is, or to a first value.
_SET = r"#\w+ = (?:if_not_exists\(#\w+, :\w+\) \+ )?:\w+"
_REMOVES = r"#\w+(?:, #\w+)*"
_PLAIN = re.compile(rf"SET ({_SET}(?:, {_SET})*)(?: REMOVE ({_REMOVES}))?")
_PARTS = re.compile(r"(#\w+) = (?:if_not_exists\((#\w+), (:\w+)\) \+ )?(:\w+)")


@contextmanager
def update_expressions_read_once() -> Iterator[None]:
    with ExitStack() as patches:
        for target, name, replacement in (
            (_Parser, "make", lru_cache(TEXTS_KEPT)(_read)),
            (_Node, "find_clauses", _found),
            (models, "UpdateExpressionValidator", _validator),
            (models, "UpdateExpressionExecutor", _executor),
            (validators, "deepcopy", lambda tree: pickle.loads(pickle.dumps(tree))),
            (_Traverser, "traverse", _traverse),
            (validators.ActionCountValidator, "traverse", _at_the_root),
            (validators.OverlappingPathsValidator, "traverse", _at_the_root),
        ):
            patches.enter_context(patch.object(target, name, replacement))
        yield


def _read(text: str) -> Any:
    tree = _parse(text)
    tree.plain = _plain(text)
    tree.found = {}
    return tree


@dataclass(frozen=True, slots=True)
class _Set:
    """By their placeholders. `counted` and `first`: what the value is added to."""

    name: str
    counted: str | None
    first: str | None
    value: str


@dataclass(frozen=True, slots=True)
class _Plain:
    """`removes`: placeholders of names."""

    sets: list[_Set]
    removes: list[str]


def _plain(text: str) -> _Plain | None:
    if (match := _PLAIN.fullmatch(text)) is None:
        return None
    sets = [_Set(*parts.groups()) for parts in _PARTS.finditer(match[1])]
    return _Plain(sets, match[2].split(", ") if match[2] else [])


def _found(node: Any, kinds: list[Any]) -> Any:
    """The tree of a plain expression does not change, so its answers are cached."""
    if getattr(node, "plain", None) is None:
        return _find_clauses(node, kinds)
    if (name := tuple(kinds)) not in node.found:
        node.found[name] = _find_clauses(node, kinds)
    return node.found[name]


@dataclass(frozen=True, slots=True)
class _PlainUpdate:
    """Stands where moto has its validator and the tree that is to be carried out."""

    sets: Mapping[str, Any]
    removes: list[str]

    def validate(self) -> "_PlainUpdate":
        return self

    def normalize(self) -> None:
        pass


def _validator(
    tree: Any,
    expression_attribute_names: Mapping[str, str] | None,
    expression_attribute_values: Mapping[str, Any] | None,
    item: Any,
    table: Any,
) -> Any:
    names, values = expression_attribute_names or {}, expression_attribute_values or {}
    if tree.plain is not None and (plain := _resolved(tree.plain, names, values, item, table)):
        return plain
    return _Validator(tree, names, values, item, table)


def _resolved(
    plain: _Plain, names: Mapping[str, str], values: Mapping[str, Any], item: Any, table: Any
) -> _PlainUpdate | None:
    """None where moto may find fault with it."""
    placeholders = [one.name for one in plain.sets] + plain.removes
    touched = {names.get(name, "") for name in placeholders}
    if "" in touched or len(touched) < len(placeholders):
        return None
    if not touched.isdisjoint(table.attribute_keys):
        return None
    sets = {names[one.name]: _value(one, names, values, item) for one in plain.sets}
    key_types = {each["AttributeName"]: each["AttributeType"] for each in table.attr}
    for name, value in sets.items():
        is_key_of_index = name in key_types
        if value is None or (
            is_key_of_index and (value.type != key_types[name] or not value.value)
        ):
            return None
    return _PlainUpdate(sets, [names[name] for name in plain.removes])


def _value(one: _Set, names: Mapping[str, str], values: Mapping[str, Any], item: Any) -> Any:
    if one.value not in values:
        return None
    value = DynamoType(values[one.value])
    if one.counted is None or one.first is None:
        return value
    if one.counted not in names or one.first not in values:
        return None
    counted = item.attrs.get(names[one.counted]) or DynamoType(values[one.first])
    return counted + value if counted.type == value.type == "N" else None


def _executor(update: Any, item: Any, names: Any) -> Any:
    return (
        _Execution(update, item)
        if isinstance(update, _PlainUpdate)
        else _Executor(update, item, names)
    )


@dataclass(frozen=True, slots=True)
class _Execution:
    update: _PlainUpdate
    item: Any

    def execute(self) -> None:
        for name, value in self.update.sets.items():
            self.item.attrs[name] = value
        for name in self.update.removes:
            self.item.attrs.pop(name, None)


def _at_the_root(traverser: Any, root: Any) -> Any:
    return traverser.process(root)


def _traverse(traverser: Any, root: Any) -> Any:
    wanted = traverser.nodes_to_be_processed()

    def processed(node: Any, child_id: int) -> Any:
        if not _is_one_of(node.__class__, (_Node,)):
            return node
        parent = node.parent
        for position, child in enumerate(node.children or ()):
            traverser.pre_processing_of_child(node, position)
            processed(child, position)
        if _is_one_of(node.__class__, wanted):
            node = traverser.process(node)
            node.parent = parent
            if parent:
                parent.children[child_id] = node
        return node

    return processed(root, -1)


@cache
def _is_one_of(kind: Any, kinds: Any) -> bool:
    return issubclass(kind, kinds)
