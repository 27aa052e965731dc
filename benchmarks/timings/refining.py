"""Size, latency and loss on unseen rows of a run's model, and of those that `cashmere refine` makes of it.

    python -m benchmarks.timings.refining --data DIR --tables phoneme --out results.csv

A quarter of the rows is not seen. The demonstration table comes first. `earlier_bytes` is what the same folder would
take if forests were written in scikit-learn's own types; rows named `all trials` are of the folder `members`. A run
with the preset ``small`` follows. Tables whose rows are in the file are not measured again.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from unittest.mock import patch

import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import add_data_argument, find_tables
from cashmere import Predictor
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.data.frames import to_frame
from cashmere.evaluation.metrics import METRICS
from cashmere.model.archives import dump_fold_models, load_fold_models
from cashmere.run import RunSettings, fit_run, refine_run
from cashmere.space.estimators import forests

STEPS = {
    "half of the size": ("n_bytes", 2),
    "a fifth of the size": ("n_bytes", 5),
    "half of the time": ("single_row_ms", 2),
    "a fifth of the time": ("single_row_ms", 5),
    "one model for each member": ("refit", 1),
}
"""Bounds, as fractions of what the model of the run takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefinedModel:
    """A model folder.

    Attributes
    ----------
    table : str
        Name of the table it was fitted to.
    model : str
        Of the run, or the bound under which it was chosen.
    budget : str
        Of the run.
    trials, members : int
        Of the run; of the ensemble.
    log_loss : float or None
        On unseen rows; None for all trials together.
    single_row_ms, rows_per_second : float or None
        Latency of a row; rate of a batch of at most 1000.
    n_bytes, earlier_bytes : int
        Size of the folder; see above.
    seconds : float
        Duration of the refinement, which measures candidates only the first time.
    """

    table: str
    model: str
    budget: str
    trials: int
    members: int
    log_loss: float | None
    single_row_ms: float | None
    rows_per_second: float | None
    n_bytes: int
    earlier_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Halves:
    """A table, three quarters of which are fitted to under a budget."""

    name: str
    budget: str
    rows: pd.DataFrame
    target: pd.Series
    unseen: pd.DataFrame
    truth: pd.Series

    @classmethod
    def of(cls, name: str, X: pd.DataFrame, y: pd.Series, budget: str) -> Self:
        rows, unseen, target, truth = train_test_split(to_frame(X), y, test_size=0.25, random_state=0, stratify=y)
        return cls(name=name, budget=budget, rows=rows, target=target, unseen=unseen, truth=truth)

    def fit(self, folder: Path, preset: str) -> int:
        """Fit in a new run directory; return the number of trials."""
        settings = RunSettings.from_options(preset=preset, budget=self.budget, workers=1)
        return len(fit_run(folder, self.rows, self.target, settings, load=False, report=False).rows)

    def described(self, model: str, path: Path, *, trials: int, members: int, seconds: float = 0.0) -> RefinedModel:
        """Judge a model folder on unseen rows; one that holds all trials only by its size."""
        predictor = Predictor.load(path) if members else None
        latency = {} if predictor is None else predictor.measure_latency(self.rows.head(1000))
        loss = None
        if predictor is not None:
            codes = predictor.target.encode(self.truth)
            loss = round(METRICS["log_loss"].loss(codes, predictor.predict_proba(self.unseen)), 5)
        n_bytes = sum(each.stat().st_size for each in path.iterdir())
        return RefinedModel(
            table=self.name,
            model=model,
            budget=self.budget,
            trials=trials,
            members=members,
            log_loss=loss,
            single_row_ms=_rounded(latency.get("single_row_ms"), 2),
            rows_per_second=_rounded(latency.get("batch_rows_per_second"), 0),
            n_bytes=n_bytes,
            earlier_bytes=n_bytes + sum(map(_saved, path.glob("*.skops"))),
            seconds=round(seconds, 1),
        )


def measure(name: str, X: pd.DataFrame, y: pd.Series, budget: str) -> Iterator[RefinedModel]:
    """Fit a table, refine the run under each bound, and judge all models on unseen rows."""
    table = _Halves.of(name, X, y, budget)
    with tempfile.TemporaryDirectory(prefix="cashmere-refining-") as temporary:
        folder = Path(temporary) / "run"
        trials = table.fit(folder, "balanced")
        yield table.described("all trials", folder / "members", trials=trials, members=0)
        members = len(Predictor.load(folder).ensemble.members)
        first = table.described("of the run", folder / "model", trials=trials, members=members)
        yield first
        for step, (kind, part) in STEPS.items():
            clock = time.perf_counter()
            assert first.single_row_ms is not None
            bounds: dict[str, dict[str, Any]] = {
                "n_bytes": {"max_size": first.n_bytes / part / 2**20},
                "single_row_ms": {"max_latency": first.single_row_ms / part / 1000},
                "refit": {"refit": True},
            }
            refined = refine_run(folder, **bounds[kind])
            assert refined.model_folder is not None
            assert refined.after is not None
            seconds = time.perf_counter() - clock
            members = refined.after["n_members"]
            yield table.described(step, refined.model_folder, trials=trials, members=members, seconds=seconds)


def measure_small(name: str, X: pd.DataFrame, y: pd.Series, budget: str) -> Iterator[RefinedModel]:
    """Fit a table with the preset ``small``, and judge the model of the run on unseen rows."""
    table = _Halves.of(name, X, y, budget)
    with tempfile.TemporaryDirectory(prefix="cashmere-refining-") as temporary:
        folder = Path(temporary) / "run"
        trials = table.fit(folder, "small")
        members = len(Predictor.load(folder).ensemble.members)
        yield table.described("of a run with the preset `small`", folder / "model", trials=trials, members=members)


def _saved(path: Path) -> int:
    """Return how many bytes narrow types save in an archive of fold models."""
    if path.name.startswith("encoders"):
        return 0
    models = load_fold_models(path)
    if not any(isinstance(model.pipeline and model.pipeline[-1], forests._PackedTrees) for model in models):
        return 0
    with (
        patch.object(forests, "narrow_nodes", lambda nodes: nodes),
        patch.object(forests, "whole_sums", lambda values, nodes: None),
    ):
        return len(dump_fold_models(models)) - path.stat().st_size


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="*", default=[])
    parser.add_argument("--budget", default="40trials")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    kept = RowFile(options.out, RefinedModel)
    demo = demo_table()
    tables = [("credit-g", demo.drop(columns=DEMO_TARGET), demo[DEMO_TARGET])]
    tables += [(t.name, *t.read()) for t in find_tables(options.data, options.tables)] if options.tables else []
    done = kept.keys("table", budget=options.budget)
    for name, X, y in tables:
        if (name,) not in done:
            kept.add([*measure(name, X, y, options.budget), *measure_small(name, X, y, options.budget)])


if __name__ == "__main__":
    main()
