"""Stacking: learn a small model from out-of-fold predictions that combines the members.

Its coefficients are plain numbers, so a model folder needs no pickled estimator for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cashmere.base.arrays import AnyArray, Float64, FloatArray, IntArray
from cashmere.data.fold import Fold
from cashmere.data.row_structure import RowStructure
from cashmere.ensembles.parts import parts_of_rows
from cashmere.ensembles.selection import as_targets
from cashmere.exceptions import ArrayError, InvalidParameterError, ShapeError
from cashmere.records.loss import Loss

PROBABILITY_CLIP = 1e-6
"""Smallest probability before the logarithm: one overconfident member must not outweigh all others (float32 rounds)."""

RIDGE_SHARE = 1e-2
"""Ridge penalty of regression, as a share of the mean square of the centred members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackedEnsemble:
    """Combine members with a linear model.

    Classification: logistic regression on log-odds (two classes) or log-probabilities (more). Regression: a
    linear combination with non-negative coefficients and an intercept.

    Attributes
    ----------
    members : tuple of int
        Trial numbers, distinct.
    coefficients : tuple of tuples of float
        ``(n_outputs, n_features)``. Regression: one output, a feature per member. Classification: one output per class
        of `classes`; features member after member, per member the log-odds of class 1 or the log-probability of every
        class.
    intercepts : tuple of float
        ``(n_outputs,)``.
    classes : tuple of int
        Class codes of the outputs; other classes did not occur and get probability 0. Empty for regression.
    n_classes : int
        Columns of the predictions; 1 for regression.
    """

    members: tuple[int, ...]
    coefficients: tuple[tuple[float, ...], ...]
    intercepts: tuple[float, ...]
    classes: tuple[int, ...] = ()
    n_classes: int = 1

    def __post_init__(self) -> None:
        if not self.members or len(set(self.members)) != len(self.members):
            raise InvalidParameterError("members", self.members, "one or more different trial numbers")
        per_member = self.n_classes if self.n_classes > 2 else 1
        expected = (len(self.intercepts), len(self.members) * per_member)
        if np.shape(self.coefficients) != expected or len(self.intercepts) != max(1, len(self.classes)):
            raise ShapeError("coefficients", np.shape(self.coefficients), expected)

    def combine(self, stack: Sequence[FloatArray] | FloatArray) -> Float64:
        """Combine predictions.

        Parameters
        ----------
        stack : sequence of (n_rows, n_classes) or (n_rows,) arrays
            Predictions in the order of `members`.

        Returns
        -------
        (n_rows, n_classes) or (n_rows,) array, float64
        """
        if len(stack) != len(self.members):
            raise ArrayError(
                "stack", f"stack must hold the predictions of {len(self.members)} members; got {len(stack)} arrays."
            )
        outputs = _features(stack) @ np.array(self.coefficients).T + np.array(self.intercepts)
        if not self.classes:
            return np.asarray(outputs[:, 0])
        outputs -= outputs.max(axis=1, keepdims=True)
        odds = np.exp(outputs)
        probabilities = np.zeros((len(odds), self.n_classes))
        probabilities[:, list(self.classes)] = odds / odds.sum(axis=1, keepdims=True)
        return probabilities

    def to_json(self) -> dict[str, Any]:
        """Return plain data for `from_json`."""
        return {
            "kind": "stacked",
            "members": list(self.members),
            "coefficients": [list(row) for row in self.coefficients],
            "intercepts": list(self.intercepts),
            "classes": list(self.classes),
            "n_classes": self.n_classes,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild the ensemble that `to_json` described."""
        return cls(
            members=tuple(int(n) for n in data["members"]),
            coefficients=tuple(tuple(float(c) for c in row) for row in data["coefficients"]),
            intercepts=tuple(float(c) for c in data["intercepts"]),
            classes=tuple(int(c) for c in data["classes"]),
            n_classes=int(data["n_classes"]),
        )


def fit_stacking(
    numbers: Sequence[int],
    predictions: Sequence[FloatArray] | FloatArray,
    y: AnyArray,
    *,
    weight: FloatArray | None = None,
) -> StackedEnsemble:
    """Learn how to combine members.

    Parameters
    ----------
    numbers : sequence of int
        Trial numbers of the members.
    predictions : sequence of (n_rows, n_classes) or (n_rows,) arrays
        Out-of-fold predictions of the members, in the same order.
    y : (n_rows,) array
        Class codes or values.
    weight : (n_rows,) array, optional
        Row weights.

    Notes
    -----
    DivBO (Table 9) names stacking without details; logistic regression with scikit-learn's default penalty on
    standardised features is our reading. Regression minimises, over w >= 0 and an intercept,
    ``mean (y - Z w)**2 + RIDGE_SHARE * mean(z**2) * |w - 1/m|**2``: weights shrink to the plain average, not to zero.
    """
    features = _features(predictions)
    y = as_targets(y, predictions[0].ndim)
    if predictions[0].ndim == 1:
        return _fit_regression(numbers, features, y, weight)
    return _fit_classification(numbers, features, y, weight, predictions[0].shape[1])


def stacked_ensemble(
    numbers: Sequence[int],
    predictions: Sequence[FloatArray] | FloatArray,
    y: AnyArray,
    metric: Loss,
    *,
    weight: FloatArray | None = None,
    structure: RowStructure | None = None,
    n_folds: int = 5,
    rng: np.random.Generator | None = None,
) -> tuple[StackedEnsemble, float]:
    """Learn how to combine members, and estimate the loss on unseen rows.

    Parameters
    ----------
    numbers, predictions, y, weight
        See `fit_stacking`.
    metric : Loss
        The metric.
    structure : RowStructure, optional
        Groups or times of the rows, see `parts_of_rows`.
    n_folds : int
        Number of folds of the cross-fit.
    rng : numpy.random.Generator, optional
        Splits the rows; seeded with 0 if not given.

    Returns
    -------
    ensemble : StackedEnsemble
        Learned from all rows.
    loss : float
        Loss of cross-fitted predictions: the combination for each row is learned from the other folds. With times, it
        is learned from earlier folds, and the loss is that of the newer rows. If all rows belong to one group or time,
        the loss of the ensemble on them.
    """
    y = as_targets(y, predictions[0].ndim)
    ensemble = fit_stacking(numbers, predictions, y, weight=weight)
    rng = np.random.default_rng(0) if rng is None else rng
    if structure is None:
        folds = _dealt_folds(y, n_folds, rng)
    else:
        folds = parts_of_rows(len(y), n_folds, rng, structure, classes=y if predictions[0].ndim == 2 else None)
    if not folds:
        return ensemble, float(metric.loss(y, ensemble.combine(predictions), weight))
    combined = np.empty(predictions[0].shape)
    for fold in folds:
        inside, outside = fold.train, fold.validation
        learned = fit_stacking(
            numbers,
            [prediction[inside] for prediction in predictions],
            y[inside],
            weight=None if weight is None else weight[inside],
        )
        combined[outside] = learned.combine([prediction[outside] for prediction in predictions])
    judged = np.sort(np.concatenate([fold.validation for fold in folds]))
    return ensemble, float(metric.loss(y[judged], combined[judged], None if weight is None else weight[judged]))


def _features(stack: Sequence[FloatArray] | FloatArray) -> Float64:
    """Return the inputs of the linear model, ``(n_rows, n_features)``, member after member."""
    if stack[0].ndim == 1:
        return np.column_stack([np.asarray(p, dtype=np.float64) for p in stack])
    logs = [np.log(np.maximum(np.asarray(p, dtype=np.float64), PROBABILITY_CLIP)) for p in stack]
    if stack[0].shape[1] == 2:
        return np.column_stack([log[:, 1] - log[:, 0] for log in logs])
    return np.concatenate(logs, axis=1)


def _dealt_folds(y: AnyArray, n_folds: int, rng: np.random.Generator) -> list[Fold]:
    """Deal the rows, sorted by target, to the folds: classes and values are spread evenly."""
    n_folds = min(n_folds, len(y))
    if n_folds < 2:
        raise ArrayError("y", f"A stacked ensemble is cross-fitted and needs at least two rows; y holds {len(y)}.")
    fold = np.empty(len(y), dtype=np.int64)
    fold[np.lexsort((rng.random(len(y)), y))] = np.arange(len(y)) % n_folds
    return [Fold(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]


def _fit_regression(
    numbers: Sequence[int], features: Float64, y: Float64, weight: FloatArray | None
) -> StackedEnsemble:
    from scipy.optimize import nnls

    share = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    share = share / share.sum()
    m = features.shape[1]
    center, y_mean = share @ features, float(share @ y)
    z, r = features - center, y - y_mean
    gram = (z * share[:, None]).T @ z
    penalty = RIDGE_SHARE * float(np.trace(gram)) / m
    if penalty <= 0:
        # All members are constant: only the intercept matters.
        coefficients = np.full(m, 1 / m)
    else:
        # |U w - b|**2 with U'U = gram + penalty I has the same minimum as the penalised error, and m rows only.
        upper = np.linalg.cholesky(gram + penalty * np.eye(m)).T
        right = np.linalg.solve(upper.T, (z * share[:, None]).T @ r + penalty / m)
        coefficients = nnls(upper, right)[0]
    return StackedEnsemble(
        members=tuple(int(n) for n in numbers),
        coefficients=(tuple(coefficients.tolist()),),
        intercepts=(y_mean - float(center @ coefficients),),
    )


def _fit_classification(
    numbers: Sequence[int], features: Float64, codes: IntArray, weight: FloatArray | None, n_classes: int
) -> StackedEnsemble:
    classes = np.unique(codes)
    coefficients = np.zeros((len(classes), features.shape[1]))
    intercepts = np.zeros(len(classes))
    if len(classes) > 1:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        center, scale = features.mean(axis=0), features.std(axis=0)
        scale[scale == 0] = 1
        model = LogisticRegression(max_iter=500)
        with warnings.catch_warnings():
            # A combination that has not quite converged is still usable, and its loss is measured anyway.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit((features - center) / scale, codes, sample_weight=weight)
        # With two classes there is only one output, the log-odds of the second.
        coefficients[-len(model.coef_) :] = model.coef_ / scale
        intercepts[-len(model.coef_) :] = model.intercept_
        intercepts -= coefficients @ center
    return StackedEnsemble(
        members=tuple(int(n) for n in numbers),
        coefficients=tuple(tuple(row) for row in coefficients.tolist()),
        intercepts=tuple(intercepts.tolist()),
        classes=tuple(classes.tolist()),
        n_classes=n_classes,
    )
