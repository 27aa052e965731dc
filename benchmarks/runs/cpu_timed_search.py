"""The search of `fit` under a clock that counts CPU seconds."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.runs.cpu_clock import InThisProcess, cpu_clock
from benchmarks.runs.place import temporary_place
from benchmarks.tables.manifest import BenchmarkTable
from cashmere.base.arrays import IntArray
from cashmere.data.frames import to_frame
from cashmere.data.row_structure import RowStructure
from cashmere.records.budget import Budget, Deadline
from cashmere.records.trial import History
from cashmere.run.executor import trial_limits
from cashmere.run.run_directory import RunDirectory
from cashmere.run.session import Session
from cashmere.run.settings import RunSettings


@dataclass(frozen=True, slots=True)
class RunKey:
    """The settings that distinguish runs.

    Attributes
    ----------
    table, variant : str
        Names of the data and of what is compared.
    seed : int
        Seed of the choice of rows, and of the run.
    budget : float
        CPU seconds of the whole run.
    rows : int
        Largest number of rows to fit on; three quarters of the table if that is fewer.
    """

    table: str
    variant: str
    seed: int
    budget: float
    rows: int


def shuffled_rounds(arguments: argparse.Namespace) -> Iterator[RunKey]:
    """Yield the runs that a command asks for: whole rounds, in each table the variants in random order.

    Parameters
    ----------
    arguments : Namespace
        With `tables`, `variants`, `seeds`, `budget` and `rows`.
    """
    rng = np.random.default_rng(0)
    for seed in range(arguments.seeds):
        for table in arguments.tables:
            for position in rng.permutation(len(arguments.variants)):
                yield RunKey(table, arguments.variants[position], seed, arguments.budget, arguments.rows)


@contextmanager
def cpu_timed_search(
    X: pd.DataFrame, y: pd.Series, settings: RunSettings, *, structure: RowStructure | None = None
) -> Iterator[Session]:
    """Search as `fit` does, with one worker in this process; the clock counts CPU seconds.

    Parameters
    ----------
    X : DataFrame of shape (n_rows, n_columns)
        Rows to fit on.
    y : Series of shape (n_rows,)
        Their targets.
    settings : RunSettings
        Settings with a budget of time; where trials run, and how many at a time, is decided here.
    structure : RowStructure, optional
        Groups or moments of the rows.

    Yields
    ------
    Session
        After the search; its run directory exists until the block ends.
    """
    # Only the first run of a process needs these imports, so they must not count in a comparison.
    import catboost  # noqa: F401
    import lightgbm  # noqa: F401
    import sklearn.ensemble  # noqa: F401
    import xgboost  # noqa: F401

    settings = replace(settings, n_workers=1, isolation="none")
    budget = settings.budget
    assert budget.seconds is not None
    with temporary_place() as place, cpu_clock():
        deadline = Deadline(budget.seconds)
        seconds = trial_limits(settings, budget).seconds
        assert seconds is not None
        executor = InThisProcess(deadline, seconds)
        with RunDirectory.create(place / "run", to_frame(X), y.to_numpy(), settings, structure=structure) as directory:
            session = Session(directory, budget, deadline, executor=executor)
            session.search()
            yield session


class HeldOut(NamedTuple):
    """A search on some rows of a table of classes, and the other rows.

    Attributes
    ----------
    session : Session
        After the search.
    fitted : (n_train,) int array
        Class codes of the rows it learned from.
    X : DataFrame of shape (n_test, n_columns)
        The other rows; those of classes that the search does not know are left out.
    y : (n_test,) int array
        Their class codes.
    """

    session: Session
    fitted: IntArray
    X: pd.DataFrame
    y: IntArray


@contextmanager
def search_for_classes(table: BenchmarkTable, key: RunKey) -> Iterator[HeldOut]:
    """Search for models with a low log loss on some rows of a table, see `cpu_timed_search`.

    Parameters
    ----------
    table : BenchmarkTable
        Of classes.
    key : RunKey
        Its variant is the resampling.

    Yields
    ------
    HeldOut
        The run directory of its session exists until the block ends.
    """
    X, y = table.read()
    train, test = split_rows(y, most_rows=key.rows, stratified=True, seed=key.seed)
    test = test[y.iloc[test].isin(y.iloc[train])]
    settings = RunSettings(
        task="classification",
        metric="log_loss",
        budget=Budget(seconds=key.budget),
        seed=key.seed,
        resampling=key.variant,
    )
    with cpu_timed_search(X.iloc[train], y.iloc[train], settings) as session:
        fitted, judged = (session.run.target.encode(y.iloc[rows].to_numpy()) for rows in (train, test))
        yield HeldOut(session, fitted, X.iloc[test], judged)


def judge_on(session: Session, X: pd.DataFrame, y: pd.Series) -> Callable[[History], float]:
    """Return the function that computes the loss of the current ensemble on other rows.

    Parameters
    ----------
    session : Session
        Whose ensemble is chosen from the history that the function is given.
    X, y : DataFrame, Series
        The other rows.
    """
    directory, model, truth = session.run, session.model, y.to_numpy()

    def judge(history: History) -> float:
        predictor = model.predictor(history)
        if not directory.target.task_type.is_classification:
            return float(directory.metric.loss(truth, predictor.predict(X)))
        return float(directory.metric.loss(directory.target.encode(truth), predictor.predict_proba(X)))

    return judge


def split_rows(y: pd.Series, *, most_rows: int, stratified: bool, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return positions of rows to fit on, three quarters of the table or `most_rows`, and of the others."""
    from sklearn.model_selection import train_test_split

    n_train = min(most_rows, int(0.75 * len(y)))
    train, test = train_test_split(
        np.arange(len(y)), train_size=n_train, random_state=seed, stratify=y if stratified else None
    )
    return train, test
