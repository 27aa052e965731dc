"""What a search learns about losses: mean and variance of a configuration's loss, and whether it succeeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from cashmere.acquisition.improvement import log_expected_improvement
from cashmere.base.arrays import Float64, FloatArray
from cashmere.records.trial import History, TrialStatus
from cashmere.strategies.shared.scaled_losses import Failures, scale_losses
from cashmere.strategies.shared.temporary_pool import MOST_OBSERVATIONS, collect_predictions
from cashmere.surrogates.forest import ProbabilisticForest, Variance
from cashmere.surrogates.loss_of_predictions import LossOfPredictions

LearnFrom = Literal["losses", "predictions"]
"""What makes configurations alike: their losses, or what they predict for every validation row."""


class _Surrogate(Protocol):
    def predict(self, X: FloatArray, /) -> tuple[FloatArray, FloatArray]: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class LossModel:
    """A surrogate of the losses, and one of success if failures are kept apart.

    Attributes
    ----------
    losses : (n_observations,) array
        Losses on the common scale of `scale_losses`.
    best : float
        The lowest loss of a success.
    surrogate : surrogate
        Predicts mean and variance of the loss.
    success : ProbabilisticForest or None
        Predicts the share of successes; None if nothing failed or failures have a loss.
    """

    losses: Float64
    best: float
    surrogate: _Surrogate
    success: ProbabilisticForest | None

    def log_improvement(self, rows: FloatArray) -> Float64:
        """Return the logarithm of the expected improvement of rows ``(n, d)``, times their probability of success."""
        mean, variance = self.surrogate.predict(rows)
        return log_expected_improvement(mean, np.sqrt(variance), self.best) + self.log_success(rows)

    def log_success(self, rows: FloatArray) -> Float64:
        """Return the logarithm of the probability that rows ``(n, d)`` succeed."""
        if self.success is None:
            return np.zeros(len(rows))
        share, _ = self.success.predict(rows)
        # Laplace's rule of succession: n observations do not justify more certainty of a failure.
        return np.log(np.maximum(share, 1 / (len(self.losses) + 2)))

    @property
    def liar(self) -> float:
        """The loss that stands for unknown ones (constant liar)."""
        return float(np.median(self.losses))


def learn_losses(
    history: History,
    rows: FloatArray,
    rng: np.random.Generator,
    *,
    learn_from: LearnFrom = "losses",
    failures: Failures = "worst_possible",
    variance: Variance = "total",
    cap: bool = True,
) -> LossModel:
    """Fit the models of a history.

    Parameters
    ----------
    history : History
        At least one observation; with predictions, metric and targets if they are to be learned from.
    rows : (n_trials, d) array
        Encoded configurations of ``history.trials``. Pending ones enter with the median loss (constant liar).
    rng : numpy.random.Generator
        Source of randomness.
    learn_from : {"losses", "predictions"}
        `ProbabilisticForest` or `LossOfPredictions`; the latter keeps failures apart, since they predict nothing.
    failures : {"worst_possible", "worst_seen", "apart"}
        Loss of failed trials, see `scale_losses`; or none: a second forest predicts success.
    variance, cap
        See `ProbabilisticForest`, `scale_losses`.

    Raises
    ------
    MissingPredictionsError
        If the predictions are missing, see `collect_predictions`.
    """
    apart = failures == "apart" or learn_from == "predictions"
    losses, best = scale_losses(history, cap=cap, failures="worst_seen" if apart else failures)
    pending, liar = rows[len(history) :], np.full(len(history.pending), np.median(losses))
    failed = np.array([not o.succeeded and o.status is not TrialStatus.STOPPED for o in history], dtype=np.bool_)
    if not apart or failed.all():
        forest = ProbabilisticForest(variance=variance).fit(rows, np.concatenate([losses, liar]), rng)
        return LossModel(losses=losses, best=best, surrogate=forest, success=None)
    surrogate: _Surrogate | None = None
    if learn_from == "predictions":
        surrogate = _learn_from_predictions(history, rows, losses, rng, variance=variance, liar=liar)
    if surrogate is None:
        known = np.concatenate([~failed, np.ones(len(pending), dtype=np.bool_)])
        surrogate = ProbabilisticForest(variance=variance).fit(rows[known], np.concatenate([losses, liar])[known], rng)
    success = None
    if failed.any():
        success = ProbabilisticForest().fit(rows[: len(history)], (~failed).astype(np.float64), rng)
    return LossModel(losses=losses, best=best, surrogate=surrogate, success=success)


def _learn_from_predictions(
    history: History,
    rows: FloatArray,
    losses: FloatArray,
    rng: np.random.Generator,
    *,
    variance: Variance,
    liar: FloatArray,
) -> LossOfPredictions | None:
    """Return the fitted surrogate; None if no observation has finite predictions."""
    found = collect_predictions(history, most=MOST_OBSERVATIONS)
    if found is None:
        return None
    position_of = {o.trial.number: i for i, o in enumerate(history)}
    known = [position_of[o.trial.number] for o in found.observations]
    return LossOfPredictions(variance=variance).fit(
        rows[known],
        losses[known],
        rng,
        predictions=found.predictions,
        targets=found.y,
        row_weights=found.row_weights,
        pending=rows[len(history) :],
        pending_losses=liar,
    )
