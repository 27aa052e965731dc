"""Rising bandits: drop arms that could not catch up even if they kept improving as fast as recently.

Nothing is stored: the remaining arms follow from the losses in order. A check uses only the evaluations granted before
it and no later ones, so further evaluations never change a past check.

======================  =====================  ==================================================================
symbol                  shape                  meaning
======================  =====================  ==================================================================
l_a(j)                  ``(k, j)``             lowest loss of arm a after its j-th pull: the reward, negative
C                       scalar                 window: pulls over which an arm's slope is measured
T                       scalar                 pulls left in the budget; each arm is given all of them
======================  =====================  ==================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cashmere.base.arrays import Float64, FloatArray, IntArray
from cashmere.contests.ledger import Contender
from cashmere.exceptions import InvalidParameterError
from cashmere.records.work_budget import WorkBudget

Slope = Literal["paper", "authors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RisingRules:
    """Rules for pulling and judging arms.

    Attributes
    ----------
    evaluations_per_pull : int
        Evaluations per pull, at least 1.
    window : int
        The smoothing length C, at least 1; 2 for the authors' slope.
    slope : {"paper", "authors"}
        See `pessimistic_and_optimistic`.
    """

    evaluations_per_pull: int = 5
    window: int = 3
    slope: Slope = "paper"

    def __post_init__(self) -> None:
        if self.slope not in ("paper", "authors"):
            raise InvalidParameterError("slope", self.slope, "'paper' or 'authors'")
        for name, least in (("evaluations_per_pull", 1), ("window", 1 if self.slope == "paper" else 2)):
            if getattr(self, name) < least:
                raise InvalidParameterError(name, getattr(self, name), f"at least {least}")

    @property
    def first_check(self) -> int:
        """Cycles after which arms are judged for the first time."""
        return self.window + (self.slope == "paper")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The end of a cycle. Tuples are parallel to `alive`.

    Attributes
    ----------
    cycle : int
        Pulls of every arm so far.
    alive : tuple of int
        Positions of the arms that took part.
    horizon : float
        Pulls left in the budget; infinite if unknown.
    pessimistic, optimistic : tuple of float
        Lowest loss of each arm so far, and a bound on the loss it can reach.
    dropped : tuple of int
        Positions of the arms that leave.
    """

    cycle: int
    alive: tuple[int, ...]
    horizon: float
    pessimistic: tuple[float, ...]
    optimistic: tuple[float, ...]
    dropped: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The remaining arms, and all decisions so far.

    Attributes
    ----------
    alive : tuple of int
        Positions of the remaining arms; empty if all their configurations have been evaluated.
    quotas : tuple of (int or None)
        Evaluations that each of them may have before the next check; None means no limit.
    checks : tuple of Check
        All checks so far.
    """

    alive: tuple[int, ...]
    quotas: tuple[int | None, ...]
    checks: tuple[Check, ...] = ()


def pessimistic_and_optimistic(
    best: Float64, horizon: float, *, window: int, slope: Slope = "paper", least_loss: float = -np.inf
) -> tuple[Float64, Float64]:
    """Return the loss each arm has reached and the lowest it could reach, assuming that losses fall ever more slowly.

    If a curve falls and flattens, the mean slope of the last pulls bounds all later slopes: with
    slope = (l(j - C) - l(j))/C no loss below l(j) - slope T can be reached.

    Parameters
    ----------
    best : (k, j) array
        Lowest loss of each arm after each of its pulls; infinite before the first success.
    horizon : float
        Pulls left, T; may be infinite.
    window : int
        C; ``j > window``, or ``j >= window`` for the authors' slope.
    slope : {"paper", "authors"}
        ``"authors"``: (l(j - C + 1) - l(j))/C as in their code, C - 1 differences divided by C.
    least_loss : float
        Lower bound of all losses.

    Returns
    -------
    pessimistic, optimistic : (k,) arrays
        Losses.

    References
    ----------
    Li, Jiang, Gao, Shao, Zhang and Cui (2020), Efficient automatic CASH via rising bandits, AAAI 34; the two slopes:
    docs/papers/baselines.md#slope-of-rising-bandits.
    """
    present = best[:, -1]
    earlier = best[:, -1 - window if slope == "paper" else -window]
    fall = np.zeros(len(best))
    np.subtract(earlier, present, out=fall, where=np.isfinite(present))  # no success yet: no slope
    with np.errstate(over="ignore"):  # 0 times infinity is 0 here
        ahead = np.multiply(fall / window, horizon, out=np.zeros(len(best)), where=(fall > 0) & (horizon > 0))
    optimistic = np.subtract(present, ahead, out=np.full(len(best), np.inf), where=np.isfinite(present))
    return present.astype(np.float64), np.maximum(optimistic, least_loss)


def find_beaten(pessimistic: FloatArray, optimistic: FloatArray) -> IntArray:
    """Return the positions of the arms that cannot reach what another has reached; if bounds are equal, both stay."""
    beaten: IntArray = np.flatnonzero(optimistic > pessimistic.min())  # the bound of an arm is no higher than its loss
    return beaten


def derive_standing(
    arms: Sequence[Contender],
    rules: RisingRules,
    *,
    budget: WorkBudget | None = None,
    failure_loss: float = np.inf,
    least_loss: float = -np.inf,
) -> Standing:
    """Derive the remaining arms from the evaluations of all arms.

    In each cycle every remaining arm is pulled once; then the beaten ones leave.

    Parameters
    ----------
    arms : sequence of Contender
        The arms, with their evaluations in order.
    rules : RisingRules
        How they are judged.
    budget : WorkBudget, optional
        Budget of the whole study. Remaining seconds are converted to evaluations of mean duration; without a budget the
        horizon is infinite, and only arms that have not improved within the window can leave.
    failure_loss : float
        Stands for a failed evaluation.
    least_loss : float
        Lower bound of all losses.

    Notes
    -----
    An arm whose configurations have all been evaluated leaves at the end of the cycle; evaluations beyond an arm's
    quota (warm starts) count once they are granted. The last arm takes the rest.
    """
    alive, cycle = tuple(range(len(arms))), rules.first_check
    checks: list[Check] = []
    granted = np.zeros(len(arms), dtype=np.int64)
    while len(alive) > 1:
        quotas = _quotas(arms, alive, rules.evaluations_per_pull * cycle)
        if any(len(arms[i].losses) < quota for i, quota in zip(alive, quotas, strict=True)):
            return Standing(alive=alive, quotas=quotas, checks=tuple(checks))
        granted[list(alive)] = quotas
        horizon = _pulls_left(arms, granted, budget, rules.evaluations_per_pull)
        best = np.stack([_best_after_pulls(arms[i].losses, rules, cycle, failure_loss) for i in alive])
        pessimistic, optimistic = pessimistic_and_optimistic(
            best, horizon, window=rules.window, slope=rules.slope, least_loss=least_loss
        )
        beaten = find_beaten(pessimistic, optimistic)
        exhausted = [place for place, i in enumerate(alive) if _is_exhausted(arms[i], granted[i])]
        leaving = {alive[place] for place in (*beaten.tolist(), *exhausted)}
        check = Check(
            cycle=cycle,
            alive=alive,
            horizon=horizon,
            pessimistic=tuple(pessimistic.tolist()),
            optimistic=tuple(optimistic.tolist()),
            dropped=tuple(sorted(leaving)),
        )
        checks.append(check)
        alive, cycle = tuple(i for i in alive if i not in leaving), cycle + 1
    return Standing(alive=alive, quotas=tuple(arms[i].capacity for i in alive), checks=tuple(checks))


def _quotas(arms: Sequence[Contender], alive: Sequence[int], n: int) -> tuple[int, ...]:
    capacities = [arms[i].capacity for i in alive]
    return tuple(n if capacity is None else min(n, capacity) for capacity in capacities)


def _is_exhausted(arm: Contender, granted: int) -> bool:
    return arm.capacity is not None and granted >= arm.capacity


def _best_after_pulls(losses: FloatArray, rules: RisingRules, n_pulls: int, failure_loss: float) -> Float64:
    """Return the lowest loss after each pull, shape ``(n_pulls,)``; for an exhausted arm, the last one is repeated."""
    known = np.where(np.isnan(losses), failure_loss, losses)
    best = np.minimum.accumulate(np.append(known, np.inf)[: max(len(known), 1)])
    ends = np.minimum(rules.evaluations_per_pull * np.arange(1, n_pulls + 1), len(best))
    after: Float64 = best[ends - 1]
    return after


def _pulls_left(arms: Sequence[Contender], granted: IntArray, budget: WorkBudget | None, size: int) -> float:
    n_granted = int(granted.sum())
    left = np.inf
    if budget is not None and budget.trials is not None:
        left = budget.trials - n_granted
    if budget is not None and budget.worker_seconds is not None:
        spent = sum(float(arm.seconds[:n].sum()) for arm, n in zip(arms, granted, strict=True))
        mean = spent / max(n_granted, 1)
        left = min(left, (budget.worker_seconds - spent) / mean) if mean > 0 else left
    return float(np.floor(max(left, 0.0) / size))
