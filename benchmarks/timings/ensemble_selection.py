"""Time ensemble selection against the plain loop: 1000 candidates, 20000 rows, 2 classes, 25 steps.

    python -m benchmarks.timings.ensemble_selection [--candidates 1000] [--rows 20000] --out FILE

CPU seconds. The loop is timed on 1/50 of the candidates and multiplied by 50 (it is linear in them). Memory is what
numpy allocates beyond the given predictions. Rows are added to the file; what it holds is not measured again.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.runs.code_version import commit
from benchmarks.runs.row_file import RowFile
from cashmere.ensembles import IncrementalSelection, select_ensemble
from cashmere.evaluation.metrics import METRICS

SHARE = 50


NAMES = ("log_loss", "accuracy", "balanced_accuracy", "brier", "roc_auc", "mse", "mae", "r2")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionTime:
    """How long a selection takes.

    Attributes
    ----------
    metric : str
        Its name.
    candidates, rows : int
        Size of the pool.
    seconds, loop_seconds : float
        CPU time of the selection, and of the same by a loop, extrapolated.
    mib : float
        Memory beyond the predictions.
    commit : str
        Version of the code.
    """

    metric: str
    candidates: int
    rows: int
    seconds: float
    loop_seconds: float
    mib: float
    commit: str


def make_predictions(m: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return candidates of unequal skill with partly common errors: probabilities, codes, values, targets."""
    rng = np.random.default_rng(0)
    codes, common = rng.integers(0, 2, n), rng.normal(size=n)
    probabilities = np.empty((m, n, 2), dtype=np.float32)
    values = np.empty((m, n), dtype=np.float32)
    for i in range(m):
        logit = (2 * codes - 1) * 0.8 + common + rng.normal(size=n) * rng.uniform(0.5, 2.5)
        probabilities[i, :, 1] = 1 / (1 + np.exp(-1.3 * logit))
        probabilities[i, :, 0] = 1 - probabilities[i, :, 1]
        values[i] = logit
    return probabilities, codes, values, common + codes


def seconds(call: Callable[[], object]) -> float:
    """Return the CPU time of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def measure(name: str, p: np.ndarray, y: np.ndarray) -> SelectionTime:
    """Time the selection by a metric, and the loop."""
    metric, (m, n) = METRICS[name], p.shape[:2]
    fast = seconds(lambda: select_ensemble(p, y, metric))
    few = max(1, m // SHARE)
    # Steps cost the same, so 5 of them stand for 25.
    slow = seconds(lambda: select_ensemble(p[:few], y, replace(metric, name="loop"), size=5)) * 5 * m / few
    tracemalloc.start()
    select_ensemble(p, y, metric, size=2)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return SelectionTime(
        metric=name,
        candidates=m,
        rows=n,
        seconds=round(fast, 3),
        loop_seconds=round(slow, 2),
        mib=round(peak, 1),
        commit=commit(),
    )


def main() -> None:
    """Measure what the file lacks, and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=Path(".timings/ensemble_selection.csv"), help="rows; grows")
    arguments = parser.parse_args()
    m, n = arguments.candidates, arguments.rows
    file = RowFile(arguments.out, SelectionTime)
    done = file.keys("metric", candidates=m, rows=n)
    probabilities, codes, values, targets = make_predictions(m, n)
    for name in NAMES:
        if (name,) not in done:
            file.add(
                [measure(name, *((values, targets) if METRICS[name].needs == "values" else (probabilities, codes)))]
            )
    print(f"{m} candidates x {n} rows, 2 classes or values, float32, 25 steps, one thread of numpy")
    print(file.frame(candidates=m, rows=n).drop(columns=["candidates", "rows", "commit"]).to_string(index=False))

    print("\nOne more observation, pool growing from 201 to 250 candidates x 2000 rows: milliseconds per call")
    for name in NAMES:
        metric = METRICS[name]
        p, y = (values, targets) if metric.needs == "values" else (probabilities, codes)
        p, y = p[:250, :2000], y[:2000]
        selection = IncrementalSelection(y, metric)
        selection.select(range(200), p[:200])
        calls = []
        for k in range(201, 251):
            calls.append(1e3 * seconds(lambda p=p[:k], k=k, selection=selection: selection.select(range(k), p)))
        scratch = 1e3 * seconds(lambda p=p, y=y, k=metric: select_ensemble(p, y, k))
        print(f"{name:<18} mean {np.mean(calls):>6.1f}, max {max(calls):>6.1f}; from scratch {scratch:>6.1f}")


if __name__ == "__main__":
    main()
