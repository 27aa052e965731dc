"""Choose what a search of the space ``default`` begins with, and judge it on tables of other origins.

    python -m benchmarks opening --data DIR

The same configurations are followed on all tables, once. Then, without the tables of one origin at a time, an opening
is chosen from them, and the ensembles that a search of a few seconds would have on these tables are compared: begun
with the opening, with the defaults and variants (cheapest first), with an opening that need not begin with these, or
with random configurations. Each goes on with draws in random order, and once with any of the others. With ``--write``
the opening that all tables choose replaces that of the package.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.experiments.followed_candidates import Key, Values
from benchmarks.experiments.opening.candidates import LINEAR, opening_candidates
from benchmarks.experiments.opening.judgement import (
    MOST_STEPS,
    ReplayedTable,
    defaults_and_variants,
    judge,
)
from benchmarks.experiments.opening.recording import record
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import write_anew
from benchmarks.tables.manifest import add_data_argument, find_tables
from cashmere.base.versions import versions
from cashmere.metalearning.opening import SHIPPED, Opening, OpeningStep
from cashmere.pretraining.opening_choice import ChosenCandidate, choose_opening
from cashmere.space.space import ALGORITHM

TABLES = (
    "credit-g", "colic", "vehicle", "qsar-biodeg", "eucalyptus", "cmc", "phoneme", "wine_quality", "churn",
    "amazon_employee", "delta_elevators", "eye_movements", "abalone", "cylinder-bands", "bank-marketing",
    "liver_disorders", "cardiotocography", "sick", "MagicTelescope", "satimage",
)  # fmt: skip

REFERENCE = "defaults"
"""The order that others are compared with."""

_N_BOOTSTRAPS = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--rows", type=int, default=4000, help="of each table, at most")
    parser.add_argument("--candidates", type=int, default=170, help="how many are followed on each table, at most")
    parser.add_argument("--steps", type=int, default=MOST_STEPS, help="largest number after the defaults")
    parser.add_argument("--work", type=Path, default=Path(".replay/opening"), help="predictions; followed once")
    parser.add_argument("--out", type=Path, default=Path(".replay/opening.csv"), help="rows; written anew")
    parser.add_argument("--write", action="store_true", help="replace the opening of the package")


def main(arguments: argparse.Namespace) -> None:
    console = Console()
    candidates = opening_candidates(arguments.work)
    with until_interrupted(console):
        record(
            find_tables(arguments.data, arguments.tables),
            arguments.work,
            n_rows=arguments.rows,
            n_candidates=arguments.candidates,
            report=console.print,
        )
    followed = [name for name in arguments.tables if (arguments.work / f"{name}.npz").exists()]
    tables = [
        ReplayedTable.read(table, candidates, arguments.work, arguments.rows)
        for table in find_tables(arguments.data, followed)
    ]
    if len({table.table.origin for table in tables}) < 2:
        return
    rows = judge(tables, list(candidates), console.print, most_steps=arguments.steps)
    write_anew(arguments.out, rows)
    show(console, pd.DataFrame([asdict(row) for row in rows]))
    if arguments.write:
        opening = whole_opening(tables, candidates, most_steps=arguments.steps)
        opening.save(SHIPPED / f"{opening.space}.json")
        console.print(f"{len(opening.steps)} steps in {SHIPPED / opening.space}.json")


def whole_opening(tables: Sequence[ReplayedTable], candidates: Mapping[Key, Values], *, most_steps: int) -> Opening:
    """Return the opening that all tables choose."""
    values = list(candidates.values())
    first = defaults_and_variants(list(candidates))
    sources = [table.source for table in tables]
    chosen = choose_opening(sources, range(len(values)), first=first, most_steps=most_steps)
    tried = {n for source in sources for n in source.seconds}
    return Opening(
        space="default",
        first_gain=round(chosen[0].gain, 6),
        steps=tuple(
            step for each in chosen if each.candidate not in first for step in _steps(values[each.candidate], each)
        ),
        sources=tuple(
            {
                "name": table.table.name,
                "origin": table.table.origin,
                "task": str(table.space.profile.task_type),
                "n_rows": len(table.source.y),
                "n_columns": table.space.profile.n_columns,
                "n_classes": table.space.profile.n_classes,
            }
            for table in tables
        ),
        notes={"command": "python -m benchmarks opening --write", "candidates": len(tried), "versions": versions()},
    )


def _steps(values: Values, chosen: ChosenCandidate) -> Iterable[OpeningStep]:
    """Yield a step, and for a linear model that of the other kind of target."""
    names = sorted(LINEAR) if values[ALGORITHM] in LINEAR else [values[ALGORITHM]]
    for name in names:
        own = {f"{name}:{key.partition(':')[2]}": value for key, value in values.items() if key != ALGORITHM}
        gain = max(1e-6, round(chosen.gain, 6))
        yield OpeningStep(values={ALGORITHM: name, **own}, gain=gain, seconds=round(chosen.seconds, 4))


def compared(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the ratio of losses to those of the defaults, by order and seconds.

    Returns
    -------
    DataFrame
        Columns ``order``, ``seconds``, ``ratio`` (geometric mean; tables of one origin count as one), ``low``, ``high``
        (95 % interval by bootstrap over origins), ``better``, ``worse`` (tables).
    """
    losses = rows.pivot_table(index=["origin", "table", "seconds"], columns="order", values="loss", sort=False)
    logs = np.log(losses.div(losses[REFERENCE], axis=0))
    rng = np.random.default_rng(0)
    found = []
    for name in (name for name in logs if name != REFERENCE):
        for seconds, part in logs[name].groupby(level="seconds"):
            by_origin = part.groupby(level="origin").mean().to_numpy()
            draws = rng.choice(by_origin, size=(_N_BOOTSTRAPS, len(by_origin))).mean(axis=1)
            low, high = np.quantile(draws, [0.025, 0.975])
            found.append(
                {
                    "order": name, "seconds": seconds, "ratio": float(np.exp(by_origin.mean())),
                    "low": float(np.exp(low)), "high": float(np.exp(high)),
                    "better": int((part < -1e-9).sum()), "worse": int((part > 1e-9).sum()),
                }
            )  # fmt: skip
    return pd.DataFrame(found)


def show(console: Console, rows: pd.DataFrame) -> None:
    shown = Table(
        "order", "CPU seconds", "ratio", "95 %", "better", "worse",
        title=f"loss of the ensemble relative to that of {REFERENCE}, on tables of other origins",
    )  # fmt: skip
    for row in compared(rows).to_dict("records"):
        interval = f"{row['low']:.4f} .. {row['high']:.4f}"
        shown.add_row(
            row["order"], f"{row['seconds']:g}", f"{row['ratio']:.4f}", interval, str(row["better"]), str(row["worse"])
        )
    console.print(shown)
