"""Sums of trees as one operator.

Trees of all libraries become `Tree`. A split on categories becomes a chain of comparisons with single codes, of the
side that has fewer, which share a child, as ONNX cannot compare with a set. Everything is computed in double precision,
in which the float32 values of columns and thresholds are exact, so rows always take the same branches as in the
library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cashmere.base.arrays import AnyArray, BoolArray, FloatArray, IntArray
from cashmere.export.graph import Graph, Value

_EQUAL, _AT_MOST, _LEAF = "BRANCH_EQ", "BRANCH_LEQ", "LEAF"


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """A split on categories.

    Attributes
    ----------
    codes : tuple of int
        Categories that go to one side; all others go to the other side.
    go_left : bool
        Whether that side is the left one.
    """

    codes: tuple[int, ...]
    go_left: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A tree whose node 0 is its root.

    Attributes
    ----------
    column : (n_nodes,) int array
        Column to split on.
    threshold : (n_nodes,) array
        Rows with at most this value go left.
    left, right : (n_nodes,) int array
        Numbers of the children; ignored for leaves.
    is_leaf : (n_nodes,) bool array
    missing_left : (n_nodes,) bool array
        Whether rows without a value go left.
    values : (n_nodes, n_values) array
        Values that leaves add.
    levels : mapping of int to Levels
        Nodes that split on categories instead of a threshold.
    """

    column: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    is_leaf: BoolArray
    missing_left: BoolArray
    values: FloatArray
    levels: Mapping[int, Levels] = field(default_factory=dict)


def sum_of_trees(
    graph: Graph, matrix: Value, trees: Sequence[Tree], targets: Sequence[Sequence[int]], n_targets: int
) -> Value:
    """Add up trees.

    Parameters
    ----------
    graph : Graph
        Gets the nodes.
    matrix : Value
        ``(n_rows, n_columns)``.
    trees : sequence of Tree
        Trees to add up.
    targets : sequence of sequences of int
        For each tree, the outputs to which its values are added.
    n_targets : int
        Number of outputs.

    Returns
    -------
    Value
        ``(n_rows, n_targets)``, float64.
    """
    constant, table = np.zeros(n_targets), _NodeTable()
    for tree, outputs in zip(trees, targets, strict=True):
        if tree.is_leaf[0]:
            np.add.at(constant, list(outputs), tree.values[0])
        else:
            table.append(tree, outputs)
    if table.n_trees == 0:
        return graph.rows_of(constant, matrix)
    return graph.trees(matrix.cast(np.float64), table.attributes(n_targets)).cast(np.float64) + constant


class _NodeTable:
    """The nodes of many trees in the form of the operator: one long list for each property."""

    def __init__(self) -> None:
        self.n_trees = 0
        self._parts: dict[str, list[AnyArray]] = {}

    def append(self, tree: Tree, outputs: Sequence[int]) -> None:
        """Add the nodes of a tree whose root is not a leaf."""
        inner = ~tree.is_leaf
        nodes = {
            "nodes_featureids": np.where(inner, tree.column, 0),
            "nodes_modes": np.where(inner, _AT_MOST, _LEAF),
            "nodes_values": np.where(inner, tree.threshold, 0.0),
            "nodes_truenodeids": np.where(inner, tree.left, 0),
            "nodes_falsenodeids": np.where(inner, tree.right, 0),
            "nodes_missing_value_tracks_true": (inner & tree.missing_left).astype(np.int64),
        }
        for node, levels in tree.levels.items():
            nodes = _with_chain(nodes, tree, node, levels)
        leaf, place = np.nonzero((tree.values != 0) & tree.is_leaf[:, None])
        n_nodes = len(nodes["nodes_values"])
        weights = {
            "target_nodeids": leaf,
            "target_ids": np.asarray(outputs, dtype=np.int64)[place],
            "target_weights": tree.values[leaf, place],
        }
        numbers = {
            "nodes_nodeids": np.arange(n_nodes),
            "nodes_treeids": np.full(n_nodes, self.n_trees),
            "target_treeids": np.full(len(leaf), self.n_trees),
        }
        for name, part in (nodes | weights | numbers).items():
            self._parts.setdefault(name, []).append(part)
        self.n_trees += 1

    def attributes(self, n_targets: int) -> dict[str, Any]:
        """Return the attributes of the operator."""
        whole = {name: np.concatenate(parts) for name, parts in self._parts.items()}
        exact = {f"{name}_as_tensor": whole.pop(name) for name in ("nodes_values", "target_weights")}
        return {name: column.tolist() for name, column in whole.items()} | exact | {"n_targets": n_targets}


def _with_chain(nodes: dict[str, AnyArray], tree: Tree, node: int, levels: Levels) -> dict[str, AnyArray]:
    """Return the nodes of a tree with a chain of comparisons in place of a split on categories.

    The chain names the codes of the smaller side: runtimes descend it by recursion, and thousands of codes would
    overflow their stack.
    """
    codes = levels.codes or (-1,)  # no row has it
    greatest = max(codes)
    others = sorted({*range(greatest)} - {*codes})
    chosen, other = (tree.left, tree.right) if levels.go_left else (tree.right, tree.left)
    if len(codes) <= len(others) + 1:
        values, modes, goals, asks_missing = [*codes], [_EQUAL] * len(codes), [chosen[node]] * len(codes), 0
    else:  # what is none of the others and at most the greatest code is one of the codes
        values, modes = [*others, greatest], [_EQUAL] * len(others) + [_AT_MOST]
        goals, asks_missing = [other[node]] * len(others) + [chosen[node]], len(others)
    n_nodes, n_more = len(nodes["nodes_values"]), len(values) - 1
    chain = np.array([node, *range(n_nodes, n_nodes + n_more)])
    longer = {name: np.concatenate([column, np.zeros(n_more, column.dtype)]) for name, column in nodes.items()}
    longer["nodes_featureids"][chain] = tree.column[node]
    longer["nodes_modes"][chain] = modes
    longer["nodes_values"][chain] = values
    longer["nodes_truenodeids"][chain] = goals
    longer["nodes_falsenodeids"][chain] = [*chain[1:], other[node]]
    longer["nodes_missing_value_tracks_true"][chain] = 0
    longer["nodes_missing_value_tracks_true"][chain[asks_missing]] = bool(tree.missing_left[node]) == levels.go_left
    return longer
