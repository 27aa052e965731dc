"""Convert learners, which compute probabilities or a column of values from a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from cashmere.base.arrays import AnyArray
from cashmere.exceptions import ConversionError
from cashmere.export.boosters import catboost_margins, histogram_margins, lightgbm_margins, xgboost_margins
from cashmere.export.graph import Graph, Value
from cashmere.export.steps import gaussian_kernel
from cashmere.export.trees import Tree, sum_of_trees
from cashmere.space.paths.log_links import LOGS_OF_HISTOGRAMS, LOGS_OF_LIGHTGBM, LOGS_OF_XGBOOST


def _two_classes(graph: Graph, second: Value) -> Value:
    return graph.side_by_side(1.0 - second, second)


def _from_margins(graph: Graph, margins: Value, n_classes: int) -> Value:
    """Return class probabilities; for two classes there is one margin, that of the second."""
    if n_classes > 2:
        return graph.node("Softmax", margins, axis=1)
    return _two_classes(graph, graph.node("Sigmoid", margins))


def lightgbm_classifier(graph: Graph, learner: Any, matrix: Value) -> Value:
    """LightGBM for classification."""
    return _from_margins(graph, lightgbm_margins(graph, learner, matrix), learner.n_classes_)


def xgboost_classifier(graph: Graph, learner: Any, matrix: Value) -> Value:
    """XGBoost for classification."""
    return _from_margins(graph, xgboost_margins(graph, learner, matrix), learner.n_classes_)


def histogram_classifier(graph: Graph, learner: Any, matrix: Value) -> Value:
    """Histogram boosting for classification."""
    return _from_margins(graph, histogram_margins(graph, learner, matrix), len(learner.classes_))


def catboost_classifier(graph: Graph, learner: Any, matrix: Value) -> Value:
    """CatBoost for classification."""
    return _from_margins(graph, catboost_margins(graph, learner, matrix), len(learner.classes_))


def _values(graph: Graph, margins: Value, *, are_logs: bool) -> Value:
    return graph.node("Exp", margins) if are_logs else margins


def lightgbm_regressor(graph: Graph, learner: Any, matrix: Value) -> Value:
    """LightGBM for regression."""
    are_logs = learner.objective_ in LOGS_OF_LIGHTGBM
    return _values(graph, lightgbm_margins(graph, learner, matrix), are_logs=are_logs)


def xgboost_regressor(graph: Graph, learner: Any, matrix: Value) -> Value:
    """XGBoost for regression."""
    are_logs = learner.objective in LOGS_OF_XGBOOST
    return _values(graph, xgboost_margins(graph, learner, matrix), are_logs=are_logs)


def histogram_regressor(graph: Graph, learner: Any, matrix: Value) -> Value:
    """Histogram boosting for regression."""
    are_logs = learner.loss in LOGS_OF_HISTOGRAMS
    return _values(graph, histogram_margins(graph, learner, matrix), are_logs=are_logs)


def forest(graph: Graph, learner: Any, matrix: Value) -> Value:
    """Mean of the class shares or values of trees."""
    n_trees = len(learner.estimators_)
    trees = [_sklearn_tree(each.tree_, n_trees) for each in learner.estimators_]
    n_outputs = trees[0].values.shape[1]
    total = sum_of_trees(graph, matrix, trees, [range(n_outputs)] * n_trees, n_outputs)
    return _two_classes(graph, total) if getattr(learner, "n_classes_", 1) == 2 else total


def _sklearn_tree(tree: Any, n_trees: int) -> Tree:
    values = tree.value[:, 0, :] / n_trees
    is_leaf = tree.children_left < 0
    return Tree(
        column=tree.feature,
        threshold=tree.threshold,
        left=tree.children_left,
        right=tree.children_right,
        is_leaf=is_leaf,
        missing_left=tree.__getstate__()["nodes"]["missing_go_to_left"].astype(bool),
        values=values[:, 1:] if values.shape[1] == 2 else values,  # the share of the first class is the rest
    )


def linear_classifier(graph: Graph, learner: Any, matrix: Value) -> Value:
    """Logistic regression."""
    return _from_margins(graph, _linear(matrix, learner.coef_.T, learner.intercept_), len(learner.classes_))


def linear_regressor(graph: Graph, learner: Any, matrix: Value) -> Value:
    """Ridge regression."""
    return _linear(matrix, np.ravel(learner.coef_)[:, None], np.ravel(learner.intercept_))


def network(graph: Graph, learner: Any, matrix: Value) -> Value:
    """Multi-layer perceptron with ReLU."""
    *hidden, last = zip(learner.coefs_, learner.intercepts_, strict=True)
    for weights, offset in hidden:
        matrix = _linear(matrix, weights, offset).at_least(0.0)
    outputs = _linear(matrix, *last)
    return outputs if learner.out_activation_ == "identity" else _from_margins(graph, outputs, len(learner.classes_))


def _linear(matrix: Value, weights: AnyArray, offset: AnyArray) -> Value:
    """Return a linear function of the columns, in the wider of the types of matrix and weights."""
    return matrix.cast(np.result_type(matrix.dtype, weights.dtype)) @ weights + offset


def realmlp(graph: Graph, learner: Any, matrix: Value) -> Value:
    """RealMLP: the outputs of its last layer, float32."""
    scaled = (matrix.cast(np.float64) - learner.center_) * learner.scale_
    third = scaled / 3.0
    inputs = (scaled / graph.node("Sqrt", third * third + 1.0)).cast(np.float32)
    if len(learner.embedded_):
        columns = graph.node("Unsqueeze", inputs.columns(learner.embedded_), np.array([2]))
        waves = graph.node("Cos", columns * learner.frequencies_ + learner.phases_)
        mixed = graph.node("Unsqueeze", waves, np.array([2])) @ learner.mixing_
        shifted = graph.node("Squeeze", mixed, np.array([2])) + learner.shifts_
        flat = graph.node("Reshape", shifted, np.array([0, learner.shifts_.size]))
        inputs = graph.side_by_side(inputs, flat)
    values = inputs * learner.front_
    *hidden, last = zip(learner.coefs_, learner.intercepts_, strict=True)
    for (weights, offset), slope in zip(hidden, learner.slopes_, strict=True):
        values = _linear(values, weights, offset)
        values = values + (_activated(graph, learner, values) - values) * slope
    return _linear(values, *last)


def _activated(graph: Graph, learner: Any, values: Value) -> Value:
    if hasattr(learner, "classes_"):
        return graph.node("Selu", values)
    return values * graph.node("Tanh", graph.node("Softplus", values))


def realmlp_classifier(graph: Graph, learner: Any, matrix: Value) -> Value:
    """RealMLP for classification."""
    return _from_margins(graph, realmlp(graph, learner, matrix).cast(np.float64), len(learner.classes_))


def realmlp_regressor(graph: Graph, learner: Any, matrix: Value) -> Value:
    """RealMLP for regression, whose values stay within those of training."""
    values = realmlp(graph, learner, matrix).cast(np.float64)
    return values.at_least(learner.lowest_).at_most(learner.highest_)


def support_vector_regressor(graph: Graph, learner: Any, matrix: Value) -> Value:
    """Support vector regression with a Gaussian kernel."""
    kernel = _similarity(graph, learner, matrix)
    return _linear(kernel, learner.dual_coef_.T, learner.intercept_)


def squashed_margins(graph: Graph, learner: Any, matrix: Value) -> Value:
    """Support vector classification with a Gaussian kernel, whose margins become probabilities."""
    duels, n_classes = _margins(graph, learner.estimator_, matrix), len(learner.estimator_.classes_)
    if n_classes == 2:
        return _from_margins(graph, duels, 2)
    firsts, seconds = _ends_of_pairs(n_classes)
    is_lost = (duels < 0.0).cast(np.float64)
    votes = (1.0 - is_lost) @ firsts + is_lost @ seconds
    sums = duels @ (firsts - seconds)
    return _from_margins(graph, votes + sums / (graph.node("Abs", sums) * 3.0 + 3.0), n_classes)


def coupled_margins(graph: Graph, learner: Any, matrix: Value) -> Value:
    """Support vector classification with a Gaussian kernel, whose margins between classes are coupled."""
    n_classes = len(learner.estimator_.classes_)
    duels = _margins(graph, learner.estimator_, matrix) * float(learner.sharpness)
    if n_classes == 2:
        return _from_margins(graph, duels, 2)
    firsts, seconds = _ends_of_pairs(n_classes)
    # log(sigmoid(m)) = min(m, 0) - log(1 + exp(-|m|)), of which exp cannot overflow
    least = graph.node("Log", graph.node("Exp", -graph.node("Abs", duels)) + 1.0)
    won, lost = duels.at_most(0.0) - least, (-duels).at_most(0.0) - least
    return _from_margins(graph, won @ firsts + lost @ seconds, n_classes)


def _margins(graph: Graph, machine: Any, matrix: Value) -> Value:
    """Return the margins between every two classes, ``(n_rows, n_pairs)``; of two classes, that of the second."""
    kernel = _similarity(graph, machine, matrix)
    weights = machine.dual_coef_.T if len(machine.classes_) == 2 else _duels(machine)
    return _linear(kernel, weights, machine.intercept_)


def _ends_of_pairs(n_classes: int) -> tuple[AnyArray, AnyArray]:
    """Return which class is the first and which the second of each pair, ``(n_pairs, n_classes)`` each."""
    firsts, seconds = (np.eye(n_classes)[k] for k in np.triu_indices(n_classes, 1))
    return firsts, seconds


def _similarity(graph: Graph, machine: Any, matrix: Value) -> Value:
    """Return the similarity of rows to support vectors, ``(n_rows, n_vectors)``."""
    if machine.kernel != "rbf":
        raise ConversionError({"kernel": f"compares rows by the kernel {machine.kernel!r}, not by the Gaussian one"})
    return gaussian_kernel(graph, matrix, machine.support_vectors_, machine._gamma)


def _duels(machine: Any) -> AnyArray:
    """Return the weight of each support vector in the decision between two classes, ``(n_vectors, n_pairs)``."""
    ends = np.cumsum(machine.n_support_)
    owned = [slice(end - n, end) for end, n in zip(ends, machine.n_support_, strict=True)]
    columns = []
    for i, j in zip(*np.triu_indices(len(owned), 1), strict=True):
        column = np.zeros(ends[-1])
        column[owned[i]] = machine.dual_coef_[j - 1, owned[i]]
        column[owned[j]] = machine.dual_coef_[i, owned[j]]
        columns.append(column)
    return np.column_stack(columns)


def constant_classifier(graph: Graph, learner: Any, matrix: Value) -> Value:
    """Shares of the classes."""
    return graph.rows_of(np.asarray(learner.class_prior_, dtype=np.float64), matrix)


def constant_regressor(graph: Graph, learner: Any, matrix: Value) -> Value:
    """One value for all rows."""
    return graph.rows_of(np.ravel(learner.constant_).astype(np.float64), matrix)
