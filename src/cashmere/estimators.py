"""`AutoClassifier` and `AutoRegressor`: the whole search with scikit-learn's interface."""

from __future__ import annotations

import copy
import numbers
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from cashmere.base.arrays import AnyArray, Float64
from cashmere.base.caller import level_of_caller
from cashmere.base.text import clean_text
from cashmere.data.frames import feature_names, has_labels, to_frame
from cashmere.data.reading import take_column
from cashmere.data.row_order import row_order_hint
from cashmere.data.row_structure import structure_names, take_structure
from cashmere.data.structure_hints import feature_that_is_the_groups
from cashmere.data.target_hints import feature_that_is_the_target
from cashmere.exceptions import (
    IncompatibleParametersError,
    InvalidParameterError,
    MissingParameterError,
    RowOrderWarning,
    RowStructureWarning,
    SchemaError,
    TargetWarning,
)
from cashmere.plots.methods import ClassifierPlots, PlotMethods, RegressorPlots
from cashmere.records.budget import Deadline
from cashmere.run import FinishedRun, RunSettings, StopReason, fit_run
from cashmere.run.notebook_progress import NotebookProgress, runs_in_kernel
from cashmere.run.progress import PlainLines, Progress, Silence
from cashmere.run.setting_names import check_names
from cashmere.storage.trial_tables import failures_table, leaderboard
from cashmere.storage.write_failures import temporary_run_explained

if TYPE_CHECKING:
    from cashmere.evaluation.metrics import Metric
    from cashmere.evaluation.table_scores import TableScores
    from cashmere.explanations import ExplainedPredictions
    from cashmere.export import Certificate


class _AutoEstimator(PlotMethods, BaseEstimator):  # type: ignore[misc]
    """Common part of classifier and regressor; see `AutoClassifier`."""

    _task = ""

    def __init__(
        self,
        *,
        preset: str = "balanced",
        budget: str | float | timedelta | None = None,
        metric: Any = None,
        strategy: Any = "optdivbo",
        space: Any = "default",
        include: Any = None,
        exclude: Any = None,
        deployable: Any = None,
        opening: Any = "defaults",
        resampling: Any = "auto",
        gap: Any = None,
        ensemble: str = "selection",
        ensemble_size: int = 25,
        max_latency: str | float | None = None,
        repeats: str | int | None = None,
        refit: str | bool = "auto",
        class_weight: Any = None,
        monotone: Any = None,
        decision_threshold: str | float = "auto",
        pos_label: Any = None,
        fold_racing: str = "none",
        n_workers: int | None = None,
        lookahead: int | None = None,
        order: str = "trials",
        trial_timeout: str | float | None = None,
        memory: str | float | None = None,
        isolation: str = "process",
        executor: Any = None,
        run_directory: str | os.PathLike[str] | None = None,
        resume: bool = False,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.preset = preset
        self.budget = budget
        self.metric = metric
        self.strategy = strategy
        self.space = space
        self.include = include
        self.exclude = exclude
        self.deployable = deployable
        self.opening = opening
        self.resampling = resampling
        self.gap = gap
        self.ensemble = ensemble
        self.ensemble_size = ensemble_size
        self.max_latency = max_latency
        self.repeats = repeats
        self.refit = refit
        self.class_weight = class_weight
        self.monotone = monotone
        self.decision_threshold = decision_threshold
        self.pos_label = pos_label
        self.fold_racing = fold_racing
        self.n_workers = n_workers
        self.lookahead = lookahead
        self.order = order
        self.trial_timeout = trial_timeout
        self.memory = memory
        self.isolation = isolation
        self.executor = executor
        self.run_directory = run_directory
        self.resume = resume
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, time: Any = None) -> Self:
        """Search for an ensemble and keep it as the fitted model.

        Parameters
        ----------
        X : (n_rows, n_columns) table
            pandas or polars DataFrame, numpy array, scipy sparse matrix, or list of lists. Categories, text, dates,
            booleans and missing values need no preprocessing.
        y : (n_rows,) array-like
            Class labels or numbers; none may be missing.
        sample_weight : str or (n_rows,) array-like, optional
            Row weights, at least 0; only their ratios count. Rows of weight 0 are left out. The values, or the name of
            a column of `X`, which is then not used as a feature.
        groups : str or (n_rows,) array-like, optional
            Groups of rows that belong together, such as those of a patient, if rows of new groups are to be predicted:
            no fold trains on some rows of a group and validates on others. The name of a column of `X`, or the values.
        time : str or (n_rows,) array-like, optional
            Times of the rows, if later rows are to be predicted from earlier ones: every fold validates on later rows
            than it trains on. The name of a column of `X`, or the values: numbers or dates. As with `groups`, a column
            named here is not used as a feature, except for the parts of dates that recur, such as the weekday.

        Returns
        -------
        self

        Raises
        ------
        DataError, MetricError, UnknownNameError, InvalidParameterError
            If the table, the target or a parameter cannot be used; the message names it and says what to try.
        NoSuccessfulTrialError
            If trials were run and all of them failed.
        ClusterError, MissingDependencyError
            If the cluster cannot be used, or is lost.
        """
        clock = Deadline(None)
        if y is None:
            raise MissingParameterError(
                "y",
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None. "
                "Pass the column to be predicted.",
            )
        settings = RunSettings.from_parameters(
            self.get_params(deep=False),
            task=self._task,
            target_name=str(getattr(y, "name", None) or "target"),
            weight_name=sample_weight if isinstance(sample_weight, str) else None,
            **structure_names(groups=groups, time=time),
        )
        check_names(settings)
        self._check_directory()
        frame = to_frame(X)
        if isinstance(sample_weight, str):
            frame = frame.copy(deep=False)
            sample_weight = take_column(frame, sample_weight, "weights")
        hint = row_order_hint(X, y=y, sample_weight=sample_weight, groups=groups, time=time)
        if hint is not None:
            warnings.warn(RowOrderWarning(hint), stacklevel=level_of_caller())
        if (hint := feature_that_is_the_target(frame, y)) is not None:
            warnings.warn(TargetWarning(hint), stacklevel=level_of_caller())
        frame, structure = take_structure(frame, groups=groups, time=time, gap=settings.gap)
        if (hint := feature_that_is_the_groups(frame, groups)) is not None:
            warnings.warn(RowStructureWarning(hint), stacklevel=level_of_caller())
        names = None if feature_names(X) is None else np.array(frame.columns, dtype=object)
        folder = Path(tempfile.mkdtemp(prefix="cashmere-") if self.run_directory is None else self.run_directory)
        try:
            with nullcontext() if self.run_directory is not None else temporary_run_explained(folder):
                finished = fit_run(
                    folder,
                    frame,
                    y,
                    settings,
                    weight=sample_weight,
                    structure=structure,
                    executor=self.executor,
                    named=has_labels(X),
                    resume=self.resume,
                    any_seed=self.random_state is None,
                    report=self.run_directory is not None,
                    already_spent=clock.elapsed,
                    progress=_display(self.verbose),
                )
            if finished.rows and finished.n_new == 0 and finished.stop_reason is StopReason.TIME:
                text = "No further trial finished in this time: the run is as before. Give it a larger budget."
                warnings.warn(text, UserWarning, stacklevel=level_of_caller())
            from cashmere.report.summary import summarise_result

            result = summarise_result(folder)
        finally:
            if self.run_directory is None:
                shutil.rmtree(folder, ignore_errors=True)
        self._keep(finished, names, list(map(str, frame)))
        self._result = result
        if self.verbose and not runs_in_kernel():
            print(clean_text(finished.summary(), 10_000, multiline=True))
        for doubt in finished.metric_doubts:
            warnings.warn(doubt, UserWarning, stacklevel=level_of_caller())
        if finished.study.history.incumbent is None:
            is_cut = finished.stop_reason is StopReason.INTERRUPT
            end = "The search was interrupted" if is_cut else f"The budget ({settings.budget}) ended"
            warnings.warn(
                f"{end} before any trial ended, so the model predicts a constant. Give it more time.",
                UserWarning,
                stacklevel=level_of_caller(),
            )
        return self

    def _check_directory(self) -> None:
        if not isinstance(self.run_directory, str | os.PathLike | None):
            raise InvalidParameterError("run_directory", self.run_directory, "a path, or None for a temporary run")
        if self.resume and self.run_directory is None:
            raise IncompatibleParametersError(
                "resume needs run_directory: a run without one is temporary. Give the directory of the run, or leave "
                "out resume.",
                {"resume": self.resume, "run_directory": None},
            )

    def _keep(self, finished: FinishedRun, names: NDArray[np.object_] | None, columns: list[str]) -> None:
        self.n_features_in_, self._columns = len(columns), columns
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        assert finished.predictor is not None  # it was requested
        self._predictor = finished.predictor
        self._metric = finished.metric
        self.study_ = finished.study
        weights = finished.weights
        self.ensemble_ = pd.DataFrame(
            [
                {"trial": number, "algorithm": finished.algorithm_name(number), "weight": weight}
                for number, weight in sorted(weights.items(), key=lambda item: -item[1])
            ]
        )
        self.leaderboard_ = leaderboard(finished.rows, scale=finished.metric, weights=weights)
        self.failures_ = failures_table(finished.rows)
        self.run_directory_ = None if self.run_directory is None else str(Path(finished.folder).absolute())

    def predict(self, X: Any) -> AnyArray:
        """Predict a class label or a number for each row, shape ``(n_rows,)``.

        Raises
        ------
        SchemaError
            If columns are missing, or their types differ from those seen in `fit`.
        """
        check_is_fitted(self)
        result: AnyArray = self._predictor.predict(self._frame(X))
        return result

    @property
    def unseen_(self) -> dict[str, int]:
        """Per column, how many values of the last table predicted are not known from training."""
        check_is_fitted(self)
        return self._predictor.unseen_

    def _frame(self, X: Any) -> pd.DataFrame:
        frame, name, schema = to_frame(X, all_finite=False), type(self).__name__, self._predictor.schema
        had_names, has_names = hasattr(self, "feature_names_in_"), feature_names(X) is not None
        if had_names != has_names:
            words = "does not have valid feature names, but {} was fitted with feature names"
            if has_names:
                words = "has feature names, but {} was fitted without feature names"
            warnings.warn(f"X {words.format(name)}", UserWarning, stacklevel=level_of_caller())
        if schema.named and has_labels(X):
            return frame
        if frame.shape[1] != self.n_features_in_:
            raise SchemaError(
                f"X has {frame.shape[1]} features, but {name} is expecting {self.n_features_in_} features as input."
            )
        return frame if not schema.named else frame.set_axis(self._columns, axis=1)

    def score_table(
        self,
        X: Any,
        y: Any,
        *,
        metrics: str | Metric | Callable[..., float] | Sequence[str | Metric | Callable[..., float]] | None = None,
        sample_weight: Any = None,
        groups: Any = None,
        by: Any = None,
        coverage: float | None = None,
        by_class: bool = False,
        against: Any = None,
    ) -> TableScores:
        """Score the ensemble and each of its members on rows with a known target; see `cashmere.score_table`.

        The other model, `against`, may also be a fitted estimator.
        """
        from cashmere.evaluation.table_scores import score_table, usual_metrics

        check_is_fitted(self)
        asked = usual_metrics(self._predictor, self._metric) if metrics is None else metrics
        return score_table(
            self._predictor,
            self._frame(X),
            y,
            metrics=asked,
            sample_weight=sample_weight,
            groups=groups,
            by=by,
            coverage=coverage,
            by_class=by_class,
            against=getattr(against, "_predictor", against),
        )

    def explain_predictions(
        self, X: Any, background: Any = None, *, paths: int = 100, seed: int = 0
    ) -> ExplainedPredictions:
        """Estimate what each column contributes to predictions; see `cashmere.explain_predictions`.

        Parameters
        ----------
        X : (n_rows, n_columns) table
            The rows to explain.
        background : table
            Rows to compare with, such as those of `fit`; 500 are drawn from more. Not needed with a `run_directory`.
        paths, seed : int
            See `cashmere.explain_predictions`.
        """
        from cashmere.explanations import explain_predictions

        check_is_fitted(self)
        rows = self._frame(X)
        if background is None and self.run_directory_ is not None:
            return explain_predictions(self.run_directory_, rows, paths=paths, seed=seed)
        compared = None if background is None else self._frame(background)
        return explain_predictions(self._predictor, rows, background=compared, paths=paths, seed=seed)

    def to_onnx(self, path: str | Path, X: Any, *, bound: float = 1e-4) -> Certificate:
        """Export the ensemble as one ONNX file that is verified to predict the same; see `cashmere.export.export_onnx`.

        Parameters
        ----------
        path : path
            Path of the file, ending in ``.onnx``.
        X : (n_rows, n_columns) table
            Rows on which predictions are compared, such as those of `fit`; the first 1000 are used.
        bound : float
            Largest accepted difference: of probabilities, or for regression in standard deviations of the predictions.
        """
        from cashmere.export import export_onnx

        check_is_fitted(self)
        return export_onnx(self._predictor, path, self._frame(X), bound=bound)

    def __getstate__(self) -> dict[str, Any]:
        """Replace the client of a cluster, which cannot be pickled, by the address of its scheduler."""
        state: dict[str, Any] = super().__getstate__()
        if not isinstance(self.executor, str | None):
            scheduler = getattr(self.executor, "scheduler", None)
            state = {**state, "executor": None if scheduler is None else str(scheduler.address)}
        return state

    def __sklearn_clone__(self) -> Self:
        """Share the client of a cluster with the clone."""
        cloned: Self = super(_AutoEstimator, copy.copy(self)).__sklearn_clone__()
        cloned.executor = self.executor
        return cloned

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_predictor")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        tags.non_deterministic = False
        return tags


def _display(verbose: int) -> Callable[[], Progress]:
    """Return the display of progress for a verbosity."""
    if not isinstance(verbose, numbers.Integral) or verbose < 0:
        raise InvalidParameterError("verbose", verbose, "0 (silent) or 1")
    if not verbose:
        return Silence
    return NotebookProgress if runs_in_kernel() else PlainLines


class AutoClassifier(ClassifierMixin, ClassifierPlots, _AutoEstimator):  # type: ignore[misc]
    """Find the ensemble of classifiers that predicts best, given a table, a target and a budget.

    Parameters
    ----------
    preset : {"balanced", "fast", "best", "small"}
        Sets the defaults of `budget`, `max_latency` and `repeats` (docs/running.md#presets).
    budget : str, float or timedelta, optional
        Wall-clock time of `fit` (``"10m"``, ``"90s"``, a number of seconds), a number of trials (``"250trials"``), or
        both; by default that of the preset, which is ten minutes for ``"balanced"``.
    metric : str or callable, optional
        Metric to optimise, see `cashmere.evaluation.metrics`; by default ``"log_loss"`` for classification and
        ``"rmse"`` for regression. ``"pinball@0.9"`` predicts a quantile. A callable ``f(y_true, y_pred) -> score`` is
        maximised.
    strategy : str, class or callable
        Search strategy: ``"optdivbo"``, ``"bo"``, ``"random"``, ``"dac_hb"``, ..., with options as in
        ``"divbo:tau=0.1"``, see `cashmere.strategies`; a path to import (``"my_module.MyStrategy"``); or a class, or
        another function that makes a strategy from a space.
    space : str or callable
        Search space: ``"default"``, ``"volcano"``, ``"imbalance"``, ... (see `cashmere.space.SPACES`), or a function
        from `TaskProfile` to `Space`.
    include, exclude : list of str, optional
        Names of algorithms in the space: the only ones to search, and those to leave out. A string with commas is
        accepted, too.
    deployable : {"onnx"}, optional
        Search only algorithms whose models convert to ONNX, see `to_onnx`; a warning lists those that are left out.
    opening : str or path
        What the search begins with: ``"defaults"`` for the default configuration of each algorithm and its variants, or
        the directory of an earlier run for the members of its ensemble, followed by these. With a budget of time, also
        ``"learned"`` for the defaults followed by configurations that were chosen on other tables, or a file made by
        ``cashmere pretrain --opening``.
    resampling : str or splitter
        ``"auto"`` (five or three folds, or a holdout, depending on rows and time), ``"holdout"``, ``"5fold"``, or a
        scikit-learn splitter.
    gap : float, str or timedelta, optional
        With ``fit(time=...)``: how long it takes until a row is known. Folds train on rows that are at least this much
        older than the first row they validate on. A number in the unit of the times, or ``"28d"`` for dates.
    ensemble : str
        ``"selection"`` (greedy, with replacement), ``"bagging"``, ``"stacking"``, or ``"best"``.
    ensemble_size : int
        Number of picks of the greedy selection.
    max_latency : str or float, optional
        Longest time the model may take to predict one row, such as ``"5ms"``; a number means seconds. It is measured on
        this machine (docs/running.md#a-limit-of-the-latency).
    repeats : "auto" or int, optional
        Number of further splits of the rows on which the members of the final ensemble are fitted again, so that each
        averages more models. ``"auto"``, the default, means two if there are at most 1000 training rows and the budget
        is a time, of which they take at most a fifth; otherwise none.
    refit : "auto" or bool
        Whether the members of the final ensemble are fitted again on all rows, and predict with these models, too, or,
        with `time`, with these alone. ``"auto"`` means so with `time` or more than 1000 training rows, if the budget is
        a time, of which it takes at most a fifth (docs/running.md#ensembles).
    class_weight : "balanced" or dict, optional
        Weight of the rows of each class in fits and losses, by label: the cost of an error. With ``"balanced"`` all
        classes count the same, however many rows they have.
    monotone : dict, optional
        Numeric columns in which the prediction, or the probability of ``classes_[1]``, may only increase (1) or only
        decrease (-1), as in ``{"age": 1, "price": -1}``. Algorithms that cannot guarantee this are left out
        (docs/running.md#monotone-columns).
    decision_threshold : {"auto", "tune", "none"}, str such as "recall>=0.95", or float
        How `predict` turns probabilities into classes. ``"tune"`` chooses thresholds on out-of-fold predictions, for
        the metric, or for balanced accuracy if the metric is computed from probabilities, and keeps them if they help
        on rows not used to choose them. ``"auto"`` does so for metrics computed from labels, such as ``"g_mean"``,
        except accuracy; ``"none"`` predicts the most probable class. A number t, for two classes only, predicts the
        positive class where its probability is at least t. A rate (``"recall>=0.95"``, ``"specificity>=0.9"`` or
        ``"precision>=0.8"``), for two classes only, chooses t so that it is reached on out-of-fold predictions, with as
        few errors of the other kind as possible. `predict_proba` does not depend on it.
    pos_label : label, optional
        Which of two classes is the positive one, whose F1, average precision and threshold are meant; by default
        ``classes_[1]``, the second in sorted order. The order of `classes_` does not depend on it.
    fold_racing : {"none", "forgiving"}
        ``"forgiving"`` stops a trial early if, after a fold, its mean fold loss is above the worst fold of the best
        trial so far; such a trial gets no score.
    n_workers : int, optional
        Number of trials to run in parallel, each in its own process; by default the number of available cores, at most
        4, or as many as a cluster has threads and memory for.
    lookahead : int, optional
        How many trials may be decided ahead of known results, see `cashmere.study.Study`; by default 8, so that up to
        4 workers give the same run.
    order : {"trials", "arrival"}
        Whether outcomes are used in the order of the trials, which makes runs reproducible, or as they arrive, which
        keeps hundreds of workers busy while some trials are slow (docs/running.md#workers-and-lookahead).
    trial_timeout, memory : str or float, optional
        Limits of one trial, such as ``"60s"`` and ``"4GiB"``.
    isolation : {"process", "none"}
        ``"process"`` runs trials in watched worker processes; ``"none"`` runs them in this process, without limits (for
        tiny budgets and debugging).
    executor : distributed.Client or str, optional
        Cluster to run the trials on. For Dask: a client, which stays open; the address of a scheduler, such as
        ``"tcp://host:8786"``; or ``"dask"`` for a cluster in this process. For Ray: its address, such as
        ``"ray://host:10001"``; or ``"ray"`` for the cluster that this process is connected to, or else one on this
        machine. See docs/more_machines.md.
    run_directory : path, optional
        Keep the run in this directory, including its report. By default the run is temporary and is removed.
    resume : bool
        Continue the run in `run_directory` if it holds one; a budget of trials then includes the finished ones.
        `isolation` is then that of this call, as are `n_workers`, `memory` and `trial_timeout` unless they are None.
    random_state : int, RandomState, Generator or None
        Seed for all randomness; None draws one, or keeps that of the run that is resumed.
    verbose : int
        0 prints nothing; 1 prints a line from time to time and a summary at the end, or in a notebook shows a display
        that is updated in place.

    Attributes
    ----------
    classes_ : (n_classes,) array
        Class labels, in the order of the columns of `predict_proba`.
    decision_threshold_ : float or (n_classes,) array
        For two classes, the probability of the positive one (`pos_label`, by default the second) from which `predict`
        returns it. For more, thresholds that sum to one: `predict` returns the class whose probability exceeds its
        threshold by the largest factor. 0.5, or equal thresholds, mean the most probable class.
    ensemble_ : DataFrame
        Members (trial and algorithm) and their weights.
    leaderboard_ : DataFrame
        Successful trials, best first.
    failures_ : DataFrame
        Failed trials, with status, cause and what to try.
    study_ : Study
        The search; ``study_.history`` holds all observations.
    unseen_ : dict of str to int
        Per column, how many values of the last table predicted are not known from training; they are taken as missing.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cashmere import AutoClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = AutoClassifier(budget="3trials", isolation="none").fit(X, y)
    >>> model.predict(X).shape
    (150,)
    >>> round(float(model.ensemble_["weight"].sum()), 6)
    1.0
    """

    _task = "classification"

    def fit(  # noqa: D102
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, time: Any = None
    ) -> Self:
        super().fit(X, y, sample_weight, groups=groups, time=time)
        self.classes_ = self._predictor.classes_
        self.decision_threshold_ = self._predictor.decision_threshold_
        return self

    def predict_proba(self, X: Any) -> Float64:
        """Predict class probabilities, shape ``(n_rows, n_classes)``; columns as in `classes_`, rows sum to one."""
        check_is_fitted(self)
        result: Float64 = self._predictor.predict_proba(self._frame(X))
        return result

    def predict_set(self, X: Any, coverage: float = 0.9, *, by_class: bool = False) -> NDArray[np.bool_]:
        """Predict the set of classes each row may belong to, shape ``(n_rows, n_classes)``; columns as in `classes_`.

        The sets contain the true class of about the share `coverage` of rows, if these are distributed like the
        training rows: see `Predictor.predict_set`.
        """
        check_is_fitted(self)
        return self._predictor.predict_set(self._frame(X), coverage, by_class=by_class)


class AutoRegressor(RegressorMixin, RegressorPlots, _AutoEstimator):  # type: ignore[misc]
    """Find the ensemble of regressors that predicts best, given a table, a target and a budget.

    Parameters and attributes are those of `AutoClassifier`, except those about classes; the default metric is
    ``"rmse"``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cashmere import AutoRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = AutoRegressor(budget="3trials", isolation="none").fit(X, y)
    >>> model.predict(X.head()).shape
    (5,)
    """

    _task = "regression"

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the variance that predictions explain, R2; `y` may be written as in training."""
        check_is_fitted(self)
        return float(super().score(X, self._predictor.target.encode(y), sample_weight))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Float64:
        """Predict intervals: lower and upper bounds, shape ``(n_rows, 2)``.

        The intervals contain the true value of about the share `coverage` of rows, if these are distributed like the
        training rows: see `Predictor.predict_interval`.
        """
        check_is_fitted(self)
        return self._predictor.predict_interval(self._frame(X), coverage)
