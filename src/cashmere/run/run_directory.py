"""An open run directory: its table, and its settings applied to this table."""

from __future__ import annotations

import contextlib
import io
import time
import traceback
import uuid
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from ConfigSpace import Configuration

from cashmere.base.arrays import AnyArray, Float64, IntArray
from cashmere.base.caller import level_of_caller
from cashmere.base.cores import available_cores
from cashmere.base.files import failures_as, read_file, reason, write_atomically
from cashmere.base.text import counted, first_of
from cashmere.base.versions import versions, warn_of_versions
from cashmere.data.class_weights import weights_of_rows
from cashmere.data.fold import fold_digest, validation_rows
from cashmere.data.kind_hints import kind_hint
from cashmere.data.monotone import directions
from cashmere.data.parquet import read_parquet
from cashmere.data.placeholders import placeholder_hint
from cashmere.data.resampling import choose_resampling, make_folds
from cashmere.data.row_structure import RowStructure, alike_groups_hint, is_in_time
from cashmere.data.rows import CanonicalRows, canonical_rows, check_weight
from cashmere.data.rungs import rungs
from cashmere.data.schema import CodedTable, TableSchema
from cashmere.data.schema_changes import lost_columns_hint, recoded_columns_hint
from cashmere.data.structure_hints import structure_hint
from cashmere.data.target import TargetCoding, one_class_error
from cashmere.data.target_hints import (
    class_order_hint,
    counts_hint,
    frequent_class_hint,
    missing_outcome_hint,
    target_hint,
    values_hint,
    zeros_hint,
)
from cashmere.data.task import TaskProfile, TaskType
from cashmere.ensembles.pool import ValidationPool
from cashmere.evaluation.metrics import (
    Metric,
    check_targets,
    default_metric,
    get_metric,
    is_for_values,
    learns_logarithms,
)
from cashmere.exceptions import (
    CashmereError,
    ColumnKindWarning,
    CorruptStoreError,
    DeployableWarning,
    IncompatibleParametersError,
    InvalidParameterError,
    LeftOutWarning,
    LookaheadError,
    MissingDependencyError,
    RowStructureWarning,
    RunDirectoryError,
    TargetWarning,
    UnknownNameError,
    UnknownValuesWarning,
)
from cashmere.export.inputs import check_columns_convert
from cashmere.inspection.leak_hint import leak_hint
from cashmere.metalearning.meta_features import features_from_json, features_to_json, meta_features
from cashmere.metalearning.opening import Opening, shipped_opening
from cashmere.protocols import MetricCheck, Strategy, TableAware
from cashmere.records.budget import Budget
from cashmere.records.space_names import present_space_name
from cashmere.run.chosen_opening import NO_OPENING, SHIPPED_OPENING, check_opening, left_out_of, own_opening
from cashmere.run.goal import Goal, Spent
from cashmere.run.haste import haste
from cashmere.run.own_objects import checked_objects
from cashmere.run.settings import RunSettings
from cashmere.space.convertible import convertible
from cashmere.space.named.registry import make_space
from cashmere.space.space import ALGORITHM, NOT_MONOTONE, NOT_WEIGHTED, Space
from cashmere.storage.completeness import check_complete
from cashmere.storage.directory import (
    RESTORE,
    RUN_VERSION,
    TrainingRows,
    check_new,
    read_run_json,
    read_schema,
    remove_run,
    write_json,
)
from cashmere.storage.store import RunStore
from cashmere.strategies import make_strategy

_SAMPLE_ROWS = 1000
"""Number of original rows to keep, which is also the largest batch whose latency is measured."""

_MOST_WORKERS, _MOST_WORKERS_PER_CORE = 32, 8
"""How many workers a run directory from elsewhere may request: on any machine, and per core."""

MOST_REPEATED_ROWS = 1000
"""By default, members of ensembles are fitted again on other splits of at most so many training rows
(docs/benchmarks.md#spare-time), and on all rows if there are more (docs/benchmarks.md#fits-on-all-rows)."""

_NAMED = 5
"""Most columns named in an error."""

_ANOTHER = "Start a new run in another directory."

_SAMPLE_BYTES = 2**28
"""Largest sample: 1,000 rows of 10,000 columns of short texts."""


class RunDirectory:
    """A run directory, open in one process: made by `create` from a table, or by `open` from the files on disk.

    Names in the settings become objects here, for this table. Use it as a context manager: it locks the directory,
    unless it is opened to be read only.

    Parameters
    ----------
    folder : Path
        Path of the directory.
    settings : RunSettings
        Settings of the run.
    schema : TableSchema
        The columns.
    target : TargetCoding
        The column to predict.
    rows : TrainingRows
        The coded table, in canonical order.
    store : RunStore
        Trials and facts.

    Attributes
    ----------
    folder, settings, schema, target, rows, store
        As given.
    metric : Metric
        Metric whose loss is minimised and whose score is shown.
    profile : TaskProfile
        Facts about the task that a space needs.
    space : Space
        Search space.
    restriction : str
        Parts of the space that are left out because they do not convert to ONNX; empty if there are none.
    strategy : Strategy
        Strategy, see `strategy_for_table`.
    splits : list of Fold
        Row numbers of the training and validation parts.
    rungs : tuple of float
        Shares of the training rows, ascending.

    Raises
    ------
    MetricError, UnknownNameError, InvalidParameterError, IncompatibleParametersError
        If a setting does not fit the table or another setting.
    """

    def __init__(
        self,
        folder: Path,
        settings: RunSettings,
        *,
        schema: TableSchema,
        target: TargetCoding,
        rows: TrainingRows,
        store: RunStore,
        is_new: bool = False,
    ) -> None:
        settings.check_task(target.task_type)
        self.folder, self.settings, self.schema, self.target = folder, settings, schema, target
        self.rows, self.store = rows, store
        self._has_made_folder = False
        self.restriction = ""
        self.metric: Metric = metric_for(settings.metric, target)
        self.profile = TaskProfile(
            task_type=target.task_type,
            n_rows=len(rows.y),
            n_columns=len(schema.used),
            n_classes=target.n_classes,
            has_categories=schema.has_categories,
            most_levels=schema.most_levels,
            needs_probabilities=self.metric.needs == "probabilities",
            has_weights=rows.weight is not None,
            monotone=directions(settings.monotone, schema, no_features=(settings.groups, settings.time)),
            # Learners that move the values of leaves to a quantile break directions.
            quantile=None if settings.monotone else self.metric.level,
            power=self.metric.power,
            learns_logarithms=self._learns_logarithms(is_new),
        )
        self.space: Space = _chosen_from(make_space(settings.space, self.profile), settings)
        if settings.deployable is not None:
            check_columns_convert(schema)
            self.space, self.restriction = convertible(self.space)
        if isinstance(settings.strategy, Strategy) and not isinstance(settings.strategy, type):
            raise InvalidParameterError(
                "strategy",
                settings.strategy,
                "a name, a class, or a function from a space to a strategy",
                "A strategy that is made already belongs to another space: that of a run is made from the table.",
            )
        self.strategy: Strategy = make_strategy(settings.strategy, self.space.configuration_space)
        if isinstance(self.strategy, MetricCheck):
            self.strategy.check_metric(self.metric)
        self.splits = make_folds(
            rows.y,
            target.task_type,
            settings.resampling,
            seed=settings.seed,
            n_columns=rows.values.shape[1],
            structure=rows.structure,
        )
        self.rungs = rungs(min(len(fold.train) for fold in self.splits))

    # ------------------------------------------------------------ create and open

    @classmethod
    def create(
        cls,
        folder: str | Path,
        frame: pd.DataFrame,
        y: Any,
        settings: RunSettings,
        *,
        weight: Any = None,
        structure: RowStructure | None = None,
        numbers: IntArray | None = None,
        named: bool = True,
        earlier: TableSchema | None = None,
        check: Callable[[], object] = lambda: None,
    ) -> RunDirectory:
        """Start a run: learn the schema, put the rows in canonical order and write everything a resume needs.

        Parameters
        ----------
        folder : path
            A new or empty folder.
        frame : DataFrame
            Features, from `cashmere.data.frames.to_frame`.
        y : (n_rows,) array-like
            Target.
        settings : RunSettings
            Settings of the run.
        weight : (n_rows,) array-like, optional
            Row weights, at least 0; only their ratios count.
        structure : RowStructure, optional
            Groups or times of the rows; the settings name the column.
        numbers : (n_rows,) array of int, optional
            The number of each row in the table of the user; by default from 0 on.
        named : bool
            Whether the columns have names of their own.
        earlier : TableSchema, optional
            The columns of an earlier run that is fitted again.
        check : callable
            Called before each step; if it raises an error, nothing is kept.

        Raises
        ------
        RunDirectoryError
            If the folder contains another run or something else.
        DataError, MetricError, UnknownNameError, InvalidParameterError
            If the table, the target or a setting cannot be used.
        """
        folder = Path(folder)
        check_new(folder)
        is_new = not folder.exists()
        store: RunStore | None = None
        hints: list[str] = []

        def tell(kind: type[Warning], hint: str | None) -> None:
            if hint:
                warnings.warn(kind(hint), stacklevel=level_of_caller())
                hints.append(hint)

        try:
            store = RunStore(folder, new=True)
            task: Any = None if settings.task == "auto" else settings.task
            task = task if task in (None, "classification") else TaskType(task)
            are_numbers = pd.api.types.is_numeric_dtype(getattr(y, "dtype", object))
            if task is None and are_numbers and is_for_values(settings.metric):
                task = TaskType.REGRESSION
            target, codes = TargetCoding.with_codes(y, task, n_rows=len(frame))
            target = target.looking_for(settings.pos_label)
            tell(TargetWarning, target_hint(target) if target.classes else values_hint(codes))
            tell(TargetWarning, counts_hint(target) if task is None else None)
            tell(TargetWarning, missing_outcome_hint(target, codes))
            weight = _weighed(weight, codes, target, settings)
            own_splitter = not isinstance(settings.resampling, str)  # its row numbers are those of the user's table
            check()
            canonical = canonical_rows(frame, codes, weight, structure=structure, keep_order=own_splitter)
            _check_classes(canonical, target)
            schema = canonical.schema(named=named, check=check)
            tell(ColumnKindWarning, kind_hint(frame, schema))
            if earlier is not None:
                tell(LeftOutWarning, lost_columns_hint(earlier, schema))
                tell(UnknownValuesWarning, recoded_columns_hint(earlier, schema))
            coded = schema.code(frame, rows=canonical.source, compact=_is_large(len(canonical.y)), check=check)
            tell(ColumnKindWarning, placeholder_hint(coded))
            tell(TargetWarning, leak_hint(coded, canonical.y, target.task_type))
            if not own_splitter and (structure is None or is_in_time(structure)):
                tell(RowStructureWarning, structure_hint(coded, in_time=structure is not None))
            tell(RowStructureWarning, alike_groups_hint(structure))
            check()
            rows = TrainingRows(
                values=coded.values,
                texts=coded.texts,
                y=canonical.y,
                weight=canonical.weight,
                structure=canonical.structure,
                source=canonical.source if numbers is None else numbers[canonical.source],
            )
            if settings.resampling == "auto":
                resampling = choose_resampling(
                    len(rows.y),
                    _n_cells(rows, schema, target),
                    seconds=settings.budget.seconds,
                    structure=rows.structure,
                )
                settings = replace(settings, resampling=resampling)
            run = cls(folder, settings, schema=schema, target=target, rows=rows, store=store, is_new=True)
            check_targets(run.metric, run.rows.y)
            tell(DeployableWarning, run.restriction)
            if settings.pos_label is None:
                tell(TargetWarning, frequent_class_hint(target, codes, run.metric.name))
            tell(TargetWarning, class_order_hint(target, y, run.metric.name))
            tell(TargetWarning, zeros_hint(codes, run.metric.name))
            for left_out in run._left_out():
                tell(LeftOutWarning, left_out)
            if hints:
                store.set_fact("hints", hints)
            identity = uuid.uuid4().hex
            store.set_fact("store", identity)
            run.set_goal(settings.budget)
            check_opening(settings, run.space)
            if settings.opening not in (SHIPPED_OPENING, NO_OPENING):
                opening = own_opening(settings.opening, run.space)
                tell(LeftOutWarning, left_out_of(opening, run.space))
                store.set_fact("opening", opening.to_json())
            if run.profile.learns_logarithms:
                store.set_fact("learns_logarithms", True)
            if own_splitter:
                store.set_fact("fold_digest", fold_digest(run.splits))
            check()
            rows.save(folder / "table.npz")
            run._map_values()
            _save_sample(folder / "sample.parquet", frame.iloc[canonical.source[:_SAMPLE_ROWS]].reset_index(drop=True))
            write_json(folder / "schema.json", {"columns": schema.to_json(), "target": target.to_json()})
            write_json(
                folder / "run.json",
                {
                    "format": "cashmere run",
                    "version": RUN_VERSION,
                    "id": uuid.uuid4().hex[:12],
                    "store": identity,
                    "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
                    "settings": settings.to_json(),
                    "table": {"rows": len(frame), "columns": frame.shape[1], "training_rows": len(rows.y)},
                    "versions": versions(),
                },
            )
        except BaseException as error:
            if store is not None:
                _discard(store, with_folder=is_new)
            elif is_new and not isinstance(error, RunDirectoryError):  # which may say that another process has begun
                traceback.clear_frames(error.__traceback__)  # whose variables may hold the lock
                _discard_unopened(folder)
            raise
        run._has_made_folder = is_new
        return run

    @classmethod
    def open(
        cls,
        folder: str | Path,
        own_objects: Mapping[str, Any] | None = None,
        *,
        searches: bool = True,
        same_folds: bool = True,
        read_only: bool = False,
    ) -> RunDirectory:
        """Open an interrupted run, or a finished one to extend.

        Parameters
        ----------
        folder : path
            The run directory; it may have been moved.
        own_objects : dict, optional
            The custom metric, strategy, space or resampling that the run was started with, if any.
        searches : bool
            Whether the strategy will be asked; if not, a custom one need not be given.
        same_folds : bool
            Whether a custom splitter must give the folds of the start, to which the stored predictions belong.
        read_only : bool
            Whether to read what is there now without the lease, although another process may be writing it.

        Raises
        ------
        RunDirectoryError
            If the folder is not a run directory, or a custom object is missing or another one than at the start.
        CorruptStoreError
            If a file is damaged.
        """
        folder = Path(folder)
        run_json = folder / "run.json"
        content = read_run_json(folder)
        stored = content.get("settings", {})
        own_objects = checked_objects(folder, stored, own_objects or {}, searches=searches)
        settings = _stored_settings(run_json, stored, own_objects)
        schema, target = read_schema(folder)
        warn_of_versions(run_json, content.get("versions", {}))
        store = RunStore(folder, read_only=read_only)
        try:
            rows = TrainingRows.read(folder / "table.npz")
            _check_rows(folder / "table.npz", rows, schema, target, settings)
            run = cls(folder, settings, schema=schema, target=target, rows=rows, store=store)
            if same_folds:
                run._check_folds()
            if not read_only:  # a run at work may be ahead of what was read
                check_complete(folder, store, lookahead=settings.lookahead_of_study)
            run._opening()  # check it, as one from a file is kept in the store
            run._check_algorithms()
            run._map_values()
            return run
        except (RunDirectoryError, MissingDependencyError):
            store.close()
            raise
        except CashmereError as error:  # such as a setting that does not fit this version or the table
            store.close()
            if own_objects:
                raise
            text = f"holds settings that cannot be used: {error} {RESTORE}"
            raise CorruptStoreError(run_json, text) from error
        except BaseException:
            store.close()
            raise

    def _learns_logarithms(self, is_new: bool) -> bool:
        """Return what was decided when the run began; earlier versions only learned them for errors of logarithms."""
        if is_new:
            return learns_logarithms(self.metric, self.rows.y)
        return self.metric.learns_logarithms or bool(self.store.facts().learns_logarithms)

    def _left_out(self) -> list[str]:
        """Name the algorithms that a constraint leaves out and the user did not exclude."""
        if self.settings.include or callable(self.settings.space):  # the author of a space knows what it lacks
            return []
        found = []
        for why in [NOT_MONOTONE] + ([] if self.settings.class_weight is None else [NOT_WEIGHTED]):
            names = [n for n, each in self.space.left_out.items() if each == why and n not in self.settings.exclude]
            if names:
                found.append(f"Left out: {', '.join(names)} ({why}).")
        return found

    def _check_algorithms(self) -> None:
        """Raise if there are trials of an algorithm that cannot be fitted on this machine."""
        for row in self.store.rows():
            algorithm = str(row["configuration"].get(ALGORITHM))
            if (reason := self.space.left_out.get(algorithm)) is not None:
                raise RunDirectoryError(self.folder, f"holds trials of the algorithm {algorithm!r}, which {reason}.")

    def _check_folds(self) -> None:
        """Raise if a custom splitter gives other folds than at the start; earlier versions did not store which."""
        before = self.store.facts().fold_digest
        if before is not None and before != fold_digest(self.splits):
            raise RunDirectoryError(
                self.folder,
                "was started with other folds than the custom resampling gives now, so its predictions belong to other "
                "rows. Pass the splitter from before, with the same number as random_state. Without a random_state, a "
                "splitter that shuffles gives other folds each time: start a new run in another directory.",
            )

    def check_workers(self) -> None:
        """Raise if the settings, which may come from another machine, have more workers than this one can run.

        Raises
        ------
        RunDirectoryError
            If there are too many.
        """
        most = max(_MOST_WORKERS, _MOST_WORKERS_PER_CORE * available_cores())
        if self.settings.workers > most:
            raise RunDirectoryError(
                self.folder / "run.json",
                f"asks for {self.settings.workers} workers; this machine can run {most}. Resume the run on a larger "
                "machine, or on a cluster with --scheduler.",
            )

    def take_limits(self, settings: RunSettings) -> None:
        """Use the isolation, workers and limits of a resuming call; ``run.json`` keeps those of the first.

        Parameters
        ----------
        settings : RunSettings
            Settings of the call; where they are None, those of the run stay.

        Raises
        ------
        RunDirectoryError
            If there are more workers than the lookahead of the run.
        """
        try:
            self.settings = self.settings.with_limits_of(settings)
        except LookaheadError as error:
            raise RunDirectoryError(
                self.folder,
                f"was started with a lookahead of {error.lookahead}, so it cannot use more than {error.lookahead} "
                f"workers; got {error.n_open}. Use fewer.",
            ) from error

    def discard(self) -> None:
        """Remove the files that `create` has made, for want of a trial to keep; the run cannot be used afterwards."""
        _discard(self.store, with_folder=self._has_made_folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.store.close()

    def _map_values(self) -> None:
        """Keep the values of a large table on disk, from where the workers map them as well."""
        if self.rows.are_compact:
            self.rows = self.rows.mapped_from(self.folder / "table.npz")

    # ------------------------------------------------------------ what it holds

    @property
    def coded_table(self) -> CodedTable:
        """The training rows, with their schema."""
        return CodedTable(values=self.rows.values, texts=self.rows.texts, schema=self.schema)

    @property
    def first_refit(self) -> int | None:
        """Position of the first model on all rows among those of a member; None if members are not fitted on all rows.

        Settings and rows decide, so that every call on the run has the same answer.
        """
        refit, repeats = self.settings.refit, self.settings.repeats
        if refit == "auto":
            has_repeats = len(self.rows.y) <= MOST_REPEATED_ROWS and not is_in_time(self.rows.structure)
            refit = repeats in ("auto", 0) and not has_repeats
        return len(self.splits) if refit else None

    @property
    def refits_alone(self) -> bool:
        """Whether members that have models of all rows do without those of the folds.

        They do in time, as these have not seen the newest rows, and where a prediction must be fast.
        """
        return is_in_time(self.rows.structure) or self.settings.max_latency is not None

    def validation_pool(self) -> ValidationPool:
        """Return the validation rows that ensembles are selected on; always the same."""
        rows = self.rows
        return ValidationPool.draw(
            validation_rows(self.splits),
            rows.y,
            rows.weight,
            structure=rows.structure,
            splits=self.splits,
            seed=self.settings.seed,
        )

    def read_sample(self) -> pd.DataFrame | None:
        """Return some original training rows; None if they could not be kept."""
        return read_sample(self.folder)

    def first_configurations(self, *, in_time: bool) -> dict[Configuration, float]:
        """Return the first configurations of the search, in order, with the expected gain of each.

        Parameters
        ----------
        in_time : bool
            Whether the budget is a time. Only then does the search begin with an opening, if there is one, and in haste
            where time is short (`cashmere.run.haste`).
        """
        gains = self._first_gains(in_time=in_time)
        if not in_time:
            return gains
        # Seconds are predicted for the usual pace, so a shorter path shows as a larger gain.
        return {hastened: gains[usual] * factor for usual, (hastened, factor) in self._hastened(gains).items()}

    def at_usual_pace(self) -> dict[Configuration, tuple[Configuration, float]]:
        """Return what the first configurations of a search in time are without haste.

        Returns
        -------
        dict
            For each of them: the configuration at its usual pace, and by what factor its path is longer.
        """
        in_haste = self._hastened(self._first_gains(in_time=True))
        return {hastened: (usual, factor) for usual, (hastened, factor) in in_haste.items()}

    def _first_gains(self, *, in_time: bool) -> dict[Configuration, float]:
        opening = self._opening()
        if opening is None or not (in_time or opening.steps_first):
            return self.space.first_gains()
        return opening.gains(self.space)

    def _hastened(self, gains: Mapping[Configuration, float]) -> dict[Configuration, tuple[Configuration, float]]:
        """Return each with its path as short as the budget asks for, and by what factor that is shorter."""
        wanted = haste(_n_cells(self.rows, self.schema, self.target), self.settings.budget.seconds)
        factor = wanted if len(self.rungs) == 1 else 1.0
        return {configuration: self.space.hastened(configuration, factor) for configuration in gains}

    def _opening(self) -> Opening | None:
        if self.settings.opening == NO_OPENING:
            return None
        if self.settings.opening == SHIPPED_OPENING:
            return shipped_opening(self.space.name)
        return Opening.from_json(self.store.facts().opening, self.folder / "run.sqlite")

    def strategy_for_table(self) -> Strategy:
        """Return the strategy, with the meta-features of the table if it needs them."""
        if isinstance(self.strategy, TableAware):
            return self.strategy.for_table(self._meta_features())
        return self.strategy

    def _meta_features(self) -> dict[str, float]:
        """Return the meta-features of the table, computed once per run."""
        stored = self.store.facts().meta_features
        if stored is None:
            features = meta_features(
                self.rows.values,
                self.rows.y,
                categorical=self.coded_table.categorical,
                task_type=self.target.task_type,
            )
            stored = features_to_json(features)
            self.store.set_fact("meta_features", stored)
        return features_from_json(stored)

    def check_same(
        self,
        frame: pd.DataFrame,
        y: Any,
        settings: RunSettings,
        *,
        weight: Any = None,
        structure: RowStructure | None = None,
    ) -> None:
        """Raise an error if data or settings differ from those the run was started with.

        Names of spaces keep the meaning they had at the start, so that a script continues its own run.

        Raises
        ------
        RunDirectoryError
            If they differ; the message says in what.
        """
        version = read_run_json(self.folder).get("version", 0)
        changed = self.settings.changed_in(replace(settings, space=present_space_name(settings.space, version)))
        if changed is not None:
            name, before, now = changed
            text = f"was started with {name}={before!r} and cannot continue with {now!r}. Use the value from before."
            raise RunDirectoryError(self.folder, text)
        codes = self.target.encode(y, n_rows=len(frame))
        weight = _weighed(weight, codes, self.target, settings)
        if structure is not None and structure.calendar not in {"", *(column.name for column in self.schema.columns)}:
            frame = frame.drop(columns=structure.calendar)  # earlier versions left it out
            structure = replace(structure, calendar="")
        self._check_columns(frame)
        frame = self._in_order(frame)
        keep_order = not isinstance(settings.resampling, str)
        rows = canonical_rows(frame, codes, weight, structure=structure, keep_order=keep_order)
        same = len(rows.y) == len(self.rows.y) and np.array_equal(rows.y, self.rows.y)
        compact = self.rows.are_compact
        if not same or not np.array_equal(
            self.schema.code(frame, rows=rows.source, compact=compact).values, self.rows.values, equal_nan=True
        ):
            raise RunDirectoryError(
                self.folder,
                "was started with other rows than X and y hold, or other rows have the weight 0"
                f"{self._difference(frame, n_rows=len(rows.y))}. {_ANOTHER}",
            )
        if not _equal_weights(self.rows.weight, rows.weight):
            raise RunDirectoryError(
                self.folder,
                "was started with other weights of the rows than sample_weight gives. Use those from before, or "
                "start a new run in another directory.",
            )
        structures = [each.structure for each in (self.rows, rows) if each.structure is not None]
        if len(structures) == 2 and not structures[0].equals(structures[1]):
            raise RunDirectoryError(
                self.folder,
                f"was started with other {settings.structure_kind} of the rows. Use those from before, or start a new "
                "run in another directory.",
            )

    def _check_columns(self, frame: pd.DataFrame) -> None:
        """Raise if a table has other columns than at the start: by name, or else by number."""
        names = [column.name for column in self.schema.columns]
        if not self.schema.named:
            if frame.shape[1] != len(names):
                text = f"was started with {counted(len(names), 'column')}, but X has {frame.shape[1]}. {_ANOTHER}"
                raise RunDirectoryError(self.folder, text)
            return
        known = set(names)
        missing = [name for name in names if name not in frame]
        extra = [name for name in map(str, frame) if name not in known]
        found = [f"X lacks {first_of(missing, most=_NAMED)}"] if missing else []
        found += [f"{first_of(extra, most=_NAMED)} {'is' if len(extra) == 1 else 'are'} new"] if extra else []
        if found:
            text = f"was started with other columns: {', and '.join(found)}. Use those from before, or start a"
            raise RunDirectoryError(self.folder, f"{text} new run in another directory.")

    def _difference(self, frame: pd.DataFrame, *, n_rows: int) -> str:
        """Say in brackets what is known of the difference between a table and that at the start."""
        if n_rows != len(self.rows.y):
            return f" ({len(self.rows.y):,} rows with a weight then, {n_rows:,} now)"
        sample = self.read_sample()
        if sample is None or list(sample) != list(frame):
            return ""
        pairs = [(name, sample[name].dtype, frame[name].dtype) for name in frame]
        others = [f"{name!r} was {before} and is {now}" for name, before, now in pairs if _differ(before, now)]
        more = f", and {len(others) - _NAMED} more columns" if len(others) > _NAMED else ""
        return f" (the type of {'; '.join(others[:_NAMED])}{more})" if others else ""

    def _in_order(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a table with the names of the columns in their order at the start, on which that of rows depends."""
        names = [column.name for column in self.schema.columns]
        moved = self.schema.named and list(frame) != names and set(frame) == set(names)
        return frame[names] if moved else frame

    # ------------------------------------------------------------ what it may spend

    @property
    def spent(self) -> Spent:
        """What the run has spent so far, summed over all calls."""
        rows = self.store.rows()
        stored = float(self.store.facts().elapsed_seconds or 0.0)
        return Spent(trials=len(rows), seconds=max([stored, *(float(row["finished_at"]) for row in rows)]))

    def set_goal(self, budget: Budget) -> None:
        """Store the budget that a later resume without one continues: total trials, and seconds from now."""
        self._keep_goal(Goal.of_call(budget, self.spent))

    def extend(self, budget: Budget | None) -> Budget | None:
        """Return the budget of another call.

        Parameters
        ----------
        budget : Budget or None
            Additional budget; None for the rest of the earlier one.

        Returns
        -------
        Budget or None
            Budget for a `Session`: total number of trials, and seconds from now. None if nothing is left.
        """
        with failures_as(CorruptStoreError, self.folder / "run.sqlite", RESTORE):
            spent, goal = self.spent, Goal.from_json(self.store.facts().goal)
        if budget is None:
            if goal == Goal():
                text = "holds no budget of its own. Give one: `cashmere resume DIR --budget 10m`."
                raise RunDirectoryError(self.folder, text)
            return goal.rest(spent)
        trials = None if budget.trials is None else spent.trials + budget.trials
        budget = Budget(trials=trials, seconds=budget.seconds)
        self._keep_goal(goal.including(Goal.of_call(budget, spent)))
        return budget

    def rest_of(self, budget: Budget) -> Budget | None:
        """Return what earlier calls have left of a budget for all calls together, as `extend` does."""
        with failures_as(CorruptStoreError, self.folder / "run.sqlite", RESTORE):
            spent, before = self.spent, Goal.from_json(self.store.facts().goal)
        goal = Goal(trials=budget.trials, seconds=budget.seconds)
        if (rest := goal.rest(spent)) is not None:
            self._keep_goal(before.including(goal))
        return rest

    def _keep_goal(self, goal: Goal) -> None:
        self.store.set_fact("goal", goal.to_json())


def _discard(store: RunStore, *, with_folder: bool) -> None:
    """Remove the run of a store, unless another process has taken it over; only the error before counts."""
    with contextlib.suppress(OSError, RunDirectoryError), store.closed_to_remove():
        remove_run(store.folder, with_folder=with_folder)


def _discard_unopened(folder: Path) -> None:
    """Remove a new folder in which opening the store was interrupted, unless it is now that of another process."""
    with contextlib.suppress(OSError, RunDirectoryError):
        _discard(RunStore(folder, new=True), with_folder=True)


def _check_classes(rows: CanonicalRows, target: TargetCoding) -> None:
    """Raise an error if all rows that count are of one class, because those of the others have weight 0."""
    y = rows.y if rows.weight is None else rows.y[rows.weight > 0]
    if target.task_type.is_classification and (y == y[0]).all():
        raise one_class_error(target.classes[y[0]], f"all {len(y)} rows with a weight above 0")


def _weighed(weight: Any, codes: AnyArray, target: TargetCoding, settings: RunSettings) -> Any:
    """Return the weights of rows, multiplied by the weights of their classes."""
    if settings.class_weight is None:
        return weight
    weight = None if weight is None else check_weight(weight, len(codes))
    of_classes = weights_of_rows(codes, target, settings.class_weight, weight=weight)
    return of_classes if weight is None else of_classes * weight


def _differ(before: Any, now: Any) -> bool:
    """Return whether two types of columns are of another kind or size; all that hold texts are alike."""
    kinds = ["O" if kind in "US" else kind for kind in (before.kind, now.kind)]  # texts of Arrow are U
    sizes = [getattr(each, "itemsize", None) for each in (before, now)]  # sparse columns have none
    return kinds[0] != kinds[1] or (kinds[0] != "O" and None not in sizes and sizes[0] != sizes[1])


def _equal_weights(one: Float64 | None, other: Float64 | None) -> bool:
    """Return whether weights of mean 1 are equal; their last digits depend on the order in which rows were given."""
    if one is None or other is None:
        return one is other
    return np.allclose(one, other, rtol=1e-9, atol=0.0)


def _chosen_from(space: Space, settings: RunSettings) -> Space:
    """Return the space with the algorithms that the settings include and do not exclude."""
    if settings.monotone and space.operators:
        raise IncompatibleParametersError(
            f"monotone cannot be used with the space {space.name!r}: its operators mix columns. Use a space without "
            "operators, such as 'default'.",
            {"monotone": settings.monotone, "space": space.name},
        )
    if not settings.include and not settings.exclude:
        return space
    known = [algorithm.name for algorithm in space.algorithms]
    for name in settings.exclude:
        if name not in known and name not in space.left_out:
            raise UnknownNameError("algorithm", name, known)
    chosen = [name for name in settings.include or known if name not in settings.exclude]
    if not chosen:
        searched = ", ".join(map(repr, settings.include or known))
        raise InvalidParameterError("exclude", settings.exclude, f"fewer than all of {searched}")
    return space.restricted_to(chosen)


def metric_for(metric: Any, target: TargetCoding) -> Metric:
    """Return the metric for a name or a custom metric; a function sees labels or values.

    Parameters
    ----------
    metric : str, Metric, callable or None
        None for the default of the task.
    target : TargetCoding
        What is predicted.

    Raises
    ------
    MetricError, UnknownNameError
        If there is none of this name, or it does not fit the task.
    """
    metric = metric or default_metric(target.task_type).name
    labels = target.labels() if target.task_type.is_classification else None
    return get_metric(metric, target.task_type, positive=target.positive, labels=labels)


def _n_cells(rows: TrainingRows, schema: TableSchema, target: TargetCoding) -> int:
    """Return rows x columns x classes."""
    return len(rows.y) * max(1, len(schema.used)) * target.n_classes


def _is_large(n_rows: int) -> bool:
    """Return whether a table is kept compactly, because trials may use shares of its rows."""
    return len(rungs(n_rows)) > 1


def read_sample(folder: Path) -> pd.DataFrame | None:
    """Return some original training rows of a run; None if it keeps none."""
    try:
        content = read_file(folder / "sample.parquet", limit=_SAMPLE_BYTES)
        return read_parquet(content, "sample.parquet", limit=_SAMPLE_BYTES).head(_SAMPLE_ROWS)
    except Exception:  # without a sample, nothing is measured
        return None


def _save_sample(path: Path, sample: pd.DataFrame) -> None:
    """Keep some rows to measure latency on; skip tables that Parquet cannot hold."""
    with contextlib.suppress(Exception):
        buffer = io.BytesIO()
        sample.astype({name: str for name in sample if sample[name].dtype == object}).to_parquet(buffer)
        write_atomically(path, buffer.getvalue())


def _stored_settings(path: Path, stored: Mapping[str, Any], own_objects: Mapping[str, Any]) -> RunSettings:
    """Return the settings in ``run.json``; raise if no run can have them."""
    try:
        settings = RunSettings.from_json(stored, own_objects)
    except Exception as error:
        text = f"holds settings that cannot be used ({reason(error)}). {RESTORE}"
        raise CorruptStoreError(path, text) from error
    return settings


def _check_rows(
    path: Path, rows: TrainingRows, schema: TableSchema, target: TargetCoding, settings: RunSettings
) -> None:
    """Raise if the rows do not fit the columns, the classes or the settings."""
    kind = None if rows.structure is None else rows.structure.kind
    has_gap = rows.structure is not None and rows.structure.known is not None
    if kind is not settings.structure_kind or has_gap != (settings.gap is not None):
        raise CorruptStoreError(path, f"does not hold the groups, the time or the gap of run.json. {RESTORE}")
    columns, texts = rows.values.shape[1], len(rows.texts)
    if (columns, texts) != (len(schema.value_names), len(schema.text_names)):
        text = (
            f"holds {columns} columns of numbers and {texts} of texts; schema.json describes other columns. {RESTORE}"
        )
        raise CorruptStoreError(path, text)
    if target.task_type.is_classification and not (
        rows.y.dtype.kind == "i" and 0 <= rows.y.min() <= rows.y.max() < target.n_classes
    ):
        raise CorruptStoreError(path, f"holds codes of classes that schema.json does not name. {RESTORE}")
