"""Lets moto read an update expression once, and walk its tree without checks of abstract classes.

Invariant: same outcome, except that another one of several errors may be named. moto's own
validators and executor run, in their order, on a copy of the tree of their own. moto itself would
parse the text twice for each request, copy the tree attribute by attribute, check the type of each
node ten times by abstract base classes, and search the whole tree below each node for clauses and
paths that the root already has.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from functools import cache, lru_cache
from typing import Any
from unittest.mock import patch

from moto.dynamodb.parsing import ast_nodes, expressions, validators

# moto does not type them.
_Node: Any = vars(ast_nodes)["Node"]
_Traverser: Any = vars(ast_nodes)["DepthFirstTraverser"]
_Parser: Any = vars(expressions)["UpdateExpressionParser"]
_HAVE_CLAUSES = vars(ast_nodes)["Expression"], vars(ast_nodes)["UpdateExpressionFunction"]
TEXTS_KEPT = 200


@contextmanager
def update_expressions_read_once() -> Iterator[None]:
    with ExitStack() as patches:
        for target, name, replacement in (
            (_Parser, "make", lru_cache(TEXTS_KEPT)(_Parser.make)),
            (_Node, "find_clauses", _find_clauses),
            (validators, "deepcopy", _copy),
            (_Traverser, "traverse", _traverse),
            (validators.ActionCountValidator, "traverse", _at_the_root),
            (validators.OverlappingPathsValidator, "traverse", _at_the_root),
        ):
            patches.enter_context(patch.object(target, name, replacement))
        yield


def _copy(tree: Any) -> Any:
    """A copy of an expression, or of a value in it."""
    return _copied(tree, None) if _is_one_of(tree.__class__, _Node) else deepcopy(tree)


def _copied(node: Any, parent: Any) -> Any:
    """Copy nodes alone, because the other contents of nodes never change."""
    copied = object.__new__(node.__class__)
    held = copied.__dict__
    held.update(node.__dict__, parent=parent)
    if node.children is not None:
        held["children"] = [
            _copied(child, copied) if _is_one_of(child.__class__, _Node) else child
            for child in node.children
        ]
    return copied


def _find_clauses(node: Any, kinds: list[Any]) -> list[Any]:
    found = []
    for child in node.children or ():
        kind = child.__class__
        if kind in kinds:
            found.append(child)
        elif _is_one_of(kind, _HAVE_CLAUSES):
            found.extend(_find_clauses(child, kinds))
    return found


def _at_the_root(traverser: Any, root: Any) -> Any:
    return traverser.process(root)


def _traverse(traverser: Any, root: Any) -> Any:
    wanted = traverser.nodes_to_be_processed()
    is_told_of_children = (
        type(traverser).pre_processing_of_child is not _Traverser.pre_processing_of_child
    )

    def processed(node: Any, child_id: int) -> Any:
        kind = node.__class__
        if not _is_one_of(kind, _Node):
            return node
        parent = node.parent
        for position, child in enumerate(node.children or ()):
            if is_told_of_children:
                traverser.pre_processing_of_child(node, position)
            processed(child, position)
        if _is_one_of(kind, wanted):
            node = traverser.process(node)
            node.parent = parent
            if parent:
                parent.children[child_id] = node
        return node

    return processed(root, -1)


@cache
def _is_one_of(kind: Any, kinds: Any) -> bool:
    return issubclass(kind, kinds)
