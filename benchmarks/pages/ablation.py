"""The numbers of the ablation of what makes use of time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.experiments.ablation import changes, summarise
from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row, signed
from benchmarks.statistics.ranks_and_tests import bootstrap_interval

RUNGS = ("everything", "without rungs")
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
    long: Frame = kept("ablation_rungs")
    means: Frame = long.groupby(["table", "variant"])[["test", "trials"]].mean().unstack()
    lines = [
        row(
            table,
            *(
                f"{means.loc[table, ('test', variant)]:.4f} ({means.loc[table, ('trials', variant)]:.0f})"
                for variant in RUNGS
            ),
            f"{100 * (means.loc[table, ('test', RUNGS[1])] / means.loc[table, ('test', RUNGS[0])] - 1):+.1f} %",
        )
        for table in sorted(means.index, key=str.lower)
    ]
    yield Body(header="| table | with rungs | without rungs | |", lines=tuple(lines))
