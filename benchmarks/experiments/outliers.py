"""What clipping outliers brings to the learners that need it, alone and to the first ensemble of the space ``default``.

    python -m benchmarks outliers --data DIR

Each configuration that a search begins with follows its path on each table, without RealMLP; those
of algorithms that clip outliers also without doing so. The ensemble is chosen with the ones or the others on one half
of the validation rows, judged on the other, and the other way round.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.experiments.followed_candidates import (
    FollowedCandidates,
    add_followed_arguments,
    first_without_network,
    follow_once,
)
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import write_anew
from benchmarks.tables.manifest import find_tables
from cashmere.space.component import BuildContext
from cashmere.space.named.classic import OUTLIERS
from cashmere.space.space import Space

TABLES = (
    "autos", "bank-marketing", "cardiotocography", "churn", "cjs", "cmc", "colleges_usnews", "cpu_act", "credit-g",
    "cylinder-bands", "delta_elevators", "eeg", "eucalyptus", "first-order-theorem-proving", "ilpd", "MagicTelescope",
    "page-blocks", "pc4", "phoneme", "qsar-biodeg", "sick", "vehicle", "wine_quality", "yeast",
)  # fmt: skip

CLIPPING = ("extra_trees", "logistic_regression", "ridge", "mlp", "knn", "svm")

_KEPT = "_with_outliers"
"""Ending of the names of algorithms that do not clip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedOutliers:
    """An algorithm on one table, or the ensemble.

    Attributes
    ----------
    table, n_rows
        Which one, and how many rows of it were used.
    algorithm : str
        Name, or ``"ensemble"`` of the first configurations of all algorithms.
    clipped, kept : float
        Loss on rows that were not learned from, with and without clipping: of an algorithm's first default.
    clipped_seconds, kept_seconds : float
        CPU seconds of the paths on all folds; for the ensemble, of all that clip.
    """

    table: str
    n_rows: int
    algorithm: str
    clipped: float
    kept: float
    clipped_seconds: float
    kept_seconds: float


def with_twins(space: Space) -> Space:
    """Return the space with algorithms that keep outliers, next to those that clip them."""
    twins = tuple(
        replace(each, name=each.name + _KEPT, build=functools.partial(_build, each.build))
        for each in space.algorithms
        if each.name in CLIPPING
    )
    return replace(space, algorithms=(*space.algorithms, *twins))


def _build(build: Any, values: Mapping[str, Any], context: BuildContext) -> Any:
    pipeline = build(values, context)
    pipeline.steps = [(name, step) for name, step in pipeline.steps if name != OUTLIERS]
    return pipeline


def judged(followed: FollowedCandidates, table: str) -> Iterator[JudgedOutliers]:
    """Yield the rows of a table."""
    clipped = [key for key in followed.predictions if not key[0].endswith(_KEPT)]
    pairs = {key: twin for key in clipped if (twin := (key[0] + _KEPT, key[1])) in followed.predictions}
    seconds, n_rows = followed.cpu_seconds, len(followed.y)
    for key, twin in pairs.items():
        if key[1] == "first 1":
            yield JudgedOutliers(
                table=table,
                n_rows=n_rows,
                algorithm=key[0],
                clipped=followed.loss(key),
                kept=followed.loss(twin),
                clipped_seconds=round(seconds[key], 3),
                kept_seconds=round(seconds[twin], 3),
            )
    yield JudgedOutliers(
        table=table,
        n_rows=n_rows,
        algorithm="ensemble",
        clipped=followed.ensemble_loss(clipped),
        kept=followed.ensemble_loss([pairs.get(key, key) for key in clipped]),
        clipped_seconds=round(sum(seconds[key] for key in pairs), 3),
        kept_seconds=round(sum(seconds[twin] for twin in pairs.values()), 3),
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_followed_arguments(parser, "outliers", TABLES, rows=12_000, seconds=20.0)


def main(arguments: argparse.Namespace) -> None:
    console = Console()
    found: list[JudgedOutliers] = []
    with until_interrupted(console):
        for table in find_tables(arguments.data, arguments.tables):
            followed = follow_once(
                table,
                arguments.work,
                first_without_network,
                n_rows=arguments.rows,
                most_seconds=arguments.seconds,
                changed=with_twins,
            )
            found += judged(followed, table.name)
    if not found:
        return
    write_anew(arguments.out, found)
    console.print(report(pd.DataFrame([asdict(each) for each in found])))


def report(rows: pd.DataFrame) -> Table:
    """Show how clipping changes the losses: per table, mean and median."""
    rows = rows.assign(change=np.log(rows["clipped"] / rows["kept"]))
    changes = rows.pivot_table(index="table", columns="algorithm", values="change", sort=False)
    changes = changes[[name for name in (*CLIPPING, "ensemble") if name in changes]]
    shown = Table("table", *changes.columns, title="change of the loss by clipping outliers, per cent")
    for table, row in changes.iterrows():
        shown.add_row(str(table), *map(_per_cent, row))
    shown.add_section()
    shown.add_row("mean", *map(_per_cent, changes.mean()))
    shown.add_row("median", *map(_per_cent, changes.median()))
    return shown


def _per_cent(change: float) -> str:
    return "" if np.isnan(change) else f"{100 * np.expm1(change):+.2f}"
