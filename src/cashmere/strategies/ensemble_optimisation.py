"""Ensemble optimisation: search the members of a fixed number of slots one after the other."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from cashmere.base.arrays import Float64
from cashmere.ensembles.added_member import losses_with_added
from cashmere.records.trial import History
from cashmere.strategies.bayesian_optimisation import BayesianOptimisation
from cashmere.strategies.shared.candidates import Candidates
from cashmere.strategies.shared.continuation import continues
from cashmere.strategies.shared.option_checks import check_at_least
from cashmere.strategies.shared.temporary_pool import ValidationPredictions, collect_predictions

_SAME_LOSS = 1e-9
"""Losses that differ by less, relative to 1 + loss, count as equal: kernels round differently from metrics."""


@dataclass(frozen=True)
class EnsembleOptimisation(BayesianOptimisation):
    """Choose by the expected improvement of an ensemble in which one member is to be replaced.

    The ensemble has a fixed number of slots. Each trial empties one of them in turn; every configuration is judged by
    the loss of the average of itself and the members in the other slots. The forest learns these losses instead of
    those of the configurations alone, and the expected improvement over the lowest of them is maximised. When the
    outcome is known, the configuration with the lowest such loss fills the slot: the new one, or any evaluated before.

    Parameters
    ----------
    space, n_global, n_local, variance, random_fraction, cap_losses, local, failures, learn_from
        See `BayesianOptimisation`.
    n_initial : int
        Trials are random until this many succeeded or twice as many ended; in the paper as many as there are slots.
    n_slots : int
        Members of the ensemble (m), at least 1.

    Notes
    -----
    - The trial at position t of the history belongs to slot t mod m. The first m trials fill their own slots; the slot
      of a failed trial stays empty, and the average has fewer members, until its turn comes again. After a later
      failure, the best configuration evaluated before fills the slot.
    - Pending trials are ignored when slots are filled. They enter the forest with the median loss.
    - Failed trials enter the forest with the largest loss that an ensemble has with any configuration.
    - The surrogate is the forest of `BayesianOptimisation`; the paper uses a Gaussian process
      (docs/papers/baselines.md#surrogate-of-ensemble-optimisation).
    - Slots follow from a replay of the history, whose time grows with the square of the number of trials: about a
      second for 250 trials with 2000 validation rows. The latest slots are cached, so a study replays everything only
      once, when it is resumed.
    - Runs report the greedy selection from all trials, as after any strategy; the paper's ensemble is `members`.

    References
    ----------
    Lévesque, Gagné and Sabourin (2016), Bayesian hyperparameter optimization for ensemble learning, UAI.
    """

    _: KW_ONLY
    n_initial: int = 12
    n_slots: int = 12

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, n_slots=1)

    def members(self, history: History) -> tuple[int, ...]:
        """Return the numbers of the trials in the slots: the ensemble is the mean of their predictions.

        Parameters
        ----------
        history : History
            The history, with metric and targets; pending trials do not count.

        Returns
        -------
        tuple of int
            Trial numbers in the order of the slots, repetitions included; fewer than `n_slots` while some are empty.

        Raises
        ------
        MissingPredictionsError
            See `cashmere.strategies.shared.temporary_pool.collect_predictions`.
        """
        known = collect_predictions(history)
        if known is None:
            return ()
        slots = self._fill_slots(history, known)
        return tuple(known.observations[i].trial.number for i in slots if i is not None)

    @property
    def decides_in_batches(self) -> bool:
        """Never: every trial is for another slot."""
        return False

    def draw_candidates(self, history: History, decided: Float64, rng: np.random.Generator) -> Candidates:
        """Draw candidates and predict the loss of the ensemble, see `BayesianOptimisation.draw_candidates`."""
        known = collect_predictions(history)
        if known is None:
            return super().draw_candidates(history, decided, rng)
        others = _without(self._fill_slots(history, known), len(history.trials) % self.n_slots)
        losses = ensemble_losses(known, others, len(known.predictions))
        return super().draw_candidates(_judged_by(history, known, losses), decided, rng)

    def _fill_slots(self, history: History, known: ValidationPredictions) -> list[int | None]:
        """Return for each slot the position of its member among the known predictions, None if it is empty.

        Continue the replay from the latest history if this one begins with it.
        """
        start = 0
        slots: list[int | None] = [None] * self.n_slots
        latest = self._latest.get("slots")
        if latest is not None and continues(history, latest[0]):
            start, slots = len(latest[0]), list(latest[1])
        position_of = {id(observation): i for i, observation in enumerate(known.observations)}
        n_known = sum(id(observation) in position_of for observation in history[:start])
        for t in range(start, len(history)):
            own, slot = position_of.get(id(history[t])), t % self.n_slots
            n_known += own is not None
            if t < self.n_slots:
                slots[slot] = own
            elif n_known:
                losses = ensemble_losses(known, _without(slots, slot), n_known)
                slots[slot] = _newest_of_the_best(losses)
        self._latest["slots"] = (history, tuple(slots))
        return slots

    @functools.cached_property
    def _latest(self) -> dict[str, tuple[History, tuple[int | None, ...]]]:
        """The latest slots and the history they follow from; a cache."""
        return {}


def ensemble_losses(known: ValidationPredictions, others: Sequence[int], n: int) -> Float64:
    """Return v_i, the loss of the average of the other members and i, for the first n predictions.

    Parameters
    ----------
    known : ValidationPredictions
        The predictions, with targets, weights and metric.
    others : sequence of int
        Positions of the members in the other slots, repetitions included; if empty, v_i is the loss of i alone.
    n : int
        How many of the predictions may be used, at least 1.

    Returns
    -------
    (n,) array
        Losses.

    References
    ----------
    Lévesque, Gagné and Sabourin (2016), Bayesian hyperparameter optimization for ensemble learning, UAI.
    """
    total = np.zeros(known.predictions[0].shape)
    for position in others:
        total += known.predictions[position]
    return losses_with_added(
        known.predictions[:n],
        total / max(len(others), 1),
        known.y,
        known.metric,
        size=len(others),
        row_weights=known.row_weights,
    )


def _newest_of_the_best(losses: Float64) -> int:
    lowest = losses.min()
    return int(np.flatnonzero(losses <= lowest + _SAME_LOSS * (1 + abs(lowest)))[-1])


def _without(slots: Sequence[int | None], empty: int) -> list[int]:
    return [member for slot, member in enumerate(slots) if slot != empty and member is not None]


def _judged_by(history: History, known: ValidationPredictions, losses: Float64) -> History:
    """Return the history with other losses; failed trials get the largest of them."""
    loss_of = dict(zip(map(id, known.observations), losses.tolist(), strict=True))
    observations = tuple(
        replace(o, outcome=replace(o.outcome, loss=loss_of.get(id(o), np.inf))) if o.succeeded else o for o in history
    )
    # Neither bound applies to these losses, which lie much closer together than those of single configurations.
    return replace(history, observations=observations, worst_loss=None, baseline_loss=float("nan"))
