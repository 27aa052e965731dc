"""Rising bandits: algorithms take turns, and those that can no longer win are dropped."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from cashmere.base.arrays import IntArray
from cashmere.contests import Contender, RisingRules, Slope, Standing, derive_standing
from cashmere.records.trial import History
from cashmere.strategies.bayesian_optimisation import BayesianOptimisation
from cashmere.strategies.shared.factories import HOLDS_STRATEGY, StrategyFactory
from cashmere.strategies.shared.per_algorithm import PerAlgorithm
from cashmere.strategies.shared.study_budget import budget_of_study, check_budget


@dataclass(frozen=True)
class RisingBandit(PerAlgorithm):
    """Choose the algorithm to try next, from how the best loss of each has fallen; an inner strategy chooses within it.

    The algorithms are pulled in turn, a few trials each. An algorithm is dropped when it could not reach the best loss
    of another even if its loss fell as fast as in its last pulls until the budget is spent. Everything follows from the
    history.

    Parameters
    ----------
    space, inner
        See `PerAlgorithm`.
    evaluations_per_pull : int
        Trials per pull, at least 1.
    window : int
        Pulls over which the slope is measured, at least 1; no algorithm is dropped before one pull more.
    slope : {"paper", "authors"}
        ``"authors"`` measures the slope like their code, slightly lower and one pull earlier; see
        `cashmere.contests.pessimistic_and_optimistic`.
    budget : int or None
        Trials of the whole study, at least 1; by default the plan of the study, in trials or seconds. If neither is
        known, only algorithms that have not improved within the window can be dropped.

    Notes
    -----
    - The trials of the algorithms' pulls are interleaved one by one, which is equivalent because they are independent.
      At the end of a cycle in which algorithms are judged, the answer is None until all outcomes are known.
    - Warm starts count for their algorithm. Failed trials count with the worst possible loss, or for an unbounded
      metric with that of the constant predictor.
    - An algorithm whose configurations have all been evaluated is dropped, too. If none is left, the rest of the space
      is searched at random.
    - An inner strategy that searches for an ensemble (``inner=OptDivBO``) sees only the trials of its algorithm, and
      selects its pool from these. The bound relies on curves that depend only on an algorithm's own pulls, and the
      surrogates know the hyper-parameters of one algorithm only. So the strategy looks for diversity inside each
      algorithm; diversity between algorithms is left to the ensemble selection from all trials.

    References
    ----------
    Li, Jiang, Gao, Shao, Zhang and Cui (2020), Efficient automatic CASH via rising bandits, AAAI 34.
    """

    _: KW_ONLY
    inner: StrategyFactory = field(default=BayesianOptimisation, metadata=HOLDS_STRATEGY)
    evaluations_per_pull: int = 5
    window: int = 3
    slope: Slope = "paper"
    budget: int | None = None

    def __post_init__(self) -> None:
        _ = self.rules  # raises for impossible rules now, not at the first suggestion
        check_budget(self.budget)
        super().__post_init__()

    @property
    def rules(self) -> RisingRules:
        """Rules for pulling and judging algorithms."""
        return RisingRules(evaluations_per_pull=self.evaluations_per_pull, window=self.window, slope=self.slope)

    def _open_tasks(self, history: History, members: IntArray) -> list[int] | None:
        standing = self._standing(history, members)
        counts = np.bincount(members, minlength=len(self.blocks.names))
        tasks = [int(self.blocks.drawable[arm]) for arm in standing.alive]
        unfinished = [
            task for task, quota in zip(tasks, standing.quotas, strict=True) if quota is None or counts[task] < quota
        ]
        return None if not unfinished and len(tasks) > 1 else unfinished

    def standing(self, history: History) -> Standing:
        """Return the remaining algorithms, as positions among those that the prior draws, and all decisions so far."""
        decided = self.encoder.encode(trial.configuration for trial in history.trials)
        return self._standing(history, self.blocks.tasks(decided))

    def _standing(self, history: History, members: IntArray) -> Standing:
        losses = np.array([np.nan if o.loss is None else o.loss for o in history], dtype=np.float64)
        seconds = np.array([o.duration_seconds for o in history], dtype=np.float64)
        observed = members[: len(history)]
        arms = [
            Contender(
                name=self.blocks.names[task],
                losses=losses[observed == task],
                seconds=seconds[observed == task],
                capacity=self._capacities[task],
            )
            for task in self.blocks.drawable.tolist()
        ]
        failure_loss = history.baseline_loss if history.worst_loss is None else history.worst_loss
        return derive_standing(
            arms,
            self.rules,
            budget=budget_of_study(self.budget, history),
            failure_loss=failure_loss if np.isfinite(failure_loss) else np.inf,
            least_loss=-np.inf if history.worst_loss is None else 0.0,
        )
