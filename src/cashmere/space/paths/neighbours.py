"""Nearest neighbours, followed over their number: one search finds those of every number."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from cashmere.base.arrays import FloatArray
from cashmere.space.path import PathData


class NeighboursPath:
    """See `cashmere.space.path.FittedPath`; the learner's ``n_neighbors`` is the largest number."""

    def __init__(self, learner: Any, data: PathData) -> None:
        self._learner, self._data = learner.fit(data.X, data.y), data
        self._n = 0
        n_most = min(learner.n_neighbors, len(data.X))
        distances, self._indices = learner.kneighbors(data.unseen, n_neighbors=n_most)
        self._weights = _weights(distances, learner.weights)
        shape = (len(data.unseen), data.n_classes) if data.n_classes > 1 else (len(data.unseen),)
        self._sum = np.zeros(shape)
        self._total = np.zeros(len(data.unseen))

    def advance(self, position: float) -> None:
        """Listen to more neighbours."""
        rows = np.arange(len(self._sum))
        for j in range(self._n, min(int(position), self._indices.shape[1])):
            weight, y = self._weights[:, j], self._data.y[self._indices[:, j]]
            self._total += weight
            if self._data.n_classes > 1:
                self._sum[rows, y] += weight
            else:
                self._sum += weight * y
            self._n = j + 1

    def predict(self) -> FloatArray:
        """Return the weighted mean of the neighbours."""
        mean: FloatArray = self._sum / (self._total[:, None] if self._data.n_classes > 1 else self._total)
        return mean

    def learner_at(self, position: float) -> Any:
        """Return a learner with fewer neighbours."""
        learner = copy.copy(self._learner)
        learner.n_neighbors = min(int(position), self._indices.shape[1])
        return learner


def _weights(distances: FloatArray, kind: str) -> FloatArray:
    """Return the weight of every neighbour; rows that equal a training row listen to its like only."""
    if kind == "uniform":
        return np.ones_like(distances)
    is_same = distances == 0
    weights: FloatArray = 1 / np.where(is_same, 1.0, distances)
    return np.where(is_same.any(axis=1)[:, None], is_same, weights).astype(np.float64)
