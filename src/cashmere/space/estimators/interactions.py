"""A cheap filter for columns made of two others: what they explain beyond the sum of what each column explains.

An additive model of binned columns is fitted to a sample of the training rows. A candidate is binned as well; its gain
is what the mean residuals of its bins in one half of the sample explain in the other half, and vice versa. Ranking
pairs by the residuals of an additive model is FAST of Lou et al. (2013), Accurate Intelligible Models with Pairwise
Interactions, KDD.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from cashmere.base.arrays import AnyArray, BoolArray, FloatArray, IntArray

_SAMPLE_ROWS = 6000
_BINS = 16
"""Bins of numbers; for pairs of columns, they are merged in twos."""

_LEVELS = 48
"""Levels of categories; rarer ones are merged."""

_MOST_COLUMNS = 40
"""Pairs are made of at most this many columns, those that explain most by themselves."""

_TARGETS = 3
"""If there are more classes, only the most frequent ones are explained."""

_PRIOR_ROWS = 5.0
"""Weight, in rows of each bin, of the prior mean of zero."""

_PASSES = 2


class InteractionFilter:
    """Assess candidates by the residuals of an additive model.

    Parameters
    ----------
    X : (n_rows, n_columns) array
        Training rows; NaN where missing.
    categorical : (n_columns,) bool array
        Columns of category codes.
    y : (n_rows,) array
        Class codes 0 .. n_classes - 1, or values.
    n_classes : int
        1 for regression.
    seed : int
        Seed of the sample and its halves.

    Attributes
    ----------
    rows : (n_sample,) array of int
        Numbers of the rows in the sample.
    """

    def __init__(self, X: FloatArray, categorical: BoolArray, y: AnyArray, n_classes: int, seed: int) -> None:
        self.rows: IntArray = np.random.default_rng(seed).permutation(len(X))[:_SAMPLE_ROWS]
        self._half = np.arange(len(self.rows)) % 2
        self._bins = [
            level_bins(column) if is_category else number_bins(column)
            for column, is_category in zip(X[self.rows].T, categorical, strict=True)
        ]
        targets = _targets(np.asarray(y)[self.rows], n_classes)
        self._residuals = targets - targets.mean(axis=0)
        self._by_themselves = np.array([self.gain(bins) for bins in self._bins])
        self._fit_additive_model()

    def pairs(self, columns: IntArray, most: int) -> list[tuple[int, int]]:
        """Return the pairs of numeric columns that explain something together, the best first.

        Parameters
        ----------
        columns : (n,) array of int
            Columns to make pairs of; no categories.
        most : int
            Largest number of pairs.
        """
        eligible = columns[np.argsort(-self._by_themselves[columns], kind="stable")[:_MOST_COLUMNS]]
        coarse = {j: self._bins[j] // 2 for j in eligible.tolist()}
        gains = {
            (a, b): self.gain(coarse[a] * (int(coarse[b].max(initial=0)) + 1) + coarse[b])
            for a, b in itertools.combinations(sorted(coarse), 2)
        }
        return sorted((pair for pair, gain in gains.items() if gain > 0), key=lambda pair: -gains[pair])[:most]

    def choose(self, candidates: Sequence[IntArray], most: int) -> list[int]:
        """Choose candidates one by one, each for what it explains beyond those before it.

        Parameters
        ----------
        candidates : sequence of (n_sample,) arrays of int
            Bins of each.
        most : int
            Largest number to choose; candidates that explain nothing more are not chosen.

        Returns
        -------
        list of int
            Positions of the chosen ones; what they explain has been subtracted from the residuals.
        """
        left, chosen = list(range(len(candidates))), list[int]()
        while left and len(chosen) < most:
            gains = {i: self.gain(candidates[i]) for i in left}
            best = max(left, key=lambda i: gains[i])
            if gains[best] > 0:
                self._residuals -= self._effect(candidates[best])
                chosen.append(best)
            left = [i for i in left if gains[i] > 0 and i != best]
        return chosen

    def gain(self, cells: IntArray) -> float:
        """Return by how much cell means of each half lower the sum of squared residuals of the other.

        Parameters
        ----------
        cells : (n_sample,) array of int
            Cell of each row of the sample, from 0.
        """
        n = int(cells.max(initial=0)) + 1
        both = self._half * n + cells
        counts = np.bincount(both, minlength=2 * n).reshape(2, n)
        total = 0.0
        for residual in self._residuals.T:
            sums = np.bincount(both, weights=residual, minlength=2 * n).reshape(2, n)
            means = (sums / (counts + _PRIOR_ROWS))[::-1]  # of the other half
            total += float(np.sum(means * (2 * sums - counts * means)))
        return total

    def _fit_additive_model(self) -> None:
        """Subtract what a sum of functions of single columns explains (backfitting of shrunken bin means)."""
        effects = [np.zeros_like(self._residuals) for _ in self._bins]
        for _ in range(_PASSES):
            for bins, before in zip(self._bins, effects, strict=True):
                self._residuals += before
                before[:] = self._effect(bins)
                self._residuals -= before

    def _effect(self, cells: IntArray) -> FloatArray:
        """Return the shrunken mean residual in the cell of each row."""
        counts = np.bincount(cells) + _PRIOR_ROWS
        means = [np.bincount(cells, weights=residual) / counts for residual in self._residuals.T]
        effect: FloatArray = np.column_stack(means)[cells]
        return effect


def number_bins(values: FloatArray) -> IntArray:
    """Return about equally frequent bins of numbers, ``(n_rows,)``; 0 is for gaps."""
    missing = np.isnan(values)
    if missing.all():
        return np.zeros(len(values), dtype=np.int64)
    edges = np.unique(np.quantile(values[~missing], np.linspace(0, 1, _BINS + 1)[1:-1], method="lower"))
    bins: IntArray = np.searchsorted(edges, values, side="left") + 1
    bins[missing] = 0
    return bins


def level_bins(codes: FloatArray) -> IntArray:
    """Return the most frequent categories as bins, ``(n_rows,)``; 0 is for the others and gaps."""
    levels, positions, counts = np.unique(codes, return_inverse=True, return_counts=True)
    counts = np.where(np.isnan(levels), 0, counts)
    bins = np.zeros(len(levels), dtype=np.int64)
    frequent = np.argsort(-counts, kind="stable")[: min(_LEVELS, np.count_nonzero(counts))]
    bins[frequent] = np.arange(1, len(frequent) + 1)
    numbered: IntArray = bins[positions]
    return numbered


def _targets(y: AnyArray, n_classes: int) -> FloatArray:
    """Return the targets, ``(n_rows, n_targets)``: the value, or indicators of class 1 or the most frequent classes."""
    if n_classes <= 2:
        return np.asarray(y, dtype=np.float64)[:, None]
    frequent = np.argsort(-np.bincount(y, minlength=n_classes), kind="stable")[:_TARGETS]
    targets: FloatArray = (y[:, None] == frequent).astype(np.float64)
    return targets
