"""Statistics of a comparison: pure functions on a table of losses over trials.

All take a tidy frame ``runs`` with the columns ``recording``, ``strategy``, ``seed``, ``trials``, ``validation`` and
``test``: one row per replay and number of trials; the last two are losses of the ensemble, smaller is better. Runs with
the same recording and seed are pairs. `paired` removes what has no partner; the other functions expect its result.

Two conventions hold throughout. A strategy does not profit from runs that had no ensemble yet: the mean of a group with
a missing value is missing, never the mean of the others, and in ranks and tests a missing loss is worse than any other
and equal to another missing one. And the reference is a strategy like any other, so that its own row calibrates the
reading. What does not depend on trials and recordings is in `benchmarks.statistics.ranks_and_tests`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from benchmarks.statistics import ranks_and_tests as statistics
from benchmarks.statistics.ranks_and_tests import DIGITS

Part = Literal["validation", "test"]

_N_DRAWS = 2000


def paired(runs: pd.DataFrame) -> pd.DataFrame:
    """Keep the pairs of recording and seed for which every strategy in the frame has a run."""
    strategies = runs["strategy"].nunique()
    there = runs.groupby(["recording", "seed"])["strategy"].transform("nunique")
    return runs[there == strategies].reset_index(drop=True)


def losses_at(runs: pd.DataFrame, trials: int, part: Part) -> pd.DataFrame:
    """Return losses after a number of trials: rows (recording, seed), columns strategies in their first order."""
    rows = runs[runs["trials"] == trials]
    index = pd.MultiIndex.from_frame(runs[["recording", "seed"]].drop_duplicates())
    table = rows.pivot(index=["recording", "seed"], columns="strategy", values=part)
    return table.reindex(index=index, columns=list(dict.fromkeys(runs["strategy"]))).sort_index()


def at_equal_seconds(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the row of each run at the CPU seconds after which the first strategy has used up its trials.

    Strategies with the same recording and seed get the same seconds: those of the quickest run. Each counts with the
    last of its rows up to there, as if all were stopped at that moment.

    Parameters
    ----------
    runs : DataFrame
        See the module; with the column ``seconds``, the CPU seconds of all trials so far.

    Returns
    -------
    DataFrame
        A row for each run; ``trials`` is the last number of trials of `runs` throughout, ``finished`` how many trials
        there really were. Runs that have no row so early are missing.
    """
    pair = ["recording", "seed"]
    last = runs["trials"].max()
    ends = runs[runs["trials"] == last].groupby(pair)["seconds"].min().rename("limit")
    rows = runs.join(ends, on=pair)
    rows = rows[rows["seconds"] <= rows["limit"]].sort_values("trials")
    rows = rows.groupby([*pair, "strategy"], as_index=False, sort=False).tail(1)
    return rows.assign(finished=rows["trials"], trials=last).drop(columns="limit").reset_index(drop=True)


def mean_losses(runs: pd.DataFrame, trials: int, part: Part) -> pd.DataFrame:
    """Return means over seeds: rows recordings, columns strategies."""
    return _means(losses_at(runs, trials, part))


def standard_errors(runs: pd.DataFrame, trials: int, part: Part) -> pd.DataFrame:
    """Return standard errors of `mean_losses`; missing for a single seed."""
    return losses_at(runs, trials, part).groupby(level="recording").sem()


def average_ranks(runs: pd.DataFrame, trials: int, part: Part, *, per_seed: bool = False) -> pd.Series:
    """Return the average rank of each strategy, 1 is best; ties share their mean rank, missing losses come last.

    Parameters
    ----------
    runs, trials, part
        See the module and `losses_at`.
    per_seed : bool
        By default the means over seeds are ranked on each recording and the ranks averaged over recordings, as papers
        do. True ranks within each pair of recording and seed; this says how often, not how clearly, and resolves more
        when there are few recordings.
    """
    if per_seed:
        return ranks_per_seed(runs, trials, part).groupby(level="recording").mean().mean()
    return _ranks(mean_losses(runs, trials, part)).mean()


def ranks_per_seed(runs: pd.DataFrame, trials: int, part: Part) -> pd.DataFrame:
    """Return the ranks within each pair: rows (recording, seed), columns strategies."""
    return _ranks(losses_at(runs, trials, part))


def wilcoxon_by_recording(runs: pd.DataFrame, trials: int, part: Part, reference: str) -> pd.DataFrame:
    """Test every strategy against a reference over the seeds of each recording, see `wilcoxon_by_table`."""
    return statistics.wilcoxon_by_table(losses_at(runs, trials, part), reference)


def across_recordings(runs: pd.DataFrame, trials: int, part: Part, reference: str) -> pd.DataFrame:
    """Test every strategy against a reference over recordings by mean losses, see `wilcoxon_holm`."""
    return statistics.wilcoxon_holm(mean_losses(runs, trials, part), reference)


def relative_differences(runs: pd.DataFrame, trials: int, part: Part, reference: str) -> pd.DataFrame:
    """Return differences of mean losses to a reference, in per cent of the reference's, with 95 % bootstrap intervals.

    Returns
    -------
    DataFrame
        Rows (strategy, recording) with ``difference``, ``low``, ``high``; negative is better. Seeds are drawn again in
        pairs. The row of the recording ``""`` is the mean over recordings; for its interval recordings are drawn again
        too, and seeds within them. With few recordings that interval is still too narrow. `low` and `high` are NaN
        where a single seed leaves nothing to draw. All are NaN where the reference's loss is 0 and the other's is not,
        also if only in some draws.
    """
    losses = losses_at(runs, trials, part)
    rng = np.random.default_rng(0)
    tables = {name: table.to_numpy() for name, table in losses.groupby(level="recording")}
    at = list(losses.columns).index(reference)
    # One set of draws for all strategies; (_N_DRAWS, n_strategies) per recording.
    draws = {name: _relative_means(t, at, rng.integers(len(t), size=(_N_DRAWS, len(t)))) for name, t in tables.items()}
    centres = {name: _relative_means(t, at, np.arange(len(t))[None])[0] for name, t in tables.items()}
    chosen = rng.integers(len(tables), size=(_N_DRAWS, len(tables)))
    stacked = np.stack(list(draws.values()))
    again = rng.integers(_N_DRAWS, size=(_N_DRAWS, len(tables)))
    draws[""] = stacked[chosen, again].mean(axis=1)
    centres[""] = np.mean([centres[name] for name in tables], axis=0)
    for name in [*tables, ""]:
        if len(tables.get(name, losses)) == 1:  # every draw is the same
            draws[name] = np.full_like(draws[name], np.nan)
    rows = []
    for i, strategy in enumerate(losses.columns):
        if strategy == reference:
            continue
        for name in [*tables, ""]:
            low, high = np.percentile(draws[name][:, i], [2.5, 97.5])
            rows.append((strategy, name, centres[name][i], low, high))
    frame = pd.DataFrame(rows, columns=["strategy", "recording", "difference", "low", "high"])
    return frame.set_index(["strategy", "recording"])


def speed_ups(runs: pd.DataFrame, reference: str, *, part: Part = "validation") -> pd.DataFrame:
    """Return how much earlier each strategy reaches the final loss of a reference.

    Returns
    -------
    DataFrame
        Rows (strategy, recording). ``trials``: the first number of trials at which the mean curve over seeds is at most
        the reference's last mean; ``seed_trials``: the median over seeds of that number for single curves and the
        reference's last loss with the same seed. Infinite where not reached. ``speed_up`` and ``seed_speed_up``: last
        number of trials divided by these; 0 where not reached. The reference's own may exceed 1: its curve has
        plateaus, and the seeds of a mean do not have them at the same time.
    """
    last = int(runs["trials"].max())
    rows = []
    for recording, table in runs.groupby("recording"):
        curves = table.pivot(index="trials", columns=["strategy", "seed"], values=part).sort_index().round(DIGITS)
        means = {
            name: curves[name].mean(axis=1, skipna=False).round(DIGITS) for name in dict.fromkeys(runs["strategy"])
        }
        for strategy, mean in means.items():
            trials = first_hit(mean, means[reference].loc[last])
            hits = [first_hit(curves[strategy, seed], curves[reference, seed].loc[last]) for seed in curves[strategy]]
            rows.append((strategy, recording, trials, float(np.median(hits))))
    frame = pd.DataFrame(rows, columns=["strategy", "recording", "trials", "seed_trials"])
    frame["speed_up"], frame["seed_speed_up"] = last / frame["trials"], last / frame["seed_trials"]
    return frame.set_index(["strategy", "recording"])


def first_hit(curve: pd.Series, target: float) -> float:
    """Return the first index at which a curve is at most the target, infinity if it never is.

    Examples
    --------
    >>> first_hit(pd.Series([3.0, 2.0, 1.0], index=[5, 10, 15]), 2.0)
    10.0
    >>> first_hit(pd.Series([3.0, 2.0, 1.0], index=[5, 10, 15]), 0.5)
    inf
    """
    hits = curve.index[curve <= target]
    return float(hits.min()) if len(hits) else float("inf")


def mean_speed_up(speed_up: pd.Series) -> tuple[float, int]:
    """Return the geometric mean, and how many were reached.

    Targets not reached (0) count as 1. The mean is then an upper bound, since the true values are below 1.

    Examples
    --------
    >>> mean_speed_up(pd.Series([4.0, 0.0]))
    (2.0, 1)
    """
    counted = speed_up.where(speed_up > 0, 1.0)
    return float(np.exp(np.log(counted).mean())), int((speed_up > 0).sum())


def _means(losses: pd.DataFrame) -> pd.DataFrame:
    # A mean with a missing value is missing, see the module docstring.
    return losses.groupby(level="recording").agg(lambda column: column.mean(skipna=False))


def _ranks(losses: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(statistics.rank_methods(losses), index=losses.index, columns=losses.columns)


def _relative_means(losses: np.ndarray, reference: int, rows: np.ndarray) -> np.ndarray:
    """Return per cent differences of means over rows ``(n_draws, n_rows)``, shape ``(n_draws, n_strategies)``.

    To a mean of 0 the difference is 0 or not defined (NaN).
    """
    means = losses[rows].mean(axis=1)
    base = means[:, reference : reference + 1]
    to_nothing = np.where(means == base, 0.0, np.nan)
    return np.divide(100 * (means - base), np.abs(base), out=to_nothing, where=base != 0)
