"""Time ensemble selection against the plain loop: 1000 candidates, 20000 rows, 2 classes, 25 steps.

Run: python -m benchmarks.timings.ensemble_selection [--candidates 1000] [--rows 20000]

The loop is timed on 1/50 of the candidates and multiplied by 50 (it is linear in them). Memory is what numpy allocates
beyond the given predictions.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cashmere.ensembles import IncrementalSelection, select_ensemble
from cashmere.evaluation.metrics import METRICS

SHARE = 50


NAMES = ("log_loss", "accuracy", "balanced_accuracy", "brier", "roc_auc", "mse", "mae", "r2")


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
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=20_000)
    arguments = parser.parse_args()
    m, n = arguments.candidates, arguments.rows
    probabilities, codes, values, targets = make_predictions(m, n)
    print(f"{m} candidates x {n} rows, 2 classes or values, float32, 25 steps, one thread of numpy")
    print(f"{'metric':<18} {'kernel s':>9} {'cpu s':>7} {'loop s (extrapolated)':>22} {'factor':>7} {'extra MiB':>10}")
    for name in NAMES:
        metric = METRICS[name]
        p, y = (values, targets) if metric.needs == "values" else (probabilities, codes)
        cpu = time.process_time()
        fast = seconds(lambda p=p, y=y, k=metric: select_ensemble(p, y, k))
        cpu = time.process_time() - cpu
        few = max(1, m // SHARE)
        part, loop = p[:few], replace(metric, name="loop")
        # Steps cost the same, so 5 of them stand for 25.
        slow = seconds(lambda p=part, y=y, k=loop: select_ensemble(p, y, k, size=5)) * 5 * m / few
        tracemalloc.start()
        select_ensemble(p, y, metric, size=2)
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        print(f"{name:<18} {fast:>9.2f} {cpu:>7.2f} {slow:>22.1f} {slow / fast:>7.0f} {peak:>10.0f}", flush=True)

    print("\nOne more observation, pool growing from 201 to 250 candidates x 2000 rows: milliseconds per call")
    for name in NAMES:
        metric = METRICS[name]
        p, y = (values, targets) if metric.needs == "values" else (probabilities, codes)
        p, y = p[:250, :2000], y[:2000]
        selection = IncrementalSelection(y, metric)
        selection.select(range(200), p[:200])
        calls = []
        for k in range(201, 251):
            start = time.perf_counter()
            selection.select(range(k), p[:k])
            calls.append(1e3 * (time.perf_counter() - start))
        scratch = 1e3 * seconds(lambda p=p, y=y, k=metric: select_ensemble(p, y, k))
        print(f"{name:<18} mean {np.mean(calls):>6.1f}, max {max(calls):>6.1f}; from scratch {scratch:>6.1f}")


if __name__ == "__main__":
    main()
