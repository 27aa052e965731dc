"""The threshold of two classes that a wish such as "miss at most 5 % of the positive rows" leads to."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from cashmere.base.arrays import AnyArray, Float64, FloatArray

RATES = ("recall", "specificity", "precision")
"""Shares of: positive rows that are found, negative rows that are left alone, found rows that are positive."""

_ALIASES = {"sensitivity": "recall"}
_FORM = re.compile(r"\s*([a-z]+)\s*>=\s*([0-9]*\.?[0-9]+)\s*")
_SMALLEST = 1e-12
"""Thresholds lie between this and 1 minus this."""


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A rate of decisions between two classes that should reach a level.

    Attributes
    ----------
    rate : str
        One of `RATES`.
    least : float
        The level, between 0 and 1.
    """

    rate: str
    least: float

    def __str__(self) -> str:
        return f"{self.rate}>={self.least:g}"

    @classmethod
    def parse(cls, text: str) -> OperatingPoint | None:
        """Read a wish, or return None for any other text.

        Examples
        --------
        >>> str(OperatingPoint.parse("sensitivity >= .95")), OperatingPoint.parse("accuracy>=0.9")
        ('recall>=0.95', None)
        """
        found = _FORM.fullmatch(text.lower())
        if found is None:
            return None
        rate, least = _ALIASES.get(found[1], found[1]), float(found[2])
        return cls(rate, least) if rate in RATES and 0 < least < 1 else None

    def threshold(self, p: FloatArray, is_positive: AnyArray, weight: FloatArray | None = None) -> float:
        """Choose from which probability on a row should be called positive.

        Of all thresholds that reach the level, the one with the fewest false decisions of the other kind: the highest
        for recall, the lowest for specificity and precision. For recall and specificity, one row more than the level
        asks for is on the right side, as in class-conditional conformal prediction (Vovk, 2012, Conditional validity
        of inductive conformal predictors, ACML): on average over such choices, new rows reach the level, too, if
        they are distributed like these. Precision promises nothing of the kind.

        Parameters
        ----------
        p : (n_rows,) array
            Probabilities of the positive class.
        is_positive : (n_rows,) array of bool
            Which rows belong to it. Both classes must occur.
        weight : (n_rows,) array, optional
            Row weights.

        Returns
        -------
        float
            Between 0 and 1, midway between two probabilities. If no threshold reaches the level, the one that comes
            closest.

        Examples
        --------
        >>> p, is_positive = np.array([0.1, 0.2, 0.3, 0.4, 0.6]), np.array([False, True, False, True, True])
        >>> [round(OperatingPoint(rate, 0.5).threshold(p, is_positive), 2) for rate in RATES]
        [0.35, 0.35, 0.05]
        """
        p, is_positive = np.asarray(p, dtype=np.float64), np.asarray(is_positive, dtype=bool)
        weight = np.ones(len(p)) if weight is None else np.asarray(weight, dtype=np.float64)
        if self.rate == "precision":
            return self._of_precision(p, is_positive, weight)
        own = is_positive if self.rate == "recall" else ~is_positive
        sign = -1.0 if self.rate == "recall" else 1.0  # from the end where rows of the class are right
        order = np.argsort(sign * p[own], kind="stable")
        right = np.cumsum(weight[own][order])
        wanted = self.least * (right[-1] + right[-1] / len(right))
        last = p[own][order][min(int(np.searchsorted(right, wanted * (1 - _SMALLEST))), len(right) - 1)]
        return _between(p, float(last), is_included=self.rate == "recall")

    def _of_precision(self, p: Float64, is_positive: AnyArray, weight: Float64) -> float:
        order = np.argsort(-p, kind="stable")
        ends = np.flatnonzero(np.append(np.diff(p[order]) != 0, True))  # rows with equal probabilities go together
        found = np.cumsum((weight * is_positive)[order])[ends]
        precision = found / np.maximum(np.cumsum(weight[order])[ends], np.finfo(float).tiny)
        reached = np.flatnonzero(precision >= self.least * (1 - _SMALLEST))
        best = int(reached[-1]) if len(reached) else int(precision.argmax())
        return _between(p, float(p[order][ends[best]]), is_included=True)


def _between(p: Float64, last: float, *, is_included: bool) -> float:
    """Return a threshold midway to the next probability below the last row that is called positive, or above if not."""
    others = p[p < last] if is_included else p[p > last]
    limit = 0.0 if is_included else 1.0
    if len(others):
        limit = float(others.max() if is_included else others.min())
    return min(max((last + limit) / 2, _SMALLEST), 1 - _SMALLEST) if math.isfinite(last) else 0.5
