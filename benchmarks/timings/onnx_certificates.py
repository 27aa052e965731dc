"""Certificates of ensembles of a single algorithm that are exported to ONNX: differences, sizes and latencies.

    python -m benchmarks onnx --data DIR

Each algorithm of the space `default` that converts is searched alone, on the demonstration table (two classes), on
`eucalyptus` (five classes, missing values) and, for regression, on a column of the demonstration table. All its trials
are members of the ensemble. Rows are added as runs end; the same command continues an interrupted one.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from rich.console import Console

from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import add_data_argument, find_tables
from cashmere import Predictor, export_onnx
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.data.frames import to_frame
from cashmere.exceptions import DeployableWarning, SpaceError
from cashmere.records.budget import Budget
from cashmere.run import RunSettings, fit_run
from cashmere.space.named.default import DEFAULT_ALGORITHMS

VALUES = "credit_amount"
"""Column of the demonstration table that regression predicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxCertificate:
    """The certificate of an ensemble.

    Attributes
    ----------
    table, task, algorithm : str
        What was fitted.
    trials : int
        Of the search.
    members, models : int
        Members of the ensemble, and models of folds.
    rows, altered : int
        Rows compared, and how many of them have missing values and unseen levels.
    largest, median : float
        Differences of probabilities, or of values in standard deviations of the predictions.
    equal : int or None
        Rows with the same label.
    folder_bytes, onnx_bytes : int
        Size of the model folder and of the file.
    cashmere_row_ms, onnx_row_ms, cashmere_rows_per_second, onnx_rows_per_second : float
        Latency of a row; rate of the rows compared.
    """

    table: str
    task: str
    algorithm: str
    trials: int
    members: int
    models: int
    rows: int
    altered: int
    largest: float
    median: float
    equal: int | None
    folder_bytes: int
    onnx_bytes: int
    cashmere_row_ms: float
    onnx_row_ms: float
    cashmere_rows_per_second: float
    onnx_rows_per_second: float


def measure(name: str, X: pd.DataFrame, y: pd.Series, algorithm: str, trials: int) -> OnnxCertificate | None:
    """Search an algorithm on a table and export the ensemble of its trials; None if it does not learn such a target."""
    with tempfile.TemporaryDirectory(prefix="cashmere-onnx-") as temporary:
        folder = Path(temporary) / "run"
        settings = RunSettings(
            budget=Budget(trials=trials),
            include=(algorithm,),
            deployable="onnx",
            resampling="3fold",
            ensemble="bagging",
            n_workers=1,
        )
        try:
            fit_run(folder, to_frame(X), y, settings, load=False, report=False)
        except SpaceError:
            return None
        predictor = Predictor.load(folder)
        certificate = export_onnx(predictor, Path(temporary) / "model.onnx", X)
        latencies = {who: round(value, 4 if who.endswith("ms") else 0) for who, value in certificate.latencies.items()}
        return OnnxCertificate(
            table=name,
            task=predictor.target.task_type.value,
            algorithm=algorithm,
            trials=trials,
            members=len(predictor.models),
            models=sum(map(len, predictor.models.values())),
            rows=certificate.n_rows,
            altered=certificate.n_altered,
            largest=float(f"{certificate.largest:.3g}"),
            median=float(f"{certificate.median:.3g}"),
            equal=certificate.n_equal,
            folder_bytes=sum(each.stat().st_size for each in (folder / "model").iterdir()),
            onnx_bytes=certificate.n_bytes,
            **latencies,
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--algorithms", nargs="*", help="which ones (default: all that convert)")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)


def main(arguments: argparse.Namespace) -> None:
    console, kept = Console(), RowFile(arguments.out, OnnxCertificate)
    done = kept.keys("table", "algorithm", trials=arguments.trials)
    demo = demo_table()
    [eucalyptus] = find_tables(arguments.data, ["eucalyptus"])
    tables = {
        "credit-g": (demo.drop(columns=DEMO_TARGET), demo[DEMO_TARGET]),
        "eucalyptus": eucalyptus.read(),
        f"credit-g:{VALUES}": (demo.drop(columns=VALUES), demo[VALUES].astype(float)),
    }
    names = [algorithm.name for algorithm in DEFAULT_ALGORITHMS if algorithm.onnx]
    warnings.simplefilter("ignore", DeployableWarning)
    for table, (X, y) in tables.items():
        for algorithm in arguments.algorithms or names:
            if (table, algorithm) in done:
                continue
            found = measure(table, X, y, algorithm, arguments.trials)
            if found is not None:
                kept.add([found])
                console.print(f"{table} {algorithm}: {found.largest:.2g} on {found.rows} rows")
