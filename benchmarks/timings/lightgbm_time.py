"""Microseconds of a tree of LightGBM, with and without parameters that are too small to matter, and by bins.

    python -m benchmarks.timings.lightgbm_time --data DIR [--tables vowel churn] [--rows 5000] [--repeats 5]

LightGBM finds splits by slower code if `path_smooth` or `reg_alpha` is above zero. The default of the space ``default``
is fitted with both at 0.001, as searches once had them, and without; with 255 bins per column, and with fewer. Columns
of categories are numbered. Medians of the CPU time of 60 rounds, one thread; a round has a tree per class.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from lightgbm import Booster, Dataset

from benchmarks.tables.manifest import add_data_argument, find_tables
from cashmere.data.task import TaskProfile, TaskType
from cashmere.space import BuildContext, make_space

TABLES = (
    "credit-g",
    "vowel",
    "hill-valley",
    "mfeat-fourier",
    "churn",
    "wine_quality",
    "PhishingWebsites",
    "bank-marketing",
)
N_ROUNDS, N_FIRST = 60, 5

SETTINGS: dict[str, dict[str, Any]] = {
    "0.001, 255 bins": {"path_smooth": 0.001, "reg_alpha": 0.001, "max_bin": 255},
    "0, 255 bins": {"max_bin": 255},
    "0, 127 bins": {"max_bin": 127},
    "0, 63 bins": {"max_bin": 63},
}


def microseconds(X: Any, y: Any, n_classes: int, settings: dict[str, Any], repeats: int) -> float:
    """Return the median CPU time of a tree.

    Parameters
    ----------
    X, y : array
        Columns of numbers; codes of classes.
    n_classes : int
        At least 2.
    settings : dict
        Parameters of LightGBM that replace those of the default.
    repeats : int
        How often 60 rounds are timed.
    """
    task = TaskType.BINARY if n_classes == 2 else TaskType.MULTICLASS
    n_rows, n_columns = X.shape
    space = make_space("default", TaskProfile(task_type=task, n_rows=n_rows, n_columns=n_columns, n_classes=n_classes))
    context = BuildContext(
        task_type=task,
        n_classes=n_classes,
        n_rows=n_rows,
        n_features=n_columns,
        categorical=np.zeros(n_columns, dtype=np.bool_),
        seed=0,
    )
    learner = space.build(space.completed({"algorithm": "lightgbm"}), context)[-1]
    ours = ("n_estimators", "category_columns", "class_weight", "importance_type", "objective")
    parameters = {name: value for name, value in learner.get_params().items() if name not in ours} | settings
    n_trees = 1 if n_classes == 2 else n_classes
    parameters |= {"objective": "binary"} if n_classes == 2 else {"objective": "multiclass", "num_class": n_classes}
    booster = Booster(parameters, Dataset(X, y, params=dict(parameters)))
    for _ in range(N_FIRST):
        booster.update()
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(N_ROUNDS):
            booster.update()
        taken.append(1e6 * (time.process_time() - start) / N_ROUNDS / n_trees)
    return float(np.median(taken))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--rows", type=int, default=5000, help="at most")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()

    print("| table | rows | columns | classes | " + " | ".join(SETTINGS) + " |")
    for table in find_tables(arguments.data, arguments.tables):
        frame, target = table.read()
        rows = np.random.default_rng(0).permutation(len(frame))[: arguments.rows]
        X = frame.iloc[rows].apply(lambda column: column if column.dtype.kind in "fiu" else pd.factorize(column)[0])
        y = pd.factorize(target.iloc[rows])[0]
        n_classes = int(y.max()) + 1
        found = [microseconds(X.to_numpy("f4"), y, n_classes, each, arguments.repeats) for each in SETTINGS.values()]
        print(
            f"| {table.name} | {len(X):,} | {X.shape[1]} | {n_classes} | "
            + " | ".join(f"{t:.0f}" for t in found)
            + " |"
        )


if __name__ == "__main__":
    main()
