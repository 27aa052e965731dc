"""The numbers of predictions by the newest fold."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.pages.kept_rows import kept
from benchmarks.pages.statement import Body, Statement, row
from benchmarks.statistics.ranks_and_tests import signed_rank_test

WAYS = ("newest_three", "newest_two", "newest_fold", "refit", "refit_and_two")


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    rows = kept("newest_fold").sort_values(["table", "seed"])
    ratios = rows[list(WAYS)].div(rows["all_folds"], axis=0)
    shown = rows.assign(**ratios)
    lines = tuple(
        row(each.table, f"{each.all_folds:.4g}", *(f"{getattr(each, way):.3f}" for way in WAYS), f"{each.covered:.2f}")
        for each in shown.itertuples()
    )
    yield Body(
        header="| table | all folds | newest three | newest two | newest fold | refit | refit and newest two | "
        "covered |",
        lines=lines,
    )
    yield Statement(
        text="the newest fold has a lower loss than the mean of all folds in {newest} of {n} runs ({change:+.1f} % in "
        "the median), a refit in {refit} ({refit_change:+.1f} %)",
        values={
            "newest": (ratios["newest_fold"] < 1).sum(),
            "refit": (ratios["refit"] < 1).sum(),
            "n": len(rows),
            "change": 100 * (ratios["newest_fold"].median() - 1),
            "refit_change": 100 * (ratios["refit"].median() - 1),
        },
    )
    logs = np.log(ratios["refit"] / ratios["newest_fold"]).to_numpy()
    yield Statement(
        text="A refit is better than the newest fold in {better} of {n} (p = {p:.3f}), by {percent:.1f} % in the "
        "geometric mean",
        values={
            "better": (logs < 0).sum(),
            "n": len(rows),
            "p": signed_rank_test(logs)[0],
            "percent": -100 * np.expm1(logs.mean()),
        },
    )
    noisy = ratios[rows["table"] == "wind:BEL"]
    yield Statement(
        text="On wind:BEL, a noisy table that hardly changes, the mean of all folds is {percent:.1f} % better than the "
        "newest alone",
        values={"percent": 100 * (np.exp(np.log(noisy["newest_fold"]).mean()) - 1)},
    )
