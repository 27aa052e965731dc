"""The numbers of replays with free candidates, where an emulator of a recording answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.experiments.costs.equal_seconds import at_percent
from benchmarks.experiments.defaults import summarise
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
from benchmarks.statistics.ranks_and_tests import bootstrap_interval, signed_rank_test

REFERENCE = "ensemble_contest"
KNOWN_PERCENT = (20, 50, 100)
SLOWER_FROM = 717
"""First seed of the replays in known seconds that were made on a slower machine."""

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
    yield from _at_known_seconds(kept("equal_seconds"))
    yield _tests(runs)
    yield from _speed_ups(runs)
    yield from _whole_runs(kept("contest_runs").query("budget == 120"))
    yield _longer_runs(kept("contest_runs").query("budget == 300"))


def summary() -> Statement:
    """Return the line of the table of docs/how_good.md."""
    return Statement(
        text="{seeds} seeds, {recordings:word} larger recordings, an emulator answers, test rows: `ensemble_contest` "
        "has rank {rank_ensemble_contest:.2f} of five, `ensemble_gain` {rank_ensemble_gain:.2f}, `random` "
        "{rank_random:.2f}, `optdivbo` {rank_optdivbo:.2f}, `bo` {rank_bo:.2f}; Holm's p {p_ensemble_gain:.2f}, "
        "{p_random:.2f}, {p_optdivbo:.2f} and {p_bo:.2f}",
        values=ranks_and_p(kept("free_candidates"), REFERENCE),
    )


def summary_of_known_seconds() -> Statement:
    """Return the line of the table of docs/how_good.md about equal CPU seconds."""
    rows = kept("equal_seconds")
    last = at_percent(rows, KNOWN_PERCENT[-1])
    ranks = comparison.average_ranks(last, 0, "test")
    tests: Frame = comparison.across_recordings(last, 0, "test", REFERENCE)
    return Statement(
        text="{seeds} other seeds, the same recordings and emulator, test rows: `bo` has rank {bo:.2f} of five, "
        "`ensemble_gain` {ensemble_gain:.2f}, `ensemble_contest` {ensemble_contest:.2f}, `optdivbo` {optdivbo:.2f}, "
        "`random` {random:.2f}; Holm's p against `ensemble_contest` at least {p:.2f}",
        values={"seeds": rows["seed"].nunique(), "p": tests["holm_p"].min()} | {name: ranks[name] for name in SHOWN},
    )


def _at_equal_seconds(runs: Frame) -> Body:
    same = comparison.at_equal_seconds(runs)
    last = int(same["trials"].max())
    return Body(
        header="| strategy, equal CPU seconds | trials, median | validation rank | test rank | test loss, p |",
        lines=_lines(same, last, [comparison.average_ranks(same, last, part) for part in PARTS]),
    )


def _lines(runs: Frame, n_trials: int, ranks: Sequence[Frame]) -> tuple[str, ...]:
    """Return a line for each strategy: the trials that it has finished, its ranks, and how its test loss differs."""
    finished = runs.groupby("strategy")["finished"].median()
    differences = differences_after(runs, n_trials, "test", REFERENCE)
    return tuple(
        row(called, f"{finished[name]:.0f}", *(f"{of[name]:.2f}" for of in ranks), differences.get(name, ""))
        for name, called in SHOWN.items()
    )


def _at_known_seconds(rows: Frame) -> Iterator[Statement | Body]:
    yield Statement(
        text="average ranks of five, of {recordings:word} recordings, {seeds:word} seeds",
        values={"recordings": rows["recording"].nunique(), "seeds": rows["seed"].nunique()},
    )
    at = {percent: at_percent(rows, percent) for percent in KNOWN_PERCENT}
    last = at[KNOWN_PERCENT[-1]]
    yield Body(
        header="| strategy, known seconds | trials, median | validation 20 % | 50 % | 100 % | test 20 % | 50 % | "
        "100 % | test loss at the end, p |",
        lines=_lines(last, 0, [comparison.average_ranks(runs, 0, part) for part in PARTS for runs in at.values()]),
    )
    seconds = last.assign(slower=last["seed"] >= SLOWER_FROM).groupby(["slower", "strategy"])["suggest_seconds"].mean()
    ratios = seconds[True] / seconds[False]
    yield Statement(
        text="On the slower machine of the {n:word} last seeds, a suggestion takes {least:.1f} to {most:.1f} times as "
        "many CPU seconds; those of trials are the recorded ones",
        values={
            "n": last.loc[last["seed"] >= SLOWER_FROM, "seed"].nunique(),
            "least": ratios.min(),
            "most": ratios.max(),
        },
    )
    of_default: Frame = comparison.across_recordings(last, 0, "test", "optdivbo")
    of_random: Frame = comparison.across_recordings(last, 0, "validation", REFERENCE)
    yield Statement(
        text="whose test loss is higher on {higher} of {all:word} recordings (Holm's p {p:.2f})",
        values={
            "higher": of_default.loc["bo", "wins"],
            "all": rows["recording"].nunique(),
            "p": of_default.loc["bo", "holm_p"],
        },
    )
    yield Statement(
        text="has a higher validation loss than `ensemble_contest` (Holm's p {p:.4f})",
        values={"p": of_random.loc["random", "holm_p"]},
    )


def _tests(runs: Frame) -> Statement:
    values = wins_and_p(runs, REFERENCE)
    return Statement(
        text="With free candidates, its validation loss after 150 trials is lower than that of `bo`, `optdivbo` and "
        "`ensemble_gain` on {validation_bo:word}, {validation_optdivbo:word} and {validation_ensemble_gain:word} of "
        "{all:word} recordings (Holm's p {validation_bo_p:.3f}, {validation_optdivbo_p:.3f} and "
        "{validation_ensemble_gain_p:.4f}), and than that of `random` on {validation_random:word} "
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


def _whole_runs(rows: Frame) -> Iterator[Body | Statement]:
    """Yield what whole runs of `fit` say, at four moments and at the end."""
    compared: Frame = summarise(rows, "optdivbo")
    found = compared[compared["variant"] == REFERENCE]
    budget = rows["budget"].iloc[0]
    yield Body(
        header="| CPU seconds of `fit` | test loss against `optdivbo` | lower on | trials | most tried |",
        lines=tuple(
            row(
                f"{of.share * budget:.0f}",
                f"{100 * (of.ratio - 1):+.2f} % [{100 * (of.low - 1):+.2f}, {100 * (of.high - 1):+.2f}]",
                f"{of.better} of {of.tables}",
                f"{of.trials:.0f}",
                f"{100 * of.most_tried:.0f} %",
            )
            for of in found.itertuples()
        ),
    )
    ends = rows[rows["share"] == 1]
    losses: Frame = np.log(ends.pivot_table(index=["table", "seed"], columns="variant", values="test"))
    change = losses[REFERENCE] - losses["optdivbo"]
    by_table = change.groupby("table").mean()
    of_other = rows[(rows["variant"] == "optdivbo") & (rows["share"] == 1)]
    yield Statement(
        text="after {budget:.0f} CPU seconds it has {less:.2f} % less test loss than `optdivbo` in the mean of "
        "{tables:word} tables and {seeds:word} seeds (p {p:.2f} by Wilcoxon's test over tables), and is better in "
        "{better} of {runs} pairs of runs. It spreads its trials: {most:.0f} % of them go to the algorithm with most, "
        "{other:.0f} % with `optdivbo`",
        values={
            "budget": budget,
            "less": -100 * np.expm1(by_table.mean()),
            "tables": len(by_table),
            "seeds": rows["seed"].nunique(),
            "p": signed_rank_test(by_table.to_numpy())[0],
            "better": int((change < 0).sum()),
            "runs": len(change),
            "most": 100 * ends.loc[ends["variant"] == REFERENCE, "most_tried"].mean(),
            "other": 100 * of_other["most_tried"].mean(),
        },
    )


def _longer_runs(rows: Frame) -> Statement:
    compared: Frame = summarise(rows, "optdivbo").set_index(["variant", "share"])
    of = compared.loc[(REFERENCE, 1.0)]
    return Statement(
        text="With {budget:.0f} CPU seconds, made so far on {tables:word} of the tables with one seed, it has "
        "{change:+.1f} % [{low:+.1f}, {high:+.1f}], and is better on {better:word}",
        values={
            "budget": rows["budget"].iloc[0],
            "tables": of["tables"],
            "change": 100 * (of["ratio"] - 1),
            "low": 100 * (of["low"] - 1),
            "high": 100 * (of["high"] - 1),
            "better": of["better"],
        },
    )
