"""How certain a mean of models should be: temperatures that clearly help, fitted ones, and sharpened ones.

    python -m benchmarks temperatures --data DIR

Each run fits on some rows of a table within CPU seconds, and judges the same ensemble on all others in several ways:

- *none*: without a calibration;
- *clear*: with a calibration only if it lowers the cross-fitted loss by more than two standard errors;
- *temperature*: always with the temperature fitted to cross-fitted predictions;
- *sharper*: as `cashmere.ensembles.calibration` does it, knowing that new rows are predicted by means of more models.

Rows are added as runs end; the same command continues an interrupted study.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.console import Console

from benchmarks.experiments.last_step import temperature_of
from benchmarks.runs.code_version import commit
from benchmarks.runs.cpu_timed_search import RunKey, search_for_classes
from benchmarks.runs.missing_runs import make_missing
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables
from cashmere.base.arrays import AnyArray, FloatArray
from cashmere.ensembles.calibration import Calibration, choose_calibration

TABLES = (
    *("colic", "cylinder-bands", "ilpd", "eucalyptus", "diabetes", "vehicle", "vowel", "credit-g", "eye_movements"),
    *("first-order-theorem-proving", "pendigits", "satimage", "phoneme", "churn", "wine-quality-white", "cmc", "yeast"),
)

Choose = Callable[..., Calibration | None]
"""What takes the place of `choose_calibration`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemperedRun(RunKey):
    """The ensemble of one run, calibrated in one way.

    Attributes
    ----------
    table, variant, seed, budget, rows
        See `RunKey`; the variant is the resampling.
    way : str
        One of `WAYS`.
    trials : int
        Finished trials.
    n_train, n_test : int
        Rows fitted on, and rows judged.
    temperature : float
        1 without a calibration; NaN if each class has a scale and an offset.
    best : float
        The temperature with the lowest log loss on the judged rows, the same for all ways.
    test : float
        Log loss on the judged rows.
    commit : str
        Version of the code.
    """

    way: str
    trials: int
    n_train: int
    n_test: int
    temperature: float
    best: float
    test: float
    commit: str


def never(*_: Any, **__: Any) -> None:
    """Keep no calibration."""


def if_clear(*found: Any, **of_rows: Any) -> Calibration | None:
    """Keep a calibration that clearly helps, as if new rows were predicted by as many models."""
    return choose_calibration(*found, **{**of_rows, "is_mean_elsewhere": False})


def always(probabilities: FloatArray, y: AnyArray, *_: Any, **__: Any) -> Calibration:
    """Keep the temperature that is best on these rows, of equal weight."""
    return temperature_of(np.asarray(probabilities, dtype=np.float64), y)


WAYS: dict[str, Choose] = {"none": never, "clear": if_clear, "temperature": always, "sharper": choose_calibration}


def run(table: BenchmarkTable, key: RunKey) -> list[TemperedRun]:
    """Fit on some rows of a table within CPU seconds, and judge the ensemble of each way on the others."""
    found = []
    with search_for_classes(table, key) as (session, fitted, X, y):
        history, model, best = session.study.history, session.model, np.nan
        for way, choose in WAYS.items():
            model.choose_finally(history)
            with patch("cashmere.run.ensemble_builder.choose_calibration", choose):
                model.cross_fit(history)
            probabilities = model.predictor(history).predict_proba(X)
            if way == "none":
                best = always(probabilities, y).temperature or np.nan
            calibration = model.builder.calibration
            temperature = 1.0 if calibration is None else calibration.temperature
            found.append(
                TemperedRun(
                    **asdict(key),
                    way=way,
                    trials=len(history.successes),
                    n_train=len(fitted),
                    n_test=len(y),
                    temperature=np.nan if temperature is None else temperature,
                    best=best,
                    test=float(session.run.metric.loss(y, probabilities)),
                    commit=commit(),
                )
            )
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), metavar="NAME")
    parser.add_argument("--resamplings", nargs="+", default=["5fold"], metavar="NAME")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=2000, help="most rows to fit on")
    parser.add_argument("--budget", type=float, default=30.0, help="CPU seconds of a run")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--out", type=Path, default=Path(".replay/temperatures.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    make_missing(
        [
            (table, RunKey(table.name, resampling, seed, arguments.budget, arguments.rows))
            for seed in range(arguments.seeds)
            for table in find_tables(arguments.data, arguments.tables)
            for resampling in arguments.resamplings
        ],
        run,
        RowFile(arguments.out, TemperedRun),
        n_workers=arguments.jobs,
        console=Console(),
        describe=lambda found: "\n".join(
            f"{one.table}, {one.variant}, seed {one.seed}, {one.way}: log loss {one.test:.4f}, temperature "
            f"{one.temperature:.3f}, best {one.best:.3f}"
            for one in found
        ),
    )
