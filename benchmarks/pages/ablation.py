"""The numbers of the ablation of what makes use of time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.experiments.ablation import changes, summarise
from benchmarks.pages.kept_rows import RESULTS, Frame, kept
from benchmarks.pages.statement import Body, Statement, row, signed
from benchmarks.peers.environments import OURS
from benchmarks.peers.runs import PeerProtocol, PeerRun
from benchmarks.runs.finished_runs import FinishedRuns
from benchmarks.runs.suite_runs import SuiteKey
from benchmarks.statistics.ranks_and_tests import bootstrap_interval

PARTS = (
    "without networks",
    "LightGBM alone",
    "without features",
    "without first configurations",
    "repeats not used",
    "one selection",
    "no calibration",
    "best trial alone",
)
PARTS_HEADER = "| | mean | from | to | median | tables with more loss | cross-fitted | trials/min | last step, s |"
RUNGS = ("everything", "without rungs")
CELLS = (("large_200000", 30, 2), ("large_1000000", 30, 2), ("shuttle", 9, 7))
"""Tables with their numbers of columns and classes."""

LONGEST = {"shuttle": 43_500}
"""Largest number of training rows: three quarters of the table."""

THIRD = "everything, a third of the time"


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    rows = kept("ablation")
    change: Frame = changes(rows, "everything").drop(columns="everything")
    found: Frame = summarise(rows).set_index("variant")
    lines = []
    for name, values in change.items():
        low, high = bootstrap_interval(values.dropna().to_numpy(), np.random.default_rng(0))
        cells = [signed(value, 1) for value in (values.mean(), low, high, values.median())]
        cells.append(f"{(values > 0).sum()} of {values.count()}")
        cells += [f"{found.loc[name, column]:.0f}" for column in ("trials/min", "checkpoints/min")]
        lines.append(row(str(name), *cells))
    yield Body(
        header="| variant | mean | from | to | median | tables with more loss | trials/min | checkpoints/min |",
        lines=tuple(lines),
    )
    whole = found.loc["everything"]
    yield Statement(
        text="Everything makes {trials:.0f} trials and {checkpoints:.0f} checkpoints a minute",
        values={"trials": whole["trials/min"], "checkpoints": whole["checkpoints/min"]},
    )
    before: Frame = changes(rows, "before")[["everything", THIRD]]
    losses = rows[rows["variant"] == "before"].groupby("table")["test"].mean()
    lines = [
        row(table, f"{losses[table]:.4g}", *(f"{value:+.1f} %" for value in before.loc[table]))
        for table in sorted(before.index, key=str.lower)
    ]
    for name, of in (("median", before.median()), ("mean", before.mean())):
        lines.append(row(name, "", *(f"{value:+.1f} %" for value in of)))
    yield Body(header="| table | before, 60 s | everything, 60 s | everything, 20 s |", lines=tuple(lines))
    yield _of_parts(kept("ablation_parts"))
    yield _on_small_tables(kept("ablation_small"))
    yield _rungs(kept("ablation_rungs"))
    yield _rungs_of_whole_runs()


def _of_parts(runs: Frame) -> Body:
    """Return what becomes of the loss without a part, as changes of logarithms: some losses are nearly 0."""
    changed: list[Frame] = [changes(runs, "everything", loss=loss) for loss in ("test", "cross_fitted")]
    ratios, cross_fitted = ((each.reindex(columns=PARTS) / 100 + 1).map(np.log) for each in changed)
    found: Frame = summarise(runs).set_index("variant")
    lines = []
    for name in PARTS:
        low, high = bootstrap_interval(ratios[name].dropna().to_numpy(), np.random.default_rng(0))
        means = [100 * np.expm1(value) for value in (ratios[name].mean(), low, high, ratios[name].median())]
        unseen = 100 * np.expm1(cross_fitted[name].mean())
        lines.append(
            row(
                name,
                *(signed(value, 1) for value in means),
                f"{(ratios[name] > 0).sum()} of {ratios[name].count()}",
                "" if np.isnan(unseen) else signed(unseen, 1),
                f"{found.loc[name, 'trials/min']:.0f}",
                f"{found.loc[name, 'last step, s']:.2f}",
            )
        )
    whole = found.loc["everything"]
    lines.append(row("everything", *[""] * 6, f"{whole['trials/min']:.0f}", f"{whole['last step, s']:.2f}"))
    return Body(header=PARTS_HEADER, lines=tuple(lines))


def _on_small_tables(runs: Frame) -> Statement:
    change = np.log1p(changes(runs, "everything")["without features"].to_numpy() / 100)
    low, high = bootstrap_interval(change, np.random.default_rng(0))
    mean, low, high = (100 * np.expm1(value) for value in (change.mean(), low, high))
    return Statement(
        text="There, leaving them out changes the test loss by {mean:+.1f} % (geometric mean, 95 % interval from "
        "{low:+.1f} to {high:+.1f} %), and it is lower on {better:word} of {n:word} tables.",
        values={"mean": mean, "low": low, "high": high, "better": int((change < 0).sum()), "n": len(change)},
    )


def _rungs(runs: Frame) -> Body:
    """Return what rungs gain, ordered by the number of cells per second of the budget."""
    tables = {name: (columns, classes) for name, columns, classes in CELLS}
    lines = []
    for (table, rows, budget), found in runs.groupby(["table", "rows", "budget"], sort=False):
        both = found.pivot(index="seed", columns="variant", values=["test", "trials"]).dropna()
        columns, classes = tables[table]
        per_second = min(rows, LONGEST.get(table, rows)) * columns * classes / budget / 1000
        means = both.mean()
        cells = [f"{means['test', variant]:.4g} ({means['trials', variant]:.0f})" for variant in RUNGS]
        change = 100 * (both["test", RUNGS[1]] / both["test", RUNGS[0]] - 1)
        lines.append((per_second, row(
            table, f"{rows:,.0f}", f"{budget:g} s", f"{per_second:.0f}", f"{len(both)}", *cells,
            ", ".join(signed(value, 1) for value in change),
        )))  # fmt: skip
    return Body(
        header="| table | rows | budget | cells per second, thousands | seeds | with rungs | without | change, % |",
        lines=tuple(line for _, line in sorted(lines)),
    )


def _rungs_of_whole_runs() -> Body:
    lines = []
    for name, variant in (("with_rungs", "with rungs"), ("without_rungs", "without")):
        kept_runs = FinishedRuns(RESULTS / "match" / f"{name}.jsonl", PeerRun, SuiteKey)
        found = [
            kept_runs.find(PeerProtocol(seconds=60.0, threads=2).key("large_200000", OURS, seed)) for seed in range(3)
        ]
        runs = [each for each in found if each is not None]
        losses = ", ".join(f"{each.measures['log_loss']:.3f}" for each in runs)
        trials = ", ".join(f"{each.facts['models']}" for each in runs)
        lines.append(row(variant, losses, trials))
    return Body(header="| 200,000 rows, 60 s, two workers | log loss by seed | trials |", lines=tuple(lines))
