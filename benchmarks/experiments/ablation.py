"""Fit with a time budget, with and without what makes use of time, and compare the losses.

    python -m benchmarks ablation --data DIR --seeds 3

Each variant lacks one part of `everything`; `before` lacks all of them. Each run fits on three quarters of a table and
is judged on the rest. Rows are added as runs end; the same command continues an interrupted one. Run it alone: wall
time is what is compared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.faults.place import commit, temporary_place
from benchmarks.faults.rows import RowFile, read_rows
from benchmarks.runs.interruption import until_interrupted
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables
from cashmere import AutoClassifier, AutoRegressor
from cashmere.evaluation.metrics import default_metric
from cashmere.storage.store import RunStore

TABLES = (
    *("credit-g", "phoneme", "satimage", "churn", "MagicTelescope"),
    *("delta_elevators", "cpu_act", "abalone", "bank-marketing", "eye_movements"),
)
"""Small and middle ones, of all three tasks."""

_TRIALS_WITHOUT_END = 1_000_000
"""A number of trials turns off costs and rungs of rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What a run makes use of.

    Attributes
    ----------
    space : str
        With or without paths.
    counts_costs : bool
        Whether the budget is a time alone: costs, and rungs of rows on large tables.
    fold_racing : str
        See `Study`.
    share : float
        Share of the budget.
    """

    space: str = "default"
    counts_costs: bool = True
    fold_racing: str = "none"
    share: float = 1.0


VARIANTS = {
    "everything": Variant(),
    "everything, a third of the time": Variant(share=1 / 3),
    "without paths": Variant(space="classic"),
    "without costs": Variant(counts_costs=False),
    "with fold racing": Variant(fold_racing="forgiving"),
    "before": Variant(space="classic", counts_costs=False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationRun:
    """One run.

    Attributes
    ----------
    table, variant, seed, budget
        Which one; the budget of `everything`, in seconds.
    seconds : float
        Wall time of the whole call.
    trials, checkpoints, families : int
        Finished trials, positions on their paths, and different algorithms in the ensemble.
    validation, cross_fitted, test, best : float
        Losses of the ensemble: on the rows that chose it, cross-fitted, on test rows; of the best trial.
    commit : str
        Version of the code.
    """

    table: str
    variant: str
    seed: int
    budget: float
    seconds: float
    trials: int
    checkpoints: int
    families: int
    validation: float
    cross_fitted: float
    test: float
    best: float
    commit: str


def run(table: BenchmarkTable, name: str, seed: int, budget: float, workers: int) -> AblationRun:
    """Fit one variant on three quarters of a table, judge it on the rest."""
    from sklearn.model_selection import train_test_split

    variant = VARIANTS[name]
    X, target = table.read()
    y = target.to_numpy()
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.25, random_state=seed, stratify=y if table.is_classification else None
    )
    seconds = f"{variant.share * budget:g}s"
    with temporary_place() as place:
        clock = time.perf_counter()
        model = (AutoClassifier if table.is_classification else AutoRegressor)(
            budget=seconds if variant.counts_costs else f"{seconds},{_TRIALS_WITHOUT_END}trials",
            space=variant.space,
            fold_racing=variant.fold_racing,
            n_workers=workers,
            run_directory=place / "run",
            random_state=seed,
        ).fit(X_train, y_train)
        spent = time.perf_counter() - clock
        metric = default_metric(table.task_type)
        if table.is_classification:
            codes = {label: code for code, label in enumerate(model.classes_)}
            test = metric.loss(np.array([codes[label] for label in y_test]), model.predict_proba(X_test))
        else:
            test = metric.loss(y_test, model.predict(X_test))
        with RunStore(place / "run", read_only=True) as store:
            rows, facts = store.rows(), store.facts()
    names = {row["number"]: row["configuration"]["algorithm"] for row in rows}
    return AblationRun(
        table=table.name,
        variant=name,
        seed=seed,
        budget=budget,
        seconds=round(spent, 2),
        trials=len(rows),
        checkpoints=sum(len(row["path"].positions) for row in rows if row["path"] is not None),
        families=len({names[number] for number in (facts.ensemble or {}).get("members", ()) if number in names}),
        validation=float(facts.ensemble_loss or np.nan),
        cross_fitted=float(facts.cross_fitted_loss or np.nan),
        test=float(test),
        best=min((row["loss"] for row in rows if row["loss"] is not None), default=np.nan),
        commit=commit(),
    )


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """Return, for each variant, losses relative to those of `before`, the share of wins, and what was done.

    Parameters
    ----------
    runs : DataFrame
        Rows of `AblationRun`.

    Returns
    -------
    DataFrame
        One row per variant: median over tables (each a mean over seeds) of the change of test and validation loss
        in per cent, tables on which the test loss is lower, trials and checkpoints per minute, largest overshoot in
        seconds.
    """
    runs = runs.assign(share=[VARIANTS[name].share for name in runs["variant"]])
    runs["minutes"] = runs["share"] * runs["budget"] / 60
    means = runs.groupby(["variant", "table"])[["test", "validation"]].mean()
    if "before" not in means.index:
        return pd.DataFrame()
    change = 100 * (means / means.loc["before"] - 1)
    found = change.groupby("variant").median().round(2).add_suffix(" %")
    found["tables better"] = (change["test"] < 0).groupby("variant").sum()
    found["tables"] = change.groupby("variant").size()
    per_minute = runs.groupby("variant")[["trials", "checkpoints", "minutes"]].sum()
    found["trials/min"] = (per_minute["trials"] / per_minute["minutes"]).round(1)
    found["checkpoints/min"] = (per_minute["checkpoints"] / per_minute["minutes"]).round(1)
    overshoot = runs["seconds"] - runs["share"] * runs["budget"]
    found["largest overshoot (s)"] = overshoot.groupby(runs["variant"]).max().round(2)
    return found.loc[[name for name in VARIANTS if name in found.index]].reset_index()


def _missing(file: RowFile[AblationRun], arguments: argparse.Namespace) -> Iterator[tuple[str, str, int]]:
    done = {(row["table"], row["variant"], int(row["seed"]), float(row["budget"])) for row in file.read()}
    for seed in range(arguments.seeds):  # whole rounds first, so that an interrupted study is balanced
        for table in arguments.tables:
            for variant in arguments.variants:
                if (table, variant, seed, arguments.budget) not in done:
                    yield table, variant, seed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS), metavar="VARIANT")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(".replay/ablation.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console, file = Console(), RowFile(arguments.out, AblationRun)
    tables = {table.name: table for table in find_tables(arguments.data, arguments.tables)}
    with until_interrupted(console):
        for name, variant, seed in _missing(file, arguments):
            row = run(tables[name], variant, seed, arguments.budget, arguments.workers)
            file.add([row])
            console.print(f"{name}, {variant}, seed {seed}: test {row.test:.5g} after {row.seconds:.1f} s")
    rows = read_rows(file.path)
    if not rows:
        return
    found = summarise(_typed(rows))
    if found.empty:
        console.print("Nothing to compare with yet: no run of before is finished.")
        return
    shown = Table("", title=f"{arguments.budget:g} s, relative to before")  # a column per variant fits narrow terminals
    for name in found["variant"]:
        shown.add_column(name, justify="right", overflow="fold")
    for name in found.columns[1:]:
        shown.add_row(name, *map(str, found[name]))
    console.print(shown)


def _typed(rows: list[dict[str, str]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    texts = {"table", "variant", "commit"}
    return frame.astype({name: float for name in frame.columns if name not in texts})
