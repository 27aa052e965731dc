"""Predictions of candidate configurations for all rows of a table, and their seconds; each is followed only once."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runs.cpu_clock import CpuSecondsOfTrial
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument
from benchmarks.tables.search_table import SearchTable
from cashmere.base.arrays import AnyArray, FloatArray
from cashmere.data.resampling import make_folds
from cashmere.data.task import TaskType
from cashmere.ensembles import select_ensemble
from cashmere.evaluation.metrics import Metric, default_metric
from cashmere.evaluation.objective import CrossValidationObjective, forget_folds
from cashmere.records.loss import Loss
from cashmere.records.trial import Trial
from cashmere.space.space import Space
from cashmere.storage.store import plain_values

Key = tuple[str, str]
"""Algorithm and candidate."""

Values = Mapping[str, Any]
"""Hyper-parameters that differ from the defaults, for `Space.completed`."""

Offered = Callable[[Space], Mapping[Key, Values]]
"""The candidates that a space offers."""

SpaceChange = Callable[[Space], Space]
"""Makes the space to use from ``default``."""

NETWORK = "realmlp"
"""The slowest algorithm, which most studies leave out."""

_FOLDS = "3fold"


@dataclass(frozen=True, slots=True)
class FollowedCandidates:
    """What candidates predict for all rows of a table.

    Attributes
    ----------
    y : (n_rows,) array
        Class codes or values.
    predictions : dict
        Out-of-fold predictions by key.
    cpu_seconds : dict
        CPU seconds of the path on all folds, by key.
    failed : dict
        CPU seconds of candidates that ended without predictions, by key.
    configurations : dict
        The configurations that were followed as JSON, by key; earlier files do not hold them.
    most_seconds : float
        CPU seconds after which a path ended; NaN in earlier files, which do not say.
    """

    y: AnyArray
    predictions: dict[Key, FloatArray] = field(default_factory=dict)
    cpu_seconds: dict[Key, float] = field(default_factory=dict)
    failed: dict[Key, float] = field(default_factory=dict)
    configurations: dict[Key, str] = field(default_factory=dict)
    most_seconds: float = float("nan")

    @property
    def metric(self) -> Metric:
        """Log loss or RMSE."""
        return default_metric(TaskType.REGRESSION if self.y.dtype.kind == "f" else TaskType.MULTICLASS)

    @property
    def tried(self) -> dict[Key, str]:
        """The configuration that was followed for each candidate, empty if unknown."""
        return {key: self.configurations.get(key, "") for key in (*self.predictions, *self.failed)}

    @classmethod
    def read(cls, path: Path) -> FollowedCandidates:
        """Read what `save` has written, or begin with nothing."""
        if not path.exists():
            return cls(np.zeros(0))
        with np.load(path) as file:
            keys = [(str(algorithm), str(candidate)) for algorithm, candidate in file["keys"]]
            # Earlier files do not list failures, so these are tried again.
            pairs = file["failed"].reshape(-1, 2) if "failed" in file else []
            failed = [(str(algorithm), str(candidate)) for algorithm, candidate in pairs]
            return cls(
                file["y"],
                dict(zip(keys, file["predictions"], strict=True)),
                dict(zip(keys, map(float, file["cpu_seconds"]), strict=True)),
                dict(zip(failed, map(float, file["failed_seconds"] if failed else ()), strict=True)),
                {tuple(key): text for *key, text in json.loads(str(file["configurations"]))}
                if "configurations" in file
                else {},
                float(file["most_seconds"]) if "most_seconds" in file else float("nan"),
            )

    def save(self, path: Path) -> None:
        """Write everything to one file; an existing one is replaced once the new one is complete."""
        path.parent.mkdir(parents=True, exist_ok=True)
        written = path.with_suffix(".part.npz")
        np.savez_compressed(
            written,
            y=self.y,
            keys=np.array(list(self.predictions)),
            predictions=np.array(list(self.predictions.values())),
            cpu_seconds=np.array(list(self.cpu_seconds.values())),
            failed=np.array(list(self.failed), dtype=str),
            failed_seconds=np.array(list(self.failed.values())),
            configurations=np.array(json.dumps([[*key, text] for key, text in self.configurations.items()])),
            most_seconds=np.array(self.most_seconds),
        )
        written.replace(path)

    def completed(
        self,
        table: BenchmarkTable,
        offered: Offered,
        *,
        n_rows: int,
        most_seconds: float = 60.0,
        first: int | None = None,
        seed: int = 0,
        changed: SpaceChange = lambda space: space,
    ) -> FollowedCandidates:
        """Return a copy with the missing candidates, and those that stand for another configuration now.

        Parameters
        ----------
        table : BenchmarkTable
            Read from its file.
        offered : callable
            Candidates that a space offers; others that are known are left out.
        n_rows : int
            Rows of the table, at most.
        most_seconds : float
            CPU seconds after which a path ends.
        first : int, optional
            Follow only this many of the offered candidates, the first ones.
        seed : int
            Draws the rows and the folds.
        changed : callable
            See `SpaceChange`.

        Raises
        ------
        SystemExit
            If what is known is of other rows, or of paths that ended after another time.
        """
        rows = SearchTable.read(table)
        kept = np.sort(np.random.default_rng(seed).permutation(len(rows.y))[:n_rows])
        rows = replace(rows, frame=rows.frame.iloc[kept].reset_index(drop=True), y=rows.y[kept])
        self._check(table.name, rows.y, most_seconds)
        space = changed(rows.make_space("default", len(rows.y)))
        candidates = {key: space.completed(values) for key, values in offered(space).items()}
        texts = {key: json.dumps(plain_values(each), sort_keys=True) for key, each in candidates.items()}
        known = {key for key in self.tried.keys() & candidates.keys() if self.tried[key] in ("", texts[key])}
        found = FollowedCandidates(
            rows.y,
            {key: self.predictions[key] for key in candidates if key in known and key in self.predictions},
            {key: self.cpu_seconds[key] for key in candidates if key in known and key in self.predictions},
            {key: self.failed[key] for key in candidates if key in known and key in self.failed},
            {key: text for key, text in self.configurations.items() if key in known},
            most_seconds,
        )
        missing = {key: each for key, each in islice(candidates.items(), first) if key not in known}
        if not missing:
            return found
        with tempfile.TemporaryDirectory() as folder:
            prepared = Path(folder) / "prepared"
            rows.prepare(prepared, rows.y, make_folds(rows.y, rows.task_type, _FOLDS, seed=seed), space, seed=seed)
            objective = CrossValidationObjective(folder=prepared, space=space, metric=found.metric, keep_model=False)
            for key, configuration in missing.items():
                trial = Trial(number=0, configuration=configuration, seed=seed)
                clock = time.process_time()
                try:
                    predicted = objective.run(trial, CpuSecondsOfTrial(most_seconds)).predictions
                except (ArithmeticError, ValueError, RuntimeError, MemoryError):  # a trial of a search would fail, too
                    predicted = None
                seconds = time.process_time() - clock
                if predicted is None:
                    found.failed[key] = seconds
                else:
                    found.predictions[key], found.cpu_seconds[key] = predicted, seconds
                found.configurations[key] = texts[key]
            forget_folds()
        return found

    def _check(self, table: str, y: AnyArray, most_seconds: float) -> None:
        if not self.predictions and not self.failed:
            return
        if not np.array_equal(self.y, y):
            raise SystemExit(f"{table}: known are predictions for {len(self.y)} other rows. Choose another --work.")
        if not np.isnan(self.most_seconds) and self.most_seconds != most_seconds:
            found, wanted = f"{self.most_seconds:g}", f"{most_seconds:g}"
            raise SystemExit(f"{table}: known paths ended after {found} s, not {wanted}. Choose another --work.")

    def loss(self, key: Key) -> float:
        """Return the loss of a candidate alone, on rows that it did not learn from."""
        return float(self.metric.loss(self.y, self.predictions[key], None))

    def ensemble_loss(self, pool: Iterable[Key], *, n_seeds: int = 5) -> float:
        """Return the loss of ensembles chosen from a pool on halves of the rows, on the other halves."""
        return halves_loss([self.predictions[key] for key in pool], self.y, self.metric, n_seeds=n_seeds)


def first_candidates(space: Space) -> dict[Key, Values]:
    """Return the first configurations of a search; those of an algorithm are called ``"first 1"``, ..."""
    offered: dict[Key, Values] = {}
    for configuration in space.first_configurations():
        name = str(configuration["algorithm"])
        number = sum(algorithm == name for algorithm, _ in offered)
        offered[name, f"first {number + 1}"] = dict(configuration)
    return offered


def first_without_network(space: Space) -> dict[Key, Values]:
    """Return the first configurations of a search without RealMLP."""
    return {key: values for key, values in first_candidates(space).items() if key[0] != NETWORK}


def add_followed_arguments(
    parser: argparse.ArgumentParser, name: str, tables: Sequence[str], *, rows: int, seconds: float | None = None
) -> None:
    """Add the options of a study of followed candidates; without `seconds`, it has no option for them."""
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(tables))
    parser.add_argument("--rows", type=int, default=rows, help="of each table, at most")
    if seconds is not None:
        parser.add_argument("--seconds", type=float, default=seconds, help="CPU seconds after which a path ends")
    parser.add_argument("--work", type=Path, default=Path(f".replay/{name}"), help="predictions; followed once")
    parser.add_argument("--out", type=Path, default=Path(f".replay/{name}.csv"), help="rows; written anew")


def follow_once(
    table: BenchmarkTable,
    work: Path,
    offered: Offered,
    *,
    n_rows: int,
    most_seconds: float = 60.0,
    changed: SpaceChange = lambda space: space,
) -> FollowedCandidates:
    """Return what the candidates predict for a table, following only those that are not in the folder of work."""
    path = work / f"{table.name}.npz"
    known = FollowedCandidates.read(path)
    followed = known.completed(table, offered, n_rows=n_rows, most_seconds=most_seconds, changed=changed)
    if followed.tried != known.tried:
        followed.save(path)
    return followed


def halves_loss(predictions: Sequence[FloatArray], y: AnyArray, metric: Loss, *, n_seeds: int) -> float:
    """Return the loss of ensembles chosen on random halves of the rows, on the other halves; the mean over all."""
    losses = []
    for seed in range(n_seeds):
        first = np.random.default_rng(seed).permutation(len(y)) < len(y) / 2
        for half in (first, ~first):
            seen = [each[half] for each in predictions]
            weights = select_ensemble(seen, y[half], metric, tie="secondary").weights
            mixed = np.sum([w * p[~half].astype(float) for w, p in zip(weights, predictions, strict=True)], axis=0)
            losses.append(metric.loss(y[~half], mixed, None))
    return float(np.mean(losses))
