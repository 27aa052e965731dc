"""The trees of LightGBM, XGBoost and scikit-learn's histogram boosting, and of CatBoost, whose trees are tables."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cashmere.base.arrays import AnyArray, FloatArray
from cashmere.exceptions import ConversionError
from cashmere.export.graph import Graph, Value
from cashmere.export.trees import Levels, Tree, sum_of_trees
from cashmere.space.paths.log_links import LOGS_OF_XGBOOST

_CATEGORICAL, _DEFAULT_LEFT, _NAN_IS_MISSING = 1, 2, 8
"""Bits of LightGBM's decision types."""

_OWN_MEANS = "splits on categories by CatBoost's own means of the target, which ONNX has no operators for"


def lightgbm_margins(graph: Graph, learner: Any, matrix: Value) -> Value:
    """Return the sum of LightGBM's trees, ``(n_rows, n_outputs)``, float64."""
    trees = list(_lightgbm_trees(learner.booster_.model_to_string()))
    n_outputs = learner.booster_.num_model_per_iteration()
    return sum_of_trees(graph, matrix, trees, [[k % n_outputs] for k in range(len(trees))], n_outputs)


def _lightgbm_trees(text: str) -> Iterator[Tree]:
    for block in text.partition("end of trees")[0].split("\nTree=")[1:]:
        lines = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)

        def numbers(name: str, kind: type, lines: dict[str, str] = lines) -> AnyArray:
            return np.array(lines.get(name, "").split(), dtype=kind)

        values = numbers("leaf_value", np.float64)
        n_inner = len(values) - 1
        kinds, threshold = numbers("decision_type", np.int64), numbers("threshold", np.float64)
        left, right = (_after_inner(numbers(name, np.int64), n_inner) for name in ("left_child", "right_child"))
        # Unless values were missing in training, a missing one counts as 0.
        missing_left = np.where(kinds & _NAN_IS_MISSING, (kinds & _DEFAULT_LEFT) > 0, threshold >= 0)
        is_split_on_levels = (kinds & _CATEGORICAL) > 0
        bounds, words = numbers("cat_boundaries", np.int64), numbers("cat_threshold", np.uint32)
        levels = {}
        for node in np.flatnonzero(is_split_on_levels).tolist():
            number = int(threshold[node])
            levels[node] = Levels(codes=_bits(words[bounds[number] : bounds[number + 1]]), go_left=True)
        yield Tree(
            column=_padded(numbers("split_feature", np.int64), len(values)),
            threshold=_padded(threshold, len(values)),
            left=_padded(left, len(values)),
            right=_padded(right, len(values)),
            is_leaf=np.arange(2 * n_inner + 1) >= n_inner,
            missing_left=_padded(missing_left & ~is_split_on_levels, len(values)),
            values=np.concatenate([np.zeros(n_inner), values])[:, None],
            levels=levels,
        )


def _after_inner(children: AnyArray, n_inner: int) -> AnyArray:
    """Convert LightGBM's numbers of nodes, in which leaf k is -k - 1, to ours, in which leaves follow inner nodes."""
    return np.where(children < 0, n_inner - children - 1, children)


def _padded(column: AnyArray, n_leaves: int) -> AnyArray:
    return np.concatenate([column, np.zeros(n_leaves, column.dtype)])


def _bits(words: AnyArray) -> tuple[int, ...]:
    """Return the positions of the set bits in 32-bit words."""
    return tuple(32 * k + bit for k, word in enumerate(words.tolist()) for bit in range(32) if word >> bit & 1)


def xgboost_margins(graph: Graph, learner: Any, matrix: Value) -> Value:
    """Return the sum of XGBoost's trees, ``(n_rows, n_outputs)``, float64."""
    document = json.loads(bytes(learner.get_booster().save_raw("json")))["learner"]
    booster = document["gradient_booster"]
    if booster["name"] != "gbtree":
        raise ConversionError({"xgboost": f"boosts {booster['name']!r}, not plain trees"})
    trees = [_xgboost_tree(tree) for tree in booster["model"]["trees"]]
    parameters = document["learner_model_param"]
    n_outputs = max(1, int(parameters["num_class"]))
    groups = [[group] for group in booster["model"]["tree_info"]]
    # One number, or since XGBoost 3 a list with one per output, in the units of predictions, not of margins.
    base = np.array(json.loads(f"[{parameters['base_score'].strip('[]')}]"))
    if document["objective"]["name"] == "binary:logistic":
        base = np.log(base / (1 - base))
    elif document["objective"]["name"] in LOGS_OF_XGBOOST:
        base = np.log(base)
    return sum_of_trees(graph, matrix, trees, groups, n_outputs) + base


def _xgboost_tree(tree: dict[str, Any]) -> Tree:
    left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
    is_leaf = left < 0
    conditions = np.array(tree["split_conditions"], dtype=np.float32)
    levels = {}
    parts = zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True)
    for node, start, size in parts:
        levels[node] = Levels(codes=tuple(tree["categories"][start : start + size]), go_left=False)
    return Tree(
        column=np.array(tree["split_indices"]),
        # Rows below a threshold go left, that is, rows up to the next smaller float32.
        threshold=np.nextafter(conditions, np.float32(-np.inf)).astype(np.float64),
        left=left,
        right=right,
        is_leaf=is_leaf,
        missing_left=np.array(tree["default_left"], dtype=bool),
        values=np.where(is_leaf, conditions, 0).astype(np.float64)[:, None],
        levels=levels,
    )


def histogram_margins(graph: Graph, learner: Any, matrix: Value) -> Value:
    """Return the sum of the trees of scikit-learn's histogram boosting, ``(n_rows, n_outputs)``, float64."""
    origin, codes = _before_coding(learner)
    rounds = learner._predictors
    trees = [_histogram_tree(tree, origin, codes) for trees in rounds for tree in trees]
    base = np.ravel(learner._baseline_prediction).astype(np.float64)
    targets = [[k % len(base)] for k in range(len(trees))]
    return sum_of_trees(graph, matrix, trees, targets, len(base)) + base


def _before_coding(learner: Any) -> tuple[AnyArray, dict[int, AnyArray]]:
    """Return the column of the matrix for each column of the trees, and the codes of categorical columns.

    scikit-learn renumbers categories, and puts their columns before the others.
    """
    is_category = learner.is_categorical_
    if is_category is None:
        return np.arange(learner.n_features_in_), {}
    chosen = np.flatnonzero(is_category)
    coder = next(transformer for name, transformer, _ in learner._preprocessor.transformers_ if name == "encoder")
    known = [np.asarray(values, dtype=np.float64) for values in coder.categories_]
    codes = {int(j): values[~np.isnan(values)] for j, values in zip(chosen, known, strict=True)}
    return np.concatenate([chosen, np.flatnonzero(~is_category)]), codes


def _histogram_tree(tree: Any, origin: AnyArray, codes: dict[int, AnyArray]) -> Tree:
    nodes = tree.nodes
    column, is_leaf = origin[nodes["feature_idx"]], nodes["is_leaf"].astype(bool)
    missing_left = nodes["missing_go_to_left"].astype(bool)
    levels = {}
    for node in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~is_leaf).tolist():
        known = codes[int(column[node])]
        is_left = np.isin(np.arange(len(known)), _bits(tree.raw_left_cat_bitsets[nodes["bitset_idx"][node]]))
        # Unseen categories go where missing values go, so list those that go to the other side.
        go_left = not missing_left[node]
        named = known[is_left if go_left else ~is_left]
        levels[node] = Levels(codes=tuple(named.astype(np.int64).tolist()), go_left=go_left)
    return Tree(
        column=column.astype(np.int64),
        threshold=nodes["num_threshold"],
        left=nodes["left"].astype(np.int64),
        right=nodes["right"].astype(np.int64),
        is_leaf=is_leaf,
        missing_left=missing_left,
        values=nodes["value"][:, None],
        levels=levels,
    )


def catboost_margins(graph: Graph, learner: Any, matrix: Value) -> Value:
    """Return the sum of CatBoost's trees, ``(n_rows, n_outputs)``, float64.

    Every level of a tree has the same split for all rows, so the results are the binary digits of the number of a leaf.

    Raises
    ------
    ConversionError
        If trees split on categories, as ONNX lacks CatBoost's means of the target over their levels.
    """
    if learner.get_param("cat_features"):
        raise ConversionError({"catboost": _OWN_MEANS})
    document = _catboost_document(learner)
    scale, offsets = document["scale_and_bias"]
    columns, borders, weights, starts, leaves = [], [], [], [], []
    n_outputs, position = len(offsets), 0
    depth = max((len(tree["splits"]) for tree in document["oblivious_trees"]), default=0)
    for tree in document["oblivious_trees"]:
        splits, values = tree["splits"], np.reshape(tree["leaf_values"], (-1, n_outputs))
        idle = depth - len(splits)
        columns += [*(split["float_feature_index"] for split in splits), *[0] * idle]
        borders += [*(split["border"] for split in splits), *[math.inf] * idle]
        weights += [2**k for k in range(depth)]
        starts.append(position)
        leaves.append(values)
        position += len(values)
    if depth == 0:
        total = sum((scale * values[0] for values in leaves), np.array(offsets, dtype=np.float64))
        return graph.rows_of(total, matrix)
    answers = _with_gaps_as_numbers(graph, document, matrix).columns(np.array(columns)) > np.array(borders)
    digits = answers.cast(np.float32) * np.array(weights)
    of_trees = graph.node("Reshape", digits, np.array([0, len(starts), depth]))
    places = graph.sum_over(of_trees, 2, keep=False).cast(np.int64) + np.array(starts)
    chosen = graph.node("Gather", scale * np.concatenate(leaves), places)
    return graph.sum_over(chosen, 1, keep=False) + np.array(offsets)


def _catboost_document(learner: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="cashmere-") as folder:
        path = Path(folder) / "model.json"
        learner.save_model(str(path), format="json")
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def _with_gaps_as_numbers(graph: Graph, document: dict[str, Any], matrix: Value) -> Value:
    """Return the matrix with missing values below or above all borders, as each column treats them."""
    filling: FloatArray = np.full(len(document["features_info"]["float_features"]), -math.inf, dtype=np.float32)
    for feature in document["features_info"]["float_features"]:
        if feature["nan_value_treatment"] == "AsTrue":
            filling[feature["flat_feature_index"]] = math.inf
    return graph.where(matrix.is_missing(), filling, matrix)
