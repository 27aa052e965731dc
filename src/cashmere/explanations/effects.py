"""How predictions depend on the values of a column: partial dependence, and accumulated local effects (ALE).

Notation
--------
f: the ensemble; x_j: the column, x_-j: the others. Partial dependence at z is the mean of f(z, x_-j) over all rows,
including combinations that cannot occur if x_j is correlated with other columns. ALE uses only rows near z: over bins
(z_k-1, z_k] of x_j, the mean of f(z_k, x_-j) - f(z_k-1, x_-j) over the rows of the bin, accumulated, and centred on the
mean prediction.

References
----------
Friedman (2001), Greedy function approximation, Annals of Statistics 29, section 8.2.
Apley, Zhu (2020), Visualizing the effects of predictor variables in black box supervised learning models, JRSS B 82,
section 2. Unordered categories would have to be put in an order for ALE; they have partial dependence only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cashmere.base.arrays import Float64, FloatArray, IntArray
from cashmere.data.column import ColumnKind
from cashmere.explanations.column_groups import order_place
from cashmere.explanations.unseen_rows import SourceColumn, UnseenRows, chosen_outputs

BINS = 16
LEVELS = 12
"""Largest numbers of bins (numbers and dates) and of levels (categories, the most frequent first)."""

_DAYS_PER_YEAR = 365.2425


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Effect:
    """How predictions depend on one column.

    Attributes
    ----------
    column : str
        Its name.
    kind : ColumnKind
        How its values are understood.
    points : tuple of float or of str
        Numbers, years of dates, or names of levels.
    partial_dependence : (n_points, n_outputs) array
        Mean prediction.
    ale : (n_points, n_outputs) array or None
        Accumulated local effects around the mean prediction; None for categories.
    share : (n_points,) array
        Share of the rows at each point; for numbers, of those in the bin that ends there (no bin ends at the first
        point).
    """

    column: str
    kind: ColumnKind
    points: tuple[float, ...] | tuple[str, ...]
    partial_dependence: Float64
    ale: Float64 | None
    share: Float64


def column_effect(
    unseen: UnseenRows, column: SourceColumn, outputs: Sequence[int] | None, *, rows: IntArray
) -> Effect | None:
    """Compute partial dependence and, for numbers and dates, ALE.

    Parameters
    ----------
    unseen : UnseenRows
        Rows and models.
    column : SourceColumn
        A column that is not text.
    outputs : sequence of int or None
        Classes whose probabilities to describe; None for regression.
    rows : (n,) int array
        Rows to average over.

    Returns
    -------
    Effect or None
        None if the column has a single value in these rows.
    """
    w = np.ones(len(rows)) if unseen.weight is None else np.asarray(unseen.weight, dtype=np.float64)[rows]
    values = unseen.values[rows, order_place(column)].astype(np.float64)
    if column.kind in (ColumnKind.NUMERIC, ColumnKind.DATE):
        return _along_numbers(unseen, column, outputs, rows, values, w)
    return _over_levels(unseen, column, outputs, rows, values, w)


def _along_numbers(
    unseen: UnseenRows, column: SourceColumn, outputs: Sequence[int] | None, rows: IntArray, x: Float64, w: Float64
) -> Effect | None:
    present = np.flatnonzero(~np.isnan(x))
    if not len(present):
        return None
    edges = np.unique(np.quantile(x[present], np.linspace(0, 1, BINS + 1), method="inverted_cdf"))
    if len(edges) < 2:
        return None
    # Each edge is the value of a row, so that all parts of a date come from the same row.
    givers = rows[present[[int(np.flatnonzero(x[present] == edge)[0]) for edge in edges]]]
    n, n_points = len(rows), len(edges)
    grid = _predict_with(unseen, column, np.tile(rows, n_points), np.repeat(givers, n), outputs)
    grid = grid.reshape(n_points, n, -1)
    dependence = np.average(grid, axis=1, weights=w)
    # f(z_k, x_-j) and f(z_k-1, x_-j) of every row are in the grid already.
    bins = np.clip(np.searchsorted(edges, x[present], side="left"), 1, n_points - 1)
    steps = grid[bins, present] - grid[bins - 1, present]
    mass = np.bincount(bins, weights=w[present], minlength=n_points)
    sums = np.stack([np.bincount(bins, weights=w[present] * step, minlength=n_points) for step in steps.T], axis=1)
    local = np.divide(sums, mass[:, None], out=np.zeros_like(sums), where=mass[:, None] > 0)
    ale = np.cumsum(local, axis=0)
    # Centred over the rows, not the bins: most rows may share one value, as in a column that is mostly zeros.
    centre = np.array([np.average(np.interp(x[present], edges, each), weights=w[present]) for each in ale.T])
    mean = np.average(chosen_outputs(unseen.predict(rows=rows), outputs), axis=0, weights=w)
    points = 1970 + edges / _DAYS_PER_YEAR if column.kind is ColumnKind.DATE else edges + column.offset
    return Effect(
        column=column.name,
        kind=column.kind,
        points=tuple(points.tolist()),
        partial_dependence=dependence,
        ale=ale - centre + mean,
        share=mass / w.sum(),
    )


def _over_levels(
    unseen: UnseenRows, column: SourceColumn, outputs: Sequence[int] | None, rows: IntArray, x: Float64, w: Float64
) -> Effect | None:
    codes, first, level = np.unique(x, return_index=True, return_inverse=True, equal_nan=True)
    if len(codes) < 2:
        return None
    mass = np.bincount(level, weights=w)
    kept = np.argsort(-mass, kind="stable")[:LEVELS]
    n, n_points = len(rows), len(kept)
    grid = _predict_with(unseen, column, np.tile(rows, n_points), np.repeat(rows[first[kept]], n), outputs)
    names = column.categories or ("false", "true")
    return Effect(
        column=column.name,
        kind=column.kind,
        points=tuple("(missing)" if np.isnan(codes[k]) else names[int(codes[k])] for k in kept),
        partial_dependence=np.average(grid.reshape(n_points, n, -1), axis=1, weights=w),
        ale=None,
        share=mass[kept] / w.sum(),
    )


def _predict_with(
    unseen: UnseenRows, column: SourceColumn, rows: IntArray, givers: IntArray, outputs: Sequence[int] | None
) -> Float64:
    """Predict rows after replacing the values of a column by those of other rows, ``(n, n_outputs)``."""
    values: FloatArray = unseen.values[rows]
    places = np.array(column.places, dtype=np.int64)
    values[:, places] = unseen.values[np.ix_(givers, places)]
    return chosen_outputs(unseen.predict(values, rows), outputs)
