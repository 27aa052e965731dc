"""How well a surrogate ranks unseen observations: rank correlation on a recorded history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from cashmere.acquisition.diversity import Measure, cross_measure
from cashmere.base.arrays import AnyArray, Float64, FloatArray, IntArray
from cashmere.exceptions import ArrayError
from cashmere.protocols import DiversitySurrogate


@runtime_checkable
class CandidatePairSurrogate(Protocol):
    """A `DiversitySurrogate` that also predicts the measure between two candidates."""

    def predict_pairs(self, candidates: FloatArray, others: FloatArray, /) -> tuple[Float64, Float64]:
        """Return mean and variance, each ``(n_candidates, n_others)``."""
        ...


class SurrogateTau(NamedTuple):
    """Kendall's tau between the predicted and the true measure.

    Attributes
    ----------
    to_seen : float
        Over all pairs of a test and a training configuration, which are the pairs that a search needs.
    among_unseen : float
        Over all pairs of two different test configurations; NaN where the surrogate does not predict them.
    """

    to_seen: float
    among_unseen: float


def kendall_tau(a: ArrayLike, b: ArrayLike) -> float:
    """Return Kendall's tau-b, the rank correlation that allows for ties.

    Parameters
    ----------
    a, b : (n,) array
        Numbers to rank.

    Returns
    -------
    float
        In [-1, 1]; NaN if one of them is constant, contains NaN or has fewer than two numbers.

    Examples
    --------
    >>> kendall_tau([1, 2, 3], [10, 30, 20])
    0.333...
    """
    from scipy.stats import kendalltau

    a, b = np.asarray(a, dtype=np.float64).ravel(), np.asarray(b, dtype=np.float64).ravel()
    if a.shape != b.shape:
        raise ArrayError("b", f"The arrays a and b must hold equally many numbers; got {len(a)} and {len(b)}.")
    if len(a) < 2 or np.isnan(a).any() or np.isnan(b).any() or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(kendalltau(a, b).statistic)


def surrogate_tau(
    surrogate: DiversitySurrogate,
    X: FloatArray,
    predictions: Sequence[AnyArray],
    y: AnyArray,
    train: IntArray,
    test: IntArray,
    *,
    measure: Measure = "div",
    row_weights: FloatArray | None = None,
    rng: np.random.Generator | None = None,
) -> SurrogateTau:
    """Fit a surrogate of diversity to some observations, and evaluate it on others.

    Parameters
    ----------
    surrogate : DiversitySurrogate
        Surrogate to fit. Its prediction is the mean over its samples.
    X : (n, d) array
        Encoded configurations of all observations.
    predictions : sequence of n arrays (n_rows, n_classes) or (n_rows,)
        Their finite validation predictions.
    y : (n_rows,) array
        Class codes or values.
    train, test : int arrays
        Positions of the observations for fitting and for evaluation.
    measure : Measure
        Measure that the surrogate predicts, see `cashmere.acquisition.diversity.cross_measure`.
    row_weights : (n_rows,) array, optional
        Weights of the rows in the true measure.
    rng : numpy.random.Generator, optional
        Generator for the fit; by default seeded with 0.

    References
    ----------
    Shen et al. (2022), DivBO: Diversity-aware CASH for ensemble learning, NeurIPS, Section 3.1.
    """
    train, test = np.asarray(train), np.asarray(test)
    known, unknown = [np.stack([predictions[i] for i in part]) for part in (train, test)]
    fitted = surrogate.fit(X[train], list(known), y, np.random.default_rng(0) if rng is None else rng)
    truth = cross_measure(measure, unknown, known, y, row_weights=row_weights)
    to_seen = kendall_tau(fitted.sample_pairs(X[test], np.arange(len(train))).mean(axis=0), truth)
    if not isinstance(fitted, CandidatePairSurrogate):
        return SurrogateTau(to_seen, float("nan"))
    upper = np.triu_indices(len(test), k=1)
    truth = cross_measure(measure, unknown, unknown, y, row_weights=row_weights)
    predicted, _ = fitted.predict_pairs(X[test], X[test])
    return SurrogateTau(to_seen, kendall_tau(predicted[upper], truth[upper]))
