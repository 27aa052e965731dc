"""What a finished search can report: its best single configuration, its ensembles, and how its pool grew.

Everything follows from the history and from the predictions of the trials for the test rows, so that the same code
judges runs on tables and replays of recordings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from benchmarks.recordings.replay import EVERY
from cashmere.analysis import PoolTrajectory, mean_over_pairs, pairwise_disagreement, pool_trajectory, pool_updates
from cashmere.ensembles import Ensemble, WeightedEnsemble, build_ensemble
from cashmere.ensembles.weights import best_positions
from cashmere.evaluation.metrics import Metric
from cashmere.exceptions import MetricError
from cashmere.records.trial import History

TIE: Final = "secondary"
"""As in the final selection of `fit` and in replays, see `cashmere.ensembles.TieRule`."""

FORMS = ("best", "selection", "members", "selection100", "bagging", "bagging_uniform", "stacking")
"""What may be reported; the first three at every checkpoint, the others at the end.

``best``: the single configuration with the lowest validation loss, the earliest of equals. ``selection``: greedy
selection of 25, ``selection100`` of 100. ``members``: the ensemble the strategy itself keeps, if it does. ``bagging``:
the five best, weighted by their losses, and ``bagging_uniform`` equally. ``stacking``: a linear model of the five best.
"""

DIGITS = 8

Row = tuple[int, float | None, float | None]
"""Trials, validation loss, test loss."""

Members = Callable[[History], Sequence[int]]
"""Numbers of the trials, repetitions included, whose mean prediction a strategy reports after a history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a search reports.

    Attributes
    ----------
    forms : dict of str to list of Row
        Losses of each of `FORMS`. Rows begin when a trial has succeeded.
    test_losses : list of float or None
        Test loss of every trial alone.
    updates : dict of str to list of int
        Updates of the pool in the last ``"50"`` and ``"100"`` trials: all, and those that lowered the loss.
    minimum_diversity : list of float or None
        Diversity of every trial to the pool before it (DivBO, figure 5).
    disagreement : list of float or None
        Mean over pairs of distinct members of the pool at the checkpoints (figure 6); none for values.
    member_loss : float or None
        Mean validation loss of the distinct members at the end.
    """

    forms: dict[str, list[Row]]
    test_losses: list[float | None]
    updates: dict[str, list[int]]
    minimum_diversity: list[float | None]
    disagreement: list[float | None]
    member_loss: float | None


def make_report(
    history: History,
    test: Sequence[np.ndarray | None],
    y_test: np.ndarray,
    metric: Metric,
    members: Members | None = None,
) -> Report:
    """Judge a finished search.

    Parameters
    ----------
    history : History
        With metric and targets, and the predictions of every success.
    test : sequence of arrays or None
        What each trial predicts for the test rows; None for failures.
    y_test : (n_test,) array
        Class codes or values.
    metric : Metric
        Metric for the test rows.
    members : callable, optional
        For the form ``members``.
    """
    pool = pool_trajectory(history, size=25, tie=TIE, max_pools=max(1, len(history)))
    judge = _Judge(history, test, y_test, metric)
    points = checkpoints(len(history))
    forms = {"best": judge.best(points), "selection": judge.pools(points, pool)}
    if members is not None:
        forms["members"] = judge.kept(points, members)
    forms |= judge.final_forms()
    is_classification = history.targets is not None and metric.needs != "values"
    return Report(
        forms={name: rows for name, rows in forms.items() if rows},
        test_losses=[None if p is None else judge.test_loss(p) for p in test],
        updates={str(last): list(pool_updates(pool, last=last)) for last in (50, 100)},
        minimum_diversity=[rounded(value, 4) for value in pool.minimum_diversity],
        disagreement=[judge.disagreement(pool.pools[n - 1]) for n in points] if is_classification else [],
        member_loss=rounded(pool.member_losses[-1]) if len(pool) else None,
    )


def checkpoints(n_trials: int) -> list[int]:
    """Return the numbers of trials after which a search is judged: every `EVERY`, and all.

    Examples
    --------
    >>> checkpoints(12)
    [5, 10, 12]
    """
    points = list(range(EVERY, n_trials + 1, EVERY))
    return points if n_trials in points else [*points, n_trials]


def rounded(value: float, digits: int = DIGITS) -> float | None:
    """Return a number for JSON, None for one that is missing."""
    return round(float(value), digits) if np.isfinite(value) else None


@dataclass(frozen=True, slots=True, eq=False)
class _Judge:
    history: History
    test: Sequence[np.ndarray | None]
    y_test: np.ndarray
    metric: Metric

    def test_loss(self, prediction: np.ndarray) -> float | None:
        try:
            return rounded(self.metric.loss(self.y_test, prediction, None))
        except MetricError:  # values that explode on unseen rows
            return None

    def best(self, points: Sequence[int]) -> list[Row]:
        rows = []
        for n in points:
            incumbent = _beginning(self.history, n).incumbent
            if incumbent is not None and incumbent.loss is not None:
                rows.append((n, rounded(incumbent.loss), self._average([incumbent.trial.number])))
        return rows

    def pools(self, points: Sequence[int], pool: PoolTrajectory) -> list[Row]:
        return [(n, rounded(pool.losses[n - 1]), self._average(pool.pools[n - 1])) for n in points if pool.pools[n - 1]]

    def kept(self, points: Sequence[int], members: Members) -> list[Row]:
        """Return the strategy's ensemble; its validation loss is the lowest so far, as it may rise again."""
        rows: list[Row] = []
        lowest = np.inf
        for n in points:
            numbers = members(_beginning(self.history, n))
            if len(numbers):
                stack = [np.asarray(self.history[i].predictions, dtype=np.float64) for i in numbers]
                assert self.history.targets is not None
                y = self.history.targets.astype(self.y_test.dtype)
                lowest = min(lowest, self.metric.loss(y, np.mean(stack, axis=0), None))
                rows.append((n, rounded(lowest), self._average(numbers)))
        return rows

    def final_forms(self) -> dict[str, list[Row]]:
        """Return what can be built from all trials at once."""
        successes = self.history.successes
        if not successes:
            return {}
        numbers = [o.trial.number for o in successes]
        predictions = [np.asarray(o.predictions) for o in successes]
        losses = [float("nan") if o.loss is None else o.loss for o in successes]
        y = np.asarray(self.history.targets)
        made: dict[str, tuple[Ensemble, float]] = {
            "selection100": build_ensemble("selection", numbers, predictions, y, self.metric, size=100, tie=TIE)
        }
        for method in ("bagging", "stacking"):
            made[method] = build_ensemble(method, numbers, predictions, y, self.metric, losses=losses)
        five = best_positions(losses, 5)
        equal = WeightedEnsemble(tuple(numbers[i] for i in five), (1 / len(five),) * len(five))
        combined = equal.combine([predictions[i] for i in five])
        made["bagging_uniform"] = equal, self.metric.loss(y.astype(self.y_test.dtype), combined, None)
        return {
            form: [
                (
                    len(self.history),
                    rounded(loss),
                    self.test_loss(ensemble.combine([self._test(i) for i in ensemble.members])),
                )
            ]
            for form, (ensemble, loss) in made.items()
        }

    def disagreement(self, pool: Sequence[int]) -> float | None:
        distinct = [np.asarray(self.history[i].predictions) for i in sorted(set(pool))]
        return rounded(mean_over_pairs(pairwise_disagreement(distinct)), 4) if len(distinct) > 1 else None

    def _average(self, numbers: Sequence[int]) -> float | None:
        """Return the test loss of the mean prediction, repetitions counted."""
        distinct, counts = np.unique(numbers, return_counts=True)
        weights = counts / counts.sum()
        return self.test_loss(sum(w * self._test(int(i)) for i, w in zip(distinct, weights, strict=True)))

    def _test(self, number: int) -> np.ndarray:
        return np.asarray(self.test[number], dtype=np.float64)


def _beginning(history: History, n: int) -> History:
    return replace(history, observations=history.observations[:n])
