"""Fit the ensemble of an earlier run again on newer rows, without a search."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from cashmere.base.arrays import IntArray
from cashmere.base.caller import level_of_caller
from cashmere.base.text import counted
from cashmere.data.column import ColumnKind
from cashmere.data.frames import to_frame
from cashmere.data.inference import infer_schema
from cashmere.data.reading import take_column
from cashmere.data.row_structure import take_structure
from cashmere.data.schema import TableSchema
from cashmere.data.target import TargetCoding
from cashmere.exceptions import DataError, InvalidParameterError, LeftOutWarning, SchemaError
from cashmere.records.budget import Budget
from cashmere.run.finished import FinishedRun
from cashmere.run.front_door import fit_run
from cashmere.run.members_opening import opening_of_members
from cashmere.run.progress import Progress, Silence
from cashmere.run.run_directory import RunDirectory
from cashmere.run.settings import RunSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRun:
    """What another run takes over from an earlier one.

    Attributes
    ----------
    folder : Path
        Its directory.
    settings : RunSettings
        Its settings, with its task.
    schema : TableSchema
        Its columns.
    target : TargetCoding
        Its target.
    has_weights : bool
        Whether rows had weights; False with class weights, which may be all that they had.
    n_members : int
        Number of members of its ensemble.
    n_repeats : int
        Number of further splits on which these were fitted.
    is_refitted : bool
        Whether they were fitted again on all rows.
    """

    folder: Path
    settings: RunSettings
    schema: TableSchema
    target: TargetCoding
    has_weights: bool
    n_members: int
    n_repeats: int
    is_refitted: bool

    @classmethod
    def read(cls, folder: str | Path, own_objects: Mapping[str, Any] | None = None, *, searches: bool = False) -> Self:
        """Read a run, without locking it; errors as for `retrain_run`.

        Parameters
        ----------
        folder, own_objects
            See `retrain_run`.
        searches : bool
            Whether its strategy will be asked.
        """
        with RunDirectory.open(folder, own_objects, searches=searches, same_folds=False, read_only=True) as run:
            task = "classification" if run.target.task_type.is_classification else "regression"
            settings, schema, space = replace(run.settings, task=task), run.schema, run.space.name
            target, has_weights = run.target, run.rows.weight is not None and settings.class_weight is None
            splits = list((run.store.facts().splits or {}).values())
        n_members = len(opening_of_members(folder, space=space).steps)
        return cls(
            folder=Path(folder),
            settings=settings,
            schema=schema,
            target=target,
            has_weights=has_weights,
            n_members=n_members,
            n_repeats=max((fact["count"] - 1 for fact in splits if not fact.get("all_rows")), default=0),
            is_refitted=any(fact.get("all_rows") for fact in splits),
        )

    @property
    def categorical(self) -> list[str]:
        """Columns that the run has read as categories."""
        return [column.name for column in self.schema.columns if column.kind is ColumnKind.CATEGORICAL]

    def features_of(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns of the run, with categories instead of numbers where the run has read categories.

        Parameters
        ----------
        frame : pandas.DataFrame
            The newer table without target and row weights.

        Raises
        ------
        SchemaError
            If a column is missing that the run has used.
        DataError
            If one of its columns holds infinities.
        """
        structure = self.settings.groups or self.settings.time
        own = [column.name for column in self.schema.columns]
        if not self.schema.named and frame.shape[1] == len(own):
            frame = frame.set_axis(own, axis=1)
        missing = [column.name for column in self.schema.used if column.name not in frame]
        missing += [structure] if structure is not None and structure not in frame else []
        if missing:
            raise SchemaError(
                f"The run {self.folder} has learned from {counted(len(missing), 'column')} that the table lacks: "
                f"{', '.join(map(repr, missing))}. Add them, or search again with `cashmere fit`."
            )
        wanted = list(dict.fromkeys(name for name in (structure, *own) if name is not None and name in frame))
        found = frame[wanted] if wanted != list(frame) else frame.copy(deep=False)
        for name in self.categorical:
            if name in found and pd.api.types.is_numeric_dtype(found[name]):
                found[name] = found[name].astype("category")
        return to_frame(found)

    def check_kinds(self, frame: pd.DataFrame) -> None:
        """Check that numbers and dates of the run are still read as such, where there are any values.

        Parameters
        ----------
        frame : pandas.DataFrame
            From `features_of`.

        Raises
        ------
        SchemaError
            If a column of numbers or dates would become categories or text: nothing that is learned from it is then
            what the run has learned.
        """
        is_typed = {
            ColumnKind.NUMERIC: pd.api.types.is_numeric_dtype,
            ColumnKind.DATE: pd.api.types.is_datetime64_any_dtype,
        }
        kinds = {
            column.name: column.kind
            for column in self.schema.used
            if column.kind in is_typed
            and column.name in frame
            and not is_typed[column.kind](frame[column.name])
            and not frame[column.name].isna().all()
        }
        for column in infer_schema(frame[list(kinds)]).columns if kinds else ():
            before = kinds[column.name]
            if column.kind is not before:
                raise SchemaError(
                    f"Column {column.name!r} is {before} in the run {self.folder}, but would be {column.kind} in the "
                    "new one, because of values of another form. Correct them, or search again with `cashmere fit`."
                )

    def unknown_in(self, frame: pd.DataFrame, *, weights: str | None) -> list[str]:
        """Return the names of the columns of a newer table without target that the run does not know.

        Parameters
        ----------
        frame : pandas.DataFrame
            The newer table.
        weights : str or None
            Name of its column of row weights.
        """
        rest = [name for name in frame.columns if name != weights]
        if not self.schema.named and len(rest) == len(self.schema.columns):
            return []
        known = {column.name for column in self.schema.columns} | {self.settings.groups, self.settings.time}
        return [str(name) for name in rest if name not in known]

    def weights_in(self, frame: pd.DataFrame) -> str | None:
        """Return the name of the column of row weights, if the run had one and the table has it."""
        name = self.settings.weight_name
        return name if name is not None and name in frame else None

    def check_target(self, y: Any) -> None:
        """Raise an error if a target has other classes: whoever uses predictions relies on them.

        Raises
        ------
        DataError
            If it has a label that was not in training, or lacks one that was, or is text in a regression.
        """
        codes = self.target.encode(y)
        if not self.target.task_type.is_classification:
            return
        lacking = np.setdiff1d(np.arange(self.target.n_classes), codes)
        if lacking.size:
            raise DataError(
                f"No row has the label {self.target.classes[lacking[0]]!r}, one of the {self.target.n_classes} classes "
                f"of the run {self.folder}. Add rows of it, or search again: `cashmere fit --opening {self.folder}`."
            )


def retrain_run(
    earlier: str | Path | EarlierRun,
    X: Any,
    y: Any,
    *,
    out: str | Path,
    budget: Budget | str | float | None = None,
    sample_weight: Any = None,
    numbers: IntArray | None = None,
    n_workers: int | None = None,
    own_objects: Mapping[str, Any] | None = None,
    executor: Any = None,
    load: bool = True,
    already_spent: float = 0.0,
    progress: Callable[[], Progress] = Silence,
) -> FinishedRun:
    """Fit the ensemble of an earlier run again on newer rows: a new run with its settings and the same members.

    The members keep their hyper-parameters. How columns are encoded, where paths end, weights, calibration and
    thresholds are learned again, so the new run has a cross-fitted score, intervals and a report like any other.

    Parameters
    ----------
    earlier : path or EarlierRun
        The run directory; it is only read, and may still be active.
    X : (n_rows, n_columns) table
        Rows with the columns of the run, in any order, among them the one with groups or time if it had one; columns
        that the run does not know are left out.
    y : (n_rows,) array-like
        Their target.
    out : path
        New directory for the new run.
    budget : Budget, str or float, optional
        By default the members alone. A longer one goes on with a search, see `cashmere.records.budget.Budget.parse`.
    sample_weight : str or (n_rows,) array-like, optional
        Row weights, or the name of their column; by default the column of the earlier run, if the table has it.
    numbers : (n_rows,) array of int, optional
        The number of each row in the table of the user; by default from 0 on.
    n_workers : int, optional
        Number of parallel trials; by default as in `fit`.
    own_objects : dict, optional
        Custom metric, space or resampling of the earlier run, by name; with a budget also the strategy.
    executor, load, already_spent, progress
        See `fit_run`.

    Raises
    ------
    RunDirectoryError
        If the earlier run has no ensemble or lacks a custom object, or the new directory is not empty.
    SchemaError
        If a column is missing, or one of numbers or dates holds something else.
    CorruptStoreError
        If a file is damaged.
    DataError, MetricError
        If the table or the target cannot be used, or the target has other classes; see also `fit_run`.
    InvalidParameterError
        If the budget has fewer trials than there are members.

    Warns
    -----
    LeftOutWarning
        If a column that the earlier run has used has no value now, only one, or only different ones as an identifier;
        if there are members of algorithms that the new run cannot use, such as those that accept no row weights; or if
        rows had weights in the earlier run, and have none now.
    UnknownValuesWarning
        If none of the categories in a column is one of the earlier run.
    """
    known = earlier
    if not isinstance(known, EarlierRun):
        known = EarlierRun.read(known, own_objects, searches=budget is not None)
    settings = known.settings
    known.check_target(y)
    frame = to_frame(X, all_finite=False)
    if sample_weight is None:
        sample_weight = known.weights_in(frame)
    weight_name = sample_weight if isinstance(sample_weight, str) else None
    if isinstance(sample_weight, str):
        frame = frame.copy(deep=False)
        sample_weight = take_column(frame, sample_weight, "weights")
    if known.has_weights and sample_weight is None:
        text = "Left out: row weights, which the earlier run had. To weigh rows, pass sample_weight (--sample-weight)."
        warnings.warn(LeftOutWarning(text), stacklevel=level_of_caller())
    frame = known.features_of(frame)
    known.check_kinds(frame)
    frame, structure = take_structure(frame, groups=settings.groups, time=settings.time, gap=settings.gap)
    limit = Budget(trials=known.n_members) if budget is None else Budget.parse(budget)
    if limit.trials is not None and limit.trials < known.n_members:
        expected = f"a time, or at least {counted(known.n_members, 'trial')}, one for each member"
        raise InvalidParameterError("budget", budget, expected)
    settings = replace(
        settings,
        budget=limit,
        opening=str(known.folder),
        n_workers=n_workers,
        weight_name=weight_name,
    )
    if budget is None and settings.repeats == "auto":
        settings = replace(settings, repeats=known.n_repeats, refit=known.is_refitted or settings.refit)
    given: list[Any] = [y, frame]
    del X, y, frame  # so that the run holds the only references, and can free their memory early
    return fit_run(
        out,
        given.pop(),
        given.pop(),
        settings,
        weight=sample_weight,
        structure=structure,
        numbers=numbers,
        executor=executor,
        named=known.schema.named,
        earlier=known.schema,
        load=load,
        already_spent=already_spent,
        progress=progress,
    )
