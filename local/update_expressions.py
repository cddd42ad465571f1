"""Lets moto read an update expression once and look at each of its nodes as long as it needs to.

Invariant: same outcome, though of several faults another one may be named. moto's own validators
run, in their order, on a copy of the tree of their own. moto itself would parse the text twice for
each request, copy the tree attribute by attribute, ask abstract base classes, ten times for each
node, what kind of node it is, and look through the whole tree below each of its nodes for clauses
and paths that the root has all of.
"""

import pickle
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, lru_cache
from typing import Any
from unittest.mock import patch

from moto.dynamodb.parsing import ast_nodes, expressions, validators

# moto does not type them.
_Node: Any = vars(ast_nodes)["Node"]
_Traverser: Any = vars(ast_nodes)["DepthFirstTraverser"]
_Parser: Any = vars(expressions)["UpdateExpressionParser"]
TEXTS_KEPT = 200


@contextmanager
def update_expressions_read_once() -> Iterator[None]:
    with ExitStack() as patches:
        for target, name, replacement in (
            (_Parser, "make", lru_cache(TEXTS_KEPT)(_Parser.make)),
            (validators, "deepcopy", lambda tree: pickle.loads(pickle.dumps(tree))),
            (_Traverser, "traverse", _traverse),
            (validators.ActionCountValidator, "traverse", _at_the_root),
            (validators.OverlappingPathsValidator, "traverse", _at_the_root),
        ):
            patches.enter_context(patch.object(target, name, replacement))
        yield


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
