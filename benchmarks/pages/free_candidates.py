"""The numbers of replays with free candidates, where an emulator of a recording answers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.pages.ensemble_contest import (
    OTHERS,
    PARTS,
    differences_after,
    ranks_and_differences,
    ranks_and_p,
    wins_and_p,
)
from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row
from benchmarks.statistics import comparison
from benchmarks.statistics.ranks_and_tests import bootstrap_interval

REFERENCE = "ensemble_contest"
SHOWN = {REFERENCE: "`ensemble_contest`"} | OTHERS


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    runs = kept("free_candidates")
    yield Statement(
        text="{recordings:Word} larger recordings and {seeds:word} seeds of their own, free candidates",
        values={"recordings": runs["recording"].nunique(), "seeds": runs["seed"].nunique()},
    )
    yield ranks_and_differences(runs, REFERENCE, SHOWN, first="strategy, free candidates")
    yield _at_equal_seconds(runs)
    yield _tests(runs)
    yield from _speed_ups(runs)
    yield _whole_runs(kept("contest_runs"))


def summary() -> Statement:
    """Return the line of the table of docs/how_good.md."""
    return Statement(
        text="{seeds} seeds, {recordings:word} larger recordings, an emulator answers, test rows: `ensemble_contest` "
        "has rank {rank_ensemble_contest:.2f} of five, `ensemble_gain` {rank_ensemble_gain:.2f}, `random` "
        "{rank_random:.2f}, `optdivbo` {rank_optdivbo:.2f}, `bo` {rank_bo:.2f}; Holm's p {p_ensemble_gain:.2f}, "
        "{p_random:.2f}, {p_optdivbo:.2f} and {p_bo:.2f}",
        values=ranks_and_p(kept("free_candidates"), REFERENCE),
    )


def _at_equal_seconds(runs: Frame) -> Body:
    same = comparison.at_equal_seconds(runs)
    last = int(same["trials"].max())
    finished = same.groupby("strategy")["finished"].median()
    ranks = {part: comparison.average_ranks(same, last, part) for part in PARTS}
    differences = differences_after(same, last, "test", REFERENCE)
    lines = [
        row(
            called,
            f"{finished[name]:.0f}",
            *(f"{ranks[part][name]:.2f}" for part in PARTS),
            differences.get(name, ""),
        )
        for name, called in SHOWN.items()
    ]
    return Body(
        header="| strategy, equal CPU seconds | trials, median | validation rank | test rank | test loss, p |",
        lines=tuple(lines),
    )


def _tests(runs: Frame) -> Statement:
    values = wins_and_p(runs, REFERENCE)
    return Statement(
        text="With free candidates, its validation loss after 150 trials is lower than that of `bo`, `optdivbo` and "
        "`ensemble_gain` on {validation_bo:word}, {validation_optdivbo:word} and {validation_ensemble_gain:word} of "
        "{all:word} recordings (Holm's p {validation_bo_p:.3f}, {validation_optdivbo_p:.3f} and "
        "{validation_ensemble_gain_p:.3f}), and than that of `random` on {validation_random:word} "
        "({validation_random_p:.2f}). Its test loss is lower on {test_bo:word}, {test_optdivbo:word}, "
        "{test_ensemble_gain:word} and {test_random:word}, but the least p is {least_p:.2f}",
        values=values | {"least_p": min(values[f"test_{name}_p"] for name in OTHERS)},
    )


def _speed_ups(runs: Frame) -> Iterator[Statement]:
    rng = np.random.default_rng(0)
    for part in PARTS:
        found: Frame = comparison.speed_ups(runs, "bo", part=part).loc[REFERENCE]
        mean, reached = comparison.mean_speed_up(found["speed_up"])
        low, high = np.exp(bootstrap_interval(np.log(found["speed_up"].clip(lower=1.0).to_numpy()), rng))
        values = {"mean": mean, "low": low, "high": high, "reached": reached, "all": len(found)}
        values |= {"median": found["speed_up"].median()}
        yield Statement(
            text=f"the last {part} loss of `bo` {{mean:.2f}} times earlier ({{low:.2f}} to {{high:.2f}}; median "
            "{median:.2f}; on {reached:word} of {all:word} recordings it reaches it)",
            values=values,
        )


def _whole_runs(rows: Frame) -> Statement:
    losses = rows[rows["share"] == 1.0].pivot(index="table", columns="variant", values="test").dropna()
    percent = 100 * (losses[REFERENCE] / losses["optdivbo"] - 1).to_numpy()
    low, high = bootstrap_interval(percent, np.random.default_rng(0))
    values = {
        "tables": len(percent),
        "wins": int((percent < 0).sum()),
        "mean": percent.mean(),
        "low": low,
        "high": high,
    }
    return Statement(
        text="In whole runs of `fit` within 120 CPU seconds (at most 2,000 rows, one worker, one seed), its test loss "
        "is lower than that of `optdivbo` on {wins:word} of {tables:word} tables; the mean difference is {mean:+.1f} % "
        "({low:+.1f} to {high:+.1f})",
        values=values,
    )
