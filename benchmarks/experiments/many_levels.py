"""What learners make of categories of more than 20 levels: numbers of the levels, or means of the target.

    python -m benchmarks many-levels --data DIR

The default of each learner is cross-validated twice on tables that have such columns. Learners that read one column per
level get the levels beyond 20 numbered, as they once were, or means of the target. LightGBM, which splits on levels
itself, does so or reads means as well. Rows are added as runs end; the same command continues an interrupted study.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.experiments.coverage import read
from benchmarks.runs.code_version import commit
from benchmarks.runs.cpu_timed_search import RunKey, split_rows
from benchmarks.runs.missing_runs import make_missing
from benchmarks.runs.place import temporary_place
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables
from cashmere.base.arrays import AnyArray, IntArray
from cashmere.data.frames import to_frame
from cashmere.data.inference import infer_schema
from cashmere.data.preparation import FoldEncoder
from cashmere.data.prepared import prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.target import TargetCoding
from cashmere.data.task import Encoding, TaskProfile, TaskType
from cashmere.data.text_scores import Matrix
from cashmere.evaluation.metrics import get_metric
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.records.trial import Trial
from cashmere.space import make_space

TABLES = (
    *("amazon_employee", "autos", "bridges", "cjs", "colleges_usnews", "cylinder-bands", "eucalyptus", "grub-damage"),
    "profb",
)
"""All tables with classes that have such a column."""

LEARNERS = ("logistic_regression", "mlp", "svm", "knn", "lightgbm")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyLevelsRun(RunKey):
    """Log losses of one learner on one table.

    Attributes
    ----------
    table, variant, seed, budget, rows
        See `RunKey`; the variant is the learner. There is no budget.
    levels, means : float
        Loss with numbers of the levels (of LightGBM: with splits on levels), and with means of the target.
    commit : str
        Version of the code.
    """

    levels: float
    means: float
    commit: str


def numbered_levels() -> Callable[..., Matrix]:
    """Return a replacement of `FoldEncoder._table` that numbers the levels of columns with more than 20."""
    usual = FoldEncoder._table

    def table(encoder: FoldEncoder, rows: IntArray, n_levels: int, y: AnyArray, task_type: TaskType) -> Matrix:
        if encoder.encoding != Encoding.ONEHOT or not encoder._is_averaged(rows, n_levels):
            return usual(encoder, rows, n_levels, y, task_type)
        seen = np.bincount(rows, minlength=n_levels + 1)[:-1] > 0
        codes = np.full(n_levels + 1, -1, dtype=np.float32)
        codes[:-1][seen] = np.arange(seen.sum())
        return codes[:, None]

    return table


def no_means(*arguments: object) -> tuple[NDArray[np.int16], tuple[()]]:
    """Return no means: numbers of levels need none."""
    return np.zeros(0, dtype=np.int16), ()


def run(table: BenchmarkTable, key: RunKey) -> list[ManyLevelsRun]:
    """Cross-validate a learner with both forms of the levels."""
    X, y, _ = read(table, key.table)
    rows, _ = split_rows(y, most_rows=key.rows, stratified=True, seed=key.seed)
    frame = to_frame(X.iloc[rows].reset_index(drop=True))
    target, codes = TargetCoding.with_codes(y.iloc[rows].reset_index(drop=True), None, n_rows=len(frame))
    schema, task = infer_schema(frame), target.task_type
    profile = TaskProfile(
        task_type=task,
        n_rows=len(codes),
        n_columns=len(schema.used),
        n_classes=target.n_classes,
        has_categories=True,
        needs_probabilities=True,
    )
    space = make_space("default", profile)
    forms = {"levels": Encoding.ONEHOT, "means": Encoding.ONEHOT}
    if key.variant == "lightgbm":
        forms = {"levels": Encoding.ORDINAL, "means": Encoding.TARGET}
    losses = {}
    for name, form in forms.items():
        numbered = mock.patch.multiple(FoldEncoder, _table=numbered_levels(), _means_of_others=no_means)
        with temporary_place() as place:
            with numbered if name == "levels" else contextlib.nullcontext():
                prepare_folds(
                    place / "folds",
                    schema.code(frame),
                    codes,
                    make_folds(codes, task, "3fold", seed=key.seed),
                    [form],
                    task_type=task,
                    seed=key.seed,
                )
            objective = CrossValidationObjective(
                folder=place / "folds", space=space, metric=get_metric("log_loss", task)
            )
            chosen = space.completed({"algorithm": key.variant, f"{key.variant}:encoding": form.value})
            loss = objective(Trial(number=0, configuration=chosen, seed=key.seed)).loss
            losses[name] = np.nan if loss is None else loss
    return [ManyLevelsRun(**asdict(key), levels=losses["levels"], means=losses["means"], commit=commit())]


def _wanted(arguments: argparse.Namespace) -> Iterator[tuple[BenchmarkTable, RunKey]]:
    for table in find_tables(arguments.data, arguments.tables):
        for seed in range(arguments.seeds):
            for learner in LEARNERS:
                yield table, RunKey(table.name, learner, seed, 0.0, arguments.rows)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), metavar="NAME")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=4000, help="most rows to cross-validate on")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--out", type=Path, default=Path(".replay/many_levels.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    make_missing(
        list(_wanted(arguments)),
        run,
        RowFile(arguments.out, ManyLevelsRun),
        n_workers=arguments.jobs,
        console=Console(),
        describe=lambda found: "\n".join(
            f"{one.table}, {one.variant}: {one.levels:.4g}, with means {one.means:.4g}" for one in found
        ),
    )
