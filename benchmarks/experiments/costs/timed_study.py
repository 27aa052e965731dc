"""What a search gains by weighing costs: replays of recordings under budgets of time.

    python -m benchmarks costs-replay --strategies bo random --seeds 20

The budget is a share of the recorded seconds of each table, so it is as short everywhere: 0.02 is the time of about 12
average configurations, 0.1 that of 60. Every strategy runs once as under a budget of trials (`none`) and once per rule:

    cooled       the package: cheap algorithms first, improvement / max(1, seconds / median)^alpha, alpha the share of
                 the time left, and nothing is started that would not end in time
    per_second   the same with alpha = 1
    order        the same with alpha = 0: the order of the first trials and the end of the budget only
    credited     the same with improvement / seconds^alpha, so that what is cheap gains, too (only bo)
    gittins      the same with the Gittins index of Pandora's box (only bo)

Losses are those of the ensemble of all trials that have ended: `area` is the mean over ten equal steps of the time,
`end` the last. Finished runs are kept in `--work`; the same command continues, Ctrl+C loses only runs in progress.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

from benchmarks.experiments.costs.rules import CheapnessCredited, FixedExponent, PandorasBox
from benchmarks.recordings.recorded_history import RECORDED
from benchmarks.recordings.replay_runs import Recording, code_digest, load_objective
from benchmarks.recordings.timed_replay import N_WORKERS, losses_over_time, timed_replay, total_seconds
from benchmarks.reporting.table import Table
from benchmarks.runs.different_code import tell_different_code
from benchmarks.runs.finished_runs import Failure, FinishedRuns
from benchmarks.runs.parallel import make_runs
from benchmarks.statistics.comparison import Part, across_recordings, relative_differences, wilcoxon_by_recording
from benchmarks.statistics.ranks_and_tests import count_verdicts
from cashmere.evaluation.metrics import get_metric
from cashmere.protocols import Strategy
from cashmere.space.encoding import SpaceEncoder
from cashmere.strategies import make_strategy

RULES = ("none", "cooled", "per_second", "order", "credited", "gittins")

OF_BO: dict[str, Callable[[SpaceEncoder], Strategy]] = {"credited": CheapnessCredited, "gittins": PandorasBox}
"""Rules that are `bo` with another acquisition value."""

PARTS: tuple[Part, ...] = ("validation", "test")

STEPS = tuple(step / 10 for step in range(1, 11))
"""Shares of the budget at which the ensemble is judged."""


@dataclass(frozen=True, slots=True)
class TimedKey:
    """What is replayed: a recording (and the digest of its file), a strategy, a rule, a budget, a seed."""

    recording: str
    digest: str
    strategy: str
    rule: str
    share: float
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedRun:
    """A finished replay.

    Attributes
    ----------
    key : TimedKey
        What was replayed.
    curve : list of dict
        Rows of `benchmarks.recordings.timed_replay.losses_over_time`.
    code : str
        Digest of the code that decided; empty in earlier runs.
    """

    key: TimedKey
    curve: list[dict[str, float]]
    code: str = ""


def strategy_with(rule: str, name: str, encoder: SpaceEncoder) -> Strategy:
    """Return a strategy that weighs costs by a rule."""
    if rule in OF_BO:
        return OF_BO[rule](encoder)
    strategy = make_strategy(name, encoder)
    exponent = {"per_second": 1.0, "order": 0.0}.get(rule)
    return strategy if exponent is None else FixedExponent(strategy, exponent)


def own_digest() -> str:
    """Return a digest of the code that decides; runs of other digests may be out of date."""
    return code_digest("experiments/costs/rules.py", "experiments/costs/timed_study.py")


def make_run(path: Path, key: TimedKey) -> TimedRun:
    """Replay one run."""
    task_type = Recording.of(path).task_type
    metric = get_metric("log_loss" if task_type.is_classification else "mse", task_type)
    objective = load_objective(path, key.digest, metric.name, key.seed)
    history = objective.history
    seconds = key.share * total_seconds(history) / N_WORKERS
    strategy = strategy_with(key.rule, key.strategy, history.encoder)
    replayed = timed_replay(
        objective, metric, strategy, seed=key.seed, seconds=seconds, weighs_costs=key.rule != "none"
    )
    return TimedRun(
        key=key,
        curve=losses_over_time(history, metric, replayed, STEPS),
        code=own_digest(),
    )


def measures(run: TimedRun) -> dict[str, float]:
    """Return the losses at the end and on average, of validation and test rows."""
    found: dict[str, float] = {"trials": run.curve[-1]["trials"]}
    for part in PARTS:
        losses = [row[part] for row in run.curve]
        found |= {f"{part}_area": float(np.mean(losses)), f"{part}_end": losses[-1]}
    return found


def compare(frame: pd.DataFrame, strategy: str, share: float) -> Table:
    """Return each rule beside none, by the losses of the ensemble.

    A cell holds the mean difference in per cent with its 95 % interval, the recordings on which the rule is better, the
    same and worse over seeds (Wilcoxon, 0.05), and p of the test over recordings.
    """
    runs = frame[(frame["strategy"] == strategy) & (frame["share"] == share)]
    there = runs.groupby(["recording", "seed"])["rule"].transform("nunique")
    runs = runs[there == runs["rule"].nunique()]
    rules = [rule for rule in RULES if rule in set(runs["rule"])]
    rows = {rule: [rule, f"{runs[runs['rule'] == rule]['trials'].mean():.0f}"] for rule in rules}
    for measure in ("area", "end"):
        for part in PARTS:
            losses = runs.rename(columns={f"{part}_{measure}": part}).drop(columns="strategy")
            losses = losses.rename(columns={"rule": "strategy"}).assign(trials=0)
            differences = relative_differences(losses, 0, part, "none")
            verdicts = count_verdicts(wilcoxon_by_recording(losses, 0, part, "none"))
            p_values = across_recordings(losses, 0, part, "none")["wilcoxon_p"]
            for rule in rules:
                rows[rule].append("" if rule == "none" else _cell(rule, differences, verdicts, p_values))
    n_pairs = len(runs[["recording", "seed"]].drop_duplicates())
    return Table(
        title=f"{strategy}, budget {share:g} of the recorded seconds, {n_pairs} pairs of recording and seed",
        columns=("rule", "trials", "validation area %", "test area %", "validation end %", "test end %"),
        rows=tuple(map(tuple, rows.values())),
    )


def _cell(rule: str, differences: pd.DataFrame, verdicts: pd.DataFrame, p_values: pd.Series) -> str:
    difference, low, high = differences.loc[(rule, "")]
    counts = "/".join(str(count) for count in verdicts.loc[rule])
    return f"{difference:+.1f} [{low:+.1f}, {high:+.1f}] {counts} p {p_values[rule]:.2g}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--strategies", nargs="+", default=["bo"])
    parser.add_argument("--rules", nargs="+", default=list(RULES), choices=RULES)
    parser.add_argument("--shares", nargs="+", type=float, default=[0.02, 0.1], help="of the recorded seconds")
    parser.add_argument("--seeds", type=int, default=20, help="number of seeds, from 0")
    parser.add_argument("--workers", type=int, default=1, help="processes; 0: only show finished runs")
    parser.add_argument("--work", type=Path, default=Path(".replay"), help="finished runs")
    parser.add_argument("--out", type=Path, help="file for the rows (csv)")


def main(arguments: argparse.Namespace) -> None:
    console = Console(width=200)
    recordings = [Recording.of(path) for path in sorted(RECORDED.glob("*.zip"))]
    runs: FinishedRuns[TimedKey, TimedRun] = FinishedRuns(arguments.work / "timed.jsonl", TimedRun, TimedKey)
    wanted = wanted_runs(recordings, arguments.strategies, arguments.rules, arguments.shares, arguments.seeds)
    missing = [(recording.path, key) for recording, key in wanted if runs.find(key) is None]
    console.print(f"{len(wanted) - len(missing)} of {len(wanted)} runs are finished")
    if missing and arguments.workers:
        make_runs(missing, make_run, n_workers=arguments.workers, report=functools.partial(_keep, runs, console))
    found = [run for _, key in wanted if (run := runs.find(key)) is not None]
    if not found:
        raise SystemExit(f"There is no finished run with these settings in {arguments.work}.")
    tell_different_code(console, (run.code for run in found), {own_digest()}, advice="another --work repeats them")
    names = ("strategy", "rule", "share", "recording", "seed")
    frame = pd.DataFrame([{name: getattr(run.key, name) for name in names} | measures(run) for run in found])
    for strategy in arguments.strategies:
        for share in arguments.shares:
            table = compare(frame, strategy, share)
            console.print(table.title)
            console.print(table.to_rich())
    if arguments.out is not None:
        frame.round(6).to_csv(arguments.out, index=False)


def wanted_runs(
    recordings: Sequence[Recording],
    strategies: Sequence[str],
    rules: Sequence[str],
    shares: Sequence[float],
    n_seeds: int,
) -> list[tuple[Recording, TimedKey]]:
    """Return what to replay, seed by seed, so that whenever it stops all rules have run about equally often."""
    return [
        (recording, TimedKey(recording.name, recording.digest, strategy, rule, share, seed))
        for seed in range(n_seeds)
        for share in shares
        for recording in recordings
        for strategy in strategies
        for rule in rules
        if rule not in OF_BO or strategy == "bo"
    ]


def _keep(runs: FinishedRuns[TimedKey, TimedRun], console: Console, result: TimedRun | Failure[TimedKey]) -> None:
    if isinstance(result, Failure):
        console.print(f"{result.key}\n{result.error}", markup=False)
    else:
        runs.add(result)
