"""Seconds to describe tables by meta-features, by their size; and of the tables in a folder with a manifest.json.

    python -m benchmarks.timings.meta_features [--data FOLDER --names credit-g letter ...]

One thread. The first table is described once before, so that no import is timed.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.tables.manifest import add_data_argument, find_tables
from cashmere.data.task import TaskType
from cashmere.metalearning.meta_features import describe_frame, meta_features

SHAPES = [
    (1000, 10, 0),
    (1000, 10, 10),
    (50_000, 50, 0),
    (50_000, 25, 25),
    (50_000, 0, 50),
    (500_000, 50, 0),
    (1000, 5000, 0),
]
"""Rows, numeric and categorical columns."""


def make_table(n_rows: int, n_numeric: int, n_categorical: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values, codes of 10 classes and the mask of categorical columns, with 5 % missing."""
    rng = np.random.default_rng(0)
    y = rng.integers(10, size=n_rows)
    values = np.concatenate(
        [rng.normal(size=(n_rows, n_numeric)) + 0.3 * y[:, None], rng.integers(20, size=(n_rows, n_categorical))],
        axis=1,
    )
    values[rng.random(values.shape) < 0.05] = np.nan
    return values, y, np.arange(n_numeric + n_categorical) >= n_numeric


def main() -> None:
    """Print the seconds that descriptions take."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_argument(parser)
    parser.add_argument("--names", nargs="*", default=[], help="tables of the folder to describe as well")
    arguments = parser.parse_args()
    tables = find_tables(arguments.data, arguments.names) if arguments.names else []

    values, y, mask = make_table(*SHAPES[0])
    meta_features(values, y, categorical=mask, task_type=TaskType.MULTICLASS)
    print(f"{'rows':>8} {'numeric':>8} {'categorical':>12} {'seconds':>8} {'cpu':>6}")
    for shape in SHAPES:
        values, y, mask = make_table(*shape)
        start, cpu = time.perf_counter(), time.process_time()
        meta_features(values, y, categorical=mask, task_type=TaskType.MULTICLASS)
        seconds = time.perf_counter() - start, time.process_time() - cpu
        print(f"{shape[0]:>8} {shape[1]:>8} {shape[2]:>12} {seconds[0]:>8.2f} {seconds[1]:>6.2f}", flush=True)
    for table in tables:
        X, target = table.read()
        start = time.perf_counter()
        features = describe_frame(X, target, table.task_type)
        wall = time.perf_counter() - start
        n_undefined = int(np.isnan(list(features.values())).sum())
        print(f"{table.name}: {len(X)} x {X.shape[1]}, {wall:.2f} s, {n_undefined} of {len(features)} undefined")


if __name__ == "__main__":
    main()
