"""How the pool of a search grew: what each trial added, and how the pool changed.

======================  ==========================  =============================================================
symbol                  shape                       meaning
======================  ==========================  =============================================================
P_t                     multiset                    pool after trial t: ensemble selection from the successes 0 .. t
L_t                     number                      validation loss of the ensemble of P_t
x_t                     ``(n_rows[, C])``           predictions of trial t for the validation rows
======================  ==========================  =============================================================

References
----------
Shen et al. (2022), DivBO: Diversity-aware CASH for ensemble learning, NeurIPS, Section 4 (Figures 1 and 5, Table 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cashmere.analysis.diversity import diversities
from cashmere.base.arrays import AnyArray, BoolArray, Float64, FloatArray, IntArray
from cashmere.ensembles import IncrementalSelection, TieRule, choose_rows
from cashmere.ensembles.pool import MAX_ROWS
from cashmere.exceptions import ArrayError, MissingParameterError
from cashmere.records.loss import Loss
from cashmere.records.trial import History

if TYPE_CHECKING:
    import pandas as pd


MAX_POOLS = 300
"""Largest number of pools to build. A longer history is sampled on a grid, see `trace_pool`."""

_LAST = 100
"""Last trials that each get a pool, if these take at most half of all pools."""

_AT_ONCE = 64
"""Trials compared with a pool at a time, to bound memory."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoolTrajectory:
    """The pool after each trial, and how the trial relates to it.

    Attributes
    ----------
    pools : tuple of tuple of int
        P_t: positions of the chosen trials in the history, ascending, with repetitions; empty before the first success.
    losses : (n_trials,) array
        L_t on the validation rows used; NaN while the pool is empty.
    changed : (n_trials,) bool array
        Whether P_t differs from P_(t-1) as a multiset (a *pool update*). The first pool counts.
    effective : (n_trials,) bool array
        Whether it changed and L_t is strictly lower than L_(t-1) (an *effective update*). The first pool counts.
    minimum_diversity : (n_trials,) array
        Smallest diversity between trial t and a member of P_(t-1), see `diversities`; NaN for failures and while the
        pool is empty.
    member_losses : (n_trials,) array
        Mean loss of the distinct members of P_t, each as recorded with its trial; NaN while the pool is empty.
    built : (n_trials,) bool array
        Whether the pool was built after this trial; otherwise the previous pool is repeated, and a change shows later.
    n_rows : int
        Number of validation rows used.
    """

    pools: tuple[tuple[int, ...], ...]
    losses: Float64
    changed: BoolArray
    effective: BoolArray
    minimum_diversity: Float64
    member_losses: Float64
    built: BoolArray
    n_rows: int

    def __len__(self) -> int:
        return len(self.pools)

    def frame(self) -> pd.DataFrame:
        """Return one row per trial, without the pools themselves but with their number of distinct members."""
        import pandas as pd

        return pd.DataFrame(
            {
                "n_members": [len(set(pool)) for pool in self.pools],
                "loss": self.losses,
                "changed": self.changed,
                "effective": self.effective,
                "minimum_diversity": self.minimum_diversity,
                "member_loss": self.member_losses,
                "built": self.built,
            },
            index=pd.RangeIndex(len(self), name="trial"),
        )


class PoolUpdates(NamedTuple):
    """Number of trials that changed the pool, and number that improved it."""

    updates: int
    effective: int


def pool_trajectory(
    history: History,
    *,
    metric: Loss | None = None,
    size: int = 25,
    tie: TieRule = "first",
    max_pools: int = MAX_POOLS,
) -> PoolTrajectory:
    """Build the pool after each trial of a history.

    Parameters
    ----------
    history : History
        History of the study. Failures, and successes without finite predictions, leave the pool unchanged.
    metric : Loss, optional
        Metric by which the pool is chosen; by default that of the history.
    size, tie
        Parameters of the selection, see `cashmere.ensembles.select_ensemble`. The ensemble of a run breaks ties by
        "secondary".
    max_pools
        See `trace_pool`.

    Raises
    ------
    MissingParameterError
        If the history has no targets, or neither it nor the caller gives a metric.

    Notes
    -----
    The pool before trial t holds all successes up to t - 1, also those that the strategy could not look at yet when it
    decided trial t (`lookahead` in docs/design.md).
    """
    metric = history.metric if metric is None else metric
    if metric is None or history.targets is None:
        missing = "metric" if metric is None else "targets"
        raise MissingParameterError(
            missing,
            f"The history has no {missing}, but its pools cannot be scored without metric and targets. Make the study "
            "with Study(..., metric=..., targets=...), as a run does.",
        )
    return trace_pool(
        [o.predictions if o.succeeded else None for o in history],
        [np.nan if o.loss is None else o.loss for o in history],
        history.targets,
        metric,
        weight=history.row_weights,
        size=size,
        tie=tie,
        max_pools=max_pools,
    )


def trace_pool(
    predictions: Sequence[AnyArray | None],
    losses: Sequence[float] | FloatArray,
    y: AnyArray,
    metric: Loss,
    *,
    weight: FloatArray | None = None,
    size: int = 25,
    tie: TieRule = "first",
    max_rows: int = MAX_ROWS,
    max_pools: int = MAX_POOLS,
    seed: int = 0,
) -> PoolTrajectory:
    """Build the pool after each trial, from arrays.

    Parameters
    ----------
    predictions : sequence of (n_rows, n_classes) or (n_rows,) arrays or None
        Validation predictions of each trial, in order; None for a failure.
    losses : (n_trials,) sequence of float
        Recorded losses; those of failures are ignored.
    y : (n_rows,) array
        Class codes or values.
    metric : Loss
        Metric by which the pool is chosen.
    weight : (n_rows,) array, optional
        Row weights, for the selection and for the diversity.
    size, tie
        Parameters of the selection.
    max_rows : int
        Largest number of rows to use, spread evenly over the targets, see `cashmere.ensembles.choose_rows`.
    max_pools : int
        Largest number of pools. In a longer history they are built on a grid whose steps grow linearly, as early pools
        change most and cost least; from 200 pools on, 100 are those after the last 100 trials. Between two points of
        the grid the pool of the earlier one is used, also to measure the diversity of a trial.
    seed : int
        Seed for the choice of rows.

    Returns
    -------
    PoolTrajectory

    Notes
    -----
    The running time depends on the changes of the pool: the last selection is reused up to the first step that a new
    trial wins.
    """
    if len(predictions) != len(losses):
        raise ArrayError(
            "losses", f"losses must hold one loss per trial; got {len(losses)} for {len(predictions)} trials."
        )
    rows = choose_rows(np.asarray(y), max_rows, np.random.default_rng(seed))
    share = None if weight is None else np.asarray(weight, dtype=np.float64)[rows]
    stacks = [_usable(prediction, rows) for prediction in predictions]
    selection = IncrementalSelection(np.asarray(y)[rows], metric, size=size, weight=share, tie=tie)
    due = _grid(len(stacks), max_pools)
    return _grow(stacks, np.asarray(losses, dtype=np.float64), selection, due, share, n_rows=len(rows))


def _grow(
    stacks: Sequence[AnyArray | None],
    recorded: Float64,
    selection: IncrementalSelection,
    due: BoolArray,
    weight: FloatArray | None,
    *,
    n_rows: int,
) -> PoolTrajectory:
    """Add the trials one by one, and build the pool where it is due."""
    n_trials = len(stacks)
    changed, effective = np.zeros(n_trials, dtype=bool), np.zeros(n_trials, dtype=bool)
    ensemble_losses, member_losses, minimum = (np.full(n_trials, np.nan) for _ in range(3))
    pools: list[tuple[int, ...]] = []
    seen: list[int] = []
    known: list[AnyArray] = []
    pool: tuple[int, ...] = ()
    members: AnyArray | None = None
    waiting: list[int] = []  # trials since the pool changed; comparing many at once is faster
    loss, n_built = np.inf, 0
    for t, stack in enumerate(stacks):
        if stack is not None:
            seen.append(t)
            known.append(stack)
            waiting.append(t)
        if due[t] and len(seen) > n_built:
            n_built = len(seen)
            result = selection.select(seen, known)
            chosen = tuple(sorted(seen[k] for k in result.order.tolist()))
            lower = float(result.trajectory[-1]) < loss
            loss = float(result.trajectory[-1])
            if chosen != pool:
                minimum[waiting] = _nearest(known[len(known) - len(waiting) :], members, weight)
                waiting = []
                changed[t], effective[t], pool = True, lower, chosen
                members = np.stack([known[k] for k in result.members])
        pools.append(pool)
        if pool:
            ensemble_losses[t], member_losses[t] = loss, recorded[np.unique(pool)].mean()
    minimum[waiting] = _nearest(known[len(known) - len(waiting) :], members, weight)
    return PoolTrajectory(
        pools=tuple(pools),
        losses=ensemble_losses,
        changed=changed,
        effective=effective,
        minimum_diversity=minimum,
        member_losses=member_losses,
        built=due,
        n_rows=n_rows,
    )


def _nearest(stacks: Sequence[AnyArray], members: AnyArray | None, weight: FloatArray | None) -> Float64:
    """Return the diversity between each prediction and the nearest member."""
    if members is None or not stacks:
        return np.full(len(stacks), np.nan)
    parts = [np.stack(stacks[i : i + _AT_ONCE]) for i in range(0, len(stacks), _AT_ONCE)]
    return np.concatenate([diversities(part, members, row_weights=weight).min(axis=1) for part in parts])


def _usable(prediction: AnyArray | None, rows: IntArray) -> AnyArray | None:
    """Return the rows to use, or None if there are no predictions or some are not finite."""
    if prediction is None:
        return None
    stack = prediction if len(rows) == len(prediction) else prediction[rows]
    return stack if np.isfinite(stack).all() else None


def _grid(n_trials: int, max_pools: int) -> BoolArray:
    """Return the trials after which a pool is built, see `trace_pool`."""
    due = np.ones(n_trials, dtype=bool)
    if n_trials > max_pools:
        n_last = _LAST if max_pools >= 2 * _LAST else 0
        n_before = n_trials - n_last
        due[:n_before] = False
        shares = np.linspace(0, 1, max_pools - n_last)
        due[(shares**2 * (n_before - 1)).round().astype(np.int64)] = True
    return due


def minimum_diversity(history: History, *, metric: Loss | None = None, size: int = 25) -> Float64:
    """Return the distance of each successful trial to the pool before it; NaN while the pool was empty.

    Parameters
    ----------
    history, metric, size
        See `pool_trajectory`, also for the limits on rows and pools.

    Returns
    -------
    (n_successes,) array
        Smallest diversity to a member of the pool, computed from the true predictions, see `diversities`.
    """
    trajectory = pool_trajectory(history, metric=metric, size=size)
    return trajectory.minimum_diversity[[o.succeeded for o in history]]


def pool_updates(trajectory: PoolTrajectory, *, last: int = 50) -> PoolUpdates:
    """Count the changes of the pool over the last trials, including failures.

    Parameters
    ----------
    trajectory : PoolTrajectory
        From `pool_trajectory`. Where not every pool was built (`PoolTrajectory.built`), changes between two points of
        the grid count as one: the true numbers are at least those returned.
    last : int
        Number of last trials to consider; all of a shorter trajectory.

    Examples
    --------
    >>> from cashmere.evaluation.metrics import METRICS
    >>> y = np.array([0.0, 1.0, 2.0])
    >>> trajectory = trace_pool([y + 1, None, y + 2, y - 1], [1, np.nan, 2, 1], y, METRICS["rmse"], size=4)
    >>> trajectory.pools
    ((0, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 0), (0, 0, 3, 3))
    >>> trajectory.minimum_diversity
    array([nan, nan,  1.,  2.])
    >>> pool_updates(trajectory, last=3)
    PoolUpdates(updates=1, effective=1)
    """
    recent = slice(max(0, len(trajectory) - last), None)
    return PoolUpdates(int(trajectory.changed[recent].sum()), int(trajectory.effective[recent].sum()))
