"""The validation rows an ensemble is selected on, and predictions for rows that did not choose it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cashmere.base.arrays import AnyArray, FloatArray, IntArray
from cashmere.ensembles.build import Ensemble
from cashmere.ensembles.kernels import Float64

MAX_ROWS = 20_000
"""Largest number of rows the ensemble is selected on: docs/papers/problem.md#rows-of-the-ensemble."""

_PARTS = 5
_LEAST_ROWS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationPool:
    """A subset of the validation rows, drawn once per run.

    Attributes
    ----------
    y : (n_rows,) array
        Class codes or values of the rows.
    weight : (n_rows,) array or None
        Row weights.
    positions : (n_rows,) int array or None
        Positions among all validation rows; None for all of them.
    """

    y: AnyArray
    weight: FloatArray | None = None
    positions: IntArray | None = None

    @classmethod
    def draw(cls, rows: IntArray, y: AnyArray, weight: FloatArray | None, *, seed: int) -> ValidationPool:
        """Take all validation rows, or `MAX_ROWS` of them at random.

        Parameters
        ----------
        rows : int array
            Numbers of the validation rows, ascending.
        y, weight : (n_training_rows,) array
            Targets and weights of all training rows.
        seed : int
            Seed of the draw.
        """
        positions = None
        if len(rows) > MAX_ROWS:
            rng = np.random.default_rng([seed, len(rows)])
            positions = np.sort(rng.choice(len(rows), MAX_ROWS, replace=False))
            rows = rows[positions]
        return cls(y=y[rows], weight=None if weight is None else weight[rows], positions=positions)

    def take(self, predictions: AnyArray) -> AnyArray:
        """Return the pool's rows of an array over all validation rows."""
        return predictions if self.positions is None else predictions[self.positions]


def cross_fitted_predictions(
    build: Callable[[Sequence[AnyArray], AnyArray, FloatArray | None], Ensemble],
    predictions: Sequence[AnyArray],
    y: AnyArray,
    *,
    weight: FloatArray | None = None,
    rng: np.random.Generator,
) -> Float64 | None:
    """Predict every row by an ensemble that it did not choose: their loss lacks the optimism of the selection.

    The rows are cut into five parts; each part is predicted by an ensemble built on the other four.

    Parameters
    ----------
    build : callable
        (predictions, y, weight) -> ensemble whose members are positions in the given sequence.
    predictions : sequence of (n_rows, n_classes) or (n_rows,) arrays
        Out-of-fold predictions of all candidates.
    y, weight : (n_rows,) arrays
        Targets and row weights.
    rng : numpy.random.Generator
        Cuts the rows.

    Returns
    -------
    (n_rows, n_classes) or (n_rows,) array or None
        None with fewer than 50 rows, where what they tell would be too noisy.
    """
    if len(y) < _LEAST_ROWS:
        return None
    joined = np.empty(predictions[0].shape)
    part = rng.permutation(len(y)) % _PARTS
    for k in range(_PARTS):
        inside, outside = np.flatnonzero(part != k), np.flatnonzero(part == k)
        inner_weight = None if weight is None else weight[inside]
        ensemble = build([stack[inside] for stack in predictions], y[inside], inner_weight)
        joined[outside] = ensemble.combine([predictions[i][outside] for i in ensemble.members])
    return joined
