"""Metrics: the losses that a search minimises, and the one place where the sign flips back for the user.

Notation (shapes)
-----------------
y ``(n,)``: class codes or values; p ``(n, C)``: class probabilities, or values ``(n,)``; w ``(n,)``: row weights that
sum to one. A score S whose best value is 1 becomes the loss 1 - S; errors are losses already
(docs/papers/problem.md#losses).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from cashmere.base.arrays import AnyArray, Float64
from cashmere.data.task import TaskType
from cashmere.evaluation import losses
from cashmere.exceptions import MetricError, UnknownNameError

Needs = Literal["probabilities", "labels", "values"]

_ROUNDING = 1e-12  # of a score that is 0
_CLASSIFICATION = (TaskType.BINARY, TaskType.MULTICLASS)
_REGRESSION = (TaskType.REGRESSION,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreScale:
    """What turns losses into scores.

    Attributes
    ----------
    name : str
        Name of the scores, that of their metric.
    greater_is_better : bool
        Direction of the scores.
    """

    name: str
    greater_is_better: bool

    def score(self, loss: float) -> float:
        """Convert a loss into a score: 1 - loss if greater is better, otherwise the loss itself."""
        if not self.greater_is_better:
            return loss
        score = 1.0 - loss
        return 0.0 if abs(score) < _ROUNDING else score  # of constant predictions, for example; NaN stays


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric(ScoreScale):
    """A metric: scores predictions from targets, predictions and row weights.

    Attributes
    ----------
    name : str
        Name, as known to `get_metric`.
    task_types : tuple of TaskType
        Tasks it applies to.
    greater_is_better : bool
        Direction of the metric; internally, losses are always minimised.
    needs : {"probabilities", "labels", "values"}
        What it is computed from. Predictions are class probabilities in the first two cases; for ``"labels"``, the most
        probable class is used (the lowest in a tie).
    worst_loss : float or None
        Largest possible loss; None if it is unbounded, or bounded only by clipping.
    function : callable
        Loss of ``(y, p, w)``, with p as `needs` says.
    clip : float
        Smallest probability of the log loss, or smallest prediction of a deviance relative to the mean target; 0 for
        other metrics.
    level : float or None
        Level of the quantile that minimises the loss: that of a pinball loss, 0.5 for the absolute error and, with the
        weights of `training_weight`, for the percentage error.
    power : float or None
        Power p of a Tweedie deviance, the one of a distribution whose variance is proportional to the p-th power of its
        mean: 1 for Poisson, 2 for gamma. Predictions must be positive.
    learns_logarithms : bool
        Whether learners always learn log(1 + target) for it, see `learns_logarithms`. Targets must be at least 0.
    is_mean : bool
        Whether the loss of a set of rows is the mean of the losses of its rows, hence also the mean of those of folds.
    """

    task_types: tuple[TaskType, ...]
    needs: Needs
    worst_loss: float | None
    function: Callable[[AnyArray, AnyArray, Float64 | None], float]
    clip: float = 0.0
    level: float | None = None
    power: float | None = None
    learns_logarithms: bool = False
    is_mean: bool = False

    @property
    def smooth(self) -> Metric:
        """The Brier score if this metric counts labels, else this metric.

        Counts change in steps, so few rows tell similar candidates apart badly: docs/benchmarks.md#metrics-of-classes.
        """
        return METRICS["brier"] if self.needs == "labels" else self

    def loss(self, y: AnyArray, predictions: AnyArray, weight: AnyArray | None = None, /) -> float:
        """Return the loss; smaller is better.

        Parameters
        ----------
        y : (n_rows,) array
            Class codes or values.
        predictions : (n_rows, n_classes) or (n_rows,) array
            Class probabilities or values. Rows of probabilities are rescaled where they do not sum to 1.
        weight : (n_rows,) array, optional
            Row weights with a positive sum.

        Raises
        ------
        MetricError
            If shapes do not match, predictions are not finite, the result is not a finite number, or a custom function
            fails.
        """
        y = np.asarray(y)
        p = np.asarray(predictions, dtype=np.float64)
        n_axes = 1 if self.needs == "values" else 2
        if p.ndim != n_axes or len(p) != len(y) or len(y) == 0:
            expected = "(n_rows,)" if n_axes == 1 else "(n_rows, n_classes)"
            raise MetricError(
                f"{self.name} needs predictions of shape {expected} for {len(y)} rows; got an array of shape {p.shape}."
            )
        if not np.isfinite(p).all():
            raise MetricError(
                f"{self.name} needs finite predictions, but some are NaN or infinite: the learner diverged."
            )
        if n_axes == 2:
            p = losses.safe_probabilities(p)
            if self.needs == "labels":
                p = p.argmax(axis=1)
        w = None if weight is None else np.asarray(weight, dtype=np.float64) / np.sum(weight, dtype=np.float64)
        with np.errstate(over="ignore"):
            loss = float(self.function(y, p, w))
        if not np.isfinite(loss):
            raise MetricError(
                f"{self.name} is {loss} for these {len(y)} rows. Choose a metric that is defined for them."
            )
        return loss

    def least_prediction(self, y: AnyArray, weight: AnyArray | None) -> float | None:
        """Return what a model predicts at least under a deviance, which needs positive numbers; else None.

        Parameters
        ----------
        y : (n_rows,) array
            Targets of all training rows.
        weight : (n_rows,) array or None
            Weights of these rows; None: all are equal.
        """
        return None if self.power is None else self.clip * float(np.average(y, weights=weight))

    def training_weight(self, y: Float64, weight: Float64 | None) -> Float64 | None:
        """Return the weights of rows with which a learner approaches the metric.

        They are those given, and for a percentage error with a level these divided by the absolute target, with their
        mean unchanged. So that a few rows do not outweigh all others, targets smaller than a hundredth of their median
        count as large as that.

        Parameters
        ----------
        y : (n_rows,) array
            Targets of the training rows.
        weight : (n_rows,) array or None
            Weights of these rows; None: all are equal.
        """
        if self.name != _MAPE or self.level is None:
            return weight
        size = np.abs(y)
        if not size.any():
            return weight
        least = _SMALLEST_TARGET * np.median(size) or size.mean()
        given = np.ones(len(y)) if weight is None else weight
        divided = given / np.maximum(size, least)
        rescaled: Float64 = divided * (given.mean() / divided.mean())
        return rescaled


_MAPE, _PINBALL, _TWEEDIE, _AT = "mape", "pinball", "tweedie", "@"
_DEVIANCES = {"poisson": 1.0, "gamma": 2.0, _TWEEDIE: 1.5}
_MEDIAN = 0.5
SKEWED = 1.0
"""Skewness of targets from which on their logarithms are learned under absolute errors."""

_SMALLEST_TARGET = 0.01
"""Targets under a percentage error, relative to their median, from which on training weights grow no further."""


def _metric(name: str, function: Callable[..., float], needs: Needs, worst_loss: float | None, greater: bool) -> Metric:
    return Metric(
        name=name,
        task_types=_REGRESSION if needs == "values" else _CLASSIFICATION,
        greater_is_better=greater,
        needs=needs,
        worst_loss=worst_loss,
        function=function,
        clip=losses.PROBABILITY_CLIP if name == "log_loss" else 0.0,
        is_mean=name.partition(_AT)[0] in ("accuracy", "log_loss", "brier", "mse", "mae", "mape", _PINBALL),
    )


def pinball_metric(level: float | None = None) -> Metric:
    """Return the mean pinball loss, which is minimised by the quantile of the given level.

    Parameters
    ----------
    level : float, optional
        Level of the quantile, in (0, 1). By default 0.5, for which the loss is half the mean absolute error.

    Raises
    ------
    MetricError
        If the level is not in (0, 1).

    Examples
    --------
    >>> pinball_metric(0.9).name
    'pinball@0.9'
    """
    if level is not None and not 0 < level < 1:
        raise MetricError(f"The level of a pinball loss must be between 0 and 1, as in 'pinball@0.9'; got {level:g}.")
    used = 0.5 if level is None else float(level)
    name = _PINBALL if level is None else f"{_PINBALL}{_AT}{used}"  # read back without loss when a run is resumed
    return replace(_metric(name, losses.PinballLoss(used), "values", None, False), level=used)


def tweedie_metric(power: float | None = None) -> Metric:
    """Return the mean Tweedie deviance, for amounts that are zero or positive.

    Parameters
    ----------
    power : float, optional
        Power of the variance, in (1, 2). By default 1.5.

    Raises
    ------
    MetricError
        If the power is not in (1, 2); 1 is ``"poisson"``, and 2 is ``"gamma"``.

    Examples
    --------
    >>> tweedie_metric(1.7).name
    'tweedie@1.7'
    """
    if power is not None and not 1 < power < 2:
        raise MetricError(
            f"The power of a Tweedie deviance must be between 1 and 2, as in 'tweedie@1.5'; got {power:g}. For 1, "
            "choose 'poisson', for 2 'gamma'."
        )
    used = _DEVIANCES[_TWEEDIE] if power is None else float(power)
    return _deviance(_TWEEDIE if power is None else f"{_TWEEDIE}{_AT}{used}", used)


def _deviance(name: str, power: float) -> Metric:
    made = _metric(name, losses.Deviance(power), "values", None, False)
    return replace(made, power=power, clip=losses.SMALLEST_PREDICTION)


def check_targets(metric: Metric, y: AnyArray) -> None:
    """Reject targets for which a deviance or an error of logarithms is not defined.

    Parameters
    ----------
    metric : Metric
        The metric.
    y : (n_rows,) array
        Targets of the training rows.

    Raises
    ------
    MetricError
        If they are negative, or with ``"gamma"`` zero, or all of them are zero.
    """
    check_range(metric, y)
    if (metric.power is not None or metric.learns_logarithms) and not y.any():
        raise MetricError(f"The metric {metric.name!r} needs some positive targets, but all are 0. Choose rmse.")


def check_range(metric: Metric, y: AnyArray) -> None:
    """Reject targets that are out of the range in which a deviance or an error of logarithms is defined.

    Parameters
    ----------
    metric : Metric
        The metric.
    y : (n_rows,) array
        Targets of any rows.

    Raises
    ------
    MetricError
        If they are negative, or with ``"gamma"`` zero.
    """
    if metric.power is None and not metric.learns_logarithms:
        return
    least, what = float(y.min()), "positive targets" if metric.power == 2 else "targets of at least 0"
    if least < 0 or (least == 0 and metric.power == 2):
        raise MetricError(
            f"The metric {metric.name!r} needs {what}, but the smallest is {least:g}. Leave out these rows, or choose "
            f"{'tweedie, poisson or ' if least == 0 else ''}rmse."
        )


def learns_logarithms(metric: Metric, y: AnyArray) -> bool:
    """Return whether learners should learn log(1 + target) instead of the target.

    They do for an error of logarithms; and for an absolute error, if all targets are at least 0 and skewed to the
    right: the logarithm of the median is the median of logarithms, and learners of means come closer to it. Under
    ``mape``, this gains nothing, as weights of rows make up for the skewness (docs/benchmarks.md#logarithms).

    Parameters
    ----------
    metric : Metric
        The metric.
    y : (n_rows,) array
        Targets of the training rows.
    """
    if metric.learns_logarithms or metric.level != _MEDIAN or metric.name == _MAPE or not is_built_in(metric):
        return metric.learns_logarithms
    values = np.asarray(y, dtype=np.float64)
    if values.min() < 0 or values.min() == values.max():
        return False
    deviation = values / values.max() - np.mean(values / values.max())  # the squares of large values overflow
    return bool(np.mean((deviation / deviation.std()) ** 3) >= SKEWED)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        _metric("accuracy", losses.error_rate, "labels", 1.0, True),
        _metric("balanced_accuracy", losses.balanced_error_rate, "labels", 1.0, True),
        _metric("f1_macro", losses.one_minus_f1, "labels", 1.0, True),
        _metric("f1_weighted", losses.one_minus_weighted_f1, "labels", 1.0, True),
        replace(_metric("f1", losses.one_minus_f1_of_second, "labels", 1.0, True), task_types=(TaskType.BINARY,)),
        _metric("mcc", losses.one_minus_matthews, "labels", 2.0, True),
        _metric("quadratic_kappa", losses.one_minus_quadratic_kappa, "labels", 2.0, True),
        _metric("g_mean", losses.one_minus_geometric_mean, "labels", 1.0, True),
        _metric("log_loss", losses.log_loss, "probabilities", None, False),
        _metric("roc_auc", losses.one_minus_auc, "probabilities", 1.0, True),
        _metric("average_precision", losses.one_minus_average_precision, "probabilities", 1.0, True),
        _metric("brier", losses.brier, "probabilities", 2.0, False),
        _metric("rmse", losses.rmse, "values", None, False),
        _metric("mse", losses.mse, "values", None, False),
        replace(_metric("rmsle", losses.rmsle, "values", None, False), learns_logarithms=True),
        replace(_metric("mae", losses.mae, "values", None, False), level=0.5),
        replace(_metric(_MAPE, losses.mape, "values", None, False), level=0.5),
        _metric("r2", losses.one_minus_r2, "values", None, True),
        pinball_metric(),
        *(_deviance(name, power) for name, power in _DEVIANCES.items()),
    )
}
"""Built-in metrics by name; `get_metric` also reads ``"pinball@0.9"`` and ``"tweedie@1.7"``."""

_ALIASES = {
    "acc": "accuracy",
    "ap": "average_precision",
    "auc": "roc_auc",
    "auprc": "average_precision",
    "average_precision_score": "average_precision",
    "balanced_acc": "balanced_accuracy",
    "bac": "balanced_accuracy",
    "brier_score": "brier",
    "brier_score_loss": "brier",
    "cross_entropy": "log_loss",
    "geometric_mean": "g_mean",
    "gmean": "g_mean",
    "logloss": "log_loss",
    "matthews_corrcoef": "mcc",
    "mean_absolute_error": "mae",
    "mean_absolute_percentage_error": "mape",
    "mean_gamma_deviance": "gamma",
    "mean_pinball_loss": "pinball",
    "mean_poisson_deviance": "poisson",
    "mean_squared_error": "mse",
    "mean_tweedie_deviance": "tweedie",
    "neg_brier_score": "brier",
    "neg_log_loss": "log_loss",
    "neg_mean_absolute_error": "mae",
    "neg_mean_absolute_percentage_error": "mape",
    "neg_mean_gamma_deviance": "gamma",
    "neg_mean_pinball_loss": "pinball",
    "neg_mean_poisson_deviance": "poisson",
    "neg_mean_squared_error": "mse",
    "neg_root_mean_squared_error": "rmse",
    "neg_root_mean_squared_log_error": "rmsle",
    "pr_auc": "average_precision",
    "quadratic_weighted_kappa": "quadratic_kappa",
    "quantile": "pinball",
    "qwk": "quadratic_kappa",
    "r2_score": "r2",
    "roc_auc_ovr": "roc_auc",
    "roc_auc_score": "roc_auc",
    "root_mean_squared_error": "rmse",
    "root_mean_squared_log_error": "rmsle",
}

_ERRORS = {"error", "loss", "deviance", "cost", "rmse", "mse", "mae", "mape", "smape", "msle", "rmsle", "brier"}
"""Last words of the names of errors."""

_OF_PROBABILITIES = {
    "average_precision_score",
    "d2_brier_score",
    "d2_log_loss_score",
    "roc_auc_score",
    "top_k_accuracy_score",
}
"""Functions of scikit-learn that accept predicted classes, but then score something else than users mean."""


def is_built_in(metric: Metric) -> bool:
    """Return whether a metric is one of the package, and not a custom one of the same name."""
    try:
        functions = [get_metric(metric.name, metric.task_types[0], positive=code).function for code in (0, 1)]
        return metric.function in functions
    except (UnknownNameError, MetricError):
        return False


def default_metric(task_type: TaskType) -> Metric:
    """Return log loss for classification, root mean squared error for regression.

    Log loss evaluates the probabilities themselves, which suits ensembles, and it does not jump when the predicted
    class of a single row changes, which makes it easier to model than an error rate. RMSE is in units of the target,
    and its optimum is the mean, which averaging members improves.
    """
    return METRICS["log_loss" if task_type.is_classification else "rmse"]


def _check_function(function: Callable[..., float]) -> None:
    """Reject a plain function that is an error, which would be maximised, or that needs probabilities, not classes.

    Raises
    ------
    MetricError
        If its name ends like that of an error, or it is one of scikit-learn's that need probabilities. The name of a
        partial function is that of the whole one.
    """
    while isinstance(function, functools.partial):
        function = function.func
    name = str(getattr(function, "__name__", ""))
    if name in _OF_PROBABILITIES and str(getattr(function, "__module__", "")).startswith("sklearn."):
        instead = f"metric={_ALIASES[name]!r}, or " if name in _ALIASES else ""
        raise MetricError(
            f"A function gets predicted classes, but {name!r} is computed from probabilities. Pass {instead}"
            f"metric_from_callable({name}, greater_is_better=True, needs='probabilities')."
        )
    if name.casefold().rpartition("_")[-1] in _ERRORS and not name.startswith("neg_"):
        instead = f"metric={_ALIASES[name]!r}, or " if name in _ALIASES else ""
        raise MetricError(
            f"A function is maximised, but {name!r} is named like an error, which should be small. Pass {instead}"
            f"metric_from_callable({name}, greater_is_better=False, needs=...)."
        )


def is_for_values(metric: object) -> bool:
    """Return whether a metric, or the built-in one of a name, is for regression alone."""
    if isinstance(metric, str):
        metric = METRICS.get(_read_name(metric)[0])
    return isinstance(metric, Metric) and metric.task_types == _REGRESSION


def get_metric(
    metric: str | Metric | Callable[..., float],
    task_type: TaskType,
    *,
    positive: int = 1,
    labels: AnyArray | None = None,
) -> Metric:
    """Return the metric for a name, an alias or a custom function.

    Parameters
    ----------
    metric : str, Metric or callable
        A name or alias (case is ignored, ``-`` and ``_`` are equivalent; ``"pinball@0.9"`` is the pinball loss of the
        0.9 quantile, ``"tweedie@1.7"`` the Tweedie deviance of the power 1.7), a metric, or a function
        ``f(y_true, y_pred)`` for which greater is better; see `metric_from_callable` for others.
    task_type : TaskType
        The task it must apply to.
    positive : int
        Code of the class that built-in metrics of one of two classes are of, 0 or 1.
    labels : (n_classes,) array, optional
        Labels by code, which a function receives; by default it receives codes.

    Raises
    ------
    UnknownNameError
        If there is no such metric; the message suggests similar names.
    MetricError
        If it does not apply to the task.

    Examples
    --------
    >>> get_metric("AUC", TaskType.BINARY).name
    'roc_auc'
    """
    if isinstance(metric, str):
        name, at, level = _read_name(metric)
        makers = {_PINBALL: pinball_metric, _TWEEDIE: tweedie_metric}
        if name not in METRICS or (at and name not in makers):
            raise UnknownNameError("metric", metric, METRICS, _INSTEAD.get(name, ""))
        found = makers[name](_read_number(metric, name, level)) if at else METRICS[name]
    elif isinstance(metric, Metric):
        found = metric
    elif callable(metric):
        _check_function(metric)
        needs: Needs = "labels" if task_type.is_classification else "values"
        found = metric_from_callable(metric, needs=needs, labels=labels)
    else:
        raise MetricError(f"metric must be a name, a Metric or a function f(y_true, y_pred); got {metric!r}.")
    if task_type not in found.task_types:
        fitting = ", ".join(name for name, other in METRICS.items() if task_type in other.task_types)
        raise MetricError(f"The metric {found.name!r} does not fit a {task_type} task. Choose one of: {fitting}.")
    if found is METRICS["brier"] and task_type is TaskType.BINARY:
        return replace(found, worst_loss=1.0)
    is_of_one = task_type is TaskType.BINARY and found in (METRICS["f1"], METRICS["average_precision"])
    return replace(found, function=losses.OfFirstClass(found.function)) if is_of_one and positive == 0 else found


_INSTEAD = (
    dict.fromkeys(("msle", "mean_squared_log_error", "neg_mean_squared_log_error"), "Choose rmsle, its square root.")
    | dict.fromkeys(
        ("cohen_kappa", "kappa"),
        "Choose quadratic_kappa, or, in Python, pass your own function: see metric_from_callable.",
    )
    | dict.fromkeys(
        ("recall", "sensitivity", "specificity", "precision"),
        "Each alone is best where nearly all rows get the same class: choose f1 or balanced_accuracy, and "
        "decision_threshold='recall>=0.9' to reach a rate. 'cashmere score' shows all three.",
    )
    | dict.fromkeys(("map", "ndcg"), "In Python, pass your own function, see metric_from_callable.")
)
"""What to do instead of some metrics that there are not, as sentences."""


def _read_name(metric: str) -> tuple[str, str, str]:
    """Return the name that an alias stands for, and what follows it: ``"@"`` and the level, or nothing."""
    name, at, level = metric.strip().lower().partition(_AT)
    name = name.replace("-", "_").replace(" ", "_")
    return _ALIASES.get(name, name), at, level


def _read_number(metric: str, name: str, text: str) -> float:
    """Return what follows the @: a level, or the power of a Tweedie deviance."""
    try:
        return float(text)
    except ValueError:
        what, example = ("power", "tweedie@1.5") if name == _TWEEDIE else ("level", "pinball@0.9")
        raise MetricError(f"A {what} must follow the @ of {metric!r}, as in {example!r}.") from None


def metric_from_callable(
    function: Callable[..., float],
    *,
    greater_is_better: bool = True,
    needs: Needs = "labels",
    name: str | None = None,
    labels: AnyArray | None = None,
) -> Metric:
    """Make a metric from a function ``f(y_true, y_pred)``.

    Parameters
    ----------
    function : callable
        Takes targets and, depending on `needs`, predicted labels, numbers or probabilities: for two classes those of
        the second, ``(n_rows,)``, otherwise ``(n_rows, n_classes)``. Row weights are passed as ``sample_weight`` if the
        function has this parameter; otherwise they are not used. If rows have no weights, it keeps its default, or is
        None.
    greater_is_better : bool
        Direction of the metric. The loss is ``1 - f`` if greater is better.
    needs : {"labels", "probabilities", "values"}
        What it is computed from; ``"values"`` for regression.
    name : str, optional
        Name of the metric; by default that of the function.
    labels : (n_classes,) array, optional
        Labels by code. If given, the function receives labels, otherwise codes.

    Raises
    ------
    MetricError
        If it is a scikit-learn scorer, which takes an estimator, or `needs` is unknown.
    """
    if hasattr(function, "_score_func") and hasattr(function, "_sign"):
        raise MetricError(
            f"{function!r} is a scikit-learn scorer. Pass its function, for example sklearn.metrics.f1_score, through "
            "metric_from_callable(f, greater_is_better=..., needs=...)."
        )
    if needs not in ("labels", "probabilities", "values"):
        raise MetricError(f"needs must be 'labels', 'probabilities' or 'values'; got {needs!r}.")
    name = name or str(getattr(function, "__name__", type(function).__name__))
    try:
        weight = inspect.signature(function).parameters.get("sample_weight")
    except (TypeError, ValueError):
        weight = None
    if weight is not None and weight.default is inspect.Parameter.empty:
        function = functools.partial(function, sample_weight=None)  # where the rows have no weights
    return Metric(
        name=name,
        task_types=_REGRESSION if needs == "values" else _CLASSIFICATION,
        greater_is_better=greater_is_better,
        needs=needs,
        worst_loss=None,
        function=_CallableLoss(function, greater_is_better, needs, weight is not None, labels),
    )


FAILED_METRIC = "The metric function failed"
"""Beginning of the error of a custom function that raises one."""


@dataclass(frozen=True, slots=True, eq=False)
class _CallableLoss:
    """A custom metric function as a loss; a class, so that it can be pickled with the function."""

    function: Callable[..., float]
    greater_is_better: bool
    needs: Needs
    takes_weight: bool
    labels: AnyArray | None

    def __call__(self, y: AnyArray, p: AnyArray, w: Float64 | None) -> float:
        if self.needs == "probabilities" and p.shape[1] == 2:
            p = p[:, 1]
        if self.labels is not None and self.needs != "values":
            y = self.labels[y]
            p = self.labels[p] if self.needs == "labels" else p
        extra: dict[str, Any] = {"sample_weight": w * len(w)} if self.takes_weight and w is not None else {}
        try:
            result = self.function(y, p, **extra)
        except Exception as error:  # the user's code may raise anything
            raise MetricError(
                f"{FAILED_METRIC} ({type(error).__name__}: {error}). It gets y_true and y_pred; if it needs "
                "more, such as pos_label=, pass a function of these two that calls it."
            ) from error
        try:
            score = float(result)
        except (TypeError, ValueError) as error:
            raise MetricError(f"The metric function must return a number; it returned {result!r}.") from error
        return 1.0 - score if self.greater_is_better else score
