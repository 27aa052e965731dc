"""The numbers of three folds instead of five, where members are fitted on all rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.experiments.all_rows import FOLDS, IN_TIME
from benchmarks.pages.formats import per_cent_change
from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row
from benchmarks.statistics.ranks_and_tests import signed_rank_test

_SHORT = 100.0
"""CPU seconds of the searches that all tables have."""

_FEW_ROWS = 5_000
"""Up to so many rows, the rule of runs did not change."""

HEADER = "| table | CPU seconds | rows that learn | trials, five folds | three folds | folds | **in time** |"


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    changes, trials = _found()
    lines = []
    for budget, of_budget in changes.groupby("budget"):
        for (_, n_rows, table), change in of_budget.iterrows():
            n_trials = trials.loc[(budget, n_rows, table)]
            shown = (f"{budget:.0f}", f"{n_rows:.0f}", f"{n_trials[5]:.0f}", f"{n_trials[3]:.0f}")
            lines.append(row(str(table), *shown, *map(per_cent_change, change)))
        lines.append(row("**mean**", f"{budget:.0f}", "", "", "", *map(per_cent_change, of_budget.mean())))
    yield Body(header=HEADER, lines=tuple(lines))
    in_time = changes.loc[_SHORT][IN_TIME]
    yield Statement(
        text="In {seconds:.0f} CPU seconds, the loss is lower on {better} of {n} tables (p = {p:.2f})",
        values={
            "seconds": _SHORT,
            "better": int((in_time < 0).sum()),
            "n": len(in_time),
            "p": signed_rank_test(in_time.to_numpy())[0],
        },
    )
    n_rows = changes.index.get_level_values("rows")
    of_more, of_fewer = (
        changes.loc[chosen, IN_TIME].groupby("table").mean() for chosen in (n_rows > _FEW_ROWS, n_rows <= _FEW_ROWS)
    )
    yield Statement(
        text="With more than 5,000 rows, it changes by {more:+.1f} % in the mean of {n_more:word} tables, and is lower "
        "on {lower_more:word}; with fewer, by {fewer:+.1f} % in the mean of {n_fewer:word}, and is lower on "
        "{lower_fewer:word}",
        values={
            "more": 100 * np.expm1(of_more.mean()),
            "n_more": len(of_more),
            "lower_more": int((of_more < 0).sum()),
            "fewer": 100 * np.expm1(of_fewer.mean()),
            "n_fewer": len(of_fewer),
            "lower_fewer": int((of_fewer < 0).sum()),
        },
    )


def _found() -> tuple[Frame, Frame]:
    """Return the logarithms of the ratios of test losses, three folds to five, and the trials of searches in time."""
    rows = kept("three_folds")
    index = ["budget", "rows", "table"]
    losses = rows.assign(log=np.log(rows["test_loss"])).pivot_table(
        index=index, columns=["folds", "way"], values="log", aggfunc="mean"
    )
    changes = (losses[3] - losses[5])[[FOLDS, IN_TIME]].dropna()
    trials = rows[rows["way"] == IN_TIME].pivot_table(index=index, columns="folds", values="trials")
    return changes, trials
