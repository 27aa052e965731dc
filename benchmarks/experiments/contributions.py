"""What each algorithm brings to the first ensemble of the space ``default``, and what it costs.

    python -m benchmarks contributions --data DIR

Each configuration that a search begins with follows its path on each table, without RealMLP. The
ensemble is chosen on one half of the validation rows and judged on the other, and the other way round: from all of
them, and from those of all algorithms but one.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass

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

TABLES = (
    "pendigits", "eeg", "PhishingWebsites", "pol", "letter", "MagicTelescope", "eye_movements", "bank32nh", "puma32H",
    "nursery", "delta_elevators", "ailerons", "cpu_act", "shuttle", "bank-marketing", "2dplanes", "connect-4",
    "amazon_employee",
)  # fmt: skip
"""Those of the folder with more than 6,700 rows; mushroom, where every loss is 0, is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """An algorithm on one table.

    Attributes
    ----------
    table, n_rows, n_classes
        Which one, how many rows of it were used, and the classes; 1 for regression.
    algorithm : str
        Name.
    loss : float
        Log loss or RMSE of its best first configuration on rows that were not learned from.
    seconds, others_seconds : float
        CPU seconds of the paths on all folds, of its first configurations and of those of the others.
    everyone, without : float
        Loss of the ensemble of all first configurations, and without the algorithm.
    """

    table: str
    n_rows: int
    n_classes: int
    algorithm: str
    loss: float
    seconds: float
    others_seconds: float
    everyone: float
    without: float


def contributions(followed: FollowedCandidates, table: str) -> Iterator[Contribution]:
    """Yield the rows of a table."""
    keys = list(followed.predictions)
    everyone = followed.ensemble_loss(keys)
    y, seconds = followed.y, followed.cpu_seconds
    for algorithm in dict.fromkeys(algorithm for algorithm, _ in keys):
        own = [key for key in keys if key[0] == algorithm]
        others = [key for key in keys if key[0] != algorithm]
        yield Contribution(
            table=table,
            n_rows=len(y),
            n_classes=1 if y.dtype.kind == "f" else len(np.unique(y)),
            algorithm=algorithm,
            loss=min(followed.loss(key) for key in own),
            seconds=round(sum(seconds[key] for key in own), 3),
            others_seconds=round(sum(seconds[key] for key in others), 3),
            everyone=everyone,
            without=followed.ensemble_loss(others),
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_followed_arguments(parser, "contributions", TABLES, rows=20_000, seconds=20.0)


def main(arguments: argparse.Namespace) -> None:
    console = Console()
    found: list[Contribution] = []
    with until_interrupted(console):
        for table in find_tables(arguments.data, arguments.tables):
            followed = follow_once(
                table, arguments.work, first_without_network, n_rows=arguments.rows, most_seconds=arguments.seconds
            )
            found += contributions(followed, table.name)
            write_anew(arguments.out, found)
    if found:
        console.print(report(pd.DataFrame([asdict(each) for each in found])))


def report(rows: pd.DataFrame) -> Table:
    """Show by how much the loss of the first ensemble falls thanks to each algorithm, and its share of the seconds."""
    rows = rows.assign(
        change=100 * (rows["everyone"] / rows["without"] - 1),
        share=100 * rows["seconds"] / (rows["seconds"] + rows["others_seconds"]),
    )
    names = list(dict.fromkeys(rows["algorithm"]))
    shown = Table("table", *names, title="change of the ensemble's loss by an algorithm, per cent (share of the time)")
    for table, part in rows.groupby("table", sort=False):
        cells = {each.algorithm: f"{each.change:+.2f} ({each.share:.0f})" for each in part.itertuples()}
        shown.add_row(str(table), *(cells.get(name, "") for name in names))
    shown.add_section()
    for kind in ("mean", "median"):
        by_algorithm = rows.groupby("algorithm")[["change", "share"]].agg(kind)
        shown.add_row(kind, *(f"{by_algorithm.change[name]:+.2f} ({by_algorithm.share[name]:.0f})" for name in names))
    return shown
