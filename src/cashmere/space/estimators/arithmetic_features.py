"""Sums, differences, products and ratios of two numeric columns."""

from __future__ import annotations

import itertools
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from cashmere.base.arrays import AnyArray, BoolArray, FloatArray, IntArray
from cashmere.space.estimators.combinations import OPERATIONS, combined, n_arithmetic_features
from cashmere.space.estimators.interactions import InteractionFilter, number_bins

_PAIRS = 60
"""How many pairs are tried with all operations."""


class ArithmeticFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Add combinations of pairs of numeric columns, chosen by `InteractionFilter`.

    The number of new columns depends only on the shape of the table: if fewer are useful, the others are 0.

    Parameters
    ----------
    categorical : (n_features,) bool array
        Columns that hold category codes; they are not combined.
    n_classes : int
        Classes of the target; 1 for regression.
    seed : int
        Seed of the sample on which pairs are chosen.
    """

    def __init__(self, categorical: BoolArray, n_classes: int = 1, seed: int = 0) -> None:
        self.categorical = categorical
        self.n_classes = n_classes
        self.seed = seed

    def fit(self, X: FloatArray, y: AnyArray) -> Self:
        """Choose pairs and operations from ``(n_rows, n_features)`` and the targets."""
        X = np.asarray(X, dtype=np.float32)
        self.n_features_in_ = X.shape[1]
        found = InteractionFilter(X, self.categorical, y, self.n_classes, self.seed)
        pairs = found.pairs(np.flatnonzero(~self.categorical), _PAIRS)
        tried = [(a, b, k) for (a, b), k in itertools.product(pairs, range(len(OPERATIONS)))]
        sample = X[found.rows].astype(np.float64)
        bins = [number_bins(combined(sample[:, a], sample[:, b], k)) for a, b, k in tried]
        chosen = [tried[i] for i in found.choose(bins, n_arithmetic_features(self.categorical))]
        self.combinations_: IntArray = np.array(chosen, dtype=np.int64).reshape(-1, 3)
        return self

    def transform(self, X: FloatArray) -> FloatArray:
        """Return the columns of the table, then the new ones: NaN where one of the two numbers is missing."""
        X = np.asarray(X, dtype=np.float32)
        n_features = X.shape[1]
        result = np.zeros((len(X), n_features + n_arithmetic_features(self.categorical)), dtype=np.float32)
        result[:, :n_features] = X
        for position, (a, b, k) in enumerate(self.combinations_.tolist(), start=n_features):
            result[:, position] = combined(X[:, a].astype(np.float64), X[:, b].astype(np.float64), k)
        return result

    def get_feature_names_out(self, input_features: AnyArray | None = None) -> AnyArray:
        """Return the names of all columns, such as ``x0_times_x1``; columns of zeros are ``arithmetic_7``."""
        names = [f"x{j}" for j in range(self.n_features_in_)] if input_features is None else list(input_features)
        made = [f"{names[a]}_{OPERATIONS[k]}_{names[b]}" for a, b, k in self.combinations_]
        unused = range(len(made), n_arithmetic_features(self.categorical))
        return np.array([*names, *made, *(f"arithmetic_{i}" for i in unused)], dtype=object)
