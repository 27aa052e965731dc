"""The validation rows an ensemble is selected on, and predictions for rows that did not choose it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cashmere.base.arrays import AnyArray, Float64, FloatArray, IntArray
from cashmere.data.fold import Fold
from cashmere.data.row_structure import RowStructure
from cashmere.ensembles.build import Ensemble
from cashmere.ensembles.parts import parts_of_rows

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
    structure : RowStructure or None
        Groups or moments of the rows.
    fold : (n_rows,) array of int or None
        The fold that each row validates; None if some validate several.
    """

    y: AnyArray
    weight: FloatArray | None = None
    positions: IntArray | None = None
    structure: RowStructure | None = None
    fold: IntArray | None = None

    @classmethod
    def draw(
        cls,
        rows: IntArray,
        y: AnyArray,
        weight: FloatArray | None,
        *,
        structure: RowStructure | None = None,
        splits: Sequence[Fold] = (),
        seed: int,
    ) -> ValidationPool:
        """Take all validation rows, or `MAX_ROWS` of them at random.

        Parameters
        ----------
        rows : int array
            Numbers of the validation rows, ascending.
        y, weight : (n_training_rows,) array
            Targets and weights of all training rows.
        structure : RowStructure, optional
            Their groups or moments. A gap does not matter here: few numbers are chosen on predictions that kept it.
        splits : sequence of Fold, optional
            The folds, to know which of them each row validates.
        seed : int
            Seed of the draw.
        """
        fold = _fold_of(rows, splits)
        positions = None
        if len(rows) > MAX_ROWS:
            rng = np.random.default_rng([seed, len(rows)])
            positions = np.sort(rng.choice(len(rows), MAX_ROWS, replace=False))
            rows = rows[positions]
            fold = None if fold is None else fold[positions]
        return cls(
            y=y[rows],
            weight=None if weight is None else weight[rows],
            positions=positions,
            structure=None if structure is None else structure.take(rows).without_gap(),
            fold=fold,
        )

    def take(self, predictions: AnyArray) -> AnyArray:
        """Return the pool's rows of an array over all validation rows."""
        return predictions if self.positions is None else predictions[self.positions]

    def part(self, rows: IntArray) -> ValidationPool:
        """Return the pool of some of its rows."""
        return ValidationPool(
            y=self.y[rows],
            weight=None if self.weight is None else self.weight[rows],
            positions=rows if self.positions is None else self.positions[rows],
            structure=None if self.structure is None else self.structure.take(rows),
            fold=None if self.fold is None else self.fold[rows],
        )


def _fold_of(rows: IntArray, splits: Sequence[Fold]) -> IntArray | None:
    """Return the fold that validates each row; None if several validate the same row, or the folds are unknown."""
    if sum(len(fold.validation) for fold in splits) != len(rows):
        return None
    found = np.empty(len(rows), dtype=np.int64)
    for number, fold in enumerate(splits):
        found[np.searchsorted(rows, fold.validation)] = number
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenPredictions:
    """Predictions for rows by ensembles that these rows did not choose.

    Attributes
    ----------
    rows : (n_judged,) int array
        The rows, ascending.
    predictions : (n_judged, n_classes) or (n_judged,) array
        For each of them.
    """

    rows: IntArray
    predictions: Float64


def cross_fitted_predictions(
    build: Callable[[Sequence[AnyArray], ValidationPool], Ensemble],
    predictions: Sequence[AnyArray],
    pool: ValidationPool,
    *,
    rng: np.random.Generator,
) -> UnseenPredictions | None:
    """Predict rows by ensembles that they did not choose: their loss lacks the optimism of the selection.

    The rows are cut into five parts; each part is predicted by an ensemble built on the other four. Parts consist of
    whole groups; in time, the newer half of the rows is cut, and each part is predicted by an ensemble built on all
    rows before it.

    Parameters
    ----------
    build : callable
        (predictions, pool of their rows) -> ensemble whose members are positions in the given sequence.
    predictions : sequence of (n_rows, n_classes) or (n_rows,) arrays
        Out-of-fold predictions of all candidates.
    pool : ValidationPool
        The rows.
    rng : numpy.random.Generator
        Cuts the rows.

    Returns
    -------
    UnseenPredictions or None
        For all rows, or in time for the newer ones. None with fewer than 50 rows, where what they tell would be too
        noisy, or if all are of one group or moment.
    """
    y = pool.y
    if len(y) < _LEAST_ROWS:
        return None
    parts = parts_of_rows(len(y), _PARTS, rng, pool.structure, classes=y if predictions[0].ndim == 2 else None)
    if not parts:
        return None
    joined = np.empty(predictions[0].shape)
    for part in parts:
        inside, outside = part.train, part.validation
        ensemble = build([stack[inside] for stack in predictions], pool.part(inside))
        joined[outside] = ensemble.combine([predictions[i][outside] for i in ensemble.members])
    rows = np.sort(np.concatenate([part.validation for part in parts]))
    return UnseenPredictions(rows=rows, predictions=joined[rows])
