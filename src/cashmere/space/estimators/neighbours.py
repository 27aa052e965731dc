"""Nearest neighbours that accept few rows."""

from __future__ import annotations

from typing import Self

from sklearn.neighbors import KNeighborsClassifier

from cashmere.base.arrays import AnyArray, FloatArray


class LimitedNeighboursClassifier(KNeighborsClassifier):  # type: ignore[misc]
    """Nearest neighbours, at most as many as rows: how many under-sampling leaves is known only in `fit`."""

    n_neighbors: int

    def fit(self, X: FloatArray, y: AnyArray) -> Self:
        """Keep the rows; ``n_neighbors`` becomes their number if it was larger."""
        self.n_neighbors = min(self.n_neighbors, len(X))
        super().fit(X, y)
        return self
