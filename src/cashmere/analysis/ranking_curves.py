"""How well scores separate the rows of a class from the others: ROC and precision-recall curves.

Notation (shapes)
-----------------
z ``(n,)``: whether a row belongs to the class; s ``(n,)``: its score; w ``(n,)``: row weights. At a threshold t, rows
with s >= t are predicted as the class: recall = their share of the weight of rows with z, false positive rate = their
share of the weight of the other rows, precision = share of z in their weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import BoolArray, Float64, FloatArray
from cashmere.exceptions import ArrayError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankingCurves:
    """ROC and precision-recall curves, from the highest threshold to the lowest.

    Attributes
    ----------
    false_positive_rate, recall : (n_thresholds + 1,) arrays
        The ROC curve, from (0, 0) to (1, 1).
    precision : (n_thresholds + 1,) array
        Precision at the same thresholds; at the first one, where no row is predicted as the class, that of the next.
    area : float
        Area under the ROC curve.
    average_precision : float
        Sum of the precisions, each weighted by the increase in recall.
    """

    false_positive_rate: Float64
    recall: Float64
    precision: Float64
    area: float
    average_precision: float


def ranking_curves(is_member: BoolArray, score: FloatArray, *, weight: FloatArray | None = None) -> RankingCurves:
    """Compute ROC and precision-recall curves over all thresholds.

    Parameters
    ----------
    is_member : (n_rows,) array of bool
        Whether each row belongs to the class.
    score : (n_rows,) array
        Scores; higher for rows that are more likely to belong to it.
    weight : (n_rows,) array, optional
        Non-negative row weights.

    Raises
    ------
    ArrayError
        If there are no rows of the class, or none of the others, or if they have no weight.

    Examples
    --------
    >>> curves = ranking_curves(np.array([True, False, True]), np.array([0.9, 0.5, 0.4]))
    >>> curves.recall, round(curves.area, 3)
    (array([0. , 0.5, 0.5, 1. ]), 0.5)
    """
    z, s = np.asarray(is_member, dtype=bool), np.asarray(score, dtype=np.float64)
    w = np.ones(len(s)) if weight is None else np.asarray(weight, dtype=np.float64)
    has_weight = w > 0
    z, s, w = z[has_weight], s[has_weight], w[has_weight]
    if z.all() or not z.any():
        raise ArrayError("is_member", "is_member must hold rows of the class and others, both with weight.")
    order = np.argsort(-s, kind="stable")
    ends = np.flatnonzero(np.r_[np.diff(s[order]) != 0, True])
    hits, misses = (np.cumsum((w * each)[order])[ends] for each in (z, ~z))
    precision = hits / (hits + misses)
    recall, rate = hits / hits[-1], misses / misses[-1]
    recall, rate, precision = np.r_[0.0, recall], np.r_[0.0, rate], np.r_[precision[0], precision]
    return RankingCurves(
        false_positive_rate=rate,
        recall=recall,
        precision=precision,
        area=float(np.diff(rate) @ (recall[1:] + recall[:-1])) / 2,
        average_precision=float(np.diff(recall) @ precision[1:]),
    )


def corners(x: Float64, y: Float64, most: int) -> NDArray[np.int64]:
    """Choose points of a curve to draw, about evenly along its length, the ends included.

    Parameters
    ----------
    x, y : (n_points,) arrays
        Coordinates in units of the same size.
    most : int
        Number of points to choose.

    Returns
    -------
    (n_chosen,) int array
        Their positions, ascending.

    Examples
    --------
    >>> corners(np.linspace(0, 1, 101), np.zeros(101), 3)
    array([  0,  50, 100])
    """
    if len(x) <= most:
        return np.arange(len(x))
    length = np.r_[0.0, np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))]
    chosen = np.searchsorted(length, np.linspace(0, length[-1], most))
    return np.unique(np.r_[0, chosen, len(x) - 1])
