"""Microseconds of a tree of LightGBM, with and without parameters that are too small to matter, and by bins.

    python -m benchmarks.timings.lightgbm_time --data DIR [--tables vowel churn] [--rows 5000] [--repeats 5] --out FILE

LightGBM finds splits by slower code if `path_smooth` or `reg_alpha` is above zero. The default of the space ``default``
is fitted with both at 0.001, as searches once had them, and without; with 255 bins per column, and with fewer. Columns
of categories are numbered. Medians of the CPU time of 60 rounds, one thread; a round has a tree per class. Rows are
added to the file; what it holds is not measured again.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from lightgbm import Booster, Dataset

from benchmarks.runs.code_version import commit
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeTime:
    """How long a tree takes.

    Attributes
    ----------
    table : str
        What was fitted.
    rows, columns, n_classes : int
        Its size.
    setting : str
        A key of `SETTINGS`.
    repeats : int
        How often it was timed.
    microseconds : float
        Median CPU time of a tree.
    commit : str
        Version of the code.
    """

    table: str
    rows: int
    columns: int
    n_classes: int
    setting: str
    repeats: int
    microseconds: float
    commit: str


def measure(table: BenchmarkTable, *, most_rows: int, repeats: int) -> list[TreeTime]:
    """Time the trees of a table with each of the settings."""
    frame, target = table.read()
    rows = np.random.default_rng(0).permutation(len(frame))[:most_rows]
    X = frame.iloc[rows].apply(lambda column: column if column.dtype.kind in "fiu" else pd.factorize(column)[0])
    y = pd.factorize(target.iloc[rows])[0]
    n_classes = int(y.max()) + 1
    return [
        TreeTime(
            table=table.name,
            rows=len(X),
            columns=X.shape[1],
            n_classes=n_classes,
            setting=setting,
            repeats=repeats,
            microseconds=round(microseconds(X.to_numpy("f4"), y, n_classes, parameters, repeats), 1),
            commit=commit(),
        )
        for setting, parameters in SETTINGS.items()
    ]


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
    """Measure what the file lacks, and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--rows", type=int, default=5000, help="at most")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(".timings/lightgbm_time.csv"), help="rows; grows")
    arguments = parser.parse_args()

    file = RowFile(arguments.out, TreeTime)
    done = file.keys("table", repeats=arguments.repeats)
    for table in find_tables(arguments.data, arguments.tables):
        if (table.name,) not in done:
            file.add(measure(table, most_rows=arguments.rows, repeats=arguments.repeats))
    for each in file.frame(table=arguments.tables, repeats=arguments.repeats).itertuples():
        print(f"{each.table:<20} {each.setting:<16} {each.microseconds:>7.0f} microseconds per tree")


if __name__ == "__main__":
    main()
