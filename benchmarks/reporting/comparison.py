"""The report of a comparison of strategies over trials."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from rich.console import Console

from benchmarks.reporting.charts import loss_panels, rank_panels, small_multiples
from benchmarks.reporting.ranks import rank_diagram, rank_test_table
from benchmarks.reporting.report import Chart, Report
from benchmarks.reporting.table import Table, print_tables
from benchmarks.statistics import comparison
from benchmarks.statistics import ranks_and_tests as statistics
from cashmere.base.text import counted

PARTS: tuple[comparison.Part, ...] = ("validation", "test")


def rank_table(runs: pd.DataFrame, checkpoints: Sequence[int]) -> Table:
    """Return average ranks at the checkpoints; those per seed at the last."""
    columns = {f"{part} {n}": comparison.average_ranks(runs, n, part) for part in PARTS for n in checkpoints}
    last = checkpoints[-1]
    for part in PARTS:
        columns[f"{part} {last} per seed"] = comparison.average_ranks(runs, last, part, per_seed=True)
    ranks = pd.DataFrame(columns)
    return Table(
        title="Average ranks",
        columns=("strategy", *ranks.columns),
        rows=tuple(
            (name, *(f"{rank:.2f}" for rank in row)) for name, row in zip(ranks.index, ranks.values, strict=True)
        ),
        note="1 is best. Means over seeds are ranked on each recording; `per seed`: ranks within recording and seed.",
        best=_best(ranks.to_numpy(), axis=0),
    )


def reference_table(runs: pd.DataFrame, trials: int, reference: str) -> Table:
    """Return how the losses of all strategies compare with those of one, after some trials."""
    counts = {part: _counts(runs, trials, part, reference) for part in PARTS}
    differences = {part: comparison.relative_differences(runs, trials, part, reference) for part in PARTS}
    rows = []
    for strategy in dict.fromkeys(runs["strategy"]):
        if strategy != reference:
            cells = ((counts[part][strategy], _interval(differences[part].loc[(strategy, "")])) for part in PARTS)
            rows.append((strategy, *(cell for pair in cells for cell in pair)))
    return Table(
        title=f"Losses against {reference}, after {trials} trials",
        columns=("strategy", "validation +/=/-", "difference %", "test +/=/-", "difference %"),
        rows=tuple(rows),
        note="`+/=/-`: recordings on which it is better, the same, worse (two-sided Wilcoxon signed-rank test over "
        "seeds, p <= 0.05, uncorrected). `difference`: of the mean losses, negative is better; with a 95 % bootstrap "
        "interval over recordings and seeds.",
    )


def speed_table(runs: pd.DataFrame, reference: str) -> Table:
    """Return how much earlier the strategies reach the final loss of one, and how long they decide."""
    speed = comparison.speed_ups(runs, reference)
    seconds = _suggest_seconds(runs)
    rows = []
    for strategy in dict.fromkeys(runs["strategy"]):
        cells = (speed_up_text(speed.loc[strategy][name]) for name in ("speed_up", "seed_speed_up"))
        rows.append((strategy, *cells, _number(seconds[strategy], 3)))
    last = runs["trials"].max()
    return Table(
        title=f"Speed-up to the validation loss of {reference} after {last} trials",
        columns=("strategy", "mean curve", "single curves", "seconds per suggestion"),
        rows=tuple(rows),
        note=f"{last} divided by the trials after which the mean curve over seeds (the median single curve) is as low "
        f"as the last value of {reference}; geometric mean over recordings. `<=`: some never get there and count as 1. "
        "Seconds: `-` if all runs were longer.",
    )


def loss_table(runs: pd.DataFrame, trials: int, part: comparison.Part) -> Table:
    """Return mean losses with standard errors: rows recordings, columns strategies."""
    means = comparison.mean_losses(runs, trials, part)
    errors = comparison.standard_errors(runs, trials, part)
    metrics = dict(zip(runs["recording"], runs["metric"], strict=True)) if "metric" in runs else {}
    rows = []
    for recording in means.index:
        digits = _digits(means.loc[recording])
        cells = (
            _number(mean, digits) + ("" if math.isnan(error) else f" ± {error:.{digits}f}")
            for mean, error in zip(means.loc[recording], errors.loc[recording], strict=True)
        )
        metric = metrics.get(recording)
        rows.append((f"{recording}, {metric}" if metric else recording, *cells))
    return Table(
        title=f"{part.capitalize()} loss of the ensemble after {trials} trials",
        columns=("recording", *means.columns),
        rows=tuple(rows),
        note="Mean over seeds ± standard error. Metrics for which larger is better are shown as 1 - metric.",
        best=_best(means.to_numpy(), axis=1),
    )


def speed_up_table(runs: pd.DataFrame, reference: str) -> Table:
    """Return trials until the reference's final validation loss: rows recordings, columns strategies."""
    speed = comparison.speed_ups(runs, reference)
    names = list(dict.fromkeys(runs["strategy"]))
    rows = []
    for recording in speed.index.unique("recording"):
        found = [speed.loc[(name, recording)] for name in names]
        rows.append((recording, *(f"{_trials(f['trials'])} ({_trials(f['seed_trials'])})" for f in found)))
    return Table(
        title=f"Trials until the final validation loss of {reference}",
        columns=("recording", *names),
        rows=tuple(rows),
        note="Trials of the mean curve; in brackets the median over seeds of single curves. `never`: not reached.",
    )


def difference_table(runs: pd.DataFrame, trials: int, part: comparison.Part, reference: str) -> Table:
    """Return relative differences with intervals and p-values: rows recordings, columns strategies."""
    differences = comparison.relative_differences(runs, trials, part, reference)
    tests = comparison.wilcoxon_by_recording(runs, trials, part, reference).set_index(["strategy", "recording"])
    names = list(differences.index.unique("strategy"))
    rows = []
    for recording in differences.index.unique("recording"):
        cells = []
        for name in names:
            text = _interval(differences.loc[(name, recording)])
            cells.append(f"{text}, p {tests.loc[(name, recording), 'p_value']:.2g}" if recording else text)
        rows.append((recording or "mean over recordings", *cells))
    return Table(
        title=f"{part.capitalize()} loss against {reference} after {trials} trials, per cent",
        columns=("recording", *names),
        rows=tuple(rows),
        note="Negative is better. 95 % bootstrap interval, p of the signed-rank test over seeds. The interval of the "
        "last row draws recordings too; with few recordings it is still too narrow.",
    )


def across_table(runs: pd.DataFrame, trials: int, reference: str) -> Table:
    """Return tests over recordings, each of which counts once."""
    rows = []
    for part in PARTS:
        for strategy, test in comparison.across_recordings(runs, trials, part, reference).iterrows():
            counts = "/".join(f"{test[name]:.0f}" for name in ("wins", "ties", "losses"))
            rows.append((str(strategy), part, counts, *(f"{test[f'{p}_p']:.3f}" for p in ("sign", "wilcoxon", "holm"))))
    n_recordings, n_others = runs["recording"].nunique(), runs["strategy"].nunique() - 1
    smallest, corrected = (statistics.smallest_p_value(n_recordings, n) for n in (1, max(n_others, 1)))
    return Table(
        title=f"Tests over recordings against {reference}, after {trials} trials",
        columns=("strategy", "loss", "won/tied/lost", "sign test p", "signed-rank p", "Holm p"),
        rows=tuple(rows),
        note="Each recording counts once, by its mean over seeds; the signed-rank test sees relative differences, and "
        f"`Holm` corrects its p for {counted(n_others, 'comparison')}. With {counted(n_recordings, 'recording')} p "
        f"cannot be smaller than {smallest:.2g}, corrected {corrected:.2g}.",
    )


def pairs_table(runs: pd.DataFrame, trials: int, part: comparison.Part) -> Table:
    """Return better/same/worse counts of the row's strategy against the column's."""
    names = list(dict.fromkeys(runs["strategy"]))
    columns = {name: _counts(runs, trials, part, name) for name in names}
    rows = tuple((row, *("-" if row == name else columns[name][row] for name in names)) for row in names)
    return Table(
        title=f"{part.capitalize()} loss, all pairs, after {trials} trials",
        columns=("strategy", *names),
        rows=rows,
        note="Recordings on which the row is better/same/worse than the column (signed-rank test, p <= 0.05).",
    )


def print_report(
    console: Console, runs: pd.DataFrame, checkpoints: Sequence[int], reference: str, *, all_pairs: bool = False
) -> None:
    """Print the tables that answer which strategy is better, by how much, and how surely."""
    last = checkpoints[-1]
    console.print(f"\n{describe(runs)}\n", highlight=False)
    tables = [loss_table(runs, last, part) for part in PARTS]
    if all_pairs:
        tables += [pairs_table(runs, last, part) for part in PARTS]
    tables += [rank_table(runs, checkpoints), reference_table(runs, last, reference), speed_table(runs, reference)]
    if can_test_ranks(runs):
        tables.append(_rank_tests(runs, last, reference))
    print_tables(console, tables)


def describe(runs: pd.DataFrame) -> str:
    """Return one line about what was compared."""
    seeds = runs.groupby("recording")["seed"].nunique()
    few, many = seeds.min(), seeds.max()
    n_seeds = counted(few, "seed") if few == many else f"{few} to {many} seeds"
    return f"{counted(len(seeds), 'recording')}, {n_seeds}, {runs['trials'].max()} trials, ensembles of 25"


def all_tables(
    runs: pd.DataFrame, checkpoints: Sequence[int], reference: str, *, all_pairs: bool = False
) -> list[Table]:
    """Return every table, the most condensed first."""
    last = checkpoints[-1]
    tables = [rank_table(runs, checkpoints), reference_table(runs, last, reference), speed_table(runs, reference)]
    if can_test_ranks(runs):
        tables.append(_rank_tests(runs, last, reference))
    tables += [across_table(runs, last, reference), speed_up_table(runs, reference)]
    tables += [difference_table(runs, last, part, reference) for part in PARTS]
    if all_pairs:
        tables += [pairs_table(runs, last, part) for part in PARTS]
    return tables + [loss_table(runs, n, part) for part in PARTS for n in reversed(checkpoints)]


def make_report(runs: pd.DataFrame, checkpoints: Sequence[int], reference: str, *, all_pairs: bool = False) -> Report:
    """Return the report: the condensed tables, the charts, then every number."""
    tables = all_tables(runs, checkpoints, reference, all_pairs=all_pairs)
    means = "loss of the ensemble over trials, one standard error."
    charts = [
        Chart(
            file="ranks",
            caption="Average rank over trials. Ranks within recording and seed, one standard error.",
            svg=small_multiples(rank_panels(runs), title="Average rank over trials", n_columns=2),
        ),
        Chart(
            file="validation",
            caption=f"Mean validation {means}",
            svg=small_multiples(loss_panels(runs, "validation"), title="Validation loss of the ensemble"),
        ),
        Chart(
            file="test",
            caption=f"Mean test {means}",
            svg=small_multiples(loss_panels(runs, "test"), title="Test loss of the ensemble"),
        ),
    ]
    for part in PARTS if can_test_ranks(runs) else ():
        title = f"Average ranks by {part} loss after {checkpoints[-1]} trials"
        losses = comparison.mean_losses(runs, checkpoints[-1], part)
        caption = f"Average ranks by {part} loss. Bars join what Nemenyi's test cannot distinguish."
        charts.append(Chart(file=f"critical_difference_{part}", caption=caption, svg=rank_diagram(losses, title=title)))
    return Report(
        title="Strategies on recorded histories",
        heading=describe(runs),
        rows={"results": runs[runs["trials"].isin(checkpoints)]},
        sections=[*tables[:3], *charts, *tables[3:]],
        summary=tables,
    )


def can_test_ranks(runs: pd.DataFrame) -> bool:
    """Return whether there are several recordings and strategies, as tests of average ranks require."""
    return runs["strategy"].nunique() > 1 and runs["recording"].nunique() > 1


def _rank_tests(runs: pd.DataFrame, trials: int, reference: str) -> Table:
    losses: dict[str, pd.DataFrame] = {part: comparison.mean_losses(runs, trials, part) for part in PARTS}
    return rank_test_table(losses, reference, title=f"Do the average ranks differ after {trials} trials?")


def _counts(runs: pd.DataFrame, trials: int, part: comparison.Part, reference: str) -> dict[str, str]:
    """Return ``better/same/worse`` of every other strategy."""
    counts = statistics.count_verdicts(comparison.wilcoxon_by_recording(runs, trials, part, reference))
    return {str(name): "/".join(str(n) for n in row) for name, row in zip(counts.index, counts.values, strict=True)}


def _suggest_seconds(runs: pd.DataFrame) -> pd.Series:
    single = runs.drop_duplicates(["recording", "strategy", "seed"])
    return single.groupby("strategy")["suggest_seconds"].mean()


def _interval(row: pd.Series) -> str:
    interval = "-" if math.isnan(row["low"]) else f"{row['low']:+.2f}, {row['high']:+.2f}"
    return f"{row['difference']:+.2f} [{interval}]"


def speed_up_text(speed_up: pd.Series) -> str:
    """Return the geometric mean of speed-ups, ``<=`` before it if some count as 1, or ``never``."""
    mean, reached = comparison.mean_speed_up(speed_up)
    if reached == 0:
        return "never"
    return f"{mean:.2f}" if reached == len(speed_up) else f"<={mean:.2f} ({reached} of {len(speed_up)})"


def _trials(trials: float) -> str:
    return f"{trials:g}" if math.isfinite(trials) else "never"


def _number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _digits(values: pd.Series) -> int:
    """Return decimals that show four figures of the smallest value."""
    smallest = values.abs()[values != 0].min()
    return min(8, max(0, 3 - math.floor(math.log10(smallest)))) if smallest > 0 else 4


def _best(values: object, *, axis: int) -> frozenset[tuple[int, int]]:
    """Return the cells with the smallest value of their column (axis 0) or row (axis 1); a column of names is first."""
    array = np.round(np.asarray(values, dtype=np.float64), statistics.DIGITS)
    smallest = np.nanmin(np.where(np.isnan(array), np.inf, array), axis=axis, keepdims=True)
    return frozenset((int(i), int(j) + 1) for i, j in np.argwhere(array == smallest))
