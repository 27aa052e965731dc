"""What a temperature does to rare classes: it moves log-probabilities away from equal classes, or from their mean.

    python -m benchmarks rare-classes --data DIR

Each run fits on some rows of a table within CPU seconds, and judges the same ensemble on all others three times:
without a calibration, with temperatures that move log-probabilities away from those of equal classes, and with
temperatures that move them away from the mean probabilities, as `cashmere.ensembles.calibration` does. Rows are added
as runs end; the same command continues an interrupted study.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
from rich.console import Console

from benchmarks.runs.code_version import commit
from benchmarks.runs.cpu_timed_search import RunKey, search_for_classes
from benchmarks.runs.missing_runs import make_missing
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables
from cashmere.base.arrays import Float64

TABLES = (
    *("sick", "bank-marketing", "pc4", "churn", "page-blocks", "yeast", "wine-quality-white", "satimage", "eucalyptus"),
    *("first-order-theorem-proving", "cmc", "ilpd", "credit-g", "qsar-biodeg", "diabetes", "phoneme", "MagicTelescope"),
    *("cylinder-bands", "colic", "PhishingWebsites"),
)

CENTRES = ("none", "equal", "mean")


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedRun(RunKey):
    """The ensemble of one run under one rule.

    Attributes
    ----------
    table, variant, seed, budget, rows
        See `RunKey`; the variant is the resampling.
    centre : str
        Where log-probabilities are moved away from: one of `CENTRES`.
    trials : int
        Finished trials.
    n_train, n_test : int
        Rows fitted on, and rows judged.
    smallest : float
        Share of the rarest class among the rows fitted on.
    temperature : float
        1 without a calibration; NaN if each class has a scale and an offset.
    test : float
        Log loss on the judged rows.
    predicted, observed : float
        Mean probability and share of the rarest class among the judged rows.
    commit : str
        Version of the code.
    """

    centre: str
    trials: int
    n_train: int
    n_test: int
    smallest: float
    temperature: float
    test: float
    predicted: float
    observed: float
    commit: str


def equal_classes(z: Float64, w: Float64) -> Float64:
    """Return the logarithms of equal probabilities, in place of those that `centre_of` computes."""
    return np.full(z.shape[1], -np.log(z.shape[1]))


def run(table: BenchmarkTable, key: RunKey) -> list[CalibratedRun]:
    """Fit on some rows of a table within CPU seconds, and judge the ensemble of each rule on the others."""
    found = []
    with search_for_classes(table, key) as (session, fitted, X, y):
        history, builder = session.study.history, session.model.builder
        counts = np.bincount(fitted)
        rarest = int(counts.argmin())
        for centre in CENTRES:
            session.model.choose_finally(history)
            with (
                patch("cashmere.ensembles.calibration.centre_of", equal_classes) if centre == "equal" else nullcontext()
            ):
                session.model.cross_fit(history)
            if centre == "none":
                builder.calibration = None
            probabilities = session.model.predictor(history).predict_proba(X)
            temperature = 1.0 if builder.calibration is None else builder.calibration.temperature
            found.append(
                CalibratedRun(
                    **asdict(key),
                    centre=centre,
                    trials=len(history.successes),
                    n_train=len(fitted),
                    n_test=len(y),
                    smallest=float(counts.min() / len(fitted)),
                    temperature=np.nan if temperature is None else temperature,
                    test=float(session.run.metric.loss(y, probabilities)),
                    predicted=float(probabilities[:, rarest].mean()),
                    observed=float(np.mean(y == rarest)),
                    commit=commit(),
                )
            )
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), metavar="NAME")
    parser.add_argument("--resampling", default="auto")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, nargs="+", default=[400, 1000], help="most rows to fit on")
    parser.add_argument("--budget", type=float, default=20.0, help="CPU seconds of a run")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--out", type=Path, default=Path(".replay/rare_classes.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    make_missing(
        [
            (table, RunKey(table.name, arguments.resampling, seed, arguments.budget, rows))
            for seed in range(arguments.seeds)
            for rows in arguments.rows
            for table in find_tables(arguments.data, arguments.tables)
        ],
        run,
        RowFile(arguments.out, CalibratedRun),
        n_workers=arguments.jobs,
        console=Console(),
        describe=lambda found: "\n".join(
            f"{one.table}, {one.rows} rows, seed {one.seed}, centre {one.centre}: log loss {one.test:.4f}, "
            f"rarest class {one.predicted:.2%} of {one.observed:.2%}"
            for one in found
        ),
    )
