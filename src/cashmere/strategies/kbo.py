"""The same number of trials for every algorithm, each searched on its own."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from cashmere.base.arrays import IntArray
from cashmere.records.trial import History
from cashmere.strategies.bayesian_optimisation import BayesianOptimisation
from cashmere.strategies.shared.factories import HOLDS_STRATEGY, StrategyFactory
from cashmere.strategies.shared.per_algorithm import PerAlgorithm


@dataclass(frozen=True)
class KBO(PerAlgorithm):
    """Decides for the algorithm with the fewest trials; its own strategy decides where in it.

    The budget is divided equally over the algorithms, and each is searched as if there were no other: kBO. No algorithm
    ever leaves, in contrast to `RisingBandit`.

    Parameters
    ----------
    space, inner
        See `PerAlgorithm`.

    Notes
    -----
    - Whole searches one after the other, as in the paper, come to the same as they are independent. Taking turns, the
      shares are equal whenever the search ends, and the budget need not be known.
    - Warm starts count for their algorithm. An algorithm all of whose configurations have been decided leaves its share
      to the others.
    - A strategy inside that searches for an ensemble sees the trials of its algorithm only, see `RisingBandit`.

    References
    ----------
    The baseline kBO-ES of Shen, Lu, Li, Tu, Zhang, Cui (2022), DivBO: Diversity-aware CASH for ensemble learning,
    NeurIPS.
    """

    _: KW_ONLY
    inner: StrategyFactory = field(default=BayesianOptimisation, metadata=HOLDS_STRATEGY)

    def _open_tasks(self, history: History, members: IntArray) -> list[int]:
        counts = np.bincount(members, minlength=len(self.blocks.names))
        return [task for task, capacity in self._capacities.items() if capacity is None or counts[task] < capacity]
