"""MaxUCB: try the algorithm next whose best loss, less a bonus for few trials, is lowest."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from cashmere.base.arrays import Float64, FloatArray, IntArray
from cashmere.exceptions import InvalidParameterError
from cashmere.records.trial import History
from cashmere.strategies.bayesian_optimisation import BayesianOptimisation
from cashmere.strategies.shared.factories import HOLDS_STRATEGY, StrategyFactory
from cashmere.strategies.shared.per_algorithm import PerAlgorithm


def max_ucb_index(best_reward: Float64, n_trials: IntArray, *, exploration: float) -> FloatArray:
    """Return the upper bound on the largest reward of each arm: U_i = max_s r_i(s) + (alpha ln t / n_i)^2.

    Parameters
    ----------
    best_reward : (k,) array
        Largest reward of each arm so far, from 0 to 1.
    n_trials : (k,) array
        Trials n_i of each arm; their sum is t. An arm without trials has an infinite bound.
    exploration : float
        The factor alpha, at least 0.

    Returns
    -------
    (k,) array

    Notes
    -----
    The bonus falls with the square of the trials, faster than that of a bandit for mean rewards: the losses of an
    algorithm's configurations crowd near its best, so that its largest reward is known after few of them (Balef,
    Vernade and Eggensperger 2025).

    Examples
    --------
    >>> import numpy as np
    >>> max_ucb_index(np.array([0.9, 0.8, 0.0]), np.array([6, 2, 0]), exploration=0.5).round(3)
    array([0.93, 1.07,  inf])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        bonus = np.square(exploration * np.log(n_trials.sum()) / n_trials)
    return np.where(n_trials > 0, best_reward + bonus, np.inf)


@dataclass(frozen=True)
class MaxUCB(PerAlgorithm):
    """Choose the algorithm with the largest upper bound on its best trial; an inner strategy chooses within it.

    After one trial each, the next trial goes to the algorithm whose best loss so far, less a bonus that shrinks with
    the square of its trials, is lowest. No algorithm is dropped, and the budget need not be known.

    Parameters
    ----------
    space, inner
        See `PerAlgorithm`.
    exploration : float
        The factor alpha of the bonus, at least 0, see `max_ucb_index`; 0.5 is the authors' choice.

    Notes
    -----
    - The reward of a trial is 1 for the lowest loss of the history and 0 for the constant predictor and everything
      worse; without a constant predictor, 0 stands for the worst success. The authors scale by the best and the worst
      loss, so that one diverged trial would make all others look alike.
    - Warm starts and pending trials count as trials; a failure has reward 0.
    - An algorithm whose configurations have all been decided leaves its share to the others.
    - An inner strategy that searches for an ensemble sees only the trials of its algorithm, see `RisingBandit`.

    References
    ----------
    Balef, Vernade and Eggensperger (2025), Put CASH on bandits: a max K-armed problem for automated machine learning,
    NeurIPS.
    """

    _: KW_ONLY
    inner: StrategyFactory = field(default=BayesianOptimisation, metadata=HOLDS_STRATEGY)
    exploration: float = 0.5

    def __post_init__(self) -> None:
        if not (np.isfinite(self.exploration) and self.exploration >= 0):
            raise InvalidParameterError("exploration", self.exploration, "a finite number of at least 0")
        super().__post_init__()

    def _open_tasks(self, history: History, members: IntArray) -> list[int]:
        tasks = self._unexhausted(members)
        if not tasks:
            return []
        n_trials = np.bincount(members, minlength=len(self.blocks.names))
        best = np.zeros(len(self.blocks.names))
        np.maximum.at(best, members[: len(history)], _rewards(history))
        index = max_ucb_index(best[tasks], n_trials[tasks], exploration=self.exploration)
        return [task for task, bound in zip(tasks, index, strict=True) if bound == index.max()]


def _rewards(history: History) -> FloatArray:
    """Return the reward of every observation, from 0 to 1, shape ``(n_observations,)``."""
    known = np.array([o.loss for o in history.successes if o.loss is not None and np.isfinite(o.loss)])
    if not len(known):
        return np.zeros(len(history))
    least = known.min()
    worst = history.baseline_loss if np.isfinite(history.baseline_loss) else known.max()
    if worst <= least:  # nothing beats the constant predictor yet
        worst = known.max()
    rewards: FloatArray = np.clip((worst - history.losses) / max(worst - least, np.finfo(float).tiny), 0.0, 1.0)
    return rewards
