"""Intervals and sets that hold the truth with a given probability, from out-of-fold predictions: CV+.

Notation (shapes)
-----------------
k(i): the fold that row i validates; mu_k: the ensemble of the models that were fitted without fold k;
s ``(n,)``: scores, how far mu_k(i) was from the truth of row i: abs(y_i - mu_k(i)(x_i)) for values, 1 - p of the true
class for classes; r = ceil(coverage (n + 1)).

An interval goes from minus the r-th smallest of s_i - mu_k(i)(x) to the r-th smallest of s_i + mu_k(i)(x). A set holds
the classes c for which fewer than r scores are smaller than 1 - mu_k(i)(x)_c. If new rows come as the old ones did
(exchangeable), CV+ covers at least 2 coverage - 1 of them for certain and, in practice, about the coverage itself.
With a holdout there is one fold and one model, and the promise is the coverage itself.

Class by class, a set holds class c if fewer than r_c = ceil(coverage (n_c + 1)) scores of the n_c rows of class c are
smaller than 1 - mu_k(i)(x)_c: then the coverage is that among the rows of each class.

References
----------
Barber, Candes, Ramdas, Tibshirani (2021), Predictive inference with the jackknife+, Annals of Statistics 49, section 3.
Romano, Sesia, Candes (2020), Classification with valid and adaptive coverage, NeurIPS, section 2.2 (CV+ for sets).
Sadinle, Lei, Wasserman (2019), Least ambiguous set-valued classifiers with bounded error levels, JASA 114 (the score).
Vovk (2012), Conditional validity of inductive conformal predictors, ACML (section 4: coverage of each class).
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from cashmere.base.arrays import AnyArray, BoolArray, Float64, FloatArray, IntArray
from cashmere.exceptions import InvalidParameterError

MOST_SCORES = 2_000
"""Most scores to keep. Of more, each stands for several and is the largest of them: coverage rises by at most 0.1 %."""

MOST_SCORES_OF_CLASSES, LEAST_SCORES_OF_A_CLASS = 4_000, 200
"""Most scores to keep class by class, of all classes together; but as many of each class as the latter."""

_ROUNDING = 1e-6
"""Difference of probabilities, which have 32 bits, from which on they differ."""

_BLOCK_CELLS = 2_000_000
"""Cells of the matrix of rows and scores that are handled at a time: 16 MB."""


def scores_of(y: AnyArray, predictions: FloatArray) -> Float64:
    """Return how far predictions are from the truth.

    Parameters
    ----------
    y : (n_rows,) array
        Class codes or values.
    predictions : (n_rows, n_classes) or (n_rows,) array
        Probabilities or values.

    Returns
    -------
    (n_rows,) array
        1 minus the probability of the true class, or the absolute error.
    """
    if predictions.ndim == 1:
        return np.abs(np.asarray(y, dtype=np.float64) - predictions)
    rounded = _as_predicted(predictions)
    scores: Float64 = 1.0 - rounded[np.arange(len(y)), y] / rounded.sum(axis=1)
    return scores


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformalScores:
    """Scores of the rows that each fold validates.

    Attributes
    ----------
    folds : tuple of (n_scores,) arrays
        Ascending. If there is one, it belongs to predictions of all models.
    classes : tuple of ConformalScores
        Those of the rows of each class; empty for values, and for models of earlier versions.
    """

    folds: tuple[Float64, ...]
    classes: tuple[ConformalScores, ...] = ()

    @classmethod
    def of_folds(
        cls,
        scores: FloatArray,
        fold: IntArray,
        n_folds: int,
        *,
        codes: IntArray | None = None,
        n_classes: int = 0,
        most: int = MOST_SCORES,
    ) -> Self:
        """Sort scores into their folds, and thin them out if they are many.

        Parameters
        ----------
        scores : (n_rows,) array
            From `scores_of`.
        fold : (n_rows,) array of int
            The fold that each row validates.
        n_folds : int
            Number of folds.
        codes : (n_rows,) array of int, optional
            The class of each row, for sets whose coverage is that of each class.
        n_classes : int
            Number of classes.
        most : int
            Most scores to keep.

        Examples
        --------
        >>> found = ConformalScores.of_folds(np.array([0.3, 0.1, 0.2]), np.array([0, 1, 0]), 2)
        >>> [each.tolist() for each in found.folds]
        [[0.2, 0.3], [0.1]]
        """
        found = []
        for number in range(n_folds):
            ascending = np.sort(np.asarray(scores, dtype=np.float64)[fold == number])
            if len(scores) > most:
                n_kept = max(1, round(most * len(ascending) / len(scores)))
                ends = np.ceil(np.arange(1, n_kept + 1) * len(ascending) / n_kept).astype(int)
                ascending = ascending[ends - 1] if len(ascending) else ascending
            found.append(ascending)
        most_of_class = max(LEAST_SCORES_OF_A_CLASS, MOST_SCORES_OF_CLASSES // max(n_classes, 1))
        of_class = (np.flatnonzero(codes == c) for c in range(n_classes))
        classes = (cls.of_folds(scores[rows], fold[rows], n_folds, most=most_of_class) for rows in of_class)
        return cls(folds=tuple(found), classes=tuple(classes))

    @classmethod
    def from_lists(cls, folds: Sequence[Sequence[float]], classes: Sequence[Sequence[Sequence[float]]] = ()) -> Self:
        """Return the scores of plain lists, as they are stored."""
        return cls(folds=tuple(map(np.array, folds)), classes=tuple(cls.from_lists(each) for each in classes))

    @property
    def n_scores(self) -> int:
        """Number of scores."""
        return sum(map(len, self.folds))

    def rank(self, coverage: float) -> int:
        """Check a coverage and return r.

        Raises
        ------
        InvalidParameterError
            If the coverage is not positive, or higher than this many rows allow.
        """
        most = self.n_scores / (self.n_scores + 1)
        if isinstance(coverage, bool) or not isinstance(coverage, numbers.Real) or not 0 < coverage <= most:
            expected = f"a share greater than 0 and at most {most:.4g}, which is what {self.n_scores} rows allow"
            raise InvalidParameterError("coverage", coverage, expected)
        coverage = float(coverage)
        return int(np.ceil(round(coverage * (self.n_scores + 1), 9)))

    def intervals(self, values: Sequence[FloatArray], coverage: float) -> Float64:
        """Return lower and upper bounds, shape ``(n_rows, 2)``.

        Parameters
        ----------
        values : sequence of (n_rows,) arrays
            What the models of each fold predict.
        coverage : float
            Share of new rows whose value the interval is to hold.

        Raises
        ------
        InvalidParameterError
            See `rank`.

        Examples
        --------
        >>> scores = ConformalScores(folds=(np.array([1.0, 3.0]), np.array([2.0])))
        >>> scores.intervals([np.array([10.0]), np.array([11.0])], 0.5)
        array([[ 9., 13.]])
        """
        r = self.rank(coverage)
        scores = np.concatenate(self.folds)
        fold = np.repeat(np.arange(len(self.folds)), [len(each) for each in self.folds])
        centres = np.stack([np.asarray(each, dtype=np.float64) for each in values], axis=1)
        bounds = np.empty((len(centres), 2))
        step = max(1, _BLOCK_CELLS // len(scores))
        for start in range(0, len(centres), step):
            block = centres[start : start + step, fold]
            bounds[start : start + step, 0] = -np.partition(scores - block, r - 1, axis=1)[:, r - 1]
            bounds[start : start + step, 1] = np.partition(scores + block, r - 1, axis=1)[:, r - 1]
        return np.sort(bounds, axis=1)  # with low coverages and folds that disagree, bounds may cross

    def sets(
        self, probabilities: Sequence[FloatArray], coverage: float, *, by_class: bool = False
    ) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
        """Return which classes belong to the set of each row, shape ``(n_rows, n_classes)``.

        Parameters
        ----------
        probabilities : sequence of (n_rows, n_classes) arrays
            What the models of each fold predict.
        coverage : float
            Share of new rows whose class the set is to hold.
        by_class : bool
            Whether it is to be that of the rows of each class; with few rows of a class, all sets hold it.

        Returns
        -------
        (n_rows, n_classes) array of bool
            At least one of a row: where none belongs, the most probable class does.

        Raises
        ------
        InvalidParameterError
            See `rank`.

        Examples
        --------
        >>> scores = ConformalScores(folds=(np.array([0.1, 0.2, 0.4, 0.6]),))
        >>> scores.sets([np.array([[0.5, 0.5], [0.9, 0.1]])], 0.8)
        array([[ True,  True],
               [ True, False]])
        """
        r = self.rank(coverage)
        scores = [1.0 - each / each.sum(axis=1, keepdims=True) for each in map(_as_predicted, probabilities)]
        if by_class:
            held = np.column_stack([of_class._holds(scores, c, coverage) for c, of_class in enumerate(self.classes)])
        else:
            held = np.asarray(_n_smaller(self.folds, scores) < r)
        best = np.argmax(sum(map(np.asarray, probabilities)), axis=1)
        empty = np.flatnonzero(~held.any(axis=1))
        held[empty, best[empty]] = True
        return held

    def _holds(self, scores: Sequence[Float64], c: int, coverage: float) -> BoolArray:
        """Return whether the set of each row holds a class, by the scores of the rows of this class."""
        r = int(np.ceil(round(coverage * (self.n_scores + 1), 9)))
        return np.asarray(_n_smaller(self.folds, [each[:, c] for each in scores]) < r)


def _as_predicted(probabilities: FloatArray) -> Float64:
    """Return probabilities rounded to 32 bits, as models predict them: rows that are alike must tie."""
    return np.asarray(probabilities, dtype=np.float32).astype(np.float64)


def _n_smaller(folds: Sequence[Float64], scores: Sequence[Float64]) -> IntArray:
    """Return how many scores of all folds are smaller than those of the rows with the models of each fold.

    A score within rounding is a tie, and not smaller: many rows may have it, and all would count by the last bit.
    """
    counts = (np.searchsorted(fold, each - _ROUNDING, side="left") for fold, each in zip(folds, scores, strict=True))
    return np.asarray(sum(counts), dtype=np.int64)
