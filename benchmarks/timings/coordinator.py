"""Whether a search keeps hundreds of workers busy: trials sleep in simulated time, decisions are real.

    python -m benchmarks coordinator --workers 256 --strategies bo --orders trials arrival --out rows.csv

A run of `--trials` trials goes through what a real one goes through: study and strategy, the run directory with a row
and three files for each trial, and the ensemble that is chosen again and again. Only the trials are not computed: they
take about `--seconds` of simulated time (log-normal, with a standard deviation of the logarithm of 0.3), a share of
them `--stragglers` 30 times as long, and return made-up predictions for 1000 rows. The clock runs with the real one
while the coordinator works, and jumps while it waits. Each run has a process of its own, for its peak of memory. Rows
are added to a file; runs that it holds are not repeated.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.runs.row_file import RowFile
from benchmarks.timings.simulated_workers import SimulatedClock, SimulatedWorkers
from cashmere.evaluation.metrics import Metric
from cashmere.records.budget import Budget
from cashmere.records.trial import Outcome, Trial, TrialStatus
from cashmere.run.run_directory import RunDirectory
from cashmere.run.session import Session
from cashmere.run.settings import RunSettings
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.study import submitted_at_once

N_ROWS, N_COLUMNS = 1000, 10
SPREAD = 0.3
"""Standard deviation of the logarithm of a trial's seconds."""

SLOWER = 30
"""A straggler takes this many times as long."""

MODEL_BYTES = 20_000
"""Size of a trial's models: those of a linear model on five folds."""


@dataclass(frozen=True, kw_only=True)
class CoordinatorRun:
    """What is simulated.

    Attributes
    ----------
    strategy, order : str
        See `RunSettings`.
    workers, trials : int
        Numbers of workers and of trials.
    seconds : float
        Mean simulated seconds of a trial that is no straggler.
    stragglers : float
        Share of trials that take `SLOWER` times as long.
    folder : str
        Where the run directory is made, such as on a disk or in memory.
    """

    strategy: str
    order: str
    workers: int
    trials: int
    seconds: float
    stragglers: float
    folder: str


@dataclass(frozen=True, kw_only=True)
class CoordinatorRow:
    """What was measured in a run; the first fields are those of `CoordinatorRun`.

    Attributes
    ----------
    utilisation : float
        Share of the workers' time that trials fill until the last one begins.
    simulated_seconds : float
        Length of the run.
    coordinator_seconds, cpu_seconds : float
        What the coordinator worked in it: real seconds, and seconds of the processor.
    deciding_seconds : float
        Real seconds of decisions among them.
    deciding_mean, deciding_p99, deciding_longest : float
        Real seconds of a decision; those that come with another are 0.
    deciding_mean_late : float
        The mean over the trials 4500 to 5499, or over the last half if there are fewer.
    memory_mib : float
        Peak of the resident memory.
    """

    strategy: str
    order: str
    workers: int
    trials: int
    seconds: float
    stragglers: float
    folder: str
    utilisation: float
    simulated_seconds: float
    coordinator_seconds: float
    cpu_seconds: float
    deciding_seconds: float
    deciding_mean: float
    deciding_p99: float
    deciding_longest: float
    deciding_mean_late: float
    memory_mib: float


class SimulatedSession(Session):
    """A session whose workers are simulated."""

    workers: SimulatedWorkers

    def _tick(self) -> None:
        super()._tick()
        self.workers.tick()

    def is_idle(self) -> bool:
        """Return whether the search can do nothing before a trial ends."""
        workers = self.workers
        return workers.has_all or workers.n_open >= submitted_at_once(workers.n_workers) or not self.study.can_ask()


def simulate(run: CoordinatorRun) -> CoordinatorRow:
    """Make one run in a temporary directory."""
    table, target = made_up_table()
    settings = RunSettings(
        budget=Budget(trials=run.trials),
        strategy=run.strategy,
        order=run.order,
        n_workers=run.workers,
        resampling="5fold",
        metric="log_loss",
    )
    with (
        tempfile.TemporaryDirectory(dir=run.folder) as folder,
        RunDirectory.create(Path(folder) / "run", table, target, settings) as directory,
    ):
        clock = SimulatedClock()
        outcomes = MadeUpOutcomes(directory)
        workers = SimulatedWorkers(
            run.workers,
            run.trials,
            clock,
            seconds_of=seconds_of_trials(run),
            outcome_of=outcomes,
            is_idle=lambda: session.is_idle(),
        )
        session = SimulatedSession(directory, settings.budget, clock, executor=workers, load=False)
        session.workers = workers
        cpu, start, worked = time.process_time(), clock.elapsed, clock.working
        session.search()
        cpu_seconds = time.process_time() - cpu - outcomes.cpu_seconds
        deciding = np.zeros(run.trials)
        for number, seconds in session.study.suggest_seconds.items():
            deciding[min(number, run.trials - 1)] += seconds
        late = slice(4500, 5500) if run.trials >= 5500 else slice(run.trials // 2, None)
        return CoordinatorRow(
            **{name: getattr(run, name) for name in CoordinatorRun.__dataclass_fields__},
            utilisation=round(workers.utilisation(), 4),
            simulated_seconds=round(clock.elapsed - start, 1),
            coordinator_seconds=round(clock.working - worked, 2),
            cpu_seconds=round(cpu_seconds, 2),
            deciding_seconds=round(float(deciding.sum()), 3),
            deciding_mean=round(float(deciding.mean()), 5),
            deciding_p99=round(float(np.quantile(deciding, 0.99)), 4),
            deciding_longest=round(float(deciding.max()), 4),
            deciding_mean_late=round(float(deciding[late].mean()), 5),
            memory_mib=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 0),
        )


def made_up_table() -> tuple[pd.DataFrame, pd.Series]:
    """Return a table with two classes."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(N_ROWS, N_COLUMNS))
    classes = (values[:, 0] + rng.normal(size=N_ROWS) > 0).astype(np.int64)
    return pd.DataFrame(values, columns=[f"x{i}" for i in range(N_COLUMNS)]), pd.Series(classes, name="target")


def seconds_of_trials(run: CoordinatorRun) -> Callable[[Trial], float]:
    """Return the simulated seconds of a trial, drawn by its number."""
    rng = np.random.default_rng(0)
    drawn = run.seconds * rng.lognormal(-(SPREAD**2) / 2, SPREAD, size=run.trials)
    drawn[rng.random(run.trials) < run.stragglers] *= SLOWER
    return lambda trial: float(drawn[trial.number])


class MadeUpOutcomes:
    """Outcomes whose loss depends smoothly on the configuration, with predictions to match.

    Parameters
    ----------
    run : RunDirectory
        Of the table and the space.

    Attributes
    ----------
    cpu_seconds : float
        Seconds spent on making an outcome.
    """

    def __init__(self, run: RunDirectory) -> None:
        self._encoder = SpaceEncoder(run.space.configuration_space)
        self._waves = np.random.default_rng(1).normal(size=self._encoder.n_dims)
        rows = np.sort(np.concatenate([fold.validation for fold in run.splits]))
        self._y = run.rows.y[rows].astype(np.int64)
        self._metric: Metric = run.metric
        self.cpu_seconds = 0.0

    def __call__(self, trial: Trial) -> Outcome:
        """Return the outcome of a trial."""
        start = time.process_time()
        skill = 1.2 + 0.5 * np.sin(self._encoder.encode([trial.configuration])[0] @ self._waves)
        rng = np.random.default_rng(trial.seed)
        logits = (2 * self._y - 1) * skill + rng.normal(size=len(self._y))
        second = 1 / (1 + np.exp(-logits))
        predictions = np.stack([1 - second, second], axis=1).astype(np.float32)
        loss = float(self._metric.loss(self._y, predictions, None))
        outcome = Outcome(
            status=TrialStatus.SUCCESS,
            loss=loss,
            fold_losses=(loss,) * 5,
            predictions=predictions,
            model=rng.bytes(MODEL_BYTES),
        )
        self.cpu_seconds += time.process_time() - start
        return outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--strategies", nargs="+", default=["bo"])
    parser.add_argument("--orders", nargs="+", default=["trials", "arrival"])
    parser.add_argument("--stragglers", type=float, nargs="+", default=[0.0, 0.01], help="shares of slow trials")
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="simulated seconds of a trial")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where run directories are made")
    parser.add_argument("--out", type=Path, help="file for the rows (csv); grows")


def main(arguments: argparse.Namespace) -> None:
    file = None if arguments.out is None else RowFile(arguments.out, CoordinatorRow)
    known = [] if file is None else file.read()
    wanted = [
        CoordinatorRun(
            strategy=strategy,
            order=order,
            workers=workers,
            trials=arguments.trials,
            seconds=arguments.seconds,
            stragglers=stragglers,
            folder=arguments.folder,
        )
        for workers in arguments.workers
        for strategy in arguments.strategies
        for stragglers in arguments.stragglers
        for order in arguments.orders
    ]
    for run in wanted:
        named = {name: str(getattr(run, name)) for name in CoordinatorRun.__dataclass_fields__}
        if any(named.items() <= row.items() for row in known):
            continue
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            row = process.submit(simulate, run).result()
        print(
            f"{run.strategy}, {run.workers} workers, order {run.order}, {run.stragglers:.0%} stragglers: utilisation "
            f"{row.utilisation:.3f}; decisions {1e3 * row.deciding_mean:.1f} ms on average, late "
            f"{1e3 * row.deciding_mean_late:.1f} ms, longest {row.deciding_longest:.2f} s; coordinator "
            f"{1e3 * row.coordinator_seconds / run.trials:.1f} ms a trial; {row.memory_mib:.0f} MiB",
            flush=True,
        )
        if file is not None:
            file.add([row])
