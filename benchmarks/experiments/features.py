"""What features add to boosters, and to an ensemble of the defaults.

    python -m benchmarks features --data DIR

On each table a third of the rows is held out. The default of every algorithm of the space `default` is evaluated by
3-fold cross-validation on the rest, and so is each booster with each kind of features (`again`: with none, but another
seed). Greedy ensembles of the defaults, with and without these, are chosen by out-of-fold predictions; all are judged
on the rows held out.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables
from benchmarks.tables.search_table import SearchTable
from cashmere.base.arrays import AnyArray, FloatArray, IntArray
from cashmere.data.prepared import prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.ensembles import select_ensemble
from cashmere.evaluation.metrics import default_metric
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.model.archives import load_fold_models
from cashmere.records.trial import Trial
from cashmere.space.named.features import FEATURES, NONE
from cashmere.space.space import Space

TABLES = (
    *("abalone", "amazon_employee", "bank-marketing", "churn", "cmc", "connect-4", "credit-g", "cylinder-bands"),
    *("delta_elevators", "eucalyptus", "eye_movements", "phoneme", "wine_quality"),
)
"""Nine with categories of three levels or more, two to five classes, two with values."""

AGAIN = "again"
ENSEMBLE = "ensemble"
_FOLDS = "3fold"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRow:
    """One trial or one ensemble.

    Attributes
    ----------
    table, seed, rows
        Of the rows, folds and trials; how many rows were drawn at most.
    learner : str
        The algorithm, or ``"ensemble"``.
    features : str
        The kind of features; ``"again"`` for another seed instead. For ensembles, what is in the pool beside the
        defaults.
    validation_loss, test_loss : float
        Of the out-of-fold predictions; on the rows held out.
    seconds : float
        CPU time of the trial; 0 for ensembles.
    """

    table: str
    seed: int
    rows: int
    learner: str
    features: str
    validation_loss: float
    test_loss: float
    seconds: float


@dataclass(frozen=True, slots=True)
class _Tried:
    learner: str
    features: str
    out_of_fold: FloatArray
    test: FloatArray
    seconds: float


def compare(table: BenchmarkTable, *, seed: int, n_rows: int) -> list[FeatureRow]:
    """Evaluate the defaults, boosters with features, and ensembles of them on at most `n_rows` rows of a table."""
    data = SearchTable.read(table)
    metric = default_metric(data.task_type)
    learn, test = drawn_rows(len(data.y), n_rows, seed)
    y = data.y[learn]
    tried = _evaluate(data, learn, test, seed=seed)

    def row(learner: str, features: str, predictions: tuple[AnyArray, AnyArray], seconds: float) -> FeatureRow:
        return FeatureRow(
            table=table.name,
            seed=seed,
            rows=n_rows,
            learner=learner,
            features=features,
            validation_loss=float(metric.loss(y, predictions[0], None)),
            test_loss=float(metric.loss(data.y[test], predictions[1], None)),
            seconds=seconds,
        )

    rows = [row(each.learner, each.features, (each.out_of_fold, each.test), each.seconds) for each in tried]
    kinds = [each.features for each in tried if each.learner == tried[0].learner and each.features != NONE]
    every = tuple(kind for kind in kinds if kind != AGAIN)
    for added in [(), *((kind,) for kind in kinds), *([every] if len(every) > 1 else [])]:
        pool = [each for each in tried if each.features in (NONE, *added)]
        weights = select_ensemble([each.out_of_fold for each in pool], y, metric, tie="secondary").weights
        mixed = [sum(w * p for w, p in zip(weights, parts, strict=True)) for parts in _both(pool)]
        name = "every kind" if len(added) > 1 else added[0] if added else NONE
        rows.append(row(ENSEMBLE, name, (np.asarray(mixed[0]), np.asarray(mixed[1])), 0.0))
    return rows


def _both(pool: list[_Tried]) -> tuple[list[FloatArray], list[FloatArray]]:
    return [each.out_of_fold for each in pool], [each.test for each in pool]


def drawn_rows(n: int, most: int, seed: int) -> tuple[IntArray, IntArray]:
    """Draw at most `most` rows: two thirds to learn from, and a third to judge on; both ascending."""
    drawn = np.random.default_rng([seed, 7]).permutation(n)[:most]
    n_test = len(drawn) // 3
    return np.sort(drawn[n_test:]), np.sort(drawn[:n_test])


def _evaluate(data: SearchTable, learn: IntArray, test: IntArray, *, seed: int) -> list[_Tried]:
    space = data.make_space("default", len(learn))
    coded, y = data.schema.code(data.frame), data.y[learn]
    folds = make_folds(y, data.task_type, _FOLDS, seed=seed)
    metric = default_metric(data.task_type)
    tried = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _, encoders = prepare_folds(
            folder, coded.take(learn), y, folds, sorted(space.encodings), task_type=data.task_type, seed=seed
        )
        objective = CrossValidationObjective(folder=folder, space=space, metric=metric)
        held_out = coded.take(test)
        for values, features in configurations(space):
            configuration = space.completed(values)
            number = 1000 if features == AGAIN else 0
            clock = time.process_time()
            outcome = objective(Trial(number=0, configuration=configuration, seed=seed + number))
            seconds = time.process_time() - clock
            if outcome.predictions is None or outcome.model is None:
                raise SystemExit(f"{values} failed: {outcome.error}")
            (folder / "model.skops").write_bytes(outcome.model)
            encoding = space.encoding_of(configuration)
            models = load_fold_models(folder / "model.skops")
            predicted = [
                model.predict(encoder[encoding].transform(held_out))
                for model, encoder in zip(models, encoders, strict=True)
            ]
            mean = np.asarray(np.mean(predicted, axis=0, dtype=np.float64))
            tried.append(_Tried(values["algorithm"], features, outcome.predictions.astype(float), mean, seconds))
    return tried


def configurations(space: Space) -> list[tuple[dict[str, Any], str]]:
    """Return the values of each trial, and the name of its features."""
    found: list[tuple[dict[str, Any], str]] = []
    for algorithm in space.algorithms:
        values = {"algorithm": algorithm.name}
        found.append((values, NONE))
        name = f"{algorithm.name}:{FEATURES}"
        if name in space.configuration_space:
            kinds = [kind for kind in space.configuration_space[name].choices if kind != NONE]  # type: ignore[attr-defined]
            found += [(values, AGAIN), *(({**values, name: kind}, kind) for kind in kinds)]
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--rows", type=int, default=4000, help="drawn from larger tables; a third is held out")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--out", type=Path, default=Path(".replay/features.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console, file = Console(), RowFile(arguments.out, FeatureRow)
    done = file.keys("table", "seed", rows=arguments.rows)
    with until_interrupted(console):
        for table in find_tables(arguments.data, arguments.tables):
            for seed in arguments.seeds:
                if (table.name, seed) not in done:
                    file.add(compare(table, seed=seed, n_rows=arguments.rows))
                    console.print(f"{table.name}, seed {seed}, is judged")
    for shown in reports(file.frame(table=arguments.tables, seed=arguments.seeds, rows=arguments.rows)):
        console.print(shown)


def reports(rows: pd.DataFrame) -> list[Table]:
    """Return, per learner and for the ensembles, the change of the test loss by features in per cent."""
    found = []
    for learner, of_learner in rows.groupby("learner", sort=False):
        means = of_learner.pivot_table(index="features", columns="table", values="test_loss", sort=False)
        if len(means) < 2:
            continue
        change = 100 * means.div(means.loc[NONE], axis=1) - 100
        shown = Table("features", *map(str, change.columns), "mean", title=f"{learner}: test loss, change in per cent")
        for kind, of_kind in change.drop(index=NONE).iterrows():
            cells = [*of_kind, of_kind.mean()]
            shown.add_row(str(kind), *("" if np.isnan(each) else f"{each:+.1f}" for each in cells))
        found.append(shown)
    return found
