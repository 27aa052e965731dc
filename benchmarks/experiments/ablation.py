"""Fit with a time budget, with and without what makes runs strong, and compare the losses.

    python -m benchmarks ablation --data DIR --seeds 3

Each variant lacks one part of `everything`, or adds one that is not the default; `before` lacks what came since the
space `classic`. Each run fits on some rows of a table and is judged on the others. It has one worker, and its clock
counts CPU seconds: other programs on the machine hardly matter. Rows are added as runs end; the same command continues
an interrupted one. The trials of `everything` are also judged after other last steps (`LAST_STEPS`). Rungs of rows
matter on long tables only:

    python -m benchmarks ablation --data DIR --seeds 3 --rows 150000 --tables bank-marketing connect-4 \
        --variants everything "without rungs"
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from ConfigSpace import Configuration
from rich.console import Console
from rich.table import Table

from benchmarks.runs.code_version import commit
from benchmarks.runs.cpu_timed_search import RunKey, cpu_timed_search, judge_on, split_rows
from benchmarks.runs.missing_runs import make_missing
from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables
from cashmere.data import rungs
from cashmere.data.task import TaskProfile
from cashmere.records.budget import Budget
from cashmere.run.members import algorithm_of
from cashmere.run.run_directory import RunDirectory
from cashmere.run.session import Session
from cashmere.run.settings import RunSettings
from cashmere.space.component import Subspace
from cashmere.space.named.default import DEFAULT_ALGORITHMS
from cashmere.space.named.features import FEATURES
from cashmere.space.space import Space

TABLES = (
    *("credit-g", "phoneme", "satimage", "churn", "MagicTelescope"),
    *("delta_elevators", "cpu_act", "abalone", "bank-marketing", "eye_movements"),
)
"""Small and medium tables, of all three tasks."""

_TRIALS_WITHOUT_END = 1_000_000
"""A number of trials turns off what only a budget of time alone has: costs, rungs of rows, and repeats on few rows."""

WHOLE = "whole"
LAST_STEPS = (WHOLE, "repeats not used", "one selection", "no calibration", "best trial alone")
"""What becomes of the trials of a run: an ensemble as usual, one without a part of the last step, or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What a run uses.

    Attributes
    ----------
    settings : dict
        Other settings than those of `everything`, by their names in `RunSettings`.
    counts_costs : bool
        Whether the budget is a time alone.
    share : float
        Share of the budget.
    has_rungs : bool
        Whether trials may use a part of the rows of a long table.
    has_first : bool
        Whether the search begins with defaults and variants, not with draws.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    counts_costs: bool = True
    share: float = 1.0
    has_rungs: bool = True
    has_first: bool = True


def _without_features(subspace: Callable[[TaskProfile], Subspace], profile: TaskProfile) -> Subspace:
    whole = subspace(profile)
    return replace(whole, hyperparameters=[hp for hp in whole.hyperparameters if hp.name != FEATURES])


def _variants_without_features(
    variants: Callable[[TaskProfile], Sequence[Mapping[str, Any]]], profile: TaskProfile
) -> list[Mapping[str, Any]]:
    kept = ({name: value for name, value in values.items() if name != FEATURES} for values in variants(profile))
    return [values for values in kept if values]  # a variant that differs in its features alone is the default


def space_without_features(profile: TaskProfile) -> Space:
    """Return the space ``default``, in which no algorithm adds columns to its table."""
    algorithms = tuple(
        replace(
            each,
            subspace=functools.partial(_without_features, each.subspace),
            variants=functools.partial(_variants_without_features, each.variants),
        )
        for each in DEFAULT_ALGORITHMS
    )
    return Space(name="default without features", algorithms=algorithms, profile=profile)


VARIANTS = {
    "everything": Variant(),
    "everything, a third of the time": Variant(share=1 / 3),
    "without paths": Variant(settings={"space": "classic"}),
    "without costs": Variant(counts_costs=False),
    "with fold racing": Variant(settings={"fold_racing": "forgiving"}),
    "without features": Variant(settings={"space": space_without_features}),
    "with the learned opening": Variant(settings={"opening": "learned"}),
    "without repeats": Variant(settings={"repeats": 0}),
    "before": Variant(settings={"space": "classic", "repeats": 0}, counts_costs=False),
    "LightGBM alone": Variant(settings={"include": ("lightgbm",)}),
    "without networks": Variant(settings={"exclude": ("mlp", "realmlp")}),
    "without first configurations": Variant(has_first=False),
    "without rungs": Variant(has_rungs=False),
}

FOR_SHORT_TABLES = tuple(name for name, variant in VARIANTS.items() if variant.has_rungs)


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationRun(RunKey):
    """One run, after one of the last steps.

    Attributes
    ----------
    table, variant, seed, budget, rows
        See `RunKey`.
    last_step : str
        One of `LAST_STEPS`.
    seconds : float
        CPU time of the search.
    choosing : float
        CPU time of the last step; NaN in rows from before it was measured.
    trials, checkpoints, families : int
        Finished trials, positions on their paths, and different algorithms in the ensemble.
    validation, cross_fitted, test, best : float
        Losses of the ensemble: on the rows that chose it, cross-fitted, on test rows; of the best trial.
    commit : str
        Version of the code.
    """

    last_step: str
    seconds: float
    choosing: float
    trials: int
    checkpoints: int
    families: int
    validation: float
    cross_fitted: float
    test: float
    best: float
    commit: str


def run(table: BenchmarkTable, key: RunKey) -> list[AblationRun]:
    """Fit one variant on some rows of a table within CPU seconds, and judge it on the others."""
    variant = VARIANTS[key.variant]
    X, y = table.read()
    train, test = split_rows(y, most_rows=key.rows, stratified=table.is_classification, seed=key.seed)
    settings = RunSettings(
        task="classification" if table.is_classification else "regression",
        budget=Budget(seconds=variant.share * key.budget, trials=None if variant.counts_costs else _TRIALS_WITHOUT_END),
        seed=key.seed,
        **variant.settings,
    )
    clock = time.process_time()
    least = rungs.LEAST_ROWS if variant.has_rungs else sys.maxsize
    with (
        patch.object(rungs, "LEAST_ROWS", least),
        nullcontext() if variant.has_first else patch.object(RunDirectory, "first_configurations", _none),
        cpu_timed_search(X.iloc[train], y.iloc[train], settings) as session,
    ):
        spent = time.process_time() - clock
        history, builder = session.study.history, session.model.builder
        names = {o.trial.number: algorithm_of(o) for o in history}
        judge, best = judge_on(session, X.iloc[test], y.iloc[test]), history.incumbent
        found = []
        for last_step in LAST_STEPS if key.variant == "everything" else (WHOLE,):
            clock = time.process_time()
            cross_fitted = _choose(session, last_step)
            choosing = time.process_time() - clock
            found.append(
                AblationRun(
                    **asdict(key),
                    last_step=last_step,
                    seconds=round(spent, 2),
                    choosing=round(choosing, 3),
                    trials=len(history),
                    checkpoints=sum(len(o.outcome.path.positions) for o in history if o.outcome.path is not None),
                    families=len({names[number] for number in builder.ensemble.members if number in names}),
                    validation=np.nan if builder.loss is None else builder.loss,
                    cross_fitted=np.nan if cross_fitted is None else cross_fitted,
                    test=judge(history),
                    best=np.nan if best is None or best.loss is None else best.loss,
                    commit=commit(),
                )
            )
        return found


def _none(run: RunDirectory, *, in_time: bool) -> dict[Configuration, float]:
    """Return no first configurations, in place of `RunDirectory.first_configurations`."""
    return {}


def _choose(session: Session, last_step: str) -> float | None:
    """Choose the ensemble from all trials in one of `LAST_STEPS`; return its cross-fitted loss, if it has one."""
    model, history = session.model, session.study.history
    builder = model.builder
    if last_step == "best trial alone":
        builder.choose_by({})
        if history.incumbent is not None:
            model.choose(history, among={history.incumbent.trial.number})
        return None
    if last_step == "repeats not used":
        builder.choose_by({})
        model.choose(history)
    else:
        model.choose_finally(history)
    if last_step == "one selection":
        return None
    cross_fitted = model.cross_fit(history)
    if last_step == "no calibration":
        builder.calibration = None
        return None
    return cross_fitted


def summarise(runs: pd.DataFrame, reference: str = "everything") -> pd.DataFrame:
    """Return, for each variant, losses relative to those of one of them, and what was done.

    Parameters
    ----------
    runs : DataFrame
        Rows of `AblationRun`, of one budget and number of rows.
    reference : str
        The variant to compare with.

    Returns
    -------
    DataFrame
        One row per variant and other last step: mean and median over tables (each a mean over the seeds that both have)
        of the change of the test loss in per cent, tables on which it is lower, number of tables, trials and
        checkpoints per minute, mean CPU seconds of the last step.
    """
    change = changes(runs, reference)
    minutes = [VARIANTS[name].share for name in runs["variant"]] * runs["budget"] / 60
    found = change.agg(["mean", "median"]).T.round(2).add_suffix(" %")
    found["tables better"] = (change < 0).sum()
    found["tables"] = change.notna().sum()
    parts = runs.assign(minutes=minutes).groupby(_part(runs))
    sums = parts[["trials", "checkpoints", "minutes"]].sum()
    found["trials/min"] = (sums["trials"] / sums["minutes"]).round(1)
    found["checkpoints/min"] = (sums["checkpoints"] / sums["minutes"]).round(1)
    found["last step, s"] = parts["choosing"].mean().round(2)
    return found.rename_axis("variant").reset_index()


def changes(runs: pd.DataFrame, reference: str, *, loss: str = "test") -> pd.DataFrame:
    """Return by how many per cent losses differ from those of one variant.

    Parameters
    ----------
    runs, reference
        See `summarise`.
    loss : str
        ``"test"``, or another loss of `AblationRun`.

    Returns
    -------
    DataFrame of shape (n_tables, n_variants)
        Of the mean losses over the seeds that both have; NaN where they have none. Other last steps come last.
    """
    losses = runs.assign(part=_part(runs)).pivot(index=["table", "seed"], columns="part", values=loss)
    change = {}
    for name in (*VARIANTS, *LAST_STEPS):
        if name in losses:
            both = losses[[reference]].assign(own=losses[name]).dropna().groupby(level="table").mean()
            change[name] = 100 * (both["own"] / both[reference] - 1)
    return pd.DataFrame(change)


def _part(runs: pd.DataFrame) -> pd.Series:
    """Return what each run is compared by: its variant, or the other last step of `everything`."""
    return runs["variant"].where(runs["last_step"] == WHOLE, runs["last_step"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=FOR_SHORT_TABLES, metavar="VARIANT")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=8000, help="most rows to fit on")
    parser.add_argument("--budget", type=float, default=60.0, help="CPU seconds of a run")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--out", type=Path, default=Path(".replay/ablation.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console, file = Console(), RowFile(arguments.out, AblationRun)
    tables = {table.name: table for table in find_tables(arguments.data, arguments.tables)}
    rows = make_missing(
        [  # whole rounds first, so that an interrupted study is balanced
            (tables[table], RunKey(table, variant, seed, arguments.budget, arguments.rows))
            for seed in range(arguments.seeds)
            for table in arguments.tables
            for variant in arguments.variants
        ],
        run,
        file,
        n_workers=arguments.jobs,
        console=console,
        describe=_described,
    )
    if "everything" not in set(rows["variant"]):
        console.print("Nothing to compare with yet: no run of everything is finished.")
        return
    found = summarise(rows)
    shown = Table(*found.columns, title=f"{arguments.budget:g} CPU seconds: test loss relative to everything")
    for row in found.itertuples(index=False):
        shown.add_row(*map(str, row))
    console.print(shown)


def _described(found: list[AblationRun]) -> str:
    one = found[0]
    return f"{one.table}, {one.variant}, seed {one.seed}: test {one.test:.5g}, {one.trials} trials"
