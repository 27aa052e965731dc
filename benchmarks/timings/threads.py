"""Measure how much two OpenMP threads that wait passively help one boosting model, by table size.

    python -m benchmarks.timings.threads

Run in fresh worker processes with the same settings as trials. The ratio (seconds with all threads / seconds with
one) decides `cashmere.evaluation.objective.CELLS_PER_THREAD`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from ConfigSpace import ConfigurationSpace

from cashmere.base.cores import available_cores
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.records.trial import Outcome, Trial, TrialStatus

SHAPES = [(800, 20), (4_000, 20), (20_000, 20), (100_000, 40), (200_000, 60)]


def make_objective(n_rows: int, n_columns: int, n_threads: int) -> Callable[[Trial], Outcome]:
    def fit(trial: Trial) -> Outcome:
        import lightgbm

        rng = np.random.default_rng(0)
        X = rng.random((n_rows, n_columns), dtype=np.float32)
        y = (X[:, 0] + X[:, 1] * X[:, 2] > 0.75).astype(int)
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            lightgbm.LGBMClassifier(n_estimators=60, n_jobs=n_threads, verbose=-1).fit(X, y)
            seconds.append(time.perf_counter() - start)
        return Outcome(status=TrialStatus.SUCCESS, loss=float(np.median(seconds)))

    return fit


def main() -> None:
    cores = available_cores()
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    trial = Trial(number=0, configuration=space.get_default_configuration(), seed=0)
    print(f"{'rows':>8} {'columns':>8} {'cells':>12} {'1 thread':>10} {f'{cores} threads':>10} {'ratio':>6}")
    for n_rows, n_columns in SHAPES:
        seconds = []
        for n_threads in (1, cores):
            executor = WorkerProcessExecutor(1)
            try:
                outcome = executor.submit(make_objective(n_rows, n_columns, n_threads), trial).result()
                seconds.append(float("nan") if outcome.loss is None else outcome.loss)
            finally:
                executor.shutdown()
        cells = n_rows * n_columns
        ratio = seconds[1] / seconds[0]
        print(f"{n_rows:>8} {n_columns:>8} {cells:>12} {seconds[0]:>9.2f}s {seconds[1]:>9.2f}s {ratio:>6.2f}")


if __name__ == "__main__":
    main()
