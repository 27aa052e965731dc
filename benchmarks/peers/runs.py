"""Runs of peers: every system gets the same rows, the same seconds, and never a label of the test rows.

A run is one peer with one seed on one table, in a process of the peer's environment. Everything it receives and
leaves is a file, see `benchmarks/peers/runners/exchange.py`. It is judged here, where the labels are.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.peers.environments import Peer
from benchmarks.peers.supervised import run_supervised
from benchmarks.runs.circumstances import describe_machine
from benchmarks.runs.finished_runs import Failure
from benchmarks.runs.parallel import make_runs
from benchmarks.runs.suite_runs import SuiteKey
from benchmarks.tables.manifest import BenchmarkTable
from cashmere.data.task import TaskType
from cashmere.exceptions import DataError

MEASURES = {"log_loss": 1, "error": 1, "roc_auc": -1, "rmse": 1, "r2": -1}
"""What is computed from predictions; 1: smaller is better, -1: larger."""

PATIENCE = 2
"""A run is killed at this multiple of its budget."""

KILLED = f"killed at {PATIENCE} x the budget"
ENDED = "ended with status"
TOLERANCE = 1e-3
"""How far probabilities of a row may be from a sum of 1: some systems compute in single precision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerProtocol:
    """How peers are compared.

    Attributes
    ----------
    seconds : float
        Wall seconds that a peer is told to use.
    threads : int
        Threads that a peer is told to use.
    test_share : float
        Share of the rows, drawn for every seed and stratified by class, on which it is judged.
    """

    seconds: float
    threads: int
    test_share: float = 0.25

    def key(self, table: str, peer: str, seed: int) -> SuiteKey:
        """Return the key of a run."""
        rest = {name: value for name, value in asdict(self).items() if name != "seconds"}
        digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()[:8]
        return SuiteKey(
            suite="peers", protocol=digest, table=table, strategy=peer, seed=seed, budget=f"{self.seconds:g}s"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerRun:
    """A finished run of a peer, successful or not.

    Attributes
    ----------
    key : SuiteKey
        Which run it is.
    failure : str or None
        Why there is nothing to judge.
    measures : dict of str to float
        Measures by the names of `MEASURES`.
    seconds : float
        Wall seconds of the whole process: start, fitting, prediction.
    peak_mib : float or None
        Largest resident memory of all its processes; None if it was not measured, as in earlier runs.
    facts : dict
        What the runner says: ``fit_seconds``, ``models``, ``versions``.
    circumstances : dict
        ``machine``, ``load`` (average number of running processes before the start), ``threads``, ``date``.
    code : str
        Digest of the runner and, for cashmere, of the package; in earlier runs, of the part of it that decides.
    """

    key: SuiteKey
    failure: str | None
    seconds: float
    code: str
    peak_mib: float | None = None
    measures: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    circumstances: dict[str, Any] = field(default_factory=dict)

    @property
    def is_final(self) -> bool:
        """Whether it need not be repeated: a runner that broke off may succeed once the cause is fixed."""
        return self.failure is None or not self.failure.startswith(ENDED)


def split(y: np.ndarray, protocol: PeerProtocol, seed: int, *, classes: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return ascending row numbers for training and test; the same for every peer."""
    from sklearn.model_selection import train_test_split

    rows = np.arange(len(y))
    train, test = train_test_split(
        rows, test_size=protocol.test_share, random_state=seed, stratify=y if classes else None
    )
    return np.sort(train), np.sort(test)


def give(folder: Path, table: BenchmarkTable, protocol: PeerProtocol, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Write what a runner may see, and return the targets of training and test rows.

    Columns are called ``c0``, ``c1`` and so on: some systems do not take every name. The files hold no metadata of
    pandas, since peers have other versions of it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, target = table.read()
    y = target.to_numpy(dtype=str if table.is_classification else np.float64)
    X.columns = [f"c{i}" for i in range(X.shape[1])]
    train, test = split(y, protocol, seed, classes=table.is_classification)
    for name, frame in {"train": X.iloc[train].assign(target=y[train]), "test": X.iloc[test]}.items():
        arrow = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
        pq.write_table(arrow, folder / f"{name}.parquet")
    settings = {
        "task": table.task_type.value,
        "metric": "log_loss" if table.is_classification else "rmse",
        "seconds": protocol.seconds,
        "seed": seed,
        "threads": protocol.threads,
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    return y[train], y[test]


def run_peer(
    peer: Peer, table: BenchmarkTable, protocol: PeerProtocol, seed: int, scratch: Path | None = None
) -> PeerRun:
    """Let a peer learn and predict, and judge it; a failure of its process is a result, too.

    Files are exchanged in a folder below `scratch`, by default that for temporary files, which is removed afterwards.
    """
    circumstances = {
        "machine": describe_machine(),
        "load": round(os.getloadavg()[0], 1),
        "threads": protocol.threads,
        "date": date.today().isoformat(),
    }
    with tempfile.TemporaryDirectory(prefix="cashmere-peer-", dir=scratch, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        y_train, y_test = give(folder, table, protocol, seed)
        log = folder / "output.txt"
        ended = run_supervised(
            [str(peer.python), str(peer.script), str(folder)],
            limit_seconds=PATIENCE * protocol.seconds,
            log=log,
            environment=_threads(protocol.threads),
        )
        measures, facts, failure = {}, {}, None
        if ended.code is None:
            failure = KILLED
        elif ended.code:
            failure = f"{ENDED} {ended.code}: {_end_of(log)}"
        else:
            try:
                predictions = read_predictions(folder, len(y_test), _classes(y_train, table))
                facts = json.loads((folder / "facts.json").read_text())
                measures = judge(y_test, predictions, table.task_type)  # last, so that a failure has none
            except (DataError, OSError, ValueError) as error:
                failure = f"{type(error).__name__}: {error}"
    return PeerRun(
        key=protocol.key(table.name, peer.name, seed),
        failure=failure,
        seconds=round(ended.seconds, 2),
        code=peer.digest,
        peak_mib=round(ended.peak_mib),
        measures=measures,
        facts=facts,
        circumstances=circumstances,
    )


def read_predictions(folder: Path, n_test: int, classes: Sequence[str] | None) -> pd.DataFrame:
    """Return what a runner predicts: a column per class, in the order of `classes`, or the column ``value``.

    Raises
    ------
    DataError
        If the file is missing, a class is, the number of rows is wrong, something is not a finite number, or
        probabilities are negative or do not sum to one.
    """
    path = folder / "predictions.parquet"
    if not path.exists():
        raise DataError("The runner left no predictions.parquet.")
    frame = pd.read_parquet(path)
    expected = ["value"] if classes is None else list(classes)
    if set(frame.columns) != set(expected):
        raise DataError(f"Columns of the predictions are {sorted(frame.columns)}; expected {sorted(expected)}.")
    if len(frame) != n_test:
        raise DataError(f"{len(frame)} rows are predicted; expected {n_test}.")
    values = frame[expected].to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        raise DataError(f"{np.count_nonzero(~np.isfinite(values))} predictions are not finite numbers.")
    if classes is not None:
        sums = values.sum(axis=1)
        if values.min() < 0 or np.abs(sums - 1).max() > TOLERANCE:
            raise DataError(
                f"Probabilities are as low as {values.min():.3g} and sum to {sums.min():.3g} to {sums.max():.3g}; "
                "expected none below 0 and sums of 1."
            )
        values = values / sums[:, None]
    return pd.DataFrame(values, columns=expected)


def judge(y: np.ndarray, predictions: pd.DataFrame, task_type: TaskType) -> dict[str, float]:
    """Return the measures of predictions that `read_predictions` has found good.

    The predicted class is the most probable one. A class that the training rows do not have has probability 0, which
    the log loss clips to the smallest positive step from 0 in double precision.
    """
    from sklearn.metrics import log_loss, r2_score, roc_auc_score, root_mean_squared_error

    if task_type is TaskType.REGRESSION:
        values = predictions["value"].to_numpy()
        return {"rmse": float(root_mean_squared_error(y, values)), "r2": float(r2_score(y, values))}
    known = np.array(predictions.columns)
    labels = np.union1d(known, y)
    probabilities = predictions.reindex(columns=labels, fill_value=0.0).to_numpy()
    measures = {
        "log_loss": float(log_loss(y, probabilities, labels=labels)),
        "error": float(np.mean(known[predictions.to_numpy().argmax(axis=1)] != y)),
    }
    if task_type is TaskType.BINARY:
        measures["roc_auc"] = float(roc_auc_score(y == labels[1], probabilities[:, 1]))
    return measures


def run_missing(
    missing: Sequence[tuple[Peer, BenchmarkTable, PeerProtocol, SuiteKey]],
    *,
    n_workers: int,
    report: Callable[[PeerRun | Failure[SuiteKey]], None],
) -> None:
    """Make runs, see `benchmarks.runs.parallel.make_runs`."""
    # This process also removes the files of workers that are killed.
    with tempfile.TemporaryDirectory(prefix="cashmere-peers-", ignore_cleanup_errors=True) as scratch:
        make_run = functools.partial(_run, scratch=Path(scratch))
        make_runs(missing, make_run, n_workers=n_workers, report=report)


def _run(peer: Peer, table: BenchmarkTable, protocol: PeerProtocol, key: SuiteKey, *, scratch: Path) -> PeerRun:
    return run_peer(peer, table, protocol, key.seed, scratch)


def _threads(n: int) -> dict[str, str]:
    """Return variables that override the number of threads set for the benchmark's own processes."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return dict.fromkeys(names, str(n))


def _classes(y_train: np.ndarray, table: BenchmarkTable) -> list[str] | None:
    return [str(name) for name in np.unique(y_train)] if table.is_classification else None


def _end_of(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return " | ".join(lines[-3:])[-500:] or "no output"
