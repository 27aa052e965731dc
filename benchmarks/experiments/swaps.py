"""What another default of an algorithm would do to the first ensemble of the space ``default``.

    python -m benchmarks swaps --data DIR --changes extra_trees:min_samples_leaf=2 knn:p=1

Each configuration that a search begins with follows its path on each table, without RealMLP, and
so does the default of an algorithm with each change. The ensemble is chosen on one half of the validation rows and
judged on the other, and the other way round: as it is, with the changed default instead, and with both.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.experiments.followed_candidates import (
    FollowedCandidates,
    Key,
    Values,
    add_followed_arguments,
    first_without_network,
    follow_once,
)
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import write_anew
from benchmarks.tables.manifest import find_tables
from cashmere.space.space import Space

TABLES = (
    "wine-quality-white", "churn", "page-blocks", "phoneme", "satimage", "eucalyptus", "wine_quality", "abalone",
    "vehicle", "cylinder-bands", "credit-g", "cardiotocography", "colic", "autos", "yeast", "cmc", "qsar-biodeg",
    "pc4", "sick", "delta_elevators", "bank-marketing", "fri_c3_1000_25", "colleges_usnews",
)  # fmt: skip
CHANGES = ("extra_trees:min_samples_leaf=2", "knn:p=1")
LEFT_OUT = "the algorithm's default has no such hyper-parameter on this table, or the trial failed."


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSwap:
    """A changed default on one table.

    Attributes
    ----------
    table, n_rows, change
        Which one; how many rows of the table were used.
    loss, changed_loss : float
        Of the default and of the changed one alone, on rows that were not learned from.
    ensemble, instead, beside : float
        Loss of the ensemble of all first configurations; with the changed default in place of it, and with both.
    seconds, changed_seconds : float
        CPU seconds of the two on all folds.
    """

    table: str
    n_rows: int
    change: str
    loss: float
    changed_loss: float
    ensemble: float
    instead: float
    beside: float
    seconds: float
    changed_seconds: float


def parse_change(change: str) -> tuple[str, str, Any]:
    """Return algorithm, hyper-parameter and value of a change.

    Examples
    --------
    >>> parse_change("knn:p=1"), parse_change("xgboost:encoding=target")
    (('knn', 'p', 1), ('xgboost', 'encoding', 'target'))
    """
    name, separator, text = change.partition("=")
    algorithm, colon, hyperparameter = name.partition(":")
    if not (separator and colon):
        raise SystemExit(f"--changes: expected ALGORITHM:NAME=VALUE, such as {CHANGES[0]}; got {change!r}.")
    for kind in (int, float):
        try:
            return algorithm, hyperparameter, kind(text)
        except ValueError:
            continue
    return algorithm, hyperparameter, text


def offers(changes: Sequence[str], space: Space) -> dict[Key, Values]:
    """Return the first configurations without RealMLP, and the changed defaults of the space."""
    offered = first_without_network(space)
    for change in changes:
        algorithm, name, value = parse_change(change)
        default = offered.get((algorithm, "first 1"), {})
        if f"{algorithm}:{name}" in default:
            offered[algorithm, change] = {**default, f"{algorithm}:{name}": value}
    return offered


def judged(followed: FollowedCandidates, table: str) -> Iterator[JudgedSwap]:
    """Yield the rows of a table."""
    first = [key for key in followed.predictions if key[1].startswith("first ")]
    ensemble, seconds = followed.ensemble_loss(first), followed.cpu_seconds
    for key in followed.predictions:
        if key in first:
            continue
        default = (key[0], "first 1")
        yield JudgedSwap(
            table=table,
            n_rows=len(followed.y),
            change=key[1],
            loss=followed.loss(default),
            changed_loss=followed.loss(key),
            ensemble=ensemble,
            instead=followed.ensemble_loss([key if each == default else each for each in first]),
            beside=followed.ensemble_loss([*first, key]),
            seconds=round(seconds[default], 3),
            changed_seconds=round(seconds[key], 3),
        )


def absent(changes: Sequence[str], rows: Sequence[JudgedSwap]) -> list[str]:
    """Return the changes without a row."""
    return [change for change in changes if change not in {row.change for row in rows}]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_followed_arguments(parser, "swaps", TABLES, rows=3_000, seconds=20.0)
    parser.add_argument("--changes", nargs="+", default=list(CHANGES), metavar="ALGORITHM:NAME=VALUE")


def main(arguments: argparse.Namespace) -> None:
    console = Console()
    for change in arguments.changes:
        parse_change(change)
    found: list[JudgedSwap] = []
    with until_interrupted(console):
        for table in find_tables(arguments.data, arguments.tables):
            followed = follow_once(
                table,
                arguments.work,
                functools.partial(offers, arguments.changes),
                n_rows=arguments.rows,
                most_seconds=arguments.seconds,
            )
            rows = list(judged(followed, table.name))
            for change in absent(arguments.changes, rows):
                console.print(f"{table.name}: {change} is left out; {LEFT_OUT}", markup=False, highlight=False)
            found += rows
            write_anew(arguments.out, found)
    if found:
        console.print(report(pd.DataFrame([asdict(each) for each in found])))


def report(rows: pd.DataFrame) -> Table:
    """Show how much each change would change the losses, in per cent: per table, mean and median."""
    changes = list(dict.fromkeys(rows["change"]))
    rows = rows.assign(
        instead_change=np.log(rows["instead"] / rows["ensemble"]),
        beside_change=np.log(rows["beside"] / rows["ensemble"]),
    )
    both = ["instead_change", "beside_change"]
    by_table = rows.pivot_table(index="table", columns="change", values=both, sort=False)
    columns = [(kind, change) for change in changes for kind in both]
    shown = Table("table", *(f"{change}, {kind.removesuffix('_change')}" for kind, change in columns))
    shown.title = "change of the loss of the first ensemble, per cent"
    for table, row in by_table[columns].iterrows():
        shown.add_row(str(table), *map(_per_cent, row))
    shown.add_section()
    shown.add_row("mean", *map(_per_cent, by_table[columns].mean()))
    shown.add_row("median", *map(_per_cent, by_table[columns].median()))
    return shown


def _per_cent(change: float) -> str:
    return "" if np.isnan(change) else f"{100 * np.expm1(change):+.2f}"
