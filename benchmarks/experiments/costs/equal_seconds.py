"""Compare strategies after equal CPU seconds, of which they know how many they have.

    python -m benchmarks equal-seconds --strategies random bo optdivbo --recordings cmc wind --first-seed 800 --seeds 8

Candidates are free in the space of a recording, and an emulator answers, as with `replay --free`. The budget is the CPU
seconds of some average configurations of the recording (`--average-trials`). Strategies weigh costs as in a run with a
budget of time: cheap candidates are preferred early on, and nothing begins that would not end in time.

Finished runs are kept in `--work`; the same command continues, Ctrl+C loses only runs in progress.
"""

from __future__ import annotations

import argparse
import functools
import os
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from rich.console import Console

from benchmarks.recordings.finding import add_recordings_argument, find_recordings
from benchmarks.recordings.replay_runs import code_of, load_emulator
from benchmarks.recordings.replay_study import LabelledStrategy, read_strategies
from benchmarks.recordings.timed_replay import losses_after, seconds_of_average, timed_free_replay
from benchmarks.reporting.table import Table
from benchmarks.runs.different_code import tell_different_code
from benchmarks.runs.finished_runs import Failure, FinishedRuns
from benchmarks.runs.parallel import make_runs
from benchmarks.statistics import comparison
from cashmere.base.text import counted
from cashmere.evaluation.metrics import get_metric

PERCENT = tuple(range(10, 101, 10))
"""Shares of the budget at which the ensemble is judged, in per cent."""

PARTS: tuple[comparison.Part, ...] = ("validation", "test")


@dataclass(frozen=True, slots=True)
class EqualKey:
    """What is replayed: a recording (and the digest of its file), a strategy, a budget in average trials, a seed."""

    recording: str
    digest: str
    strategy: str
    average_trials: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualRun:
    """A finished replay.

    Attributes
    ----------
    key : EqualKey
        What was replayed.
    curve : list of dict
        Rows of `benchmarks.recordings.timed_replay.losses_after`, at `PERCENT` of the budget.
    suggest_seconds : float
        Seconds of deciding, all trials together.
    code : str
        Digest of the code that decided.
    """

    key: EqualKey
    curve: list[dict[str, float]]
    suggest_seconds: float
    code: str


def make_run(path: Path, key: EqualKey) -> EqualRun:
    """Replay one run."""
    emulator = load_emulator(path, key.digest, key.seed)
    history = emulator.history
    metric = get_metric("log_loss" if history.task_type.is_classification else "mse", history.task_type)
    seconds = seconds_of_average(history, key.average_trials)
    found, ended_at, deciding = timed_free_replay(emulator, metric, key.strategy, seed=key.seed, seconds=seconds)
    counts = [sum(end <= percent / 100 * seconds for end in ended_at) for percent in PERCENT]
    return EqualRun(
        key=key,
        curve=losses_after(found, metric, range(len(found)), counts),
        suggest_seconds=deciding,
        code=code_of(key.strategy),
    )


def tidy(label: str, run: EqualRun) -> list[dict[str, object]]:
    """Return the rows of a run for the results."""
    named = {"recording": run.key.recording, "strategy": label, "seed": run.key.seed}
    per_trial = run.suggest_seconds / max(run.curve[-1]["trials"], 1)
    return [
        named | {"percent": percent} | row | {"suggest_seconds": per_trial}
        for percent, row in zip(PERCENT, run.curve, strict=True)
    ]


def at_percent(rows: pd.DataFrame, percent: int) -> pd.DataFrame:
    """Return the rows at a share of the budget, as `benchmarks.statistics.comparison` takes them, all as 0 trials."""
    there = rows[rows["percent"] == percent]
    return comparison.paired(there.assign(finished=there["trials"], trials=0))


def compare(rows: pd.DataFrame, percent: int, reference: str) -> Table:
    """Return ranks, and the differences of mean test losses from those of a strategy, at a share of the budget."""
    runs = at_percent(rows, percent)
    ranks = {part: comparison.average_ranks(runs, 0, part) for part in PARTS}
    finished = runs.groupby("strategy")["finished"].median()
    differences = {part: comparison.relative_differences(runs, 0, part, reference) for part in PARTS}
    tests = {part: comparison.across_recordings(runs, 0, part, reference) for part in PARTS}
    lines = []
    for name in ranks["test"].sort_values().index:
        cells = [name, f"{finished[name]:.0f}", *(f"{ranks[part][name]:.2f}" for part in PARTS)]
        for part in PARTS:
            if name == reference:
                cells.append("")
                continue
            of, p = differences[part].loc[(name, "")], tests[part].loc[name, "holm_p"]
            cells.append(f"{of['difference']:+.2f} [{of['low']:+.2f}, {of['high']:+.2f}], {p:.2g}")
        lines.append(tuple(cells))
    recordings, seeds = counted(runs["recording"].nunique(), "recording"), counted(runs["seed"].nunique(), "seed")
    return Table(
        title=f"After {percent} % of the time; {recordings}, {seeds}",
        columns=(
            *("strategy", "trials", "validation rank", "test rank"),
            *(f"{part} against {reference}, %, Holm's p" for part in PARTS),
        ),
        rows=tuple(lines),
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recordings_argument(parser)
    parser.add_argument("--strategies", nargs="+", required=True, help="with options and labels, as in `replay`")
    parser.add_argument("--reference", help="label of the strategy to compare the others with (default: the first)")
    parser.add_argument("--seeds", type=int, default=8, help="number of seeds, starting at --first-seed (default: 8)")
    parser.add_argument("--first-seed", type=int, default=0, help="first seed; choose seeds that nothing was tuned on")
    parser.add_argument(
        "--average-trials", type=int, default=100, help="configurations whose seconds are the budget (default: 100)"
    )
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count(), help="processes; 0: only show (default: one per core)"
    )
    parser.add_argument("--work", type=Path, default=Path(".replay"), help="finished runs")
    parser.add_argument("--out", type=Path, help="file for the rows (csv)")


def main(arguments: argparse.Namespace) -> None:
    console = Console(width=200)
    reference = arguments.reference or LabelledStrategy.of(arguments.strategies[0]).label
    strategies = read_strategies(arguments.strategies, reference)
    runs: FinishedRuns[EqualKey, EqualRun] = FinishedRuns(arguments.work / "equal-seconds.jsonl", EqualRun, EqualKey)
    wanted = [
        (
            of.label,
            recording.path.absolute(),
            EqualKey(recording.name, recording.digest, of.strategy, arguments.average_trials, seed),
        )
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds)
        for recording in find_recordings(arguments.recordings)
        for of in strategies
    ]
    missing = [(path, key) for _, path, key in wanted if runs.find(key) is None]
    console.print(f"{len(wanted) - len(missing)} of {len(wanted)} runs are finished")
    if missing and arguments.workers:
        make_runs(missing, make_run, n_workers=arguments.workers, report=functools.partial(_keep, runs, console))
    found = [(label, run) for label, _, key in wanted if (run := runs.find(key)) is not None]
    if not any(label == reference for label, _ in found):
        raise SystemExit(f"There is no finished run of {reference} in {arguments.work}.")
    for of in strategies:
        codes = [run.code for label, run in found if label == of.label]
        tell_different_code(
            console, codes, {code_of(of.strategy)}, what=f"runs of {of.label}", advice="another --work repeats them"
        )
    rows = pd.DataFrame([row for label, run in found for row in tidy(label, run)])
    for percent in (50, 100):
        table = compare(rows, percent, reference)
        console.print(table.title)
        console.print(table.to_rich())
    if arguments.out is not None:
        rows.to_csv(arguments.out, index=False)


def _keep(runs: FinishedRuns[EqualKey, EqualRun], console: Console, result: EqualRun | Failure[EqualKey]) -> None:
    if isinstance(result, Failure):
        console.print(f"{result.key}\n{result.error}", markup=False)
    else:
        runs.add(result)
