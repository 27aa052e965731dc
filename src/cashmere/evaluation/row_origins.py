"""Where resampled rows come from: which are training rows, which are made from training rows, and how.

Notation (shapes)
-----------------
X ``(n, d)``, y ``(n,)``: training rows and their classes; s ``(d,)``: a resampled row of class c; x_i, x_j: its
parents, two training rows, with s = x_i + t (x_j - x_i).
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from cashmere.base.arrays import BoolArray, Float64, FloatArray, IntArray

TOLERANCE = 1e-7
"""How far a row may lie off the line or hull of its parents, relative to the largest number in the table."""


class Origin(StrEnum):
    """How a resampled row is made from training rows; the first origin that fits is reported."""

    KEPT = "kept"
    """It is a training row of its class, bit for bit."""
    BETWEEN = "between"
    """On the segment between two training rows of its class (SMOTE, ADASYN): 0 <= t <= 1."""
    MIXED = "mixed"
    """`BETWEEN` in its numbers; its nominal values occur in training rows of its class (SMOTENC)."""
    BEYOND = "beyond"
    """On the line through two training rows of its class, at most their distance outside (SVMSMOTE): -1 <= t < 0."""
    ACROSS = "across"
    """Between a training row of its class and one of another, nearer to its own (BorderlineSMOTE-2): t <= 1/2."""
    CENTROID = "centroid"
    """A weighted mean of training rows of its class (ClusterCentroids)."""
    UNEXPLAINED = "unexplained"
    """None of these; rows from elsewhere would appear here."""


def explain_rows(X_new: FloatArray, y_new: IntArray, X: FloatArray, y: IntArray, *, nominal: BoolArray) -> list[Origin]:
    """Find how each resampled row is made from training rows of its class.

    Parameters
    ----------
    X_new, y_new : (n_resampled, d) and (n_resampled,) arrays
        Resampled rows and their classes.
    X, y : (n_rows, d) and (n_rows,) arrays
        Training rows, without gaps and of similar scale in all columns, and their classes.
    nominal : (d,) bool array
        Columns whose values must not be mixed.

    Returns
    -------
    list of Origin
        One per resampled row.

    Notes
    -----
    Every pair of rows of a class is a pair of possible parents: time grows with the square of the class size, but
    only rows that are not kept are examined.
    """
    X_new, X = np.asarray(X_new, dtype=np.float64), np.asarray(X, dtype=np.float64)
    tolerance = TOLERANCE * max(1.0, float(np.abs(X).max()))
    origins = [Origin.UNEXPLAINED] * len(X_new)
    for label in np.unique(y_new):
        own, others = X[y == label], X[y != label]
        open_rows = np.flatnonzero(y_new == label)
        for origin in list(Origin)[:-1]:
            S = X_new[open_rows]
            if origin is Origin.KEPT:
                fits = _are_rows_of(S, own)
            elif origin is Origin.BETWEEN:
                fits = _are_on_lines(S, own, own, 0.0, 1.0, tolerance)
            elif origin is Origin.MIXED:
                fits = _have_values_of(S[:, nominal], own[:, nominal])
                numbers = ~nominal
                fits[fits] = _are_on_lines(S[fits][:, numbers], own[:, numbers], own[:, numbers], 0.0, 1.0, tolerance)
            elif origin is Origin.BEYOND:
                fits = _are_on_lines(S, own, own, -1.0, 0.0, tolerance)
            elif origin is Origin.ACROSS:
                fits = _are_on_lines(S, own, others, 0.0, 0.5, tolerance)
            else:
                fits = np.array([_is_weighted_mean(s, own, tolerance) for s in S], dtype=bool)
            for row in open_rows[fits]:
                origins[row] = origin
            open_rows = open_rows[~fits]
            if len(open_rows) == 0:
                break
    return origins


def _are_rows_of(S: Float64, X: Float64) -> BoolArray:
    known = {row.tobytes() for row in X}
    return np.array([row.tobytes() in known for row in S], dtype=bool)


def _have_values_of(S: Float64, X: Float64) -> BoolArray:
    """Return whether every value of a row occurs in its column of X; without columns there is nothing to mix."""
    if S.shape[1] == 0:
        return np.zeros(len(S), dtype=bool)
    known: BoolArray = np.all([np.isin(s, x) for s, x in zip(S.T, X.T, strict=True)], axis=0)
    return known


def _are_on_lines(
    S: Float64, starts: Float64, ends: Float64, lowest: float, highest: float, tolerance: float
) -> BoolArray:
    """Return whether rows are x_i + t (x_j - x_i) of some start x_i and end x_j, with t in [lowest, highest]."""
    found = np.zeros(len(S), dtype=bool)
    if S.shape[1] == 0:
        return ~found
    for x in starts:
        left = np.flatnonzero(~found)
        if len(left) == 0 or len(ends) == 0:
            break
        offset, direction = S[left] - x, ends - x
        direction = direction[np.any(direction != 0, axis=1)]
        length = np.einsum("jd,jd->j", direction, direction)
        t = offset @ direction.T / length
        # |offset|^2 - t^2 |direction|^2 suffers from cancellation, so it only preselects; the distance itself decides.
        squares = np.einsum("id,id->i", offset, offset)[:, None]
        near = np.abs(squares - t**2 * length) <= 1e-6 * squares + tolerance**2
        row, end = np.nonzero(near & (t >= lowest - TOLERANCE) & (t <= highest + TOLERANCE))
        gap = np.abs(offset[row] - t[row, end][:, None] * direction[end]).max(axis=1)
        found[left[row[gap <= tolerance]]] = True
        # A row equal to its start is t = 0, even where all ends are the start itself.
        found[left[np.abs(offset).max(axis=1) <= tolerance]] |= lowest <= 0 <= highest
    return found


def _is_weighted_mean(s: Float64, X: Float64, tolerance: float) -> bool:
    """Return whether s is a convex combination of the rows of X: weights from non-negative least squares."""
    from scipy.optimize import nnls

    # The last equation makes the weights sum to one.
    equations = np.vstack([X.T, np.ones(len(X))])
    weights, _ = nnls(equations, np.append(s, 1.0))
    return bool(np.abs(equations @ weights - np.append(s, 1.0)).max() <= tolerance)
