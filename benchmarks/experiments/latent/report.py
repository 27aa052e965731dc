"""Tables, charts and folder of the command `latent`: ranks over iterations, losses, tests, the paper's, cost.

An iteration is an evaluation after the initial ones, and strategies are compared at equal numbers of evaluations: those
that get no initial configurations choose the same number of evaluations themselves before iteration 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from benchmarks.experiments.latent.runs import N_INITIAL, Target, starts_alone
from benchmarks.published import PUBLISHED
from benchmarks.recordings.replay_runs import Run
from benchmarks.reporting.charts import Curve, Panel, small_multiples
from benchmarks.reporting.comparison import can_test_ranks, speed_table
from benchmarks.reporting.ranks import rank_diagram, rank_test_table
from benchmarks.reporting.report import Chart, Report
from benchmarks.reporting.table import Table
from benchmarks.statistics import comparison
from benchmarks.statistics import ranks_and_tests as statistics

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
"""Iterations that the tables show, and iterations after which strategies are tested."""


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
    """Return the losses of labelled runs from iteration 0 on, as `benchmarks.statistics.comparison` expects them.

    Returns
    -------
    DataFrame
        Columns ``recording``, ``strategy``, ``seed``, ``trials`` (iterations), ``validation`` and ``suggest_seconds``
        (of a decision of the run, on average).
    """
    by_name = {target.name: target for target in targets}
    first = count_initial(targets)
    parts = []
    for label, run in found:
        target = by_name[run.key.recording]
        losses = best_losses(target, run.chosen)[first - 1 :]
        columns = {"recording": target.name, "strategy": label, "seed": run.key.seed}
        columns |= {"trials": np.arange(len(losses)), "validation": losses}
        parts.append(pd.DataFrame({**columns, "suggest_seconds": run.suggest_seconds / n_decisions(run, target)}))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def count_initial(targets: Sequence[Target]) -> int:
    """Return how many evaluations come before iteration 0."""
    return N_INITIAL * len(targets[0].positions_by_algorithm())


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
        _rank_tests(runs, last, reference) if can_test_ranks(runs) else None,
        accuracy_table(runs, targets, last),
        published_table(runs, last),
        loss_table(runs, targets, last),
        _speed_table(runs, count_initial(targets), reference),
        cost_table(found, targets),
    ]
    return [table for table in tables if table is not None]


def _rank_table(
    title: str, runs: pd.DataFrame, ranks: Callable[[pd.DataFrame, int], pd.DataFrame], shown: Sequence[int], how: str
) -> Table:
    frame = pd.DataFrame({str(n): ranks(runs, n).mean() for n in shown})
    note = f"After this many evaluations beyond the initial ones. {how}, averaged over tables; 1 is best, ties share."
    return _numbers(title, "strategy", frame, digits=2, axis=0, note=note)


def _mean_table(runs: pd.DataFrame, targets: Sequence[Target], shown: Sequence[int]) -> Table:
    frame = pd.DataFrame({str(n): comparison.mean_losses(runs, n, "validation").mean(skipna=False) for n in shown})
    least = np.mean([np.nanmin(target.losses) for target in targets if target.name in set(runs["recording"])])
    note = f"Lowest loss so far, mean over seeds and tables. The mean of the lowest recorded losses is {least:.4f}."
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
        "signed-rank test over seeds (p <= 0.05, which needs at least 6 seeds); by the mean over seeds. p: the same "
        "test over tables, of the relative differences of these means.",
    )


def _rank_tests(runs: pd.DataFrame, iteration: int, reference: str) -> Table:
    losses = {"validation": comparison.mean_losses(runs, iteration, "validation")}
    return rank_test_table(losses, reference, title=f"Do the average ranks differ after {iteration} iterations?")


def _speed_table(runs: pd.DataFrame, n_initial: int, reference: str) -> Table:
    """Return how much earlier strategies reach the final loss of the reference, and how long they decide."""
    table = speed_table(runs.assign(trials=runs["trials"] + n_initial), reference)
    return replace(table, note=f"{table.note} Trials: all evaluations; curves begin after {n_initial}.")


def published_accuracies() -> pd.DataFrame:
    """Return Table 2 of the paper: rows numbers on OpenML, columns our labels of the strategies."""
    printed = pd.read_csv(PUBLISHED / "latent.csv").pivot(index="openml_id", columns="method", values="mean")
    return printed[list(PAPER_NAMES.values())].set_axis(list(PAPER_NAMES), axis=1)


def accuracy_table(runs: pd.DataFrame, targets: Sequence[Target], iteration: int) -> Table | None:
    """Return Table 2 of the paper, ours and the published numbers, for the targets that are in it; None if none is.

    Tables are those of the paper by their names on OpenML, since observations hold no numbers.
    """
    numbers = pd.read_csv(PUBLISHED / "openml_ids.csv").set_index("dataset")["openml_id"]
    published = published_accuracies()
    accuracies = {target.name for target in targets if target.table.metric == "accuracy"}
    ours = runs[runs["strategy"].isin(PAPER_NAMES) & runs["recording"].isin(accuracies)]
    names = [name for name in sorted(set(ours["recording"])) if numbers.get(name) in published.index]
    if not names:
        return None
    means = 1 - comparison.mean_losses(ours, iteration, "validation").loc[names]
    said = published.loc[numbers[names], means.columns].set_axis(names)
    values = means.to_numpy().round(statistics.DIGITS)
    best = np.argwhere(values == values.max(axis=1, keepdims=True))
    rows = [(name, *_beside(means.loc[name], said.loc[name])) for name in names]
    rows.append(("mean", *_beside(means.mean(), said.mean())))
    ranks = _beside(statistics.average_ranks(1 - means), statistics.average_ranks(1 - said), digits=2)
    rows.append(("average rank", *ranks))
    return Table(
        title=f"Table 2 of the paper: validation accuracy after {iteration} iterations",
        columns=("table", *means.columns),
        rows=tuple(rows),
        note="Means over seeds, in brackets the paper's over 10 runs on all rows of the table. Bold: our highest. The "
        "last two rows are over the tables above and the strategies shown.",
        best=frozenset((int(i), int(j) + 1) for i, j in best),
    )


def _beside(ours: Iterable[float], published: Iterable[float], digits: int = 4) -> list[str]:
    return [f"{a:.{digits}f} ({b:.{digits}f})" for a, b in zip(ours, published, strict=True)]


def published_table(runs: pd.DataFrame, iteration: int) -> Table | None:
    """Return final ranks among the strategies of the paper beside the published ones; None if there are none."""
    ours = runs[runs["strategy"].isin(PAPER_NAMES)]
    if ours.empty:
        return None
    said = published_accuracies()
    published = dict(zip(said.columns, statistics.average_ranks(1 - said), strict=True))
    ranks = ranks_of_means(ours, iteration).mean()
    rows = [(name, f"{ranks[name]:.2f}", f"{published[name]:.2f}") for name in PAPER_NAMES if name in ranks]
    return Table(
        title="Final average ranks beside the paper's",
        columns=("strategy", "ours", "published"),
        rows=tuple(rows),
        note=f"Ours after {iteration} iterations, ablations left out: {len(rows)} strategies on "
        f"{ours['recording'].nunique()} tables; the paper's: {said.shape[1]} on {len(said)}, from its Table 2.",
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
        note="Means over runs; evaluations: all of a run, as recorded.",
    )


def n_decisions(run: Run, target: Target) -> int:
    """Return the number of decisions of the strategy."""
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


def results(runs: pd.DataFrame) -> pd.DataFrame:
    """Return a row per run: its lowest losses at the shown iterations, and what deciding took."""
    shown = shown_iterations(int(runs["trials"].max()))
    losses = runs[runs["trials"].isin(shown)].pivot(
        index=["recording", "strategy", "seed"], columns="trials", values="validation"
    )
    losses.columns = [f"loss_{n}" for n in losses.columns]
    seconds = runs.groupby(["recording", "strategy", "seed"])["suggest_seconds"].first()
    losses["ms_per_suggestion"] = (1000 * seconds).round(2)
    return losses.round(6).reset_index().rename(columns={"recording": "table"})


def make_report(heading: str, tables: Sequence[Table], runs: pd.DataFrame, n_initial: int) -> Report:
    """Return the report: the average ranks, the charts, then every number.

    Parameters
    ----------
    heading : str
        What was compared, in one line.
    tables : sequence of Table
        From `make_tables`.
    runs : DataFrame
        From `tidy`.
    n_initial : int
        Evaluations before iteration 0.
    """
    charts = [Chart(file="ranks", caption="Average rank over evaluations", svg=rank_chart(runs, n_initial))]
    if can_test_ranks(runs):
        last = int(runs["trials"].max())
        diagram = rank_diagram(
            comparison.mean_losses(runs, last, "validation"), title=f"Average ranks after {last} iterations"
        )
        caption = "Average ranks at the end. Bars join what Nemenyi's test cannot distinguish."
        charts.append(Chart(file="critical_difference", caption=caption, svg=diagram))
    return Report(
        title="Searches on new tables",
        heading=heading,
        rows={"results": results(runs)},
        sections=[*tables[:2], *charts, *tables[2:]],
        summary=tables,
    )


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
