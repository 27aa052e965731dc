"""Turn categorical splits of XGBoost models into splits of 0/1 columns: they predict the same in a quarter of the time.

A categorical split sends a row to the right if its category is in a set. A processor cannot predict well whether a node
is of that kind, which costs more than the rest of the way down a tree. With a column that is 1 for the categories of a
set, an ordinary split does the same. If each split takes one level, as by default on large tables, there are few sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import FloatArray, IntArray

_MOST_SETS = 1_000
"""More columns would cost more than they save."""

_LONGEST_BYTES = 2**26
"""Longer models are left as they are, as parsing their text takes about ten times its memory."""

CategorySet = tuple[int, tuple[int, ...]]
"""Number of a column, and categories of it."""


@dataclass(frozen=True, slots=True)
class CategoryIndicators:
    """0/1 columns that say whether the category of a column is in a set.

    Attributes
    ----------
    columns : tuple of int
        Categorical columns that are split.
    tables : tuple of (n_levels + 2, n_sets) float32 arrays
        For each of them, whether each level is in each set; then a row for unknown levels, which are in no set, and a
        row of NaN for missing values.
    """

    columns: tuple[int, ...]
    tables: tuple[NDArray[np.float32], ...]

    @classmethod
    def of_sets(cls, sets: Sequence[CategorySet]) -> CategoryIndicators:
        """Return the indicators for sets that are sorted by column."""
        columns = tuple(dict.fromkeys(column for column, _ in sets))
        tables = []
        for column in columns:
            of_column = [levels for each, levels in sets if each == column]
            table = np.zeros((max(map(max, of_column)) + 3, len(of_column)), dtype=np.float32)
            for k, levels in enumerate(of_column):
                table[list(levels), k] = 1.0
            table[-1] = np.nan
            tables.append(table)
        return cls(columns, tuple(tables))

    def added_to(self, X: FloatArray) -> NDArray[np.float32]:
        """Return ``(n_rows, n_features + n_sets)``: the columns of `X`, then the indicators."""
        result = np.empty((len(X), X.shape[1] + sum(table.shape[1] for table in self.tables)), dtype=np.float32)
        result[:, : X.shape[1]] = X
        start = X.shape[1]
        for column, table in zip(self.columns, self.tables, strict=True):
            end = start + table.shape[1]
            result[:, start:end] = table[_rows_of(X[:, column], len(table) - 2)]
            start = end
        return result


def _rows_of(codes: FloatArray, n_levels: int) -> IntArray:
    """Return the row of a table for each code."""
    missing = np.isnan(codes)
    known = (codes >= 0) & (codes < n_levels)
    return np.where(missing, n_levels + 1, np.where(known, codes, n_levels)).astype(np.int64)


def without_categories(booster: Any, *, n_threads: int) -> tuple[Any, CategoryIndicators | None]:
    """Return a booster with the same trees but without categorical splits, and the columns that it needs in addition.

    Parameters
    ----------
    booster : xgboost.Booster
        Trees.
    n_threads : int
        Threads the new one may use.

    Returns
    -------
    booster : xgboost.Booster
        `booster` itself, if it has no categorical splits or too many different ones.
    indicators : CategoryIndicators or None
        To be added to its rows; None if nothing has changed.
    """
    import xgboost

    raw = booster.save_raw("json")
    if len(raw) > _LONGEST_BYTES:
        return booster, None
    document = msgspec.json.decode(bytes(raw))
    learner = document["learner"]
    trees = learner["gradient_booster"]["model"]["trees"]
    places = [(tree, node, found) for tree in trees for node, found in _sets_of(tree)]
    sets = sorted({found for _, _, found in places})
    if not sets or len(sets) > _MOST_SETS or not all(levels for _, levels in sets):
        return booster, None
    n_features = booster.num_features()
    place_of = {found: n_features + position for position, found in enumerate(sets)}
    for tree, node, found in places:
        tree["split_indices"][node], tree["split_conditions"][node], tree["split_type"][node] = place_of[found], 0.5, 0
    for tree in trees:
        tree |= {name: [] for name in tree if name.startswith("categories")}
        tree["tree_param"]["num_feature"] = str(n_features + len(sets))
    learner["learner_model_param"]["num_feature"] = str(n_features + len(sets))
    learner["feature_names"] = learner["feature_types"] = []
    rewritten = xgboost.Booster({"nthread": n_threads})
    rewritten.load_model(bytearray(msgspec.json.encode(document)))
    return rewritten, CategoryIndicators.of_sets(sets)


def _sets_of(tree: dict[str, Any]) -> list[tuple[int, CategorySet]]:
    """Return the nodes of a tree that split on categories, each with the set that it sends to the right."""
    nodes, starts, sizes = tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"]
    return [
        (node, (tree["split_indices"][node], tuple(tree["categories"][start : start + size])))
        for node, start, size in zip(nodes, starts, sizes, strict=True)
    ]
