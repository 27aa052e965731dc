"""Accuracies of six simple classifiers on a table: numbers that describe the table, not the classifiers.

======================  ==========================  =============================================================
symbol                  shape                       meaning
======================  ==========================  =============================================================
Z                       ``(n, p)``                  rows with standardised columns
y                       ``(n,)``                    class codes 0, ..., K - 1
======================  ==========================  =============================================================

Classifiers with a closed form are written out here. Their parameters are sums over rows, they cope with any training
part (single rows of a class, constant columns, more columns than rows), and they never warn.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from cashmere.base.arrays import Float64, FloatArray, IntArray

N_FOLDS = 3
N_RANDOM_NODES = 10
"""Number of drawn columns whose accuracies are averaged: a single draw says more about itself than about the table."""

_RIDGE = 1e-6
"""Added to the variances of standardised columns, so that the covariance within classes can be inverted."""
_NB_SMOOTHING = 1e-9
"""Share of the largest variance added to all variances, as in scikit-learn's ``GaussianNB``."""

Classifier = Callable[[Float64, IntArray, Float64], IntArray]


def nearest_neighbour(Z: Float64, y: IntArray, Z_new: Float64) -> IntArray:
    """Return the class of the training row at the smallest Euclidean distance, the first in a tie."""
    distances = np.square(Z).sum(axis=1) - 2 * Z_new @ Z.T  # the squared norm of the new row is the same for all
    codes: IntArray = y[np.argmin(distances, axis=1)]
    return codes


def gaussian_naive_bayes(Z: Float64, y: IntArray, Z_new: Float64) -> IntArray:
    """Return the most probable class, assuming independent normal columns within each class."""
    classes, counts = np.unique(y, return_counts=True)
    smoothing = _NB_SMOOTHING * max(float(Z.var(axis=0).max()), 1e-12)
    scores = np.empty((len(Z_new), len(classes)))
    for k, (label, count) in enumerate(zip(classes, counts, strict=True)):
        rows = Z[y == label]
        variance = rows.var(axis=0) + smoothing
        deviations = np.square(Z_new - rows.mean(axis=0)) / variance
        scores[:, k] = np.log(count) - 0.5 * (np.log(variance).sum() + deviations.sum(axis=1))
    codes: IntArray = classes[np.argmax(scores, axis=1)]
    return codes


def linear_discriminant(Z: Float64, y: IntArray, Z_new: Float64) -> IntArray:
    """Return the most probable class, assuming normal classes with one common covariance."""
    classes, positions, counts = np.unique(y, return_inverse=True, return_counts=True)
    means = np.stack([Z[positions == k].mean(axis=0) for k in range(len(classes))])
    within = Z - means[positions]
    covariance = within.T @ within / max(len(Z) - len(classes), 1) + _RIDGE * np.eye(Z.shape[1])
    directions = np.linalg.solve(covariance, means.T)
    offsets = np.log(counts) - 0.5 * np.einsum("kp,pk->k", means, directions)
    codes: IntArray = classes[np.argmax(Z_new @ directions + offsets, axis=1)]
    return codes


def _tree(**settings: Any) -> Classifier:
    """Return a classifier that grows scikit-learn's decision tree."""

    def classify(Z: Float64, y: IntArray, Z_new: Float64) -> IntArray:
        from sklearn.tree import DecisionTreeClassifier

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about classes with a single row
            codes: IntArray = DecisionTreeClassifier(**settings).fit(Z, y).predict(Z_new)
        return codes

    return classify


LANDMARKERS: dict[str, tuple[Classifier, ...]] = {
    "nearest_neighbour": (nearest_neighbour,),
    "naive_bayes": (gaussian_naive_bayes,),
    "linear_discriminant": (linear_discriminant,),
    "decision_tree": (_tree(random_state=0),),
    "stump": (_tree(max_depth=1, random_state=0),),
    "random_node": tuple(_tree(max_depth=1, max_features=1, random_state=i) for i in range(N_RANDOM_NODES)),
}
"""Classifiers of each landmarker; the accuracies of several are averaged."""


def landmarker_accuracies(Z: FloatArray, y: IntArray, folds: IntArray) -> dict[str, float]:
    """Return the cross-validated accuracy of each landmarker.

    Parameters
    ----------
    Z : (n, p) array
        Rows with standardised columns, without missing values.
    y : (n,) array of int
        Class codes.
    folds : (n,) array of int
        Fold in which each row is predicted, 0, ..., `N_FOLDS` - 1.

    Returns
    -------
    dict of str to float
        Share of correct answers over all rows, by the names of `LANDMARKERS`; NaN without columns, with a single class
        or with an empty fold.

    References
    ----------
    Pfahringer, Bensusan and Giraud-Carrier (2000), Meta-learning by landmarking various learning algorithms, ICML.
    """
    if Z.shape[1] == 0 or len(np.unique(y)) < 2 or len(np.unique(folds)) < N_FOLDS:
        return dict.fromkeys(LANDMARKERS, float("nan"))
    n_right = dict.fromkeys(LANDMARKERS, 0.0)
    Z = np.asarray(Z, dtype=np.float64)
    for fold in range(N_FOLDS):
        new = folds == fold
        for name, classifiers in LANDMARKERS.items():
            for classify in classifiers:
                right = classify(Z[~new], y[~new], Z[new]) == y[new]
                n_right[name] += float(right.sum()) / len(classifiers)
    return {name: right / len(y) for name, right in n_right.items()}
