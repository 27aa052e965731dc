"""What RealMLP brings to the first ensemble of the space ``default``, and what it costs.

    python -m benchmarks networks --data DIR

Each configuration that a search begins with follows its path on each table, RealMLP among them. Ensembles are chosen
from these configurations without RealMLP, and from all of them: on one half of the validation rows, judged on the
other, and the other way round. Which variant of RealMLP is taken, the tables of other origins decide.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.experiments.followed_candidates import (
    NETWORK,
    FollowedCandidates,
    Key,
    Values,
    add_followed_arguments,
    first_without_network,
    follow_once,
)
from benchmarks.experiments.learners import by_origin
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import write_anew
from benchmarks.tables.manifest import find_tables
from cashmere.costs.predicted import OVERHEAD_SECONDS
from cashmere.costs.relative import log_relative_costs
from cashmere.space.space import Space

TABLES = ("credit-g", "vehicle", "cmc", "phoneme", "churn", "wine_quality", "abalone", "eye_movements")


VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "narrow": {"width": 128},
}
"""The values that differ from the default of the space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedNetwork:
    """One variant of RealMLP on one table.

    Attributes
    ----------
    table, origin, n_rows, variant
        Which one, and how many rows of the table were used.
    loss, lightgbm, mlp : float
        Of the out-of-fold predictions of the network, and of the first configurations of LightGBM and the MLP.
    cpu_seconds, lightgbm_seconds, mlp_seconds, pool_seconds : float
        Of the paths on all folds: of these, and of all first configurations without the network.
    without, beside : float
        Loss of the ensemble of the first configurations without the network, and with it.
    """

    table: str
    origin: str
    n_rows: int
    variant: str
    loss: float
    lightgbm: float
    mlp: float
    cpu_seconds: float
    lightgbm_seconds: float
    mlp_seconds: float
    pool_seconds: float
    without: float
    beside: float


def offers(space: Space) -> dict[Key, Values]:
    """Return the first configurations of a space, of which the network's are replaced by its variants."""
    offered = first_without_network(space)
    for variant, values in VARIANTS.items():
        offered[NETWORK, variant] = {"algorithm": NETWORK, **{f"{NETWORK}:{k}": v for k, v in values.items()}}
    return offered


def judged(followed: FollowedCandidates, table: str, origin: str) -> list[JudgedNetwork]:
    """Return the rows of a table."""
    pool = [key for key in followed.predictions if key[0] != NETWORK]
    without = followed.ensemble_loss(pool)
    losses = {key: followed.loss(key) for key in followed.predictions}
    seconds = followed.cpu_seconds
    boosted, plain = ("lightgbm", "first 1"), ("mlp", "first 1")
    return [
        JudgedNetwork(
            table=table,
            origin=origin,
            n_rows=len(followed.y),
            variant=variant,
            loss=losses[name, variant],
            lightgbm=losses[boosted],
            mlp=losses[plain],
            cpu_seconds=round(seconds[name, variant], 3),
            lightgbm_seconds=round(seconds[boosted], 3),
            mlp_seconds=round(seconds[plain], 3),
            pool_seconds=round(sum(seconds[key] for key in pool), 3),
            without=without,
            beside=followed.ensemble_loss([*pool, (name, variant)]),
        )
        for name, variant in followed.predictions
        if name == NETWORK
    ]


def relative_cost(followed: FollowedCandidates) -> float:
    """Return the logarithm of the cost of the network's default, on the scale of the table of the package."""
    known = log_relative_costs("default")
    seconds = {key: np.log(value + OVERHEAD_SECONDS) for key, value in followed.cpu_seconds.items()}
    scale = [value - known[name] for (name, number), value in seconds.items() if number == "first 1"]
    return float(seconds[NETWORK, "default"] - np.mean(scale))


def chosen_by_others(rows: pd.DataFrame) -> dict[str, str]:
    """Return for each table the variant whose ensembles are best on the tables of other origins."""
    ratios = pd.Series(np.log(rows["beside"] / rows["without"]), rows.index)
    chosen: dict[str, str] = {}
    for tables in by_origin(rows).values():
        others = ~rows["table"].isin(tables)
        best = ratios[others].groupby(rows.loc[others, "variant"], sort=False).mean().idxmin()
        chosen |= dict.fromkeys(tables, str(best))
    return chosen


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_followed_arguments(parser, "networks", TABLES, rows=4000)


def main(arguments: argparse.Namespace) -> None:
    console = Console()
    found: list[JudgedNetwork] = []
    costs: list[float] = []
    with until_interrupted(console):
        for table in find_tables(arguments.data, arguments.tables):
            followed = follow_once(table, arguments.work, offers, n_rows=arguments.rows)
            found += judged(followed, table.name, table.origin)
            costs.append(relative_cost(followed))
    if not found:
        return
    write_anew(arguments.out, found)
    rows = pd.DataFrame([asdict(each) for each in found])
    _show(console, found, rows)
    console.print(f"relative cost: {np.exp(np.mean(costs)):.1f}, by table {np.exp(costs).round(1).tolist()}")


def _show(console: Console, found: Sequence[JudgedNetwork], rows: pd.DataFrame) -> None:
    shown = Table("table", "variant", "loss", "to MLP", "to LightGBM", "ensemble", "CPU s", "MLP", "pool",
                  title="RealMLP: change of the loss, per cent")  # fmt: skip
    for row in found:
        by = (row.loss / row.mlp, row.loss / row.lightgbm, row.beside / row.without)
        seconds = (row.cpu_seconds, row.mlp_seconds, row.pool_seconds)
        shown.add_row(
            row.table, row.variant, f"{row.loss:.4f}", *map(_per_cent, by), *(f"{each:.1f}" for each in seconds)
        )
    console.print(shown)
    ratios = {(row.variant, row.table): row.beside / row.without for row in found}
    tables = list(dict.fromkeys(rows["table"]))
    rules: dict[str, Mapping[str, str]] = {variant: dict.fromkeys(tables, variant) for variant in VARIANTS}
    if rows["origin"].nunique() > 1:
        rules["chosen by other origins"] = chosen_by_others(rows)
    for rule, chosen in rules.items():
        changes = np.array([ratios[chosen[table], table] for table in tables])
        mean, median = float(np.exp(np.log(changes).mean())), float(np.median(changes))
        console.print(f"{rule}: mean {_per_cent(mean)}, median {_per_cent(median)}, lower on {(changes < 1).sum()}")


def _per_cent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.2f}"
