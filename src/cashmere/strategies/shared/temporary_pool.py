"""The temporary pool: the ensemble selected from the validation predictions so far."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cashmere.base.arrays import AnyArray, Float64, IntArray
from cashmere.ensembles import select_ensemble
from cashmere.exceptions import MissingPredictionsError
from cashmere.records.loss import Loss
from cashmere.records.trial import History, Observation
from cashmere.surrogates.compression import fixed_rows

MOST_OBSERVATIONS = 1000
"""Most observations whose predictions a decision compares: the time grows with the cube of their number."""

if TYPE_CHECKING:
    from cashmere.space.encoding import SpaceEncoder


@dataclass(frozen=True, kw_only=True, eq=False)
class ValidationPredictions:
    """Successful observations with finite predictions, and the targets and metric to judge them by.

    Attributes
    ----------
    observations : tuple of n Observation
        In the order of the history.
    predictions : tuple of n arrays (n_rows, n_classes) or (n_rows,)
        Their predictions for the validation rows, or for a fixed choice if there are very many.
    y, row_weights : (n_rows,) array
        Targets, and weights or None.
    metric : Loss
        The metric to minimise.
    """

    observations: tuple[Observation, ...]
    predictions: tuple[AnyArray, ...]
    y: AnyArray
    row_weights: Float64 | None
    metric: Loss


@dataclass(frozen=True, kw_only=True, eq=False)
class TemporaryPool:
    """Successful observations, and the ensemble selected from them.

    Attributes
    ----------
    rows : (n, d) array
        Encoded configurations of the successful observations.
    predictions : tuple of n arrays (n_rows, n_classes) or (n_rows,)
        Their predictions for the validation rows.
    y, row_weights : (n_rows,) array
        Targets, and weights or None.
    metric : Loss
        The metric to minimise.
    order : (size,) int array
        Positions of the observations in the order they were added, with repetitions.
    """

    rows: Float64
    predictions: tuple[AnyArray, ...]
    y: AnyArray
    row_weights: Float64 | None
    metric: Loss
    order: IntArray

    @property
    def counts(self) -> IntArray:
        """How often each observation is in the ensemble, shape ``(n,)``."""
        return np.bincount(self.order, minlength=len(self.predictions))

    @property
    def prediction(self) -> Float64:
        """Mean prediction of the ensemble."""
        total = np.zeros(self.predictions[0].shape)
        for position in self.order:
            total += self.predictions[position]
        return total / len(self.order)

    @property
    def members(self) -> IntArray:
        """Positions of the distinct members, ascending."""
        return np.flatnonzero(self.counts)

    @property
    def multiplicity(self) -> IntArray:
        """How often each distinct member is in the ensemble."""
        return self.counts[self.members]

    def first(self, size: int) -> TemporaryPool:
        """Return the smaller ensemble of the first members added."""
        return replace(self, order=self.order[:size])

    @property
    def is_classification(self) -> bool:
        """Whether predictions are class probabilities."""
        return self.predictions[0].ndim == 2


def collect_predictions(history: History, *, most: int | None = None) -> ValidationPredictions | None:
    """Return the finite predictions of a history; None if there are none.

    Parameters
    ----------
    history : History
        The history, with metric and targets.
    most : int, optional
        How many at most: half of them those with the lowest losses, the others evenly spread over the rest.

    Raises
    ------
    MissingPredictionsError
        If successful observations lack predictions, or the history lacks the metric or the targets.
    """
    observations = history.successes if most is None else _representative(history.successes, most)
    predictions: list[Any] = [o.predictions for o in observations if o.predictions is not None]
    if history.metric is None or history.targets is None or len(predictions) < len(observations):
        raise MissingPredictionsError(
            metric=history.metric is not None,
            targets=history.targets is not None,
            n_missing=len(observations) - len(predictions),
        )
    finite = [bool(np.isfinite(prediction).all()) for prediction in predictions]
    if not any(finite):
        return None
    observations = tuple(itertools.compress(observations, finite))
    predictions = list(itertools.compress(predictions, finite))
    y: AnyArray = history.targets if predictions[0].ndim == 1 else history.targets.astype(np.int64)
    row_weights = history.row_weights
    kept = fixed_rows(predictions[0], y)  # the rows that the surrogates choose, so that both see the same ones
    if len(kept) < len(y):
        predictions, y = [stack[kept] for stack in predictions], y[kept]
        row_weights = None if row_weights is None else row_weights[kept]
    return ValidationPredictions(
        observations=observations,
        predictions=tuple(predictions),
        y=y,
        row_weights=row_weights,
        metric=history.metric,
    )


def _representative(successes: Sequence[Observation], most: int) -> tuple[Observation, ...]:
    """Return the successes, or a choice of them in the same order: the best, and some of the others."""
    if len(successes) <= most:
        return tuple(successes)
    by_loss = sorted(range(len(successes)), key=lambda i: (successes[i].loss, i))
    best, others = by_loss[: most // 2], sorted(by_loss[most // 2 :])
    spread = np.linspace(0, len(others) - 1, most - len(best)).round().astype(np.int64)
    return tuple(successes[i] for i in sorted([*best, *(others[k] for k in spread.tolist())]))


def select_pool(history: History, encoder: SpaceEncoder, *, size: int = 25) -> TemporaryPool | None:
    """Select the temporary pool of a history, from at most `MOST_OBSERVATIONS` of its successes.

    Ties are broken as in the final ensemble of a run, see ``"secondary"`` in `cashmere.ensembles.TieRule`.

    Parameters
    ----------
    history : History
        The history, with metric and targets.
    encoder : SpaceEncoder
        Encodes the configurations.
    size : int
        Members of the ensemble, repetitions included.

    Returns
    -------
    TemporaryPool or None
        None while fewer than two observations have finite predictions: there is no pair to learn from.

    Raises
    ------
    MissingPredictionsError
        See `collect_predictions`.

    References
    ----------
    Shen et al. (2022), DivBO, alg. 1, line 7; docs/papers/divbo.md#temporary-pool.
    """
    known = collect_predictions(history, most=MOST_OBSERVATIONS)
    if known is None or len(known.observations) < 2:
        return None
    chosen = select_ensemble(
        known.predictions, known.y, known.metric, size=size, weight=known.row_weights, tie="secondary"
    )
    return TemporaryPool(
        rows=encoder.encode(o.trial.configuration for o in known.observations),
        predictions=known.predictions,
        y=known.y,
        row_weights=known.row_weights,
        metric=known.metric,
        order=chosen.order,
    )
