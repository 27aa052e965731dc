"""Tables of the experiments on ensembles: what the papers print beside ours."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmarks.experiments.divbo.methods import (
    SENSITIVITY,
    PaperTable,
    display_unit,
    published_counts,
    published_values,
)
from benchmarks.experiments.divbo.results import Results
from benchmarks.experiments.divbo.runs import N_COMMON
from benchmarks.reporting.comparison import speed_up_text
from benchmarks.reporting.ranks import repeats_text, verdict_note, verdict_rows
from benchmarks.reporting.table import Table
from benchmarks.statistics import comparison
from benchmarks.statistics import ranks_and_tests as statistics
from cashmere.base.text import counted

METRICS = {"accuracy": "error, per cent", "mse": "mean squared error", "mae": "mean absolute error"}


def printed_table(results: Results, printed: PaperTable) -> Table | None:
    """Return test losses beside those that a paper prints: rows methods, columns data sets.

    Methods that the paper does not have follow below the paper's first table of a metric, without a rank.

    Returns
    -------
    Table or None
        None if no method, or a single one, has runs.
    """
    ranked = [label for label in printed.methods if label in results.labels]
    is_first = printed.methods == results.suite.ranked(results.metric)
    covered = {label for table in results.suite.printed for label in table.methods}
    others = [label for label in results.labels if label not in covered] if is_first else []
    frame = results.final(ranked)
    if len(ranked) < 2 or frame.empty:
        return None
    published = _published_losses(results, printed)
    means = _in_order(comparison.mean_losses(frame, results.n_trials, "test"), results.tables)
    spread = frame.groupby(["recording", "strategy"])["test"].std()
    for label in others:  # a missing run of theirs must not cost the ranked methods a pair
        extra = results.final([label])
        means[label] = comparison.mean_losses(extra, results.n_trials, "test")[label]
        spread = pd.concat([spread, extra.groupby(["recording", "strategy"])["test"].std()])
    names = list(means.index)
    ours = dict(zip(ranked, statistics.average_ranks(means[ranked].to_numpy()), strict=True))
    theirs, n_theirs = _published_ranks(published, names, printed.methods)
    rows = []
    for label in [*ranked, *others]:
        cells = [
            _beside(
                means.loc[name, label],
                spread.get((name, label), math.nan),
                published.get((name, label), math.nan),
                display_unit(name, results.metric),
            )
            for name in names
        ]
        ranks = (_two(ours.get(label)), _two(theirs.get(label)))
        rows.append((label, *cells, *ranks))
    stressed = means[[*ranked, *others]].round(statistics.DIGITS)
    best = frozenset(
        (i, j + 1)
        for j, name in enumerate(names)
        for i, label in enumerate(stressed)
        if stressed.loc[name, label] == stressed.loc[name].min()
    )
    return Table(
        title=f"Table {printed.number}: {printed.title}",
        columns=("method", *names, "rank", "paper's rank"),
        rows=tuple(rows),
        note=f"Test {METRICS[results.metric]}; mean ± standard deviation over {_repeats(frame)}, in brackets the "
        f"paper's mean over 10. Ranks of the means, 1 is best; the paper's, recomputed on the data sets it "
        f"has ({n_theirs} of these {len(names)})." + _unit_note(results, names) + _missing_note(results, ranked, frame),
        best=best,
    )


def validation_table(results: Results) -> Table | None:
    """Return the ranks of the validation losses, which DivBO's text quotes for all 15 data sets."""
    quoted = published_values(results.suite)
    quoted = quoted[quoted["table"] == "text"].set_index("method")["mean"]
    labels = [label for label in (*results.suite.ranked(results.metric), "DivBO-") if label in results.labels]
    frame = results.final(labels)
    if quoted.empty or len(labels) < 2 or frame.empty:
        return None
    ranks = comparison.average_ranks(frame, results.n_trials, "validation")
    rows = tuple((label, _two(ranks[label]), _two(quoted.get(label))) for label in labels)
    return Table(
        title="DivBO's section 4.3: ranks of the validation error",
        columns=("method", "rank", "paper's rank"),
        rows=rows,
        note=f"Ranks of means over repeats on {counted(frame['recording'].nunique(), 'data set')}; the paper's on 15.",
    )


def verdict_table(results: Results) -> Table | None:
    """Return how often the paper's method is better, the same and worse than the others on the test rows."""
    proposed = results.proposed
    labels = [label for label in results.suite.ranked(results.metric) if label in results.labels]
    frame = results.final(labels)
    if proposed not in labels or len(labels) < 2 or frame.empty:
        return None
    losses = comparison.losses_at(frame, results.n_trials, "test")
    means = comparison.mean_losses(frame, results.n_trials, "test")
    is_classification = results.metric == "accuracy"
    said = published_counts(results.suite)
    said = said[said["task"] == ("classification" if is_classification else "regression")].set_index("baseline")
    if results.metric == "mae":
        said = said[:0]
    rows = []
    for label, verdict, *rest in verdict_rows(losses, means, proposed):
        printed = [str(said.loc[label, name]) for name in ("better", "same", "worse")] if label in said.index else ["-"]
        rows.append((label, verdict, "/".join(printed), *rest))
    return Table(
        title=f"Table {2 if is_classification else 4}: {proposed} against the others",
        columns=("against", "better/same/worse", "paper", "won/tied/lost", "signed-rank p", "Holm p"),
        rows=tuple(rows),
        note=f"{verdict_note(losses, proposed)} The paper's: {15 if is_classification else 5} tables, 10 repeats.",
    )


def pool_table(results: Results) -> Table | None:
    """Return what was suggested and how the pool developed: tables 3 and 4, figures 5 and 6."""
    values = published_values(results.suite)
    said = {(row.measure, row.method): row.mean for row in values.itertuples() if row.table in _POOL_SOURCES}
    rows = []
    for method, runs in results.runs.items():
        if method.form != "selection":
            continue
        quake = [run for run in runs if run.key.table == "quake"]
        cells = []
        for measure, found in (
            ("updates_100", [run.updates["100"][1] for run in runs]),
            ("updates_50", [run.updates["50"][1] for run in runs]),
            ("suggested", [_per_cent(_mean(run.losses[N_COMMON:])) for run in quake]),
            ("members", [_per_cent(run.member_loss) for run in quake]),
            ("diversity", [_mean(run.minimum_diversity[-50:]) for run in quake]),
            ("disagreement", [_mean(run.disagreement[-1:]) for run in quake]),
        ):
            cells.append(_plain(_mean(found), said.get((measure, method.label))))
        rows.append((method.label, *cells))
    if results.metric != "accuracy" or not rows:
        return None
    measures = ("suggested", "members", "diversity", "disagreement")
    return Table(
        title="DivBO's tables 3 and 4, figures 5 and 6: suggestions and the pool",
        columns=("method", "effective 100", "effective 50", *(f"{measure}, quake" for measure in measures)),
        rows=tuple(rows),
        note="Effective updates of the pool in the last 100 and 50 trials, mean over runs (in brackets the "
        "paper's: 250 trials, 15 data sets). On quake: mean validation error of the learners suggested after the "
        "common start, and of the pool's members at the end, per cent; smallest diversity to the pool of the last 50 "
        "suggestions (the paper: after 200); disagreement among the members.",
    )


def sensitivity_table(results: Results) -> Table | None:
    """Return the lowest validation losses by the options of DivBO's weight: figure 7."""
    labels = [method.label for method in SENSITIVITY.values() if method.label in results.labels]
    if not labels:
        return None
    frame = results.final(labels)
    means = frame.pivot_table(index="recording", columns="strategy", values="validation")
    betas, taus = (sorted({pair[i] for pair in SENSITIVITY}) for i in range(2))
    rows = []
    for name in (name for name in results.tables if name in means.index):
        unit = display_unit(name, results.metric)
        for beta in betas:
            found = [means.loc[name].get(SENSITIVITY[beta, tau].label, math.nan) for tau in taus]
            rows.append((name, f"{beta:g}", *("-" if math.isnan(x) else f"{x / unit:.2f}" for x in found)))
    return Table(
        title="DivBO's figure 7: largest weight (beta) and its growth (tau)",
        columns=("data set", "beta", *(f"tau = {tau:g}" for tau in taus)),
        rows=tuple(rows),
        note=f"Validation {METRICS[results.metric]}; mean over {_repeats(frame)}." if len(frame) else "",
    )


def speed_table(results: Results) -> Table | None:
    """Return how much earlier the paper's method has the final validation loss of baselines."""
    proposed = results.proposed
    labels = [label for label in results.suite.baselines if label in results.labels]
    if proposed is None or not labels:
        return None
    frame = results.frame([proposed, *labels])
    if frame.empty:
        return None
    elapsed = {label: _elapsed(results, label) for label in (proposed, *labels)}
    rows = []
    for label in labels:
        hits = comparison.speed_ups(frame, label).loc[proposed]
        in_seconds = pd.Series(
            {
                name: elapsed[label][name][-1] / elapsed[proposed][name][int(n) - 1] if math.isfinite(n) else 0.0
                for name, n in hits["trials"].items()
            }
        )
        rows.append(
            (label, speed_up_text(hits["speed_up"]), speed_up_text(in_seconds), _SPEED_SAID.get((proposed, label), "-"))
        )
    return Table(
        title=f"Speed-up of {proposed} by {METRICS[results.metric].partition(',')[0]}",
        columns=("to the last loss of", "in trials", "in seconds", "paper, in trials"),
        rows=tuple(rows),
        note=f"{results.n_trials} divided by the trials after which the mean validation curve of {proposed} is as "
        "low as the last value of the baseline; the same with seconds of deciding and CPU seconds of training. "
        "Geometric mean over data sets; `<=`: some never get there and count as 1.",
    )


def cost_table(results: Sequence[Results]) -> Table:
    """Return where the time went, for every strategy."""
    runs = {id(run): run for part in results for found in part.runs.values() for run in found}.values()
    rows = []
    for strategy in dict.fromkeys(run.key.strategy for run in runs):
        mine = [run for run in runs if run.key.strategy == strategy]
        trials = sum(len(run.losses) for run in mine)
        failed = sum(loss is None for run in mine for loss in run.losses)
        deciding, training, whole, cpu = (
            float(np.mean(values))
            for values in (
                [sum(run.suggest_seconds) for run in mine],
                [run.training_seconds for run in mine],
                [run.seconds for run in mine],
                [run.deciding_cpu_seconds + sum(run.cpu_seconds) for run in mine],
            )
        )
        memory = [[run.memory_mib[part] for run in mine if run.memory_mib[part]] for part in ("deciding", "training")]
        rows.append(
            (
                strategy,
                str(len(mine)),
                f"{100 * failed / trials:.1f} %",
                f"{whole:.0f}",
                f"{deciding:.1f}",
                f"{training:.1f}",
                f"{max(0.0, whole - deciding - training):.1f}",
                f"{cpu:.0f}",
                *(f"{max(found):.0f}" if found else "-" for found in memory),
            )
        )
    note = "Wall seconds per run: the whole, of deciding, of training, and the rest (start, judging)."
    if any(part.recorded for part in results):
        note = "Seconds per run: of deciding, as replayed, and CPU seconds of training, as recorded."
    columns = ("strategy", "runs", "failed trials", "seconds", "deciding", "training", "rest", "CPU seconds")
    return Table(
        title="Cost",
        columns=(*columns, "MiB deciding", "MiB training"),
        rows=tuple(rows),
        note=f"{note} CPU seconds: of deciding and training. MiB: the largest resident memory seen, of deciding "
        "after each trial, of training every twentieth of a second.",
    )


_POOL_SOURCES = ("3", "4", "figure5", "figure6")
_SPEED_SAID = {("DivBO", "RB-ES"): "1.52 to 1.54", ("DivBO", "BO-ES"): "1.67 to 2.53"}


def _published_losses(results: Results, printed: PaperTable) -> dict[tuple[str, str], float]:
    """Return printed means in the units of the target, by data set and method; none that replays cannot compare."""
    if results.recorded and results.metric != "accuracy":
        return {}
    values = published_values(results.suite)
    first = next(table for table in results.suite.printed if table.metric == results.metric)
    found = {}
    for number in (first.number, printed.number):  # later tables do not repeat all of the first
        part = values[(values["table"] == number) & (values["measure"] == "test")]
        for row in part.itertuples():
            found[row.dataset, row.method] = row.mean * display_unit(row.dataset, results.metric)
    return found


def _published_ranks(
    published: dict[tuple[str, str], float], names: Sequence[str], labels: Sequence[str]
) -> tuple[dict[str, float], int]:
    """Return the average ranks of the printed means on the data sets shown here, and the number of these."""
    shown = [label for label in labels if any((name, label) in published for name in names)]
    there = [name for name in names if all((name, label) in published for label in shown)]
    if len(shown) < 2 or not there:
        return {}, 0
    losses = np.array([[published[name, label] for label in shown] for name in there])
    return dict(zip(shown, statistics.average_ranks(losses).tolist(), strict=True)), len(there)


def _elapsed(results: Results, label: str) -> dict[str, np.ndarray]:
    """Return the mean seconds that had passed after each trial, for every data set."""
    (runs,) = (found for method, found in results.runs.items() if method.label == label)
    passed: dict[str, list[np.ndarray]] = {}
    for run in runs:
        passed.setdefault(run.key.table, []).append(np.cumsum(np.add(run.suggest_seconds, run.cpu_seconds)))
    return {name: np.mean(found, axis=0) for name, found in passed.items()}


def _in_order(means: pd.DataFrame, tables: Sequence[str]) -> pd.DataFrame:
    return means.loc[[name for name in tables if name in means.index]]


def _beside(mean: float, spread: float, said: float, unit: float) -> str:
    digits = max(2, 2 - math.floor(math.log10(abs(mean / unit)))) if mean and math.isfinite(mean) else 2
    text = "-" if math.isnan(mean) else f"{mean / unit:.{digits}f}"
    text += "" if math.isnan(spread) else f" ± {spread / unit:.{digits}f}"
    return text + ("" if math.isnan(said) else f" ({said / unit:.{digits}f})")


def _plain(ours: float, said: float | None) -> str:
    text = "-" if math.isnan(ours) else f"{ours:.2f}"
    return text if said is None else f"{text} ({said:g})"


def _two(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.2f}"


def _per_cent(loss: float | None) -> float | None:
    return None if loss is None or math.isnan(loss) else 100 * loss


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return float(np.mean(known)) if known else math.nan


def _repeats(frame: pd.DataFrame) -> str:
    return repeats_text(frame.groupby(["recording", "strategy"])["seed"].nunique())


def _missing_note(results: Results, labels: Sequence[str], frame: pd.DataFrame) -> str:
    """Return how many pairs of data set and repeat are left out because a method lacks them, in words."""
    runs = [run for method, found in results.runs.items() if method.label in labels for run in found]
    n_kept = len(frame[["recording", "seed"]].drop_duplicates())
    n_left_out = len({(run.key.table, run.key.seed) for run in runs}) - n_kept
    if not n_left_out:
        return ""
    return f" Left out, as not all methods have them: {n_left_out} of the pairs of data set and repeat."


def _unit_note(results: Results, names: Sequence[str]) -> str:
    if results.recorded and results.metric != "accuracy":
        return " Recorded values are standardised, so the paper's numbers cannot be compared."
    if results.metric == "mse" and "delta_elevators" in names:
        return " delta_elevators in units of 1e-6."
    return ""
