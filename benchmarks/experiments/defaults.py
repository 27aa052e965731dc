"""Compare what `fit` could do by default: strategies and kinds of resampling, under the same budget of CPU time.

    python -m benchmarks defaults --data DIR --variants bo optdivbo ensemble_gain random

A variant is a strategy, and behind a slash the resampling if it is not ``auto``: ``optdivbo/3fold``. The first is the
one that the others are compared with. Each run fits on some rows of a table and is judged on others, of which there are
many where the table has them. It is a whole run of `fit` with one worker, whose clock counts CPU seconds: other
programs on the machine hardly matter, and two runs at a time do no harm. Its ensemble is also chosen and judged as it
would have been after a half, a quarter and an eighth of the time. Rows are added as runs end; the same command
continues an interrupted one.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.runs.code_version import commit
from benchmarks.runs.cpu_timed_search import RunKey, cpu_timed_search, judge_on, shuffled_rounds, split_rows
from benchmarks.runs.missing_runs import make_missing
from benchmarks.runs.row_file import RowFile
from benchmarks.statistics.variants import compare_variants, compared_cells
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables
from cashmere.records.budget import Budget
from cashmere.records.trial import History
from cashmere.run.members import algorithm_of
from cashmere.run.session import Session
from cashmere.run.settings import RunSettings

TABLES = (
    *("colic", "credit-g", "eucalyptus", "cmc", "phoneme", "satimage", "bank-marketing", "MagicTelescope"),
    *("eye_movements", "wine_quality", "delta_elevators", "puma32H"),
)
"""Tables of different origins, and of all three tasks."""

SHARES = (0.125, 0.25, 0.5, 1.0)
"""Shares of the budget after which ensembles are judged, ascending."""

_MOST_TEST_ROWS = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedMoment(RunKey):
    """A run at one moment.

    Attributes
    ----------
    table, variant, seed, budget, rows
        See `RunKey`.
    share : float
        Share of the budget spent.
    resampling : str
        What `auto` chose, if it was requested.
    trials, families, members : int
        Finished trials; different algorithms, and trials, in the ensemble.
    most_tried : float
        Share of trials of the algorithm with the most trials.
    deciding : float
        CPU seconds for decisions in the whole run.
    validation, cross_fitted, test, best : float
        Losses of the ensemble: on the rows that chose it, cross-fitted, on test rows; of the best trial.
    commit : str
        Version of the code.
    """

    share: float
    resampling: str
    trials: int
    families: int
    members: int
    most_tried: float
    deciding: float
    validation: float
    cross_fitted: float
    test: float
    best: float
    commit: str


def run(table: BenchmarkTable, key: RunKey) -> list[JudgedMoment]:
    """Fit on some rows of a table within CPU seconds, and judge the ensembles on others."""
    X, y = table.read()
    train, test = split_rows(y, most_rows=key.rows, stratified=table.is_classification, seed=key.seed)
    test = test[:_MOST_TEST_ROWS]
    strategy, _, resampling = key.variant.partition("/")
    settings = RunSettings(
        task="classification" if table.is_classification else "regression",
        strategy=strategy,
        resampling=resampling or "auto",
        budget=Budget(seconds=key.budget),
        seed=key.seed,
    )
    with cpu_timed_search(X.iloc[train], y.iloc[train], settings) as session:
        judge = judge_on(session, X.iloc[test], y.iloc[test])
        return [_moment(key, share, session, judge) for share in SHARES]


def _moment(key: RunKey, share: float, session: Session, judge: Callable[[History], float]) -> JudgedMoment:
    """Choose the ensemble from what was known at a moment, as the run would have ended then."""
    whole, builder = session.study.history, session.model.builder
    # At the end, trials that ended late count as well: they were cut short, or have no path that could be.
    known = [o for o in whole if o.finished_at <= share * key.budget or share == 1]
    history = replace(whole, observations=tuple(known))
    names = {o.trial.number: algorithm_of(o) for o in known}
    if history.successes:
        if share == 1:
            session.model.choose_finally(history)  # including repeats on other splits
        else:
            session.model.choose(history)
        cross_fitted = session.model.cross_fit(history)
    else:
        cross_fitted = None
    counts = Counter(names.values())
    best = history.incumbent
    return JudgedMoment(
        **asdict(key),
        share=share,
        resampling=str(session.run.settings.resampling),
        trials=len(known),
        families=len({names[number] for number in builder.ensemble.members if number in names}),
        members=len(builder.ensemble.members),
        most_tried=round(max(counts.values(), default=0) / max(1, len(known)), 3),
        deciding=round(sum(session.study.suggest_seconds.values()), 3),
        validation=np.nan if builder.loss is None or not known else builder.loss,
        cross_fitted=np.nan if cross_fitted is None else cross_fitted,
        test=judge(history) if history.successes else np.nan,
        best=np.nan if best is None or best.loss is None else best.loss,
        commit=commit(),
    )


def summarise(moments: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Compare the variants at each share of the budget, with means of what was tried; see `compare_variants`.

    Parameters
    ----------
    moments : DataFrame
        Rows of `JudgedMoment`, of one budget and number of rows.
    reference : str
        The variant to compare with.
    """
    averaged = ("trials", "families", "members", "most_tried", "deciding")
    return compare_variants(moments, reference, per=("share",), averaged=averaged)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--variants", nargs="+", default=["bo", "optdivbo", "ensemble_gain", "random"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=2000, help="most rows to fit on")
    parser.add_argument("--budget", type=float, default=60.0, help="CPU seconds of a run")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--out", type=Path, default=Path(".replay/defaults.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console, file = Console(), RowFile(arguments.out, JudgedMoment)
    tables = {table.name: table for table in find_tables(arguments.data, arguments.tables)}
    rows = make_missing(
        [(tables[key.table], key) for key in shuffled_rounds(arguments)],
        run,
        file,
        n_workers=arguments.jobs,
        console=console,
        describe=_described,
    )
    if not rows.empty:
        console.print(_shown(summarise(rows, arguments.variants[0]), arguments.variants[0]))


def _shown(found: pd.DataFrame, reference: str) -> Table:
    title = f"test loss relative to {reference}; means of trials, families, most tried and seconds for decisions"
    shown = Table("variant", "share", "ratio", "90 %", "better", "trials", "fam.", "most", "dec.", title=title)
    for row in found.to_dict("records"):
        shown.add_row(
            str(row["variant"]),
            f"{row['share']:g}",
            *compared_cells(row, reference),
            *(f"{row[name]:.3g}" for name in ("trials", "families", "most_tried", "deciding")),
        )
    return shown


def _described(found: list[JudgedMoment]) -> str:
    end = found[-1]
    return (
        f"{end.table}, {end.variant}, seed {end.seed}: test {end.test:.5g}, {end.trials} trials, {end.families} "
        f"families, {end.deciding:.1f} s for decisions"
    )
