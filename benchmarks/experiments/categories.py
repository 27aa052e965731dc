"""What CatBoost's own treatment of categories brings, alone and to the first ensemble of the space ``default``.

    python -m benchmarks categories --data DIR

Each configuration that a search begins with follows its path on each table, without RealMLP.
CatBoost takes part with its own categories, and with one column per level, codes where there are many: the ensemble is
chosen with the second alone, with the first alone, and with both, on one half of the validation rows, judged on the
other, and the other way round.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.experiments.followed_candidates import (
    FollowedCandidates,
    Key,
    Values,
    add_followed_arguments,
    first_candidates,
    follow_once,
)
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import write_anew
from benchmarks.tables.manifest import find_tables
from cashmere.space.space import Space

TABLES = (
    "amazon_employee", "autos", "bank-marketing", "churn", "cmc", "colic", "credit-g", "cylinder-bands", "eucalyptus",
    "flags", "profb",
)  # fmt: skip

OWN: Key = ("catboost", "first 1")
LEVELS: Key = ("catboost", "one column per level")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCategories:
    """CatBoost on one table.

    Attributes
    ----------
    table, n_rows
        Which one, and how many rows of it were used.
    levels_loss, own_loss : float
        Of the out-of-fold predictions of CatBoost with one column per level, and with its own categories.
    levels_seconds, own_seconds : float
        CPU seconds of these paths on all folds.
    levels_pool, own_pool, both_pool : float
        Loss of the ensemble of the other first configurations and the one, the other, and both.
    """

    table: str
    n_rows: int
    levels_loss: float
    own_loss: float
    levels_seconds: float
    own_seconds: float
    levels_pool: float
    own_pool: float
    both_pool: float


def offers(space: Space) -> dict[Key, Values]:
    """Return the first configurations of a space, and CatBoost with one column per level."""
    first = first_candidates(space)
    offered = {key: values for key, values in first.items() if key[0] not in ("realmlp", "catboost") or key == OWN}
    return offered | {LEVELS: {"algorithm": "catboost", "catboost:encoding": "onehot"}}


def judged(followed: FollowedCandidates, table: str) -> JudgedCategories:
    """Return the row of a table."""
    losses = {key: followed.loss(key) for key in followed.predictions}
    others = [key for key in followed.predictions if key not in (OWN, LEVELS)]
    return JudgedCategories(
        table=table,
        n_rows=len(followed.y),
        levels_loss=losses[LEVELS],
        own_loss=losses[OWN],
        levels_seconds=round(followed.cpu_seconds[LEVELS], 3),
        own_seconds=round(followed.cpu_seconds[OWN], 3),
        levels_pool=followed.ensemble_loss([*others, LEVELS]),
        own_pool=followed.ensemble_loss([*others, OWN]),
        both_pool=followed.ensemble_loss([*others, LEVELS, OWN]),
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_followed_arguments(parser, "categories", TABLES, rows=4000)


def main(arguments: argparse.Namespace) -> None:
    console = Console()
    found: list[JudgedCategories] = []
    with until_interrupted(console):
        for table in find_tables(arguments.data, arguments.tables):
            followed = follow_once(table, arguments.work, offers, n_rows=arguments.rows)
            found.append(judged(followed, table.name))
    if not found:
        return
    write_anew(arguments.out, found)
    _show(console, pd.DataFrame([asdict(each) for each in found]))


def _show(console: Console, rows: pd.DataFrame) -> None:
    changes = pd.DataFrame(
        {
            "alone": rows["own_loss"] / rows["levels_loss"],
            "ensemble, own": rows["own_pool"] / rows["levels_pool"],
            "ensemble, both": rows["both_pool"] / rows["levels_pool"],
            "CPU seconds": rows["own_seconds"] / rows["levels_seconds"],
        }
    )
    shown = Table("table", *changes.columns, title="CatBoost's own categories instead of one column per level")
    for table, row in zip(rows["table"], changes.to_numpy(), strict=True):
        shown.add_row(table, *(_per_cent(ratio) for ratio in row[:-1]), f"x {row[-1]:.1f}")
    mean, median = np.exp(np.log(changes).mean()), changes.median()
    for name, row in (("mean", mean.to_numpy()), ("median", median.to_numpy())):
        shown.add_row(name, *(_per_cent(ratio) for ratio in row[:-1]), f"x {row[-1]:.1f}")
    console.print(shown)


def _per_cent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.2f} %"
