"""The course of a contest, derived from the evaluations of its contenders.

A contest stores nothing: rounds, eliminations and the evaluations each contender may still make follow from the losses
and durations in order. A round uses only the evaluations it granted and no later ones, so further evaluations never
change a finished round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from cashmere.base.arrays import Float64, FloatArray
from cashmere.contests.budgets import cut_chain, first_round, number_of_rounds, round_share
from cashmere.contests.elimination import Verdict, drop_defeated, drop_highest
from cashmere.contests.reasons import Exhausted, Reason, reason_from_json
from cashmere.contests.rules import Rules
from cashmere.contests.significance import paired_samples
from cashmere.exceptions import MissingParameterError
from cashmere.records.work_budget import WorkBudget

_LEAST_SECONDS = 1e-3
"""Evaluations count at least this duration: with a clock that stands still, a round would never end."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contender:
    """A sub-space and its evaluations.

    Attributes
    ----------
    name : str
        Its name in the ledger.
    losses : (n,) array
        Losses in order of evaluation; NaN for failures.
    seconds : (n,) array
        Duration of each evaluation.
    capacity : int or None
        How many different configurations the sub-space has; None if infinite.
    """

    name: str
    losses: FloatArray
    seconds: FloatArray
    capacity: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A finished round. Tuples are parallel to `alive` unless stated otherwise.

    Attributes
    ----------
    number : int
        From 0.
    alive : tuple of int
        Positions of the contenders that took part.
    granted, totals : tuple of int
        Evaluations in this round, and in total up to its end.
    scores : tuple of (float or None)
        Best loss up to the end of the round; None without any evaluation.
    test : str or None
        ``"friedman"``, ``"wilcoxon"``, or None if there was no test.
    statistic, p_value : float or None
        Statistic and probability of the test.
    adjusted_p : tuple of (float or None)
        Adjusted probability of the difference from the best one; empty without comparisons, None for contenders that
        did not enter them.
    dropped : tuple of int
        Positions of the contenders that left, a subset of `alive`.
    reasons : tuple of Reason
        Why they left, parallel to `dropped`.
    """

    number: int
    alive: tuple[int, ...]
    granted: tuple[int, ...]
    totals: tuple[int, ...]
    scores: tuple[float | None, ...]
    test: str | None = None
    statistic: float | None = None
    p_value: float | None = None
    adjusted_p: tuple[float | None, ...] = ()
    dropped: tuple[int, ...] = ()
    reasons: tuple[Reason, ...] = ()

    @property
    def survivors(self) -> tuple[int, ...]:
        """Positions of the contenders that remain."""
        return tuple(i for i in self.alive if i not in self.dropped)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRound:
    """The current round.

    Attributes
    ----------
    number : int
        From 0.
    alive : tuple of int
        Positions of the contenders that take part.
    quotas : tuple of (int or None)
        How many evaluations each may have by the end of the round, earlier rounds included; None if there is no limit.
    """

    number: int
    alive: tuple[int, ...]
    quotas: tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """All rounds of a contest so far.

    Attributes
    ----------
    names : tuple of str
        Names of the contenders.
    rounds : tuple of Round
        Finished rounds, in order.
    open : OpenRound or None
        The current round; None once every remaining contender has been evaluated exhaustively.

    Examples
    --------
    >>> import numpy as np
    >>> losses = {"svm": [0.3, 0.2], "forest": [0.1, 0.2], "knn": [0.5, 0.4]}
    >>> contenders = [Contender(name=n, losses=np.array(l), seconds=np.ones(2)) for n, l in losses.items()]
    >>> ledger = derive_ledger(contenders, Rules(b_first=2), budget=WorkBudget(trials=20))
    >>> str(ledger.rounds[0].reasons[1])
    'best loss 0.4; the 1 kept of 3 reach 0.1'
    >>> ledger.open
    OpenRound(number=1, alive=(1,), quotas=(None,))
    """

    names: tuple[str, ...]
    rounds: tuple[Round, ...] = ()
    open: OpenRound | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain data for `from_json`."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild the ledger that `to_json` described; JSON turns tuples into lists, which are accepted."""
        return cls(
            names=tuple(data["names"]),
            rounds=tuple(map(_round_from_json, data["rounds"])),
            open=None if data["open"] is None else OpenRound(**_with_tuples(data["open"])),
        )


def _round_from_json(data: Mapping[str, Any]) -> Round:
    values = _with_tuples(data)
    return Round(**{**values, "reasons": tuple(map(reason_from_json, values.get("reasons", ())))})


def _with_tuples(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}


def derive_ledger(
    contenders: Sequence[Contender],
    rules: Rules,
    *,
    budget: WorkBudget | None = None,
    failure_floor: float = -np.inf,
    known: Ledger | None = None,
) -> Ledger:
    """Return the rounds that follow from the evaluations.

    Parameters
    ----------
    contenders : sequence of Contender
        In the order in which ties are broken.
    rules : Rules
        Rules of the contest.
    budget : WorkBudget, optional
        Evaluations and seconds of the whole contest; with both, the scarcer one decides. Seconds are compared with the
        contenders' durations. A contest by statistics needs none.
    failure_floor : float
        Smallest loss of a failed evaluation: the worst possible loss, or that of the constant predictor. It is raised
        to the worst loss in a round (cf. `cashmere.records.trial.History.failure_loss`).
    known : Ledger, optional
        Ledger of a shorter history of the same contenders: reusing its rounds saves time and changes nothing.

    Raises
    ------
    MissingParameterError
        If a contest by the highest value has no budget.

    Notes
    -----
    - A contender left alone has no limit.
    - Budget that a schedule leaves over after its last round goes to the leader.
    - A contender whose configurations have all been evaluated leaves at the end of the round, whatever its loss: there
      is nothing to spend on it.
    - With a budget in seconds, a round gets its share of the remaining time, and each survivor as many evaluations (at
      least 1) as fit into it, judging by the mean durations so far.

    References
    ----------
    Nguyen, Kononova, Menzel, Sendhoff, Bäck (2022), An efficient contesting procedure for AutoML optimization, IEEE
    Access 10, algorithms 1 and 2.
    """
    if budget is None and rules.elimination == "highest":
        raise MissingParameterError(
            "budget",
            "A contest by the highest value divides its budget among the rounds, but no budget is known. Pass "
            "budget, or use another elimination.",
        )
    contest = _Contest(contenders, rules, budget, failure_floor)
    rounds = [] if known is None else list(known.rounds)
    current = known.open if known is not None else contest.open(rounds)
    while current is not None and contest.is_over(current):
        rounds.append(contest.close(current, rounds))
        current = contest.open(rounds)
    return Ledger(names=tuple(c.name for c in contenders), rounds=tuple(rounds), open=current)


@dataclass(frozen=True, slots=True)
class _Contest:
    contenders: Sequence[Contender]
    rules: Rules
    budget: WorkBudget | None
    failure_floor: float

    def open(self, rounds: Sequence[Round]) -> OpenRound | None:
        """Return the round after the given ones."""
        number = len(rounds)
        alive = rounds[-1].survivors if rounds else tuple(i for i, c in enumerate(self.contenders) if c.capacity != 0)
        if not alive:
            return None
        totals = self._totals(rounds)
        if len(alive) == 1:
            grants: tuple[int | None, ...] = (None,)
        elif number == 0:
            grants = first_round(len(alive), self.budget.trials if self.budget else None, self.rules.first)
        elif self.rules.elimination == "statistical":
            grants = (1,) * len(alive)
        else:
            grants = (self._evaluations(rounds, totals),) * len(alive)
        quotas = tuple(
            _smaller(None if grant is None else totals[i] + grant, self.contenders[i].capacity)
            for i, grant in zip(alive, grants, strict=True)
        )
        return OpenRound(number=number, alive=alive, quotas=quotas)

    def is_over(self, current: OpenRound) -> bool:
        """Return whether all evaluations of the round are known."""
        return all(
            quota is not None and len(self.contenders[i].losses) >= quota
            for i, quota in zip(current.alive, current.quotas, strict=True)
        )

    def close(self, current: OpenRound, rounds: Sequence[Round]) -> Round:
        """Return the round with its verdict."""
        before = self._totals(rounds)
        totals = before.copy()
        for i, quota in zip(current.alive, current.quotas, strict=True):
            totals[i] = quota or 0
        losses = self._losses(totals)
        contested = [i for i in current.alive if totals[i] != self.contenders[i].capacity]
        if self.rules.elimination == "statistical":
            verdict = self._defeated(contested, losses)
        else:
            verdict = self._not_among_the_best(contested, losses, before, rounds, current)
        reasons: dict[int, Reason] = {
            contested[k]: reason for k, reason in zip(verdict.dropped, verdict.reasons, strict=True)
        }
        for i in set(current.alive) - set(contested):
            reasons[i] = Exhausted(n_configurations=totals[i])
        adjusted = dict(zip(contested, verdict.adjusted_p, strict=False))
        dropped = tuple(i for i in current.alive if i in reasons)
        return Round(
            number=current.number,
            alive=current.alive,
            granted=tuple(totals[i] - before[i] for i in current.alive),
            totals=tuple(totals[i] for i in current.alive),
            scores=tuple(float(losses[i].min()) if len(losses[i]) else None for i in current.alive),
            test=verdict.test,
            statistic=verdict.statistic,
            p_value=verdict.p_value,
            adjusted_p=tuple(adjusted.get(i) for i in current.alive) if adjusted else (),
            dropped=dropped,
            reasons=tuple(reasons[i] for i in dropped),
        )

    def _defeated(self, contested: Sequence[int], losses: Sequence[Float64]) -> Verdict:
        if len(contested) < 2:
            return Verdict()
        return drop_defeated(
            paired_samples([losses[i] for i in contested], self.rules.n_initial),
            [self.contenders[i].name for i in contested],
            alpha=self.rules.alpha,
            min_blocks=self.rules.min_blocks,
            authors_z=self.rules.authors_z,
        )

    def _not_among_the_best(
        self,
        contested: Sequence[int],
        losses: Sequence[Float64],
        before: Sequence[int],
        rounds: Sequence[Round],
        current: OpenRound,
    ) -> Verdict:
        eta, schedule = self.rules.eta, self.rules.schedule
        n_contenders = len(rounds[0].alive if rounds else current.alive)
        following = current.number + 1
        is_last = following >= number_of_rounds(n_contenders, eta=eta, schedule=schedule)
        chain = cut_chain(n_contenders, eta)
        # Contenders without a loss are worse than any other, and keep their order.
        scores = np.array([losses[i].min() if len(losses[i]) else np.inf for i in contested])
        latest = [losses[i][before[i] :] if len(losses[i]) > before[i] else losses[i][-1:] for i in contested]
        return drop_highest(
            scores,
            np.array([each.mean() if len(each) else np.inf for each in latest]),
            1 if is_last else chain[min(following, len(chain) - 1)],
            max_extra=0 if is_last else self.rules.ties_kept,
        )

    def _evaluations(self, rounds: Sequence[Round], totals: Sequence[int]) -> int:
        """Return how many evaluations each survivor gets in a round by the highest value after the first one."""
        survivors, number, n_contenders = rounds[-1].survivors, len(rounds), len(rounds[0].alive)

        def share(remaining: float) -> float:
            return round_share(
                remaining, number, n_contenders=n_contenders, eta=self.rules.eta, schedule=self.rules.schedule
            )

        limits = []
        if self.budget is not None and self.budget.trials is not None:
            limits.append(int(share(self.budget.trials - sum(totals))) // len(survivors))
        if self.budget is not None and self.budget.worker_seconds is not None:
            spent = [np.sum(c.seconds[:n]) for c, n in zip(self.contenders, totals, strict=True)]
            costs = [max(float(spent[i]) / max(totals[i], 1), _LEAST_SECONDS) for i in survivors]
            limits.append(max(1, int(share(self.budget.worker_seconds - float(np.sum(spent))) / sum(costs))))
        return min(limits)

    def _totals(self, rounds: Sequence[Round]) -> list[int]:
        """Return how many evaluations each contender has been granted so far."""
        totals = [0] * len(self.contenders)
        for each in rounds:
            for i, total in zip(each.alive, each.totals, strict=True):
                totals[i] = total
        return totals

    def _losses(self, totals: Sequence[int]) -> list[Float64]:
        """Return the losses of the evaluations granted to each contender, with finite losses for failures."""
        granted = [np.asarray(c.losses[:n], dtype=np.float64) for c, n in zip(self.contenders, totals, strict=True)]
        every = np.concatenate(granted)
        finite = every[np.isfinite(every)]
        worst = max(float(finite.max(initial=-np.inf)), self.failure_floor)
        return [np.where(np.isfinite(each), each, worst if np.isfinite(worst) else 1.0) for each in granted]


def _smaller(quota: int | None, capacity: int | None) -> int | None:
    limits = [limit for limit in (quota, capacity) if limit is not None]
    return min(limits, default=None)
