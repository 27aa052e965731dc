"""The numbers of replays of larger recordings, whose validation rows are harder to exhaust."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.pages.ensemble_contest import AFTER, ranks_and_differences
from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement
from benchmarks.statistics import comparison

REFERENCE = "optdivbo"
SHOWN = {
    REFERENCE: "`optdivbo`",
    "bo": "`bo`",
    "ensemble_gain": "`ensemble_gain`",
    "contest": "`ensemble_contest` and opening",
    "random": "`random`",
}

MANY_ROWS = ("phoneme-volcano", "wind-volcano", "recorded_large/cpu_act-volcano", "bank32nh-volcano")
"""Recordings with more than 1,300 validation rows."""


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    runs = kept("larger_recordings")
    yield ranks_and_differences(runs, REFERENCE, SHOWN, first="strategy, larger recordings")
    yield _rows(runs)
    yield _finding(runs)


def _rows(runs: Frame) -> Statement:
    return Statement(
        text="{recordings:Word} larger recordings and {seeds:word} seeds, on which nothing was chosen",
        values={"recordings": runs["recording"].nunique(), "seeds": runs["seed"].nunique()},
    )


def _finding(runs: Frame) -> Statement:
    tests: Frame = comparison.across_recordings(runs, AFTER[-1], "test", REFERENCE)
    many: Frame = comparison.across_recordings(runs[runs["recording"].isin(MANY_ROWS)], AFTER[-1], "test", REFERENCE)
    values = {name: tests.loc[name, "wins"] for name in ("random", "bo")}
    values |= {f"p_{name}": tests.loc[name, "holm_p"] for name in ("random", "bo")}
    values |= {"all": runs["recording"].nunique(), "many_random": many.loc["random", "wins"], "many": len(MANY_ROWS)}
    return Statement(
        text="After 150 trials, the test loss of `random` is lower than that of `optdivbo` on {random:word} of "
        "{all:word} larger recordings (Holm's p {p_random:.3f}, the least that so few allow), and that of `bo` on "
        "{bo:word} (p {p_bo:.2f}). Of those with more than 1,300 validation rows, `random` is ahead on "
        "{many_random:word} of {many:word}",
        values=values,
    )
