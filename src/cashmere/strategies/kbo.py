"""Give every algorithm the same number of trials, and search each independently."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from cashmere.base.arrays import IntArray
from cashmere.records.trial import History
from cashmere.strategies.bayesian_optimisation import BayesianOptimisation
from cashmere.strategies.shared.factories import HOLDS_STRATEGY, StrategyFactory
from cashmere.strategies.shared.per_algorithm import PerAlgorithm


@dataclass(frozen=True)
class KBO(PerAlgorithm):
    """Choose the algorithm with the fewest trials; an inner strategy chooses within it.

    The budget is divided equally over the algorithms, and each is searched as if there were no other: kBO. Unlike in
    `RisingBandit`, no algorithm is ever dropped.

    Parameters
    ----------
    space, inner
        See `PerAlgorithm`.

    Notes
    -----
    - The paper runs whole searches one after the other, which is equivalent because they are independent. When they
      take turns, the shares are equal whenever the search ends, and the budget need not be known.
    - Warm starts count for their algorithm. An algorithm whose configurations have all been decided leaves its share to
      the others.
    - An inner strategy that searches for an ensemble sees only the trials of its algorithm, see `RisingBandit`.

    References
    ----------
    The baseline kBO-ES of Shen, Lu, Li, Tu, Zhang, Cui (2022), DivBO: Diversity-aware CASH for ensemble learning,
    NeurIPS.
    """

    _: KW_ONLY
    inner: StrategyFactory = field(default=BayesianOptimisation, metadata=HOLDS_STRATEGY)

    def _open_tasks(self, history: History, members: IntArray) -> list[int]:
        return self._unexhausted(members)
