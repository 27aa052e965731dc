"""Tables and a chart of `benchmarks.latent_study`: average ranks over iterations, losses, tests, cost.

An iteration is an evaluation after the initial ones, and strategies are compared at equal numbers of evaluations: those
that get no initial configurations have made as many evaluations of their own choice by iteration 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import comparison
from benchmarks import method_statistics as statistics
from benchmarks.comparison_charts import Curve, Panel, small_multiples
from benchmarks.latent_runs import N_INITIAL, Target, starts_alone
from benchmarks.replay_runs import Run
from benchmarks.report_table import Table

PUBLISHED = Path(__file__).parent / "published" / "latent_average_ranks.csv"
PAPER_NAMES = {
    "latent": "Proposed",
    "smac": "SMAC",
    "bandit_bo": "BanditBO",
    "pretrain_bo": "Pre-train BO",
    "rb_smac": "RB-SMAC",
    "random": "Random",
    "as_ml": "AS-ML",
    "ahs_ml": "AHS-ML",
}
"""Labels of strategies, and what the paper calls them; its figures leave out the ablations."""

CHECKPOINTS = (0, 10, 20, 30, 45, 60)
TESTED = (30, 60)
"""Iterations that the tables show, and those after which strategies are tested."""


def shown_iterations(n_iterations: int, wanted: Sequence[int] = CHECKPOINTS) -> list[int]:
    """Return the iterations of a run that are shown, the last one always.

    Examples
    --------
    >>> shown_iterations(60), shown_iterations(25)
    ([0, 10, 20, 30, 45, 60], [0, 10, 20, 25])
    """
    return [n for n in wanted if n < n_iterations] + [n_iterations]


def best_losses(target: Target, chosen: Sequence[int]) -> np.ndarray:
    """Return the lowest loss after each evaluation, NaN before the first success."""
    losses = target.losses[list(chosen)]
    best = np.minimum.accumulate(np.where(np.isnan(losses), np.inf, losses))
    return np.where(np.isinf(best), np.nan, best)


def tidy(found: Sequence[tuple[str, Run]], targets: Sequence[Target]) -> pd.DataFrame:
    """Return the losses of labelled runs from iteration 0 on, as `benchmarks.comparison` expects them.

    Returns
    -------
    DataFrame
        Columns ``recording``, ``strategy``, ``seed``, ``trials`` (iterations) and ``validation``.
    """
    by_name = {target.name: target for target in targets}
    first = N_INITIAL * len(targets[0].positions_by_algorithm())
    parts = []
    for label, run in found:
        losses = best_losses(by_name[run.key.recording], run.chosen)[first - 1 :]
        columns = {"recording": run.key.recording, "strategy": label, "seed": run.key.seed}
        parts.append(pd.DataFrame({**columns, "trials": np.arange(len(losses)), "validation": losses}))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def ranks_of_means(runs: pd.DataFrame, iteration: int) -> pd.DataFrame:
    """Return the ranks of mean losses over seeds: rows tables, columns strategies; their mean is the paper's figure."""
    means = comparison.mean_losses(runs, iteration, "validation").round(statistics.DIGITS)
    return means.rank(axis=1, method="average", na_option="bottom")


def ranks_within_seeds(runs: pd.DataFrame, iteration: int) -> pd.DataFrame:
    """Return the ranks within each pair of table and seed, averaged over seeds: rows tables, columns strategies."""
    return comparison.ranks_per_seed(runs, iteration, "validation").groupby(level="recording").mean()


def make_tables(
    runs: pd.DataFrame, found: Sequence[tuple[str, Run]], targets: Sequence[Target], reference: str
) -> list[Table]:
    """Return all tables.

    Parameters
    ----------
    runs : DataFrame
        From `tidy`, of complete pairs only.
    found : sequence of (str, Run)
        Labelled runs.
    targets : sequence of Target
        What was searched.
    reference : str
        Label of the strategy that the others are tested against.
    """
    last = int(runs["trials"].max())
    shown = shown_iterations(last)
    tables = [
        _rank_table("Average ranks of mean losses", runs, ranks_of_means, shown, "Ranks of means over seeds"),
        _rank_table("Average ranks within seeds", runs, ranks_within_seeds, shown, "Ranks of single runs"),
        _mean_table(runs, targets, shown),
        *(against_table(runs, n, reference) for n in shown_iterations(last, TESTED)),
        published_table(runs, last),
        loss_table(runs, targets, last),
        cost_table(found, targets),
    ]
    return [table for table in tables if table is not None]


def _rank_table(
    title: str, runs: pd.DataFrame, ranks: Callable[[pd.DataFrame, int], pd.DataFrame], shown: Sequence[int], how: str
) -> Table:
    frame = pd.DataFrame({str(n): ranks(runs, n).mean() for n in shown})
    note = f"After so many evaluations beyond the initial ones. {how}, averaged over tables; 1 is best, ties share."
    return _numbers(title, "strategy", frame, digits=2, axis=0, note=note)


def _mean_table(runs: pd.DataFrame, targets: Sequence[Target], shown: Sequence[int]) -> Table:
    frame = pd.DataFrame({str(n): comparison.mean_losses(runs, n, "validation").mean(skipna=False) for n in shown})
    least = np.mean([np.nanmin(target.losses) for target in targets if target.name in set(runs["recording"])])
    note = f"Lowest loss so far, mean over seeds and tables. The lowest recorded losses have the mean {least:.4f}."
    return _numbers("Mean losses", "strategy", frame, digits=4, axis=0, note=note)


def against_table(runs: pd.DataFrame, iteration: int, reference: str) -> Table:
    """Return tests of all strategies against one: over the seeds of each table, and over tables."""
    counts = statistics.count_verdicts(comparison.wilcoxon_by_recording(runs, iteration, "validation", reference))
    across = comparison.across_recordings(runs, iteration, "validation", reference)
    rows = []
    for strategy in counts.index:
        cells = ["/".join(str(n) for n in counts.loc[strategy]), "-", "-"]
        if strategy in across.index:
            test = across.loc[strategy]
            cells[1:] = [
                "/".join(f"{test[name]:.0f}" for name in ("wins", "ties", "losses")),
                f"{test['wilcoxon_p']:.3f}",
            ]
        rows.append((str(strategy), *cells))
    return Table(
        title=f"Against {reference} after {iteration} iterations",
        columns=("strategy", "better/same/worse", "won/tied/lost", "p over tables"),
        rows=tuple(rows),
        note=f"Tables on which a strategy is better than {reference}, the same, worse: by the two-sided Wilcoxon "
        "signed-rank test over seeds (p <= 0.05, which takes at least 6 seeds); by the mean over seeds. p: the same "
        "test over tables, of the relative differences of these means.",
    )


def published_table(runs: pd.DataFrame, iteration: int, path: Path = PUBLISHED) -> Table | None:
    """Return final ranks among the strategies of the paper beside the published ones; None if there are none."""
    published = pd.read_csv(path).set_index("method").iloc[:, 0]
    ours = runs[runs["strategy"].isin(PAPER_NAMES)]
    if ours.empty:
        return None
    ranks = ranks_of_means(ours, iteration).mean()
    rows = [
        (name, f"{ranks[name]:.2f}", f"{published[PAPER_NAMES[name]]:.2f}") for name in PAPER_NAMES if name in ranks
    ]
    return Table(
        title="Final average ranks beside the paper's",
        columns=("strategy", "ours", "published"),
        rows=tuple(rows),
        note=f"Ours after {iteration} iterations, ablations left out: {len(rows)} strategies on "
        f"{ours['recording'].nunique()} tables; the paper's: 8 on 40.",
    )


def loss_table(runs: pd.DataFrame, targets: Sequence[Target], iteration: int) -> Table:
    """Return mean losses over seeds: rows tables, columns strategies, and the lowest that is recorded."""
    frame = comparison.mean_losses(runs, iteration, "validation")
    least = {target.name: f"{np.nanmin(target.losses):.4f}" for target in targets}
    table = _numbers(f"Losses after {iteration} iterations", "table", frame, digits=4, axis=1, note="Means over seeds.")
    rows = tuple((*row, least[row[0]]) for row in table.rows)
    return Table(
        title=table.title, columns=(*table.columns, "lowest recorded"), rows=rows, note=table.note, best=table.best
    )


def cost_table(found: Sequence[tuple[str, Run]], targets: Sequence[Target]) -> Table:
    """Return what decisions cost, and what was evaluated."""
    by_name = {target.name: target for target in targets}
    rows = []
    for label in dict.fromkeys(label for label, _ in found):
        runs = [run for other, run in found if other == label]
        chosen = [(by_name[run.key.recording], run.chosen) for run in runs]
        failed = np.mean([np.isnan(target.losses[positions]).mean() for target, positions in chosen])
        seconds = np.mean([np.sum(target.table.seconds[positions]) for target, positions in chosen])
        decide = 1000 * np.mean([run.suggest_seconds / n_decisions(run, by_name[run.key.recording]) for run in runs])
        rows.append((label, str(len(runs)), f"{decide:.1f}", f"{100 * failed:.1f} %", f"{seconds:.1f}"))
    return Table(
        title="Cost",
        columns=("strategy", "runs", "ms per suggestion", "failed evaluations", "CPU seconds of evaluations"),
        rows=tuple(rows),
        note="Evaluations: as recorded, all of a run; means over runs.",
    )


def n_decisions(run: Run, target: Target) -> int:
    """Return how often the strategy was asked."""
    return run.trials - (0 if starts_alone(run.key.strategy) else N_INITIAL * len(target.positions_by_algorithm()))


def rank_chart(runs: pd.DataFrame, n_initial: int) -> str:
    """Return the paper's plot, average rank over iterations, as SVG.

    Beside it the ranks within seeds, which move less in jumps, with a band of one standard error over tables.

    Parameters
    ----------
    runs : DataFrame
        From `tidy`.
    n_initial : int
        Evaluations before iteration 0; the axis counts all of them.
    """
    panels = [
        _rank_panel("average rank of mean losses", runs, ranks_of_means, n_initial, banded=False),
        _rank_panel("average rank within seeds", runs, ranks_within_seeds, n_initial, banded=True),
    ]
    x_label = f"evaluations, {n_initial} of them initial"
    return small_multiples(panels, title="Average rank over evaluations", x_label=x_label, n_columns=2)


def _rank_panel(
    title: str,
    runs: pd.DataFrame,
    ranks: Callable[[pd.DataFrame, int], pd.DataFrame],
    n_initial: int,
    *,
    banded: bool,
) -> Panel:
    iterations = sorted(runs["trials"].unique().tolist())
    found = [ranks(runs, n) for n in iterations]
    x = [float(n + n_initial) for n in iterations]
    means, errors = (pd.DataFrame([getattr(frame, name)() for frame in found]) for name in ("mean", "sem"))
    errors = errors if banded else errors * np.nan
    curves = [Curve(label=str(name), x=x, y=means[name].tolist(), error=errors[name].tolist()) for name in means]
    return Panel(title=title, curves=curves)


def results(runs: pd.DataFrame, found: Sequence[tuple[str, Run]], targets: Sequence[Target]) -> pd.DataFrame:
    """Return a row per run: its lowest losses at the shown iterations, and what deciding took."""
    shown = shown_iterations(int(runs["trials"].max()))
    losses = runs[runs["trials"].isin(shown)].pivot(
        index=["recording", "strategy", "seed"], columns="trials", values="validation"
    )
    losses.columns = [f"loss_{n}" for n in losses.columns]
    by_name = {target.name: target for target in targets}
    decided = {
        (run.key.recording, label, run.key.seed): 1000
        * run.suggest_seconds
        / n_decisions(run, by_name[run.key.recording])
        for label, run in found
    }
    losses["ms_per_suggestion"] = [round(decided[key], 2) for key in losses.index]
    return losses.round(6).reset_index().rename(columns={"recording": "table"})


def _numbers(title: str, head: str, frame: pd.DataFrame, *, digits: int, axis: int, note: str) -> Table:
    """Return a table of numbers; bold: the smallest of each column (axis 0) or row (axis 1)."""
    values = frame.to_numpy(dtype=np.float64).round(statistics.DIGITS)
    smallest = np.min(np.where(np.isnan(values), np.inf, values), axis=axis, keepdims=True)
    rows = [["-" if np.isnan(value) else f"{value:.{digits}f}" for value in row] for row in values]
    return Table(
        title=title,
        columns=(head, *map(str, frame.columns)),
        rows=tuple((str(name), *row) for name, row in zip(frame.index, rows, strict=True)),
        note=note,
        best=frozenset((int(i), int(j) + 1) for i, j in np.argwhere(values == smallest)),
    )
