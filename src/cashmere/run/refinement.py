"""Select another ensemble from a finished run: a smaller or faster one, for another metric, or combined otherwise.

Nothing is fitted unless a refit is requested: ensembles are selected by the stored predictions of the trials, among
those whose models still exist.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from cashmere.base.caller import level_of_caller
from cashmere.base.pace import Pace
from cashmere.base.sklearn_settings import with_default_sklearn
from cashmere.base.text import counted
from cashmere.data.target_hints import frequent_class_hint
from cashmere.data.task import TaskType
from cashmere.ensembles.limits import Limit
from cashmere.ensembles.pool import ValidationPool
from cashmere.evaluation.metrics import Metric, check_targets
from cashmere.exceptions import (
    IncompatibleParametersError,
    InvalidParameterError,
    MetricError,
    RunDirectoryError,
    TargetWarning,
)
from cashmere.export.inputs import check_columns_convert
from cashmere.model.archives import dump_fold_models
from cashmere.model.files import save_model
from cashmere.records.budget import parse_memory_mib, parse_seconds
from cashmere.records.trial import History, Observation
from cashmere.run.current_model import CurrentModel, latency_of_model
from cashmere.run.ensemble_builder import EnsembleBuilder
from cashmere.run.growing_model import GrowingModel
from cashmere.run.measured_trials import MeasuredTrials, usable_trials
from cashmere.run.members import Members
from cashmere.run.refit import RefitComparison, compare_refit, refit_on_all_rows
from cashmere.run.repeats import Repeats
from cashmere.run.run_directory import RunDirectory, metric_for
from cashmere.run.settings import check_deployable

_SELECTION = "selection"

_LIMITS = 8
"""How many bounds of each kind to try, from the cost of the cheapest trial to that of the unbounded ensemble."""

_MORE = 1.01
"""Messages name bounds a little above what the smallest ensemble needs, because they are rounded."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RefinedRun:
    """The result of `refine_run`.

    Attributes
    ----------
    front : DataFrame
        The Pareto front of score, latency and size: one row for each ensemble that no other dominates, best first.
        Columns: ``n_members``, ``trials`` (their numbers), ``score`` (on the rows that chose it),
        ``cross_fitted_score`` (on rows that did not; this is the one to expect), ``single_row_ms`` and
        ``batch_rows_per_second`` (sums of what was measured for its members), ``bytes`` (of the model folder), and
        ``chosen``.
    metric : Metric
        Metric of the scores.
    before : dict
        ``n_members``, ``score``, ``cross_fitted_score``, ``single_row_ms``, ``batch_rows_per_second`` and ``bytes`` of
        the current model of the run, measured now; None where a value is not known.
    after : dict or None
        The same for the model that was written, and for two classes its ``decisions`` on the validation rows, as in
        `TableScores`; None if none was.
    model_folder : Path or None
        Folder of that model; None if none was written.
    refit : RefitComparison or None
        Comparison of one model per member with one per fold; None if nothing was fitted, or if there is only one group
        or moment besides the rows to compare on.
    n_unmeasured : int
        Number of trials that were left out because there was no time to measure their latency.
    """

    front: pd.DataFrame
    metric: Metric
    before: Mapping[str, Any]
    after: Mapping[str, Any] | None
    model_folder: Path | None
    refit: RefitComparison | None
    n_unmeasured: int

    def __repr__(self) -> str:
        """Return a line without the tables; `front` shows the ensembles."""
        written = "" if self.model_folder is None else f", one written to {str(self.model_folder)!r}"
        return f"{type(self).__name__}({counted(len(self.front), 'ensemble')} on the front{written})"


@with_default_sklearn
def refine_run(
    folder: str | Path,
    *,
    max_latency: str | float | None = None,
    max_size: str | float | None = None,
    metric: Any = None,
    ensemble: str | None = None,
    decision_threshold: str | float | None = None,
    deployable: str | None = None,
    refit: bool = False,
    out: str | Path | None = None,
    own_objects: Mapping[str, Any] | None = None,
) -> RefinedRun:
    """Select another ensemble from the trials of a finished run, without fitting anything unless requested.

    Ensembles are selected greedily under limits of latency and size: a member is added only if the ensemble stays
    within them. Ensembles that are dominated by another are then dropped. The model of the run is not changed.

    Parameters
    ----------
    folder : path
        The run directory.
    max_latency : str or float, optional
        Longest time to predict one row, such as ``"5ms"``; a number means seconds.
    max_size : str or float, optional
        Largest size of the model folder, such as ``"10MB"``; a number means MiB.
    metric : str or callable, optional
        Metric for which ensembles are selected; by default that of the run. Trials for which a function raises an error
        are left out, with a warning.
    ensemble : {"selection", "bagging", "stacking", "best"}, optional
        How members are chosen and combined. Limits require ``"selection"``, which is the default.
    decision_threshold : {"auto", "tune", "none"}, str such as "recall>=0.95", or float, optional
        How classes are decided, as in a search; by default as in that of the run. With nothing else but `refit`, no
        smaller ensembles are sought: the ensemble is the one that the search ended with, if it had time for its last
        step and no limit of latency, which has to be given again.
    deployable : {"onnx"}, optional
        Select only among trials whose models convert to ONNX, see `cashmere.export`.
    refit : bool
        Fit each member again, once on all rows, instead of using one model per fold. The models are smaller and faster
        by about the number of folds. To measure the change in score, members are also fitted without some of the rows,
        see `compare_refit`. In total this takes a little longer than their trials took; it runs in this process,
        without limits.
    out : path, optional
        New folder for the model; by default ``model-refined`` in the run directory, with a number if that exists. A
        model is written if a limit, a metric, a method, a format, a folder or `refit` is given.
    own_objects : dict, optional
        The custom metric, strategy, space or resampling that the run was started with, if any.

    Raises
    ------
    RunDirectoryError
        If there is no finished run, no trial has a model, or `out` is not empty.
    RunLockedError
        If the run is in progress.
    InvalidParameterError
        If no ensemble keeps a limit; the message says which limit the smallest or fastest one keeps.
    ConversionError
        If columns cannot be converted to ONNX.
    MetricError, UnknownNameError
        If there is no such metric, it does not fit the task, or its function fails for every trial.
    IncompatibleParametersError
        If a limit is given for a method other than selection, or for a latency that cannot be measured.
    """
    seconds = None if max_latency is None else parse_seconds(max_latency, "max_latency")
    n_bytes = None if max_size is None else parse_memory_mib(max_size, "max_size") * 2**20
    bounds = _Bounds(seconds=seconds, n_bytes=n_bytes, given={"max_latency": max_latency, "max_size": max_size})
    if ensemble not in (None, _SELECTION) and bounds.are_given:
        raise IncompatibleParametersError(
            f"ensemble={ensemble!r} cannot be used with a limit of latency or size, which only selection supports. "
            "Leave out one of them.",
            {"ensemble": ensemble, **bounds.given},
        )
    check_deployable(deployable)
    chooses = bounds.are_given or any(each is not None for each in (metric, ensemble, deployable))
    writes = refit or chooses or any(each is not None for each in (out, decision_threshold))
    with RunDirectory.open(folder, own_objects, searches=False) as run:
        decision = run.settings.decision_threshold if decision_threshold is None else decision_threshold
        settings = replace(run.settings, ensemble=ensemble or _SELECTION, decision_threshold=decision)
        settings.check_task(run.target.task_type)
        model_folder = _new_folder(run.folder, out) if writes else None
        if deployable is not None:
            check_columns_convert(run.schema)
        judged_by = run.metric if metric is None else metric_for(metric, run.target)
        check_targets(judged_by, run.rows.y)
        if metric is not None and run.settings.pos_label is None:
            hint = frequent_class_hint(run.target, run.rows.y, judged_by.name)
            if hint is not None:
                warnings.warn(TargetWarning(hint), stacklevel=level_of_caller())
        model = CurrentModel.read(run)
        refinement = _Refinement.begin(
            model,
            metric=judged_by,
            method=settings.ensemble,
            decision_threshold=decision,
            convertible=deployable is not None,
            refit=refit,
            folder=model_folder,
        )
        keeps = decision_threshold is not None and not chooses
        points = [refinement.as_searched()] if keeps else refinement.points(bounds)
        chosen, after = refinement.write(points, bounds) if writes else (None, None)
        return RefinedRun(
            front=refinement.front(points, chosen),
            metric=judged_by,
            before=model.describe(judged_by),
            after=after,
            model_folder=model_folder,
            refit=refinement.compare_refit() if refit else None,
            n_unmeasured=refinement.trials.n_unmeasured,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    """The user's bounds: seconds for one row, and bytes of the folder."""

    seconds: float | None
    n_bytes: float | None
    given: Mapping[str, Any]

    @property
    def are_given(self) -> bool:
        return self.seconds is not None or self.n_bytes is not None

    def hold(self, seconds: float, n_bytes: float) -> bool:
        return self.in_time(seconds) and (self.n_bytes is None or n_bytes <= self.n_bytes)

    def in_time(self, seconds: float) -> bool:
        return self.seconds is None or seconds <= self.seconds

    def refusal(self, costs: Sequence[tuple[float, float]], *, refit: bool) -> InvalidParameterError:
        """Return the error for bounds that no ensemble keeps, given the seconds and bytes of each."""
        advice = "" if refit else "With a refit (refit=True, --refit), members have one model instead of one per fold."
        small = [n_bytes for seconds, n_bytes in costs if self.in_time(seconds)]
        if small:
            with_latency = "" if self.seconds is None else f" that keeps max_latency={self.given['max_latency']!r}"
            least = f"at least {_MORE * min(small) / 1e6:.3g}MB, the size of the smallest ensemble{with_latency}"
            return InvalidParameterError("max_size", self.given["max_size"], least, advice)
        least = (
            f"at least {_MORE * 1000 * min(seconds for seconds, _ in costs):.3g}ms, which the fastest ensemble takes"
        )
        return InvalidParameterError("max_latency", self.given["max_latency"], least, advice)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    """An ensemble selected under limits, and what it costs by the sums of its members."""

    limits: tuple[Limit, ...]
    members: tuple[int, ...]
    loss: float
    cross_fitted_loss: float | None
    row_seconds: float
    batch_seconds: float
    n_bytes: float

    @property
    def expected_loss(self) -> float:
        return self.loss if self.cross_fitted_loss is None else self.cross_fitted_loss

    def beats(self, other: _Point) -> bool:
        """Return whether this one is nowhere worse and somewhere better; unknown latencies do not count."""
        mine, others = self._aims(), other._aims()
        return all(a <= b for a, b in zip(mine, others, strict=True)) and mine != others

    def _aims(self) -> tuple[float, float, float]:
        return self.expected_loss, np.nan_to_num(self.row_seconds), self.n_bytes


class _Refinement:
    """An open run with trials of known cost, and the builder that chooses among them."""

    def __init__(
        self,
        current: CurrentModel,
        *,
        history: History,
        trials: MeasuredTrials,
        builder: EnsembleBuilder,
        model: GrowingModel,
        refit: bool,
    ) -> None:
        self._run, self._sample, self._history, self.trials = current.run, current.sample, history, trials
        self._builder, self._metric, self._model, self._refit = builder, builder.metric, model, refit

    @classmethod
    def begin(
        cls,
        current: CurrentModel,
        *,
        metric: Metric,
        method: str,
        decision_threshold: str | float,
        convertible: bool,
        refit: bool,
        folder: Path | None,
    ) -> Self:
        """Find the trials of a run that can be members, and measure them."""
        run, pace, pool = current.run, Pace(), current.run.validation_pool()
        members = Members(run.store, None, pace=pace, trusted=run.space.trusted_types)
        history = _judged(run, metric, pool)
        members.look(history)
        repeats = Repeats(run, None, members, current.encoders())
        usable = usable_trials(run, history, members, first=current.members, convertible=convertible)
        trials = MeasuredTrials.measure(usable, model=current, members=members, encoders=repeats.encoders)
        builder = EnsembleBuilder(
            method=method,
            size=run.settings.ensemble_size,
            metric=metric,
            pool=pool,
            seed=run.settings.seed,
            has_model=set(trials.numbers).__contains__,
            decision_threshold=decision_threshold,
            positive=run.target.positive,
            n_fold_models=1 if refit else len(run.splits),
            log_scores=run.profile.learns_logarithms,
        )
        if refit:
            trials = trials.with_one_model(run, members)
        else:
            builder.choose_by(members.averages)  # but among all trials, as small and fast ones may not be repeated
        model = GrowingModel(run, members=members, builder=builder, repeats=repeats, pace=pace, folder=folder)
        return cls(current, history=history, trials=trials, builder=builder, model=model, refit=refit)

    # ------------------------------------------------------------ the front

    def points(self, bounds: _Bounds) -> list[_Point]:
        """Return the ensembles that no other beats, best first."""
        if bounds.seconds is not None and self.trials.row is None:
            raise IncompatibleParametersError(
                "max_latency cannot be used with this run: it holds no sample of rows (sample.parquet) to measure on. "
                "Leave it out.",
                {"max_latency": bounds.given["max_latency"]},
            )
        whole = self._point(())
        if not self._builder.keeps_limits:
            return [self._cross_fitted(whole)]
        found = {whole.members: whole}
        for limits in self._grid(bounds, whole):
            point = self._point(limits)
            found.setdefault(point.members, point)
        points = _front(found.values())
        return sorted(_front([self._cross_fitted(point) for point in points]), key=lambda point: point.expected_loss)

    def as_searched(self) -> _Point:
        """Return the ensemble chosen as at the end of a search."""
        self._model.choose_finally(self._history)
        return self._current((), self._builder.cross_fit(self._history))

    def _grid(self, bounds: _Bounds, whole: _Point) -> Iterator[tuple[Limit, ...]]:
        """Yield the limits to select under: the given ones, alone and with tighter ones of each kind and of both."""
        size, row, numbers = self.trials.size, self.trials.row, self.trials.numbers
        given = []
        if bounds.n_bytes is not None:
            given.append(Limit(cost=size, most=bounds.n_bytes))
        if bounds.seconds is not None and row is not None:
            given.append(Limit(cost=row, most=bounds.seconds))
        ladders = []
        for cost in filter(None, (size, row)):
            least = min(cost.of([number]) for number in numbers)
            # A little above the sums, whose last digits depend on the order of the members.
            ladder = (1 + 1e-9) * np.geomspace(least, max(least, cost.of(whole.members)), _LIMITS)
            ladders.append([Limit(cost=cost, most=float(most)) for most in ladder])
        steps = [*((limit,) for limit in itertools.chain(*ladders)), *zip(*ladders, strict=True)]
        for step in ((), *steps):
            limits = (*given, *step)
            if limits and any(all(limit.holds([number]) for limit in limits) for number in numbers):
                yield limits

    def _point(self, limits: tuple[Limit, ...]) -> _Point:
        self._builder.limit(limits)
        self._builder.update(self._history)
        return self._current(limits, None)

    def _cross_fitted(self, point: _Point) -> _Point:
        """Choose the ensemble of a point as at the end of a run: averaged, calibrated and judged."""
        self._point(point.limits)
        return self._current(point.limits, self._builder.cross_fit(self._history))

    def _current(self, limits: tuple[Limit, ...], cross_fitted_loss: float | None) -> _Point:
        members, trials = self._builder.ensemble.members, self.trials
        row, batch = (np.nan if cost is None else cost.of(members) for cost in (trials.row, trials.batch))
        assert self._builder.loss is not None  # as there is a trial to choose
        return _Point(
            limits=limits,
            members=members,
            loss=self._builder.loss,
            cross_fitted_loss=cross_fitted_loss,
            row_seconds=row,
            batch_seconds=batch,
            n_bytes=trials.size.of(members),
        )

    def front(self, points: Sequence[_Point], chosen: _Point | None) -> pd.DataFrame:
        """Return points as a table."""
        rows = []
        for point in points:
            cross_fitted = point.cross_fitted_loss
            rows.append(
                {
                    "n_members": len(point.members),
                    "trials": point.members,
                    "score": self._metric.score(point.loss),
                    "cross_fitted_score": None if cross_fitted is None else self._metric.score(cross_fitted),
                    "single_row_ms": 1000 * point.row_seconds,
                    "batch_rows_per_second": len(self._sample) / point.batch_seconds
                    if self._sample is not None
                    else np.nan,
                    "bytes": int(point.n_bytes),
                    "chosen": point is chosen,
                }
            )
        return pd.DataFrame(rows)

    # ------------------------------------------------------------ models

    def write(self, points: Sequence[_Point], bounds: _Bounds) -> tuple[_Point, dict[str, Any]]:
        """Write the best point that keeps the bounds, first by sums, then as measured with the whole model."""
        within = [point for point in points if bounds.hold(np.nan_to_num(point.row_seconds), point.n_bytes)]
        if not within:
            row, size = self.trials.row, self.trials.size
            singles = [[number] for number in self.trials.numbers]
            raise bounds.refusal([(row.of(n) if row else 0.0, size.of(n)) for n in singles], refit=self._refit)
        measured = []
        for point in within:
            after = self._save(point)
            cost = ((after["single_row_ms"] or 0.0) / 1000, float(after["bytes"]))
            if bounds.hold(*cost):
                return point, after
            measured.append(cost)
        for path in self._model.folder.iterdir():
            path.unlink()
        self._model.folder.rmdir()
        raise bounds.refusal(measured, refit=self._refit)

    def _save(self, point: _Point) -> dict[str, Any]:
        """Write the model of a point, load it as a user would, and measure it."""
        cross_fitted_loss = self._cross_fitted(point).cross_fitted_loss
        information = self._model.information(self._history, cross_fitted_loss, finished=True)
        with self._saving() as save:
            save(information)
            latency = latency_of_model(self._model.folder, self._sample, trusted=self._run.space.trusted_types)
            save({**information, "latency": latency})
        assert self._builder.loss is not None
        return {
            "n_members": len(self._builder.ensemble.members),
            "score": self._metric.score(self._builder.loss),
            "cross_fitted_score": None if cross_fitted_loss is None else self._metric.score(cross_fitted_loss),
            "single_row_ms": latency.get("single_row_ms"),
            "batch_rows_per_second": latency.get("batch_rows_per_second"),
            "bytes": self._model.size_bytes,
            "decisions": self._decisions(),
        }

    def _decisions(self) -> dict[str, Any] | None:
        target, thresholds = self._run.target, self._builder.thresholds
        if target.task_type is not TaskType.BINARY:
            return None
        threshold = 0.5 if thresholds is None else float(thresholds[target.positive])
        counts = self._builder.count_decisions(self._history)
        return {"positive": target.classes[target.positive], "threshold": threshold, **counts}

    @contextlib.contextmanager
    def _saving(self) -> Iterator[Callable[[Mapping[str, Any]], None]]:
        """Yield a function that writes the model of the current ensemble with the given information."""
        if not self._refit:
            yield lambda information: self._model.save(information, self._history)
            return
        encoders, models = refit_on_all_rows(self._run, self._observations())
        with tempfile.TemporaryDirectory(dir=self._run.folder) as name:
            files = {number: Path(name) / f"{number:06d}.skops" for number in models}
            for number, path in files.items():
                path.write_bytes(dump_fold_models(models[number]))

            def save(information: Mapping[str, Any]) -> None:
                save_model(
                    self._model.folder,
                    schema=self._run.schema,
                    target=self._run.target,
                    encoders=encoders,
                    ensemble=self._builder.ensemble,
                    member_files=files,
                    information=information,
                    thresholds=self._builder.thresholds,
                    calibration=self._builder.calibration,
                )

            yield save

    def _observations(self) -> list[Observation]:
        """Return the trials of the current ensemble."""
        members = self._builder.ensemble.members
        return [o for o in self._history.successes if o.trial.number in members]

    def compare_refit(self) -> RefitComparison | None:
        """Compare one model per member with one per fold; see `cashmere.run.refit.compare_refit`."""
        return compare_refit(self._run, self._observations(), self._builder.ensemble, self._metric)


def _front(points: Collection[_Point]) -> list[_Point]:
    """Return the points that no other beats."""
    return [point for point in points if not any(other.beats(point) for other in points)]


def _new_folder(run_folder: Path, out: str | Path | None) -> Path:
    """Return a folder for a model, which does not exist yet or is empty."""
    if out is None:
        names = (f"model-refined{'' if number == 1 else f'-{number}'}" for number in itertools.count(1))
        return next(folder for name in names if not (folder := run_folder / name).exists())
    folder = Path(out)
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise RunDirectoryError(folder, "holds something already. Give a new folder for the model.")
    return folder


def _judged(run: RunDirectory, metric: Metric, pool: ValidationPool) -> History:
    """Return the trials; for another metric than that of the run, with their losses on all rows together.

    Trials for which a custom metric fails are left out, as they would have failed in a search; a warning counts them.
    """
    stored = run.store.load(run.space.configuration_space)
    observations = [stored[row["number"]] for row in run.store.rows()]
    if metric is run.metric:
        return History(observations=tuple(observations))
    judged, failures = [], []
    for each in observations:
        if each.predictions is not None and each.succeeded:
            try:
                loss = metric.loss(pool.y, pool.take(each.predictions), pool.weight)
            except MetricError as error:
                failures.append(error)
                continue
            each = replace(each, outcome=replace(each.outcome, loss=float(loss)))
        judged.append(each)
    if failures and not any(each.succeeded for each in judged):
        raise failures[0]
    if failures:
        text = f"The metric {metric.name!r} failed for {counted(len(failures), 'trial')}, left out here. {failures[0]}"
        warnings.warn(text, UserWarning, stacklevel=level_of_caller())
    return History(observations=tuple(judged))
