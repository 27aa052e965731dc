"""Measure how long one boosting fit takes with 1 thread, with a thread per core, and beside others with 1 thread each.

    python -m benchmarks.timings.threads
    python -m benchmarks.timings.threads --learners lightgbm xgboost --shapes 200000x30 1000000x30

Run in fresh worker processes with the same settings as trials: OpenMP threads wait passively. `ratio` is that of the
seconds with all threads to those with one; it decides `cashmere.evaluation.objective.CELLS_PER_THREAD`. `beside` are
the seconds of as many fits at once as there are cores. CPU seconds tell how much of the cores a fit got where other
programs use them, too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace

from benchmarks.runs.row_file import RowFile
from cashmere.base.cores import available_cores
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.records.trial import Outcome, Trial, TrialStatus

ROUNDS = 60
LEARNERS = ("lightgbm", "xgboost", "catboost", "histogram")
SHAPES = ["800x20", "4000x20", "20000x20", "100000x40", "200000x60"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedFit:
    """The seconds of a fit.

    Attributes
    ----------
    learner, rows, columns
        What was fitted, and to what.
    threads, at_once : int
        Threads of a fit, and fits at the same time.
    attempts : int
        The fastest of so many.
    wall_seconds, cpu_seconds : float
        Of the slowest fit of an attempt.
    """

    learner: str
    rows: int
    columns: int
    threads: int
    at_once: int
    attempts: int
    wall_seconds: float
    cpu_seconds: float


def make_learner(name: str, n_threads: int) -> Any:
    if name == "lightgbm":
        import lightgbm

        return lightgbm.LGBMClassifier(n_estimators=ROUNDS, n_jobs=n_threads, verbose=-1)
    if name == "xgboost":
        import xgboost

        return xgboost.XGBClassifier(n_estimators=ROUNDS, n_jobs=n_threads)
    if name == "catboost":
        import catboost

        return catboost.CatBoostClassifier(
            iterations=ROUNDS, thread_count=n_threads, verbose=0, allow_writing_files=False
        )
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=ROUNDS, early_stopping=False)  # threads: those of its process


def make_objective(name: str, n_rows: int, n_columns: int, n_threads: int) -> Callable[[Trial], Outcome]:
    """Return an objective that fits a model and reports its seconds as the loss, and its CPU seconds."""

    def fit(trial: Trial) -> Outcome:
        rng = np.random.default_rng(trial.seed)
        X = rng.random((n_rows, n_columns), dtype=np.float32)
        y = (X[:, 0] + X[:, 1] * X[:, 2] > 0.75).astype(int)
        learner = make_learner(name, n_threads)
        learner.fit(X[:200], y[:200])  # work that is done only once
        start, cpu = time.perf_counter(), time.process_time()
        learner.fit(X, y)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        return Outcome(status=TrialStatus.SUCCESS, loss=seconds, fit_seconds=cpu)

    return fit


def measure(name: str, shape: tuple[int, int], *, n_threads: int, at_once: int, n_attempts: int) -> TimedFit:
    """Return the seconds of a fit, the slowest of those at once; the fastest of some attempts."""
    trial = Trial(number=0, configuration=ConfigurationSpace({"x": (0.0, 1.0)}).get_default_configuration(), seed=0)
    objective = make_objective(name, *shape, n_threads)
    executor = WorkerProcessExecutor(at_once, n_threads=n_threads)
    attempts = []
    try:
        for _ in range(n_attempts):
            outcomes = [each.result() for each in [executor.submit(objective, trial) for _ in range(at_once)]]
            attempts.append(max((float(o.loss or "nan"), o.fit_seconds) for o in outcomes))
    finally:
        executor.shutdown()
    wall, cpu = min(attempts)
    return TimedFit(
        learner=name,
        rows=shape[0],
        columns=shape[1],
        threads=n_threads,
        at_once=at_once,
        attempts=n_attempts,
        wall_seconds=wall,
        cpu_seconds=cpu,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=["lightgbm"])
    parser.add_argument("--shapes", nargs="+", default=SHAPES, help="rows x columns")
    parser.add_argument("--attempts", type=int, default=3, help="of which the fastest counts")
    parser.add_argument("--out", type=Path, default=Path(".replay/threads.csv"), help="rows; grows")
    arguments = parser.parse_args()
    cores = available_cores()
    file = RowFile(arguments.out, TimedFit)
    print("Wall seconds of a fit (CPU seconds)")
    heads = ("1 thread", f"{cores} threads", f"{cores} beside")
    print(f"{'learner':<10} {'rows x columns':>14} " + " ".join(f"{head:>16}" for head in heads) + f" {'ratio':>6}")
    for name in arguments.learners:
        for text in arguments.shapes:
            n_rows, n_columns = map(int, text.split("x"))
            timed = [
                measure(name, (n_rows, n_columns), n_threads=threads, at_once=at_once, n_attempts=arguments.attempts)
                for threads, at_once in ((1, 1), (cores, 1), (1, cores))
            ]
            file.add(timed)
            cells = " ".join(f"{f'{fit.wall_seconds:.2f} ({fit.cpu_seconds:.2f})':>16}" for fit in timed)
            ratio = timed[1].wall_seconds / timed[0].wall_seconds
            print(f"{name:<10} {text:>14} {cells} {ratio:>6.2f}", flush=True)


if __name__ == "__main__":
    main()
