"""How much the members of an ensemble differ: matrices of all pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cashmere.acquisition.diversity import cross_measure
from cashmere.base.arrays import AnyArray, Float64, FloatArray


def diversities(A: AnyArray, B: AnyArray, *, row_weights: FloatArray | None = None) -> Float64:
    """Return the diversity between all predictions of A and all of B; larger means more different.

    Parameters
    ----------
    A : (n, n_rows, n_classes) or (n, n_rows) array
        Class probabilities or values.
    B : (m, n_rows, n_classes) or (m, n_rows) array
        Likewise.
    row_weights : (n_rows,) array, optional
        Weights of the rows.

    Returns
    -------
    (n, m) array
        Probabilities: DivBO's distance (eq. 3), in [0, 1]; for two classes the mean absolute difference of the
        probability of one. Values: the root of the mean squared difference, in units of the target. This is the root
        of the paper's variant for regression, which orders pairs alike.

    Examples
    --------
    >>> sure, other = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> float(diversities(sure[None], other[None]).round(6)[0, 0])
    0.5
    """
    distance = cross_measure("div", A, B, np.zeros(A.shape[1]), row_weights=row_weights)
    return np.sqrt(distance) if A.ndim == 2 else distance


def pairwise_diversity(predictions: Sequence[AnyArray] | AnyArray, *, row_weights: FloatArray | None = None) -> Float64:
    """Return the matrix ``(n, n)`` of `diversities` among n predictions; symmetric, with a diagonal of zeros."""
    stack = np.asarray(predictions)
    matrix = diversities(stack, stack, row_weights=row_weights)
    matrix = (matrix + matrix.T) / 2
    np.fill_diagonal(matrix, 0.0)
    return matrix


def pairwise_disagreement(predictions: Sequence[AnyArray] | AnyArray) -> Float64:
    """Return the share of rows for which two classifiers predict different classes, for all pairs.

    Parameters
    ----------
    predictions : (n, n_rows) or (n, n_rows, n_classes) array
        Labels, or probabilities, the largest of which gives the label (the lowest in a tie).

    Returns
    -------
    (n, n) array
        In [0, 1]; symmetric, with a diagonal of zeros.

    References
    ----------
    Shen et al. (2022), DivBO: Diversity-aware CASH for ensemble learning, NeurIPS, Figure 6.

    Examples
    --------
    >>> pairwise_disagreement([[0, 1, 1, 1], [0, 1, 1, 0]])
    array([[0.  , 0.25],
           [0.25, 0.  ]])
    """
    labels = np.asarray(predictions)
    if labels.ndim == 3:
        labels = labels.argmax(axis=2)
    return np.array([(labels != row).mean(axis=1) for row in labels]).reshape(len(labels), len(labels))


def mean_over_pairs(matrix: FloatArray) -> float:
    """Return the mean off the diagonal of a symmetric matrix; NaN for fewer than two."""
    upper = matrix[np.triu_indices(len(matrix), k=1)]
    return float(upper.mean()) if len(upper) else float("nan")
