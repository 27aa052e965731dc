"""Nearest neighbours that accept few rows."""

from __future__ import annotations

from typing import Self

from sklearn.neighbors import KNeighborsClassifier

from cashmere.base.arrays import AnyArray, FloatArray


class LimitedNeighboursClassifier(KNeighborsClassifier):  # type: ignore[misc]
    """Nearest neighbours, at most as many as rows: how many rows under-sampling leaves is known only in `fit`."""

    n_neighbors: int

    def fit(self, X: FloatArray, y: AnyArray) -> Self:
        """Store the rows, and reduce ``n_neighbors`` to their number if it is larger."""
        self.n_neighbors = min(self.n_neighbors, len(X))
        super().fit(X, y)
        return self
