"""Weighted averages of members: from greedy selection, from the losses (bagging), or of a single best member."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cashmere.base.arrays import AnyArray, Float64, FloatArray
from cashmere.ensembles.selection import SelectionResult, TieRule, select_ensemble
from cashmere.exceptions import ArrayError, InvalidParameterError
from cashmere.records.loss import Loss


@dataclass(frozen=True, slots=True)
class WeightedEnsemble:
    """Average the predictions of the members with fixed weights.

    Attributes
    ----------
    members : tuple of int
        Trial numbers, distinct.
    weights : tuple of float
        Non-negative, in the order of the members; they sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> ensemble = WeightedEnsemble((4, 7), (0.25, 0.75))
    >>> ensemble.combine([np.array([1.0, 2.0]), np.array([5.0, 2.0])])
    array([4., 2.])
    >>> WeightedEnsemble.from_json(ensemble.to_json()) == ensemble
    True
    """

    members: tuple[int, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.members or len(set(self.members)) != len(self.members):
            raise InvalidParameterError("members", self.members, "one or more different trial numbers")
        weights = np.array(self.weights, dtype=np.float64)
        if weights.shape != (len(self.members),) or not (weights >= 0).all() or abs(weights.sum() - 1) > 1e-9:
            raise InvalidParameterError("weights", self.weights, "one non-negative number per member, with sum 1")

    def combine(self, stack: Sequence[FloatArray] | FloatArray) -> Float64:
        """Average predictions.

        Parameters
        ----------
        stack : sequence of (n_rows, n_classes) or (n_rows,) arrays
            Predictions in the order of `members`.

        Returns
        -------
        (n_rows, n_classes) or (n_rows,) array, float64
        """
        combined = np.zeros(stack[0].shape)
        for prediction, weight in zip(stack, self.weights, strict=True):
            combined += weight * np.asarray(prediction, dtype=np.float64)
        return combined

    def to_json(self) -> dict[str, Any]:
        """Return plain data for `from_json`."""
        return {"kind": "weighted", "members": list(self.members), "weights": list(self.weights)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild the ensemble that `to_json` described."""
        return cls(tuple(int(n) for n in data["members"]), tuple(float(w) for w in data["weights"]))


def mean_ensemble(ensembles: Sequence[WeightedEnsemble], least: float = 0.0) -> WeightedEnsemble:
    """Average the weights of ensembles, and leave out members with too little of it.

    Parameters
    ----------
    ensembles : sequence of WeightedEnsemble
        One or more.
    least : float
        Members whose mean weight is below are left out, unless that leaves none.

    Examples
    --------
    >>> mean_ensemble([WeightedEnsemble((1, 2), (0.5, 0.5)), WeightedEnsemble((1, 3), (0.9, 0.1))], 0.1)
    WeightedEnsemble(members=(1, 2), weights=(0.736..., 0.263...))
    """
    total: dict[int, float] = {}
    for ensemble in ensembles:
        for member, weight in zip(ensemble.members, ensemble.weights, strict=True):
            total[member] = total.get(member, 0.0) + weight / len(ensembles)
    kept = {member: weight for member, weight in sorted(total.items()) if weight >= least} or total
    mass = sum(kept.values())
    return WeightedEnsemble(tuple(kept), tuple(weight / mass for weight in kept.values()))


def bagging_weights(losses: Sequence[float], worst_loss: float | None = None) -> tuple[float, ...]:
    """Turn losses of members into weights that sum to one.

    Parameters
    ----------
    losses : sequence of float
        Finite losses.
    worst_loss : float, optional
        Largest possible loss; None if there is no bound.

    Returns
    -------
    tuple of float
        Bounded: proportional to ``worst_loss - loss``, which for an error rate is the accuracy. Unbounded:
        proportional to ``1 / loss``, for the squared error the best weights of unbiased members with uncorrelated
        errors (Bates and Granger, 1969); members with loss 0 share all the weight. Equal weights where the rule has
        no meaning: a negative loss, or all members at the worst loss.
    """
    values = np.array(losses, dtype=np.float64)
    if worst_loss is not None:
        raw = np.maximum(worst_loss - values, 0)
    elif (values == 0).any():
        raw = (values == 0).astype(np.float64)
    else:
        # Scaled by the smallest loss, so that no reciprocal overflows.
        raw = values.min() / values if (values > 0).all() else np.zeros_like(values)
    if raw.sum() <= 0:
        raw = np.ones_like(values)
    return tuple((raw / raw.sum()).tolist())


def best_positions(losses: Sequence[float], n_best: int) -> list[int]:
    """Return the positions of the `n_best` lowest finite losses, lowest first; ties in order of position."""
    finite = [i for i in range(len(losses)) if np.isfinite(losses[i])]
    if not finite:
        raise ArrayError("losses", "losses must be finite for at least one candidate; all are NaN or infinite.")
    return sorted(finite, key=lambda i: (losses[i], i))[:n_best]


def bagging(
    losses: Sequence[float],
    numbers: Sequence[int],
    *,
    n_best: int = 5,
    worst_loss: float | None = None,
) -> WeightedEnsemble:
    """Average the best observations, weighted according to their losses.

    Parameters
    ----------
    losses : sequence of float
        Validation loss of each candidate; candidates without a finite loss are left out.
    numbers : sequence of int
        Trial number of each candidate.
    n_best : int
        Number of members; 5 in DivBO.
    worst_loss : float, optional
        Largest possible loss of the metric, see `bagging_weights`.

    References
    ----------
    Shen et al. (2022), DivBO, Table 9. The paper does not say how the weights are computed.
    """
    best = best_positions(losses, n_best)
    weights = bagging_weights([losses[i] for i in best], worst_loss)
    return WeightedEnsemble(tuple(numbers[i] for i in best), weights)


def greedy_ensemble(
    numbers: Sequence[int],
    predictions: Sequence[FloatArray] | FloatArray,
    y: AnyArray,
    metric: Loss,
    *,
    size: int = 25,
    weight: FloatArray | None = None,
    tie: TieRule = "first",
    rng: np.random.Generator | None = None,
) -> tuple[WeightedEnsemble, float]:
    """Select an ensemble greedily, see `select_ensemble`.

    Returns
    -------
    ensemble : WeightedEnsemble
        Members in the order of `numbers`.
    loss : float
        Loss of its predictions for the rows it was selected on: optimistic, as these rows were used to choose.
    """
    result = select_ensemble(predictions, y, metric, size=size, weight=weight, tie=tie, rng=rng)
    return ensemble_of_selection(numbers, result)


def ensemble_of_selection(numbers: Sequence[int], result: SelectionResult) -> tuple[WeightedEnsemble, float]:
    """Name the members of a selection by their trial numbers; return the ensemble and its (optimistic) loss."""
    members = result.members
    ensemble = WeightedEnsemble(
        tuple(int(numbers[i]) for i in members.tolist()), tuple(result.weights[members].tolist())
    )
    return ensemble, float(result.trajectory[-1])
