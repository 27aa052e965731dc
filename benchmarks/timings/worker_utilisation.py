"""Share of the workers' time that trials fill, with `bo` deciding on the volcano space while all cores are busy.

    python -m benchmarks.timings.worker_utilisation --trials 60 --workers 2

Every trial computes (not sleeps) for 1 to 4 seconds, fixed by its number, so that the coordinator has to share the
cores with the workers. Utilisation = busy time / (workers x wall time), from before the workers start until after the
last trial.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from cashmere.data.task import TaskProfile, TaskType
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.records.trial import Outcome, Trial, TrialStatus
from cashmere.space.named.registry import make_space
from cashmere.study import Study


def busy(trial: Trial) -> Outcome:
    """Multiply matrices for a time that depends on the trial's number only."""
    rng = np.random.default_rng(trial.number)
    end = time.perf_counter() + float(np.clip(rng.lognormal(np.log(1.6), 0.35), 1.0, 4.0))
    matrix = rng.random((200, 200))
    while time.perf_counter() < end:
        matrix = matrix @ matrix
        matrix /= matrix.max()
    return Outcome(status=TrialStatus.SUCCESS, loss=float(rng.random()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--lookahead", type=int, default=8)
    arguments = parser.parse_args()
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=1000, n_columns=20, n_classes=2)
    space = make_space("volcano", profile).configuration_space
    study = Study(space, "bo", lookahead=arguments.lookahead)
    start = time.perf_counter()
    executor = WorkerProcessExecutor(arguments.workers, n_threads=1)
    try:
        history = study.optimize(busy, f"{arguments.trials}trials", executor=executor)
        wall = time.perf_counter() - start
    finally:
        executor.shutdown()
    busy_seconds = sum(o.duration_seconds for o in history)
    utilisation = busy_seconds / (arguments.workers * wall)
    suggest = np.array(list(study.suggest_seconds.values()))
    print(
        f"{arguments.trials} trials of {busy_seconds / arguments.trials:.2f} s on {arguments.workers} workers, "
        f"lookahead {arguments.lookahead}: wall {wall:.1f} s, utilisation {utilisation:.3f}, "
        f"suggestions {suggest.sum():.2f} s in all, median {np.median(suggest):.3f} s"
    )


if __name__ == "__main__":
    main()
