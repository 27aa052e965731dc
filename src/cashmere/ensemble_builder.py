"""The ensemble of a run while it grows: which observations may enter, the choice, and its honest loss."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from cashmere.arrays import AnyArray, FloatArray
from cashmere.ensembles import (
    Ensemble,
    IncrementalSelection,
    TieRule,
    WeightedEnsemble,
    build_ensemble,
    ensemble_of_selection,
)
from cashmere.ensembles.pool import ValidationPool, cross_fitted_loss
from cashmere.evaluation.metrics import Metric
from cashmere.exceptions import CashmereError
from cashmere.trial import History, Observation

_TIE: TieRule = "secondary"
"""Error rates tie often, and the first of equals would favour early trials."""

BASELINE = -1
"""Member number of the constant predictor, which is no trial."""


class EnsembleBuilder:
    """Decides the ensemble from the history: a function of the observations whose models are still on disk.

    Parameters
    ----------
    method, size
        See `RunSettings.ensemble` and `RunSettings.ensemble_size`.
    metric : Metric
        What the ensemble is chosen by.
    pool : ValidationPool
        The rows it is chosen on.
    seed : int
        For random parts of the method.
    has_model : callable
        Whether the fitted models of a trial are still there.

    Attributes
    ----------
    ensemble : Ensemble
        The constant predictor until the first success.
    loss : float or None
        Of the ensemble on the rows that chose it; None for the constant predictor.
    seconds : float
        Time of the latest choice.
    """

    def __init__(
        self,
        *,
        method: str,
        size: int,
        metric: Metric,
        pool: ValidationPool,
        seed: int,
        has_model: Callable[[int], bool],
    ) -> None:
        self._method, self._size, self._metric, self._pool, self._seed = method, size, metric, pool, seed
        self._has_model = has_model
        self.ensemble: Ensemble = WeightedEnsemble(members=(BASELINE,), weights=(1.0,))
        self.loss: float | None = None
        self.seconds = 0.0
        # Remembers what it has read of earlier observations; the choice is that of a fresh selection.
        self._selection = None
        if method == "selection":
            self._selection = IncrementalSelection(pool.y, metric, size=size, weight=pool.weight, tie=_TIE)

    @property
    def weights(self) -> dict[int, float]:
        """Weight of each member by trial number; equal shares where members are combined in another way."""
        members = self.ensemble.members
        weights = getattr(self.ensemble, "weights", (1 / len(members),) * len(members))
        return dict(zip(members, weights, strict=True))

    def update(self, history: History) -> None:
        """Choose anew from everything observed."""
        clock = time.perf_counter()
        observations = self._eligible(history)
        if observations:
            numbers, stacks = [o.trial.number for o in observations], self._stacks(observations)
            if self._selection is not None:
                result = self._selection.select(numbers, stacks, rng=np.random.default_rng(self._seed))
                self.ensemble, self.loss = ensemble_of_selection(numbers, result)
            else:
                losses = [float(o.loss) for o in observations if o.loss is not None]
                self.ensemble, self.loss = self._build(numbers, stacks, losses, self._pool.y, self._pool.weight)
        self.seconds = time.perf_counter() - clock

    def honest_loss(self, history: History) -> float | None:
        """Estimate the ensemble's loss on rows that did not choose it, see `cross_fitted_loss`."""
        observations = self._eligible(history)
        if not observations:
            return None
        losses = [float(o.loss) for o in observations if o.loss is not None]
        try:
            return cross_fitted_loss(
                lambda stacks, y, weight: self._build(range(len(stacks)), stacks, losses, y, weight)[0],
                self._stacks(observations),
                self._pool.y,
                self._metric,
                weight=self._pool.weight,
                rng=np.random.default_rng(self._seed),
            )
        except (CashmereError, ValueError):  # a part may miss a class
            return None

    def _eligible(self, history: History) -> list[Observation]:
        return [o for o in history.successes if o.predictions is not None and self._has_model(o.trial.number)]

    def _stacks(self, observations: Sequence[Observation]) -> list[AnyArray]:
        return [self._pool.take(o.predictions) for o in observations if o.predictions is not None]

    def _build(
        self,
        numbers: Sequence[int],
        predictions: Sequence[AnyArray],
        losses: Sequence[float],
        y: AnyArray,
        weight: FloatArray | None,
    ) -> tuple[Ensemble, float]:
        return build_ensemble(
            self._method,
            numbers,
            predictions,
            y,
            self._metric,
            losses=losses,
            weight=weight,
            size=self._size,
            tie=_TIE,
            rng=np.random.default_rng(self._seed),
        )
