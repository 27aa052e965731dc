"""Columns expanded into several, so that a linear model of them is not linear in the original column."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from cashmere.base.arrays import AnyArray, FloatArray

_LEAST_VALUES = 4


class PiecewiseLinearColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Replace each column by its progress through bins between quantiles.

    A column with the edges e_0 < ... < e_m becomes m columns: the k-th is 0 up to e_{k-1}, rises linearly to 1 at e_k,
    and stays there. So a linear model of them is a continuous function with a kink at each edge, and constant outside.
    Columns with fewer than four different values stay as they are.

    Parameters
    ----------
    n_bins : int
        Most bins per column; equal quantiles make fewer.
    max_columns : int
        There are fewer bins if the result would have more columns than this, but at least one per column.

    Attributes
    ----------
    edges_ : (n_bins + 1, n_features) array
        The edges of each column, ascending, then NaN.

    References
    ----------
    Gorishniy, Rubachev and Babenko (2022), On embeddings for numerical features in tabular deep learning, section 3.2
    (https://arxiv.org/abs/2203.05556). scikit-learn's `SplineTransformer` would bend columns of zeros and ones as well,
    and its fitted state is thousands of small objects of SciPy.
    """

    def __init__(self, *, n_bins: int = 8, max_columns: int = 2000) -> None:
        self.n_bins = n_bins
        self.max_columns = max_columns

    def fit(self, X: FloatArray, y: AnyArray | None = None) -> Self:
        """Learn the edges of each column from ``(n_rows, n_features)`` without gaps."""
        X = np.asarray(X, dtype=np.float64)
        self.n_features_in_ = X.shape[1]
        n_bins = max(1, min(self.n_bins, self.max_columns // max(1, X.shape[1])))
        self.edges_ = np.column_stack([_edges(column, n_bins) for column in X.T])
        return self

    def transform(self, X: FloatArray) -> FloatArray:
        """Return ``(n_rows, n_outputs)`` as float64; the bins of a column take its place."""
        X = np.asarray(X, dtype=np.float64)
        parts = []
        for column, padded in zip(X.T, self.edges_.T, strict=True):
            edges = padded[~np.isnan(padded)]
            if len(edges) < 2:
                parts.append(column[:, None])
                continue
            # Constant outside: a narrow bin at an end would extend into a steep line.
            inside = np.clip(column, edges[0], edges[-1])
            parts.append(np.clip((inside[:, None] - edges[:-1]) / np.diff(edges), 0.0, 1.0))
        bent: FloatArray = np.hstack(parts)
        return bent


def _edges(column: FloatArray, n_bins: int) -> FloatArray:
    """Return the ``(n_bins + 1,)`` edges between bins with equally many rows, then NaN where edges are equal.

    All are NaN if the column has too few values to be bent.
    """
    padded = np.full(n_bins + 1, np.nan)
    if n_bins > 1 and len(np.unique(column)) >= _LEAST_VALUES:
        edges = np.unique(np.quantile(column, np.linspace(0.0, 1.0, n_bins + 1)))
        padded[: len(edges)] = edges
    return padded
