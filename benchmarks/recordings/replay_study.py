"""Compare strategies on recorded histories: a trial costs milliseconds, all seeds are paired.

    python -m benchmarks replay --strategies random bo divbo optdivbo ensemble_gain --seeds 20

Strategies choose among the recorded configurations; what they choose is written once per strategy, recording and seed,
so that a second call only adds missing ones, and Ctrl+C loses only the replays in progress. A strategy is written
`name`, `name:option=value,option=value` or `label=name:option=value`, where the label is what the tables show:

    python -m benchmarks replay --strategies bo slow=optdivbo:tau=0.1,surrogate=pairwise

With `--free`, candidates are free in the space of the recording, and a forest that has learned the recording answers:
`benchmarks.recordings.emulator`. `+opening` behind a strategy begins its replays with what was learned from the
recordings of other tables, if there are any with the same configurations: `benchmarks.recordings.learned_opening`.

    python -m benchmarks replay --strategies bo optdivbo begun=optdivbo+opening

`@64` behind a strategy shows it outcomes as late as in a run with a lookahead of 64, where trial n is decided from the
outcomes of trials 0 .. n - 64:

    python -m benchmarks replay --strategies bo bo@8 bo@64 bo@256

`my_module.MyStrategy` is the class of this name in a module that can be imported from here.

If the code that decides has changed, runs are out of date; the command says so, and `--fresh` repeats them.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from rich.console import Console

from benchmarks.recordings.finding import add_recordings_argument, find_recordings
from benchmarks.recordings.learned_opening import kept_recordings
from benchmarks.recordings.recorded_history import load_recorded
from benchmarks.recordings.replay import EVERY
from benchmarks.recordings.replay_runs import (
    Recording,
    Run,
    RunFiles,
    RunKey,
    code_of,
    opening_sources,
    run_missing,
)
from benchmarks.reporting.comparison import make_report, print_report
from benchmarks.reporting.report import write_report
from benchmarks.runs.different_code import tell_different_code
from benchmarks.runs.finished_runs import Failure
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.scheduler import add_scheduler_argument
from benchmarks.statistics.comparison import paired
from cashmere.evaluation.metrics import get_metric
from cashmere.exceptions import CashmereError, MetricError, UnknownNameError
from cashmere.strategies import make_strategy
from cashmere.study import Study

_OPENING = "+opening"

_MOST_TRIED = 0.45
"""Share of a recording beyond which strategies run out of choices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledStrategy:
    """A strategy with options, its lookahead, whether it begins with an opening, and its name in the tables."""

    label: str
    strategy: str
    opening: bool = False
    lookahead: int = 1

    @classmethod
    def of(cls, text: str) -> LabelledStrategy:
        """Read ``name``, ``name:options`` or ``label=name:options``; behind it may be ``@lookahead`` and ``+opening``.

        Examples
        --------
        >>> LabelledStrategy.of("slow=optdivbo:tau=0.1@8+opening")
        LabelledStrategy(label='slow', strategy='optdivbo:tau=0.1', opening=True, lookahead=8)
        >>> LabelledStrategy.of("bo:cap_losses=False").label
        'bo:cap_losses=False'
        """
        head, colon, options = text.partition(":")
        label, _, name = head.rpartition("=")
        written = name + colon + options
        begun = written.removesuffix(_OPENING)
        strategy, at, lookahead = begun.partition("@")
        if at and not (lookahead.isdecimal() and int(lookahead) > 0):
            raise SystemExit(f"--strategies {text}: expected a whole number from 1 behind @; found {lookahead!r}.")
        return cls(
            label=label or written, strategy=strategy, opening=begun != written, lookahead=int(lookahead) if at else 1
        )

    @classmethod
    def of_search(cls, text: str) -> LabelledStrategy:
        """Read a strategy for a command other than `replay`, which begins with no opening and sees every outcome.

        Raises
        ------
        SystemExit
            If there is ``@`` or ``+opening`` behind it.
        """
        found = cls.of(text)
        if found.opening or found.lookahead > 1:
            raise SystemExit(f"{text}: only the command `replay` knows @ and +opening. Leave them out.")
        return found


def read_strategies(
    texts: Sequence[str], reference: str, read: Callable[[str], LabelledStrategy] = LabelledStrategy.of_search
) -> list[LabelledStrategy]:
    """Read the strategies of a command, whose labels must differ; one is that of the reference."""
    strategies = [read(text) for text in texts]
    labels = [labelled.label for labelled in strategies]
    if len(set(labels)) < len(labels):
        raise SystemExit("Two --strategies have the same label. Write `label=name:option=value` to distinguish them.")
    if reference not in labels:
        raise SystemExit(f"--reference {reference} must be one of --strategies: {', '.join(labels)}.")
    return strategies


def choose_metric(recording: Recording, metrics: Sequence[str]) -> str | None:
    """Return the first metric that fits the recording's task, by its full name."""
    for name in metrics:
        try:
            return get_metric(name, recording.task_type).name
        except UnknownNameError as error:
            raise SystemExit(f"--metric {name}: {error}") from error
        except MetricError:
            continue
    return None


def check_strategies(strategies: Sequence[LabelledStrategy], recordings: Sequence[tuple[Recording, str]]) -> None:
    """Make every strategy for every metric once, so that a wrong option is found at the start."""
    for recording, name in {(r.task_type, metric): (r, metric) for r, metric in recordings}.values():
        history, metric = load_recorded(recording.path), get_metric(name, recording.task_type)
        for labelled in strategies:
            try:
                strategy = make_strategy(labelled.strategy, history.encoder)
                Study(history.space, strategy, metric=metric)
            except CashmereError as error:
                is_new = isinstance(error, UnknownNameError) and error.kind == "strategy"
                advice = " Name your own by its path, such as my_module.MyStrategy." if is_new else ""
                raise SystemExit(f"--strategies {labelled.strategy}: {error}{advice}") from error


class Progress:
    """A line of progress: rewritten in a terminal, printed now and then elsewhere."""

    def __init__(self, console: Console, n_runs: int) -> None:
        self._console, self._n_runs, self._done = console, n_runs, 0
        self._start = self._shown = time.monotonic()
        self._failed: dict[str, int] = {}  # by cause

    @property
    def n_failed(self) -> int:
        """Results that were errors."""
        return sum(self._failed.values())

    def __call__(self, result: Run | Failure[RunKey]) -> None:
        """Count a result."""
        self._done += 1
        if isinstance(result, Failure):
            cause, key = result.cause, result.key
            self._console.print(f"{key.strategy} failed on {key.recording}, seed {key.seed}: {cause}", markup=False)
            if cause not in self._failed:  # the whole traceback once
                self._console.print(result.error, markup=False, highlight=False)
            self._failed[cause] = self._failed.get(cause, 0) + 1
        now = time.monotonic()
        pause = 0.2 if self._console.is_terminal else 20.0
        if now - self._shown < pause and self._done < self._n_runs:
            return
        self._shown = now
        left = (now - self._start) / self._done * (self._n_runs - self._done)
        text = f"{self._done} of {self._n_runs} runs"
        text += f", about {left / 60:.0f} min left" if left > 90 else f", about {left:.0f} s left" if left else ""
        text += f", {self.n_failed} failed" if self._failed else ""
        last = self._done == self._n_runs
        self._console.print(
            f"{text:<70}", end="\r" if self._console.is_terminal and not last else "\n", highlight=False
        )


def add_missing(
    files: RunFiles,
    n_missing: int,
    *,
    make: Callable[[Callable[[Run | Failure[RunKey]], None]], None],
    console: Console,
) -> int:
    """Make runs and keep them as they arrive, also before Ctrl+C; return how many failed.

    Parameters
    ----------
    files : RunFiles
        Where finished runs are kept.
    n_missing : int
        Runs to be made.
    make : callable
        Makes them, and calls the function that it is given with every result.
    console : Console
        Shows what is done and what is left.
    """
    progress = Progress(console, n_missing)

    def keep(result: Run | Failure[RunKey]) -> None:
        if isinstance(result, Run):
            files.add(result)
        progress(result)

    with until_interrupted(console):
        make(keep)
    return progress.n_failed


def tidy(runs: Iterable[tuple[str, Run]], n_trials: int) -> pd.DataFrame:
    """Return the curves of labelled runs as a frame for `benchmarks.statistics.comparison`, up to some trials.

    Seconds per suggestion of a longer run are missing: the later decisions are slower than the earlier ones.
    """
    rows = [
        {"recording": run.key.recording, "metric": run.key.metric, "strategy": label, "seed": run.key.seed}
        | row
        | {"suggest_seconds": run.suggest_seconds / run.trials if run.trials == n_trials else float("nan")}
        for label, run in runs
        for row in run.curve
        if row["trials"] <= n_trials
    ]
    return pd.DataFrame(rows)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recordings_argument(parser)
    parser.add_argument(
        "--strategies",
        nargs="+",
        default=["random", "bo", "divbo", "optdivbo", "ensemble_gain"],
        help="see above (default: random bo divbo optdivbo ensemble_gain)",
    )
    parser.add_argument(
        "--reference",
        help="label of the strategy to compare the others with (default: bo if it is there, else the first)",
    )
    parser.add_argument("--seeds", type=int, default=20, help="number of seeds, starting at --first-seed (default: 20)")
    parser.add_argument("--first-seed", type=int, default=0, help="first seed; choose seeds that nothing was tuned on")
    parser.add_argument("--trials", type=int, default=250, help=f"a multiple of {EVERY} (default: 250)")
    parser.add_argument("--checkpoints", type=int, nargs="+", help=f"multiples of {EVERY} (default: 50 100 250)")
    parser.add_argument(
        "--metric", nargs="+", default=["log_loss", "mse"],
        help="the first that fits a recording's task is used; recordings that none fits are left out",
    )  # fmt: skip
    parser.add_argument("--free", action="store_true", help="candidates are free in the space; an emulator answers")
    parser.add_argument(
        "--workers",
        type=int,
        default=os.cpu_count(),
        help="processes; 0: only show finished runs (default: one per core)",
    )
    add_scheduler_argument(parser)
    parser.add_argument("--work", type=Path, default=Path(".replay"), help="finished runs")
    parser.add_argument("--out", type=Path, help="folder for results.csv, summary.md, index.html and charts")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results of these runs and repeat them")
    parser.add_argument("--all-pairs", action="store_true", help="also test every strategy against every other")


def checkpoints_of(wanted: Sequence[int] | None, n_trials: int) -> list[int]:
    """Return the numbers of trials at which losses are compared, the last one the whole run."""
    if n_trials < EVERY or n_trials % EVERY:
        raise SystemExit(
            f"--trials {n_trials}: expected {EVERY} or a multiple of it, the step at which losses are computed."
        )
    if wanted is None:
        return [n for n in (50, 100) if n < n_trials] + [n_trials]
    for n in wanted:
        if n % EVERY or not 0 < n <= n_trials:
            raise SystemExit(f"--checkpoints {n}: expected multiples of {EVERY} up to --trials {n_trials}.")
    return sorted(set(wanted))


def choose_recordings(arguments: argparse.Namespace, console: Console) -> list[tuple[Recording, str]]:
    """Return the requested recordings with the metric of each; those that no metric fits are left out."""
    recordings: list[tuple[Recording, str]] = []
    for recording in find_recordings(arguments.recordings):
        metric = choose_metric(recording, arguments.metric)
        if metric is None:
            console.print(f"{recording.name} is left out: its task has no {' or '.join(arguments.metric)}.")
        elif recording.n_configurations < arguments.trials and not arguments.free:
            raise SystemExit(
                f"{recording.name} holds {recording.n_configurations} configurations, too few for --trials "
                f"{arguments.trials}. A third of them, {recording.n_configurations // 3}, leaves a choice to the end."
            )
        else:
            recordings.append((recording, metric))
            if arguments.trials > _MOST_TRIED * recording.n_configurations and not arguments.free:
                console.print(
                    f"[yellow]{recording.name} holds {recording.n_configurations} configurations[/]: the nearer "
                    f"--trials {arguments.trials} comes to that, the more the strategies agree.",
                    highlight=False,
                )
    if not recordings:
        raise SystemExit("None of the recordings can be used. Choose others with --recordings, or another --metric.")
    return recordings


def main(arguments: argparse.Namespace) -> None:
    console = Console(width=None if sys.stdout.isatty() else 140)
    if arguments.reference is None:
        arguments.reference = (
            "bo" if "bo" in arguments.strategies else LabelledStrategy.of(arguments.strategies[0]).label
        )
    strategies = read_strategies(arguments.strategies, arguments.reference, LabelledStrategy.of)
    if arguments.free and any(labelled.opening for labelled in strategies):
        raise SystemExit("--free: candidates are free from the first trial on. Leave out +opening.")
    if arguments.free and any(labelled.lookahead > 1 for labelled in strategies):
        raise SystemExit("--free: an emulator answers at once. Leave out @.")
    if arguments.seeds < 1 or arguments.first_seed < 0:
        raise SystemExit("--seeds must be at least 1, and --first-seed at least 0.")
    checkpoints = checkpoints_of(arguments.checkpoints, arguments.trials)
    recordings = choose_recordings(arguments, console)
    begun = any(labelled.opening for labelled in strategies)
    kept = [Recording.of(path) for path in kept_recordings()] if begun else []
    sources = {recording.name: opening_sources(recording, kept) for recording, _ in recordings}
    # Seed by seed, so that an interrupted study has run all strategies about equally often.
    wanted = [
        (labelled.label, recording, key)
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds)
        for recording, metric in recordings
        for labelled in strategies
        for key in [
            RunKey(
                recording=recording.name, digest=recording.digest, metric=metric,
                strategy=labelled.strategy, seed=seed, candidates="free" if arguments.free else "recorded",
                opening=labelled.opening, sources=sources[recording.name] if labelled.opening else "",
                lookahead=labelled.lookahead,
            )
        ]
    ]  # fmt: skip
    check_strategies(strategies, recordings)
    files = RunFiles(arguments.work)
    if arguments.fresh:
        console.print(f"{files.forget(key for _, _, key in wanted)} runs forgotten")
    files.load((recording.name, metric) for recording, metric in recordings)
    missing = {key: recording for _, recording, key in wanted if files.find(key, arguments.trials) is None}
    n_failed = 0
    if missing and arguments.workers:
        console.print(f"{len(wanted) - len(missing)} of {len(wanted)} runs are finished, {len(missing)} are missing")
        tasks = [(recording, key) for key, recording in missing.items()]
        n_failed = add_missing(
            files, len(missing), console=console,
            make=lambda keep: run_missing(
                tasks, n_trials=arguments.trials, n_workers=arguments.workers, scheduler=arguments.scheduler,
                report=keep,
            ),
        )  # fmt: skip

    found = [(label, run) for label, _, key in wanted if (run := files.find(key, arguments.trials)) is not None]
    for labelled in strategies:
        codes = [run.code for label, run in found if label == labelled.label]
        tell_different_code(
            console, codes, {code_of(labelled.strategy)}, what=f"runs of {labelled.label}",
            advice="--fresh repeats those of all --strategies",
        )  # fmt: skip
    frame = tidy(found, arguments.trials)
    if frame.empty or arguments.reference not in set(frame["strategy"]):
        raise SystemExit(f"There are no runs of {arguments.reference} to compare with.")
    complete = paired(frame)
    _tell_incomplete(console, [c.label for c in strategies], frame, complete, len(recordings) * arguments.seeds)
    if complete.empty:
        raise SystemExit("There is no recording and seed for which all strategies have a run.")
    print_report(console, complete, checkpoints, arguments.reference, all_pairs=arguments.all_pairs)
    if arguments.out is not None:
        report = make_report(complete, checkpoints, arguments.reference, all_pairs=arguments.all_pairs)
        console.print(f"Tables and charts: {write_report(arguments.out, report)}")
    if n_failed:
        raise SystemExit(f"{n_failed} of {len(missing)} runs failed; the causes are above.")


def _tell_incomplete(
    console: Console, labels: Sequence[str], frame: pd.DataFrame, complete: pd.DataFrame, n_pairs: int
) -> None:
    for label in labels:
        if label not in set(frame["strategy"]):
            console.print(f"[yellow]{label} has no runs and is left out[/]")
    n_complete = len(complete[["recording", "seed"]].drop_duplicates())
    if n_complete < n_pairs:
        console.print(
            f"[yellow]Only {n_complete} of {n_pairs} pairs of recording and seed are used: those that all have[/]"
        )
