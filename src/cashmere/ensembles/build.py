"""One entry point for all ways to build an ensemble from observations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, get_args

import numpy as np

from cashmere.base.arrays import AnyArray, Float64, FloatArray
from cashmere.data.row_structure import RowStructure
from cashmere.ensembles.selection import TieRule, as_targets
from cashmere.ensembles.stacking import StackedEnsemble, stacked_ensemble
from cashmere.ensembles.weights import WeightedEnsemble, bagging, best_positions, greedy_ensemble
from cashmere.exceptions import ArrayError, UnknownNameError
from cashmere.records.loss import Loss

EnsembleMethod = Literal["selection", "bagging", "stacking", "best"]
METHODS: tuple[EnsembleMethod, ...] = get_args(EnsembleMethod)


class Ensemble(Protocol):
    """Combine the predictions of some trials into one prediction."""

    @property
    def members(self) -> tuple[int, ...]:
        """Distinct trial numbers, in the order in which `combine` takes their predictions."""
        ...

    def combine(self, stack: Sequence[FloatArray] | FloatArray) -> Float64:
        """Return the ensemble's predictions from those of its members, in member order."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return plain data for `ensemble_from_json`."""
        ...


def ensemble_from_json(data: Mapping[str, Any]) -> Ensemble:
    """Rebuild the ensemble that ``to_json`` described.

    Raises
    ------
    UnknownNameError
        If its kind is not known to this version.
    """
    if data["kind"] == "weighted":
        return WeightedEnsemble.from_json(data)
    if data["kind"] == "stacked":
        return StackedEnsemble.from_json(data)
    raise UnknownNameError("kind of ensemble", data["kind"], ["weighted", "stacked"])


def build_ensemble(
    method: EnsembleMethod | str,
    numbers: Sequence[int],
    predictions: Sequence[FloatArray] | FloatArray,
    y: AnyArray,
    metric: Loss,
    *,
    losses: Sequence[float] | None = None,
    weight: FloatArray | None = None,
    structure: RowStructure | None = None,
    size: int = 25,
    n_best: int = 5,
    tie: TieRule = "first",
    rng: np.random.Generator | None = None,
) -> tuple[Ensemble, float]:
    """Build an ensemble from observations.

    Parameters
    ----------
    method : {"selection", "bagging", "stacking", "best"}
        Greedy selection; a weighted average of the `n_best`; logistic or linear regression on these; or the best one
        alone.
    numbers : sequence of int
        Trial numbers of the candidates, distinct.
    predictions : sequence of (n_rows, n_classes) or (n_rows,) arrays
        Out-of-fold (or holdout) predictions of each candidate. Candidates with NaN or infinite values are left out.
    y : (n_rows,) array
        Class codes, or numbers for regression.
    metric : Loss
        The metric. Bagging uses its `worst_loss`, if it has one.
    losses : sequence of float, optional
        Loss of each candidate, to find the best ones; by default computed from the predictions.
    weight : (n_rows,) array, optional
        Row weights.
    structure : RowStructure, optional
        Groups or times of the rows, which the folds of stacking respect.
    size, tie
        Parameters of the selection, see `select_ensemble`.
    n_best : int
        Number of members for bagging and stacking.
    rng : numpy.random.Generator, optional
        For random ties and the folds of stacking.

    Returns
    -------
    ensemble : Ensemble
    loss : float
        Its loss on these rows: optimistic for selection and bagging, which use them to choose; cross-fitted for
        stacking.

    Raises
    ------
    UnknownNameError
        If there is no such method.
    ArrayError
        If no candidate has finite predictions and a finite loss.
    """
    if method not in METHODS:
        raise UnknownNameError("ensemble method", method, METHODS)
    if not (len(numbers) == len(predictions) == len(numbers if losses is None else losses)) or not len(numbers):
        lengths = [len(part) for part in (numbers, predictions, losses) if part is not None]
        raise ArrayError(
            "predictions",
            "numbers, predictions and losses must have the same length, at least 1; "
            f"got {', '.join(map(str, lengths))}.",
        )
    y = as_targets(y, predictions[0].ndim)
    if method == "selection":
        return greedy_ensemble(numbers, predictions, y, metric, size=size, weight=weight, tie=tie, rng=rng)

    own = []
    for i, prediction in enumerate(predictions):
        if not np.isfinite(prediction).all():
            own.append(float("inf"))
        elif losses is not None:
            own.append(float(losses[i]))
        else:
            own.append(float(metric.loss(y, np.asarray(prediction, dtype=np.float64), weight)))
    best = best_positions(own, 1 if method == "best" else n_best)
    stack = [predictions[i] for i in best]
    best_numbers = [int(numbers[i]) for i in best]
    if method == "stacking":
        return stacked_ensemble(best_numbers, stack, y, metric, weight=weight, structure=structure, rng=rng)
    worst_loss: float | None = getattr(metric, "worst_loss", None)
    ensemble = bagging([own[i] for i in best], best_numbers, n_best=len(best), worst_loss=worst_loss)
    return ensemble, float(metric.loss(y, ensemble.combine(stack), weight))
