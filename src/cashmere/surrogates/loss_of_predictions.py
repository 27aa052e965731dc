"""Predict the loss of a configuration from observations that predict alike.

The trees of `PredictionSurrogate` cut the space of configurations by what they predict for all validation rows. That
says more than one loss per configuration: two that err on different rows may have the same loss by chance, but two that
err on the same rows have it for a reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from cashmere.base.arrays import AnyArray, FloatArray
from cashmere.surrogates.forest import Variance, forest_moments
from cashmere.surrogates.prediction import PredictionSurrogate


@dataclass(kw_only=True)
class LossOfPredictions:
    """Predict mean and variance of the loss by the leaves of a forest grown on predictions.

    Parameters
    ----------
    variance : {"total", "between"}
        See `cashmere.surrogates.forest.forest_moments`.
    """

    variance: Variance = "total"
    _forest: PredictionSurrogate = field(init=False, repr=False)
    _moments: FloatArray = field(init=False, repr=False)
    _pending: FloatArray = field(init=False, repr=False)

    def fit(
        self,
        X: FloatArray,
        losses: FloatArray,
        rng: np.random.Generator,
        *,
        predictions: Sequence[FloatArray],
        targets: AnyArray,
        row_weights: FloatArray | None = None,
        pending: FloatArray | None = None,
        pending_losses: FloatArray | None = None,
    ) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : (n, d) array
            Encoded configurations.
        losses : (n,) array
            Their finite losses.
        rng : numpy.random.Generator
            Source of randomness.
        predictions, targets, row_weights
            What they predict, see `PredictionSurrogate.fit`.
        pending : (m, d) array, optional
            Configurations whose predictions are not known yet. No tree is grown on them, but they count in the leaves
            they fall into.
        pending_losses : (m,) array, optional
            Losses assumed for them.
        """
        self._forest = PredictionSurrogate().fit(X, predictions, targets, rng, row_weights=row_weights)
        self._pending = X[:0] if pending is None else pending
        losses = np.concatenate([losses, [] if pending_losses is None else pending_losses])
        self._moments = np.column_stack([losses, np.square(losses)])
        return self

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance, each ``(n,)``, of encoded configurations ``(n, d)``."""
        leaves = self._forest.sample(self._moments, X, further=self._pending)
        means = leaves[..., 0]
        variances = np.maximum(leaves[..., 1] - np.square(means), 0.0)
        return forest_moments(means, variances, variance=self.variance)
