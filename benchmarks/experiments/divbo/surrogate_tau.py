"""Judge surrogates of diversity on recorded histories: how well they order pairs of configurations, at what cost.

    python -m benchmarks tau --seeds 10 --observations 50 250 --surrogates prediction pairwise pairwise_fast --out tau

A surrogate learns from n random successful configurations and predicts a measure for pairs with up to 200 others. What
counts is Kendall's tau-b between prediction and truth, over three kinds of pairs: of two unseen configurations, of an
unseen one and any known one, and of an unseen one and a member of the ensemble selected from the known ones.

Then every surrogate is timed, one after the other in this process with one thread: a fit, and the prediction of 5000
candidates drawn from the space against 25 known configurations.

Every number is written at once to tau.csv and seconds.csv, so that a second call only adds missing ones and Ctrl+C
loses only what is in progress; summary.md has the tables. The first surrogate is the one the others are compared with.
"""

from __future__ import annotations

import argparse
import functools
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import pandas as pd
from rich.console import Console

from benchmarks.recordings.finding import add_recordings_argument, find_recordings
from benchmarks.recordings.recorded_history import RecordedHistory, load_recorded
from benchmarks.recordings.redrawn_split import redraw_split
from benchmarks.recordings.replay_runs import code_digest
from benchmarks.reporting.report import Report, write_report
from benchmarks.reporting.table import Table, print_tables
from benchmarks.runs.different_code import tell_different_code
from benchmarks.runs.finished_runs import Failure
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.parallel import make_runs
from benchmarks.runs.row_file import RowFile
from benchmarks.statistics.ranks_and_tests import signed_rank_test
from cashmere.acquisition.diversity import Measure, cross_measure
from cashmere.analysis import CandidatePairSurrogate, kendall_tau
from cashmere.base.arrays import FloatArray, IntArray
from cashmere.data.task import TaskType
from cashmere.ensembles import select_ensemble
from cashmere.evaluation.metrics import get_metric
from cashmere.exceptions import InvalidParameterError
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.strategies.shared.diversity_surrogates import SurrogateName, make_diversity_surrogate

MAX_TEST, MIN_TEST = 200, 10
N_CANDIDATES, N_MEMBERS = 5000, 25
MEASURES: dict[bool, tuple[Measure, ...]] = {True: ("div", "bs", "ce"), False: ("mse",)}
"""Default measures, by whether the task is a classification."""

PAIRS = {
    "among_unseen": "two unseen configurations",
    "to_seen": "an unseen and a known configuration",
    "to_pool": "an unseen configuration and a member of the ensemble",
}
ALL = "all"
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A case to judge or time; `seed` draws the configurations to learn from, and numbers the repeats of a timing."""

    recording: str
    digest: str
    seed: int
    observations: int
    measure: str
    surrogate: str


KEY = tuple(field.name for field in fields(Key))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedFit(Key):
    """How well a surrogate orders pairs.

    Attributes
    ----------
    among_unseen, to_seen, to_pool : float
        Kendall's tau over the three kinds of `PAIRS`.
    n_test, n_pool : int
        Configurations to judge on; members of the ensemble.
    code : str
        Digest of the code that was judged.
    """

    among_unseen: float
    to_seen: float
    to_pool: float
    n_test: int
    n_pool: int
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedFit(Key):
    """Seconds of a fit and a prediction.

    Attributes
    ----------
    cpu_seconds, wall_seconds, fit_cpu_seconds : float
        Of both, and of the fit alone.
    code : str
        Digest of the code that was timed.
    """

    cpu_seconds: float
    wall_seconds: float
    fit_cpu_seconds: float
    code: str


def own_digest() -> str:
    """Return a digest of the code that is judged."""
    return code_digest("experiments/divbo/surrogate_tau.py")


def frame_of(file: RowFile[Any], keys: Iterable[Key]) -> pd.DataFrame:
    """Return the rows of some cases; the last one of a case counts."""
    rows = file.frame_of(map(astuple, keys), *KEY).drop_duplicates(KEY, keep="last")
    return rows.astype({"seed": int, "observations": int})


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Split:
    """Successful configurations to learn from and to be judged on, their predictions, and an ensemble of the known."""

    X: FloatArray
    X_test: FloatArray
    known: FloatArray
    unknown: FloatArray
    y: np.ndarray
    pool: IntArray


def n_test(history: RecordedHistory, n: int) -> int:
    """Return how many configurations remain to judge on."""
    return min(MAX_TEST, len(history.succeeded) - n)


def split(history: RecordedHistory, seed: int, n: int, *, with_pool: bool = True) -> Split:
    """Draw the rows, and n configurations to learn from; a larger n adds to these, and leaves the others if it can."""
    order = np.random.default_rng(seed).permutation(history.succeeded)
    train, test = order[:n], order[len(order) - n_test(history, n) :]
    rows = [_encoder(history).encode(history.configurations[i] for i in part) for part in (train, test)]
    redrawn = redraw_split(history, seed)
    known, y = redrawn.validation[train], redrawn.y_validation
    pool: IntArray = np.zeros(0, dtype=np.int64)
    if with_pool:
        metric = get_metric("log_loss" if history.task_type.is_classification else "mse", history.task_type)
        pool = select_ensemble(list(known), y, metric, size=N_MEMBERS).members
    return Split(X=rows[0], X_test=rows[1], known=known, unknown=redrawn.validation[test], y=y, pool=pool)


def judge(data: Split, surrogate: str, measure: Measure, seed: int) -> Row:
    """Return Kendall's tau over the three kinds of `PAIRS`."""
    fitted = make_diversity_surrogate(cast("SurrogateName", surrogate), measure)
    fitted.fit(data.X, list(data.known), data.y, np.random.default_rng(seed))
    predicted = fitted.sample_pairs(data.X_test, np.arange(len(data.X))).mean(axis=0)
    truth = cross_measure(measure, data.unknown, data.known, data.y)
    among = float("nan")
    if isinstance(fitted, CandidatePairSurrogate):
        upper = np.triu_indices(len(data.X_test), k=1)
        both, _ = fitted.predict_pairs(data.X_test, data.X_test)
        among = kendall_tau(both[upper], cross_measure(measure, data.unknown, data.unknown, data.y)[upper])
    return {
        "among_unseen": among,
        "to_seen": kendall_tau(predicted, truth),
        "to_pool": kendall_tau(predicted[:, data.pool], truth[:, data.pool]),
        "n_test": len(data.X_test),
        "n_pool": len(data.pool),
    }


def time_once(data: Split, candidates: FloatArray, surrogate: str, measure: Measure, seed: int) -> Row:
    """Return the seconds of a fit and a prediction, with one thread."""
    from threadpoolctl import threadpool_limits

    predictions = list(data.known)
    members = np.random.default_rng(seed).choice(len(data.X), min(N_MEMBERS, len(data.X)), replace=False)
    unfitted = make_diversity_surrogate(cast("SurrogateName", surrogate), measure)
    with threadpool_limits(1):
        cpu, wall = time.process_time(), time.perf_counter()
        fitted = unfitted.fit(data.X, predictions, data.y, np.random.default_rng(seed))
        fit_cpu = time.process_time() - cpu
        fitted.sample_pairs(candidates, members)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {"cpu_seconds": cpu, "wall_seconds": wall, "fit_cpu_seconds": fit_cpu}


def judge_missing(
    missing: Sequence[tuple[Path, Key]], n_workers: int, report: Callable[[Key, Row | str], None]
) -> None:
    """Judge in worker processes of one thread each; report every row, or the traceback, when it arrives."""

    def tell(result: tuple[Key, Row] | Failure[Key]) -> None:
        if isinstance(result, Failure):
            report(result.key, result.error)
        else:
            report(*result)

    make_runs(missing, _judge, n_workers=n_workers, report=tell)


def time_missing(missing: Sequence[tuple[Path, Sequence[Key]]], report: Callable[[Key, Row], None]) -> None:
    """Time surrogates in this process; each item is one recording, size, measure and repeat for all of them."""
    for i, (path, keys) in enumerate(missing):
        history, seed = _history(path, keys[0].digest), keys[0].seed
        data = split(history, seed, keys[0].observations, with_pool=False)
        candidates = _encoder(history).sample(N_CANDIDATES, np.random.default_rng(seed))
        for key in keys:
            measure = cast("Measure", key.measure)
            if i == 0:  # a small problem first pays for imports and caches
                time_once(split(history, seed, 10, with_pool=False), candidates[:100], key.surrogate, measure, seed)
            report(key, time_once(data, candidates, key.surrogate, measure, seed))


def _judge(path: Path, key: Key) -> tuple[Key, Row]:
    data = _split(path, key.digest, key.seed, key.observations)
    return key, judge(data, key.surrogate, cast("Measure", key.measure), key.seed)


@functools.lru_cache(maxsize=4)
def _split(path: Path, digest: str, seed: int, n: int) -> Split:
    return split(_history(path, digest), seed, n)


@functools.lru_cache(maxsize=64)
def _history(path: Path, digest: str) -> RecordedHistory:
    """Load a recording, once per process."""
    return load_recorded(path)


@functools.lru_cache(maxsize=64)
def _encoder(history: RecordedHistory) -> SpaceEncoder:
    return SpaceEncoder(history.space)


def fits(measure: Measure, task_type: TaskType) -> bool:
    """Return whether a measure is one of the predictions of such a task."""
    one = np.ones((1, 1, 2) if task_type.is_classification else (1, 1))
    try:
        cross_measure(measure, one, one, np.zeros(1, dtype=np.int64))
    except InvalidParameterError:
        return False
    return True


def in_all(rows: pd.DataFrame, value: str, surrogates: Sequence[str]) -> pd.DataFrame:
    """Return numbers that all surrogates have: rows (observations, recording, measure, seed), columns surrogates."""
    table = rows.pivot(index=["observations", "recording", "measure", "seed"], columns="surrogate", values=value)
    return table.reindex(columns=list(surrogates)).dropna()


def cases(numbers: pd.DataFrame) -> Iterator[tuple[tuple[str, str, str], Any]]:
    """Yield (recording, observations, measure) and the rows of `in_all`, all together first, then one by one."""
    for n, of_size in numbers.groupby(level="observations", sort=True):
        yield (ALL, str(n), ALL), of_size
        for measure, table in of_size.groupby(level="measure", sort=False):
            yield (ALL, str(n), str(measure)), table
        for recording, of_recording in of_size.groupby(level="recording", sort=False):
            for measure, table in of_recording.groupby(level="measure", sort=False):
                yield (str(recording), str(n), str(measure)), table


def tau_table(rows: pd.DataFrame, pairs: str, surrogates: Sequence[str]) -> Table:
    """Return mean tau and standard error over seeds: of every case, and of averages over cases."""
    cells, best = [], set()
    for i, (case, table) in enumerate(cases(in_all(rows, pairs, surrogates))):
        # Means of seeds first, as the measures of a seed share its configurations; only complete seeds are comparable.
        of_seed = table.groupby(level="seed")
        means = of_seed.mean()[of_seed.size() == len(table.groupby(level=["recording", "measure"]))]
        mean = means.mean().to_numpy().round(3)
        shown = [_with_error(m, e) for m, e in zip(mean, means.sem(), strict=True)]
        best |= {(i, len(case) + int(j)) for j in np.flatnonzero(mean == mean.max())}
        cells.append((*case, *shown, str(len(means))))
    return Table(
        title=f"Kendall's tau, pairs of {PAIRS[pairs]} ({pairs})",
        columns=("recording", "observations", "measure", *surrogates, "seeds"),
        rows=tuple(cells),
        note="Mean over seeds ± standard error. `all`: averages over recordings or measures, for the seeds that have "
        "all of them.",
        best=frozenset(best),
    )


def difference_table(rows: pd.DataFrame, surrogates: Sequence[str]) -> Table:
    """Return how much larger the first surrogate's tau is than that of the others."""
    first, *others = surrogates
    cells = []
    for pairs in PAIRS:
        for (recording, n, measure), table in cases(in_all(rows, pairs, surrogates)):
            if recording != ALL:
                continue
            # One number per recording and seed: its measures are not independent evidence.
            means = table.groupby(level=["recording", "seed"]).mean()
            differences = [(means[first] - means[other]).to_numpy() for other in others]
            shown = [f"{d.mean():+.3f}, p {signed_rank_test(d)[0]:.2g}" for d in differences]
            cells.append((pairs, n, measure, *shown, str(len(means))))
    return Table(
        title=f"Kendall's tau of {first} minus that of others",
        columns=("pairs", "observations", "measure", *others, "recordings x seeds"),
        rows=tuple(cells),
        note="Mean of the paired differences, positive is better; two-sided Wilcoxon signed-rank test over recordings "
        "and seeds (`all`: measures averaged first). Seeds of a recording share its configurations, so p is too "
        "small.",
    )


def seconds_table(rows: pd.DataFrame, surrogates: Sequence[str]) -> Table:
    """Return median seconds, and the ratios to the first surrogate."""
    first, *others = surrogates
    wall = in_all(rows, "wall_seconds", surrogates)
    cells = []
    for case, cpu in cases(in_all(rows, "cpu_seconds", surrogates)):
        medians = zip(cpu.median(), wall.loc[cpu.index].median(), strict=True)
        ratios = [f"{(cpu[other] / cpu[first]).median():.1f}" for other in others]
        cells.append((*case, *(f"{c:.3f} ({w:.3f})" for c, w in medians), *ratios, str(len(cpu))))
    return Table(
        title=f"Seconds to fit and to predict {N_CANDIDATES} candidates x {N_MEMBERS} members",
        columns=("recording", "observations", "measure", *surrogates, *(f"{o} / {first}" for o in others), "times"),
        rows=tuple(cells),
        note="CPU seconds (wall), one thread, all surrogates in one process one after the other; medians, also of the "
        "ratios of CPU seconds within a repeat.",
    )


def _with_error(mean: float, error: float) -> str:
    if math.isnan(mean):
        return "-"
    return f"{mean:.3f}" if math.isnan(error) else f"{mean:.3f} ± {error:.3f}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recordings_argument(parser)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--observations", type=int, nargs="+", default=[50, 250])
    parser.add_argument(
        "--measures", nargs="+", choices=get_args(Measure), default=[],
        help="those that fit a recording are used (default: div bs ce, for regression mse)",
    )  # fmt: skip
    parser.add_argument(
        "--surrogates", nargs="+", choices=get_args(SurrogateName), default=["prediction", "pairwise", "pairwise_fast"]
    )
    parser.add_argument("--repeats", type=int, default=3, help="timings of each case; 0 for none")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes; 0: only show finished runs")
    parser.add_argument("--out", type=Path, default=Path(".replay/tau"), help="folder")


def find_cases(arguments: argparse.Namespace, console: Console) -> list[tuple[Path, Key]]:
    """Return the requested cases that are possible, for seed 0; surrogates of a case are adjacent."""
    recordings = find_recordings(arguments.recordings)
    if not arguments.recordings:
        recordings = [recording for recording in recordings if recording.task_type.is_classification]
    found: list[tuple[Path, Key]] = []
    for n in sorted(set(arguments.observations)):
        for recording in recordings:
            left = n_test(_history(recording.path.absolute(), recording.digest), n)
            if left < MIN_TEST:
                console.print(
                    f"{recording.name} is left out at {n} observations: {max(0, left)} others remain to judge."
                )
                continue
            for measure in arguments.measures or MEASURES[recording.task_type.is_classification]:
                if fits(measure, recording.task_type):
                    key = Key(
                        recording=recording.name, digest=recording.digest, seed=0, observations=n,
                        measure=measure, surrogate="",
                    )  # fmt: skip
                    found += [(recording.path.absolute(), replace(key, surrogate=s)) for s in arguments.surrogates]
    return found


def seed_by_seed(found: Sequence[tuple[Path, Key]], n_seeds: int) -> list[tuple[Path, Key]]:
    """Return the cases for every seed, ordered so that all are judged about equally often whenever it stops."""
    return [(path, replace(key, seed=seed)) for seed in range(n_seeds) for path, key in found]


class Progress:
    """Report progress now and then, and every error."""

    def __init__(self, console: Console, what: str, total: int) -> None:
        self._console, self._what, self._total, self._done = console, what, total, 0
        self._start = self._shown = time.monotonic()

    def __call__(self, key: Key, result: Row | str) -> None:
        """Count a result."""
        self._done += 1
        if isinstance(result, str):
            self._console.print(f"{key} failed:\n{result}", markup=False, highlight=False)
        now = time.monotonic()
        if now - self._shown > 20 or self._done == self._total:
            self._shown = now
            left = (now - self._start) / self._done * (self._total - self._done)
            self._console.print(f"{self._what}: {self._done} of {self._total}, {left:.0f} s left", highlight=False)


def main(arguments: argparse.Namespace) -> None:
    """Compute missing rows, print and write the tables."""
    arguments.surrogates = list(dict.fromkeys(arguments.surrogates))
    console = Console(width=None if sys.stdout.isatty() else 140)
    found = find_cases(arguments, console)
    if not found:
        raise SystemExit("Nothing to judge. Name recordings that have enough configurations and fit the measures.")
    wanted, repeats = seed_by_seed(found, arguments.seeds), seed_by_seed(found, arguments.repeats)
    taus, seconds = RowFile(arguments.out / "tau.csv", JudgedFit), RowFile(arguments.out / "seconds.csv", TimedFit)
    if arguments.workers:
        with until_interrupted(console):
            _add_missing(arguments, console, wanted, repeats, taus, seconds)

    judged, timed = frame_of(taus, (key for _, key in wanted)), frame_of(seconds, (key for _, key in repeats))
    made_by = [*judged["code"], *timed["code"]]
    tell_different_code(console, made_by, {own_digest()}, what="rows", advice="another --out repeats them")
    tables = []
    if not in_all(judged, "to_seen", arguments.surrogates).empty:
        tables += [difference_table(judged, arguments.surrogates)] if len(arguments.surrogates) > 1 else []
        tables += [tau_table(judged, pairs, arguments.surrogates) for pairs in PAIRS]
    if not in_all(timed, "cpu_seconds", arguments.surrogates).empty:
        tables.append(seconds_table(timed, arguments.surrogates))
    if not tables:
        raise SystemExit("There is no case yet that all surrogates have finished.")
    print_tables(console, tables)
    text = f"{len(judged)} of {len(wanted)} fits judged, {len(timed)} of {len(repeats)} timed."
    report = Report(title="Surrogates of diversity", heading=text, sections=tables, summary=tables)
    console.print(f"{text} Tables: {write_report(arguments.out, report)}", highlight=False)


def _add_missing(
    arguments: argparse.Namespace,
    console: Console,
    wanted: Sequence[tuple[Path, Key]],
    repeats: Sequence[tuple[Path, Key]],
    taus: RowFile[JudgedFit],
    seconds: RowFile[TimedFit],
) -> None:
    done = taus.keys(*KEY)
    missing = [(path, key) for path, key in wanted if astuple(key) not in done]
    progress = Progress(console, "judged", len(missing))

    def keep_tau(key: Key, result: Row | str) -> None:
        if not isinstance(result, str):
            taus.add([JudgedFit(**asdict(key), **result, code=own_digest())])
        progress(key, result)

    if missing:
        judge_missing(missing, arguments.workers, keep_tau)

    # If one surrogate of a case is missing all are timed again, side by side.
    width = len(arguments.surrogates)
    groups = [repeats[i : i + width] for i in range(0, len(repeats), width)]
    timed = seconds.keys(*KEY)
    untimed = [group for group in groups if any(astuple(key) not in timed for _, key in group)]
    timing = Progress(console, "timed", width * len(untimed))

    def keep_seconds(key: Key, row: Row) -> None:
        seconds.add([TimedFit(**asdict(key), **row, code=own_digest())])
        timing(key, row)

    time_missing([(group[0][0], [key for _, key in group]) for group in untimed], keep_seconds)
