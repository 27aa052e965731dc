"""Tables of the experiments of DACOpt: what the paper prints beside ours, ranks, tests, speed-ups and costs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmarks.experiments.dacopt.results import INSIDE, PAPER_NAMES, PROPOSED, Results, published_mean
from benchmarks.reporting.comparison import speed_up_text
from benchmarks.reporting.ranks import rank_test_table, verdict_note, verdict_rows
from benchmarks.reporting.table import Table
from benchmarks.runs.suite_runs import SuiteRun
from benchmarks.statistics import comparison
from benchmarks.statistics import ranks_and_tests as statistics
from benchmarks.statistics.ranks_and_tests import LEVEL


def make_tables(results: Results) -> list[Table]:
    """Return every table for which there are enough runs."""
    makers = (
        score_table,
        pair_table,
        others_table,
        difference_table,
        rank_table,
        verdict_table,
        difference_of_ranks_table,
        speed_table,
        cost_table,
    )
    return [table for make in makers if (table := make(results)) is not None]


def not_worse(scores: pd.DataFrame) -> dict[str, bool]:
    """Return, for the scores of one table, whether a strategy is the best or not significantly worse than it.

    The best has the highest mean; the others are tested against it by the two-sided Wilcoxon signed-rank test over
    seeds.

    Parameters
    ----------
    scores : frame
        Rows seeds, columns strategies.
    """
    best = scores.mean().idxmax()
    return {
        str(name): name == best
        or statistics.signed_rank_test((scores[best] - scores[name]).dropna().to_numpy())[0] > LEVEL
        for name in scores
    }


def score_table(results: Results) -> Table:
    """Return means over repeats with the published ones in brackets: rows tables, columns strategies."""
    scores, rows, best = results.scores, [], set()
    for i, (name, part) in enumerate(scores.groupby("table", sort=False)):
        by_strategy = part.pivot_table(index="seed", columns="strategy", values="score")
        good = not_worse(by_strategy)
        cells = []
        for j, strategy in enumerate(results.wanted):
            if strategy not in by_strategy:
                cells.append("-")
                continue
            said = published_mean(results.published, str(name), strategy)
            cells.append(f"{by_strategy[strategy].mean():.4f}" + ("" if np.isnan(said) else f" ({said:.4f})"))
            if good[strategy]:
                best.add((i, j + 1))
        rows.append((str(name), *cells))
    repeats = scores.groupby(["table", "strategy"]).size()
    return Table(
        title="Scores",
        columns=("table", *results.wanted),
        rows=tuple(rows),
        note=f"Means over {repeats.min()} to {repeats.max()} repeats, in brackets the paper's over 10, where the "
        "options are the paper's. Bold: our best, "
        f"and what is not significantly worse (Wilcoxon signed-rank test over repeats, p > {LEVEL}; with fewer than 6 "
        "repeats that is everything).",
        best=frozenset(best),
    )


def pair_table(results: Results) -> Table | None:
    """Return every contest beside its inner strategy on the whole space, at equal seeds."""
    rows = contest_pairs(results.scores, results.strategies)
    if not rows:
        return None
    return Table(
        title="Contests, and what they have inside, alone",
        columns=("contest", "alone", "table", "repeats", "contest's score", "alone", "difference", "won/tied/lost"),
        rows=tuple(rows),
        note="Only repeats that both have, which share folds. In the rows `all`, the mean of the tables' means, how "
        "many tables the contest has won by them, and Wilcoxon's signed-rank test over tables.",
    )


def contest_pairs(scores: pd.DataFrame, strategies: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the rows of `pair_table`.

    Parameters
    ----------
    scores : DataFrame
        Columns table, strategy, seed and score, more is better.
    strategies : sequence of str
        Strategies with any options, in the order they are shown.
    """
    wide = scores.pivot_table(index=["table", "seed"], columns="strategy", values="score", sort=False)
    rows: list[tuple[str, ...]] = []
    for contest in strategies:
        alone = INSIDE.get(contest.partition(":")[0], "")
        if contest not in wide or alone not in wide:
            continue
        both = wide[[contest, alone]].dropna()
        for name, part in both.groupby(level="table", sort=False):
            counts = _won_tied_lost(part[contest] - part[alone])
            rows.append((contest, alone, str(name), str(len(part)), *_three(part.mean()), counts))
        means = both.groupby(level="table", sort=False).mean()
        differences = means[contest] - means[alone]
        if len(means) > 1:
            p = statistics.signed_rank_test(differences.to_numpy())[0]
            counts = f"{_won_tied_lost(differences)}, p {p:.2f}"
            rows.append((contest, alone, "all", str(len(both)), *_three(means.mean()), counts))
    return rows


def others_table(results: Results) -> Table | None:
    """Return the published scores of systems that we do not run, beside our first strategy."""
    systems = [method for method in results.published if method not in PAPER_NAMES.values()]
    reference = results.strategies[0]
    mine = results.scores[results.scores["strategy"] == reference]
    ours = mine.groupby("table", sort=False)["score"].mean()
    published = results.published.reindex(index=ours.index, columns=systems).dropna(axis=1, how="all")
    if published.empty:
        return None
    rows = [
        (str(name), f"{mean:.4f}", *(_score(value) for value in said))
        for mean, (name, said) in zip(ours, published.iterrows(), strict=True)
    ]
    better = [f"{(ours > published[system]).sum()} of {published[system].count()}" for system in published]
    return Table(
        title="Other systems, as published",
        columns=("table", f"{reference}, ours", *published.columns),
        rows=(*rows, ("ours is higher on", "-", *better)),
        note="The paper's means over 10 repeats; these systems were not run here. They had other machines and splits.",
    )


def difference_table(results: Results) -> Table | None:
    """Return how far our means are from the published ones, per strategy with the paper's options."""
    means = results.scores.groupby(["strategy", "table"])["score"].mean()
    rows = []
    for strategy in results.strategies:
        differences = np.array(
            [mean - published_mean(results.published, str(name), strategy) for name, mean in means[strategy].items()]
        )
        differences = differences[~np.isnan(differences)]
        if len(differences):
            cells = (f"{differences.mean():+.4f}", f"{differences.min():+.4f}", f"{differences.max():+.4f}")
            rows.append((strategy, *cells, f"{np.sum(differences >= -0.01)} of {len(differences)}"))
    if not rows:
        return None
    columns = ("strategy", "mean", "lowest", "highest", "within 0.01 or better")
    return Table(title="Ours minus published", columns=columns, rows=tuple(rows))


def rank_table(results: Results) -> Table:
    """Return average ranks of the means over tables, ours and those of the paper's means on the same tables."""
    frame = results.frame
    if frame.empty:
        note = "There is no table and repeat for which every strategy has a run, so nothing can be ranked."
        return Table(title="Average ranks", columns=("strategy", "rank"), rows=(), note=note)
    losses = comparison.mean_losses(frame, results.n_trials, results.part)
    ranks = _average_ranks(losses)
    said = _published_losses(results, losses)
    among, theirs = _average_ranks(losses.loc[said.index, said.columns]), _average_ranks(said)
    rows = tuple(
        (strategy, *(f"{found[strategy]:.2f}" if strategy in found else "-" for found in (ranks, among, theirs)))
        for strategy in results.strategies
    )
    return Table(
        title="Average ranks",
        columns=("strategy", "rank", "among the paper's", "paper's rank"),
        rows=rows,
        note=f"Ranks of the means over repeats on {len(losses)} tables; 1 is best. The other two columns rank only the "
        f"paper's strategies, by our means and by its, on the {len(said) if theirs else 0} tables for which it has all "
        "of them." + results.missing_note,
    )


def verdict_table(results: Results) -> Table | None:
    """Return how often the first strategy is better, the same and worse than the others."""
    frame = results.frame
    if frame.empty or len(results.strategies) < 2:
        return None
    reference = results.strategies[0]
    losses = comparison.losses_at(frame, results.n_trials, results.part)
    means = comparison.mean_losses(frame, results.n_trials, results.part)
    return Table(
        title=f"{reference} against the others",
        columns=("against", "better/same/worse", "won/tied/lost", "signed-rank p", "Holm p"),
        rows=tuple(verdict_rows(losses, means, reference)),
        note=verdict_note(losses, reference) + results.missing_note,
    )


def difference_of_ranks_table(results: Results) -> Table | None:
    """Return whether the average ranks differ, where there is more than one table."""
    losses = ranked_losses(results)
    if losses is None:
        return None
    return rank_test_table({results.part: losses}, results.strategies[0], title="Do the average ranks differ?")


def ranked_losses(results: Results) -> pd.DataFrame | None:
    """Return mean losses, rows tables and columns strategies, if there are at least two of both."""
    frame = results.frame
    if frame["recording"].nunique() < 2 or len(results.strategies) < 2:
        return None
    return comparison.mean_losses(frame, results.n_trials, results.part)


def speed_table(results: Results) -> Table | None:
    """Return how much earlier the paper's own strategies have the final validation loss of the baselines."""
    own = [strategy for strategy in results.strategies if strategy.partition(":")[0] in PROPOSED]
    baselines = [strategy for strategy in results.strategies if strategy not in own]
    frame = results.frame
    if not own or not baselines or frame.empty:
        return None
    passed = {
        (s, table): results.seconds(s, table) for s in results.strategies for table in frame["recording"].unique()
    }
    rows = []
    for baseline in baselines:
        hits = comparison.speed_ups(frame, baseline)["trials"]
        for strategy in own:
            in_trials, in_seconds = {}, {}
            for table, n in hits.loc[strategy].items():
                reached = math.isfinite(n)
                in_trials[table] = results.length(baseline, table) / n if reached else 0.0
                seconds = passed[strategy, table][int(n) - 1] if reached else math.inf
                in_seconds[table] = passed[baseline, table][-1] / seconds
            texts = (speed_up_text(pd.Series(found)) for found in (in_trials, in_seconds))
            rows.append((strategy, baseline, *texts))
    shared = results.without_times()
    return Table(
        title="Speed-up to the baselines' last validation loss",
        columns=("strategy", "to the last loss of", "in trials", "in seconds"),
        rows=tuple(rows),
        note="Trials of the baseline divided by those after which the mean validation curve of the strategy is as low "
        "as the baseline's last value; the same with wall seconds of deciding and training. Geometric mean over "
        "tables; `<=`: some never get there and count as 1."
        + (
            f" {shared} run{'s' if shared > 1 else ''} did not record when trials ended; these get equal shares."
            if shared
            else ""
        )
        + results.missing_note,
    )


def cost_table(results: Results) -> Table:
    """Return where time and memory went."""
    rows = []
    for strategy in results.strategies:
        mine = [run for run in results.runs if run.key.strategy == strategy]
        trials = sum(len(run.curve) for run in mine)
        cpu = [run.cpu_seconds for run in mine if run.cpu_seconds is not None]
        rows.append(
            (
                strategy,
                str(len(mine)),
                f"{100 * sum(run.failed for run in mine) / trials:.1f} %",
                f"{1000 * sum(run.suggest_seconds for run in mine) / trials:.1f}",
                f"{1000 * sum(run.fit_seconds for run in mine) / trials:.0f}",
                f"{sum(run.seconds for run in mine) / len(mine):.0f}",
                f"{np.mean(cpu):.0f}" if cpu else "-",
                *(_largest(mine, part) for part in ("deciding", "training")),
            )
        )
    columns = ("strategy", "runs", "failed trials", "ms deciding", "ms per trial", "seconds per run", "CPU seconds")
    known = sum(run.cpu_seconds is not None for run in results.runs)
    return Table(
        title="Cost",
        columns=(*columns, "MiB deciding", "MiB training"),
        rows=tuple(rows),
        note="Wall time, except CPU seconds of a run: of the process that decides and of those that train. MiB: the "
        f"largest resident memory seen. CPU seconds and memory are known for {known} of {len(results.runs)} runs.",
    )


def _published_losses(results: Results, losses: pd.DataFrame) -> pd.DataFrame:
    """Return the published means as losses, of the strategies and tables of `losses` that the paper has."""
    said = pd.DataFrame(
        {
            strategy: [published_mean(results.published, str(name), strategy) for name in losses.index]
            for strategy in results.strategies
        },
        index=losses.index,
    )
    return (1 - said).dropna(axis=1, how="all").dropna(axis=0)


def _average_ranks(losses: pd.DataFrame) -> dict[str, float]:
    """Return average ranks by column; none if a single column, or no row, leaves nothing to rank."""
    if len(losses) == 0 or losses.shape[1] < 2:
        return {}
    return dict(zip(losses.columns, statistics.average_ranks(losses.to_numpy()).tolist(), strict=True))


def _largest(runs: Sequence[SuiteRun], part: str) -> str:
    found = [run.memory_mib[part] for run in runs if part in run.memory_mib]
    return f"{max(found):.0f}" if found else "-"


def _three(means: pd.Series) -> tuple[str, str, str]:
    """Return both scores and their difference."""
    one, other = means
    return f"{one:.4f}", f"{other:.4f}", f"{one - other:+.4f}"


def _won_tied_lost(differences: pd.Series) -> str:
    return f"{(differences > 0).sum()}/{(differences == 0).sum()}/{(differences < 0).sum()}"


def _score(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"
