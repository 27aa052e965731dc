"""Score a fitted ensemble and each of its members on rows with a known target."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cashmere.base.arrays import AnyArray, Float64, IntArray
from cashmere.base.caller import level_of_caller
from cashmere.base.text import counted
from cashmere.data.labels import label_text
from cashmere.data.reading import take_column
from cashmere.data.row_order import row_order_hint
from cashmere.data.row_structure import take_structure
from cashmere.data.rows import check_weight
from cashmere.data.target_hints import frequent_class_hint
from cashmere.data.task import TaskType
from cashmere.ensembles.threshold import as_certain, count_decisions, decide
from cashmere.evaluation.covered_rows import ALL_ROWS, covered_rows
from cashmere.evaluation.metrics import Metric, check_range, get_metric
from cashmere.exceptions import (
    DataError,
    IncompatibleParametersError,
    InvalidParameterError,
    MetricError,
    RowOrderWarning,
    TargetWarning,
    UnknownNameError,
)
from cashmere.model.predictor import Predictor

ENSEMBLE = "ensemble"

_USUAL = {
    TaskType.BINARY: ("log_loss", "roc_auc", "average_precision", "accuracy", "balanced_accuracy", "f1", "mcc"),
    TaskType.MULTICLASS: ("log_loss", "roc_auc", "accuracy", "balanced_accuracy", "f1_macro", "mcc"),
    TaskType.REGRESSION: ("rmse", "mae", "r2"),
}
_NEEDS_CONTRAST = ("roc_auc", "average_precision", "mcc", "r2")
_NEEDS_POSITIVE = ("f1",)
_COVERAGE = 0.95
_RESAMPLES = 200
_OTHER_COLUMNS = ("model", "algorithm", "weight")
_MOST_DRAWN = 10_000
_MOST_SUBGROUPS = 50
_MISSING = "missing"
_NO_MEANS = {"observed": np.nan, "predicted": np.nan}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TableScores:
    """Scores of an ensemble and of its members on the rows of a table.

    A notebook shows all of them as tables, ``print`` as text.

    Attributes
    ----------
    models : DataFrame
        A row for the ensemble, then one per member, the best by the first metric first. Columns: ``model``
        ("ensemble", "trial 17"), ``algorithm``, ``weight`` (missing if they are stacked), and one per metric. A score
        that these rows do not define is missing, such as the area under the curve if all are of one class.
    intervals : DataFrame
        A row per metric: ``metric``, the ensemble's ``score``, its 95 % interval (``lower``, ``upper``) by bootstrap
        over rows, and whether ``"higher"`` or ``"lower"`` is ``better``.
    n_rows : int
        Number of rows.
    subgroups : DataFrame or None
        If requested: for all rows and for each subgroup, a row per metric. Columns: ``subgroup``, ``n_rows``,
        ``observed`` and ``predicted`` (see `means`; missing for more than two classes), ``metric``, ``score``,
        ``lower``, ``upper``.
    covered : DataFrame or None
        If requested: which share of all rows, and of each class and subgroup, lies within intervals or sets, and how
        large these are, see `covered_rows`.
    means : dict or None
        ``observed`` and ``predicted``: weighted means of the target and of the prediction; of two classes, share and
        mean probability of the positive one; None for more.
    decisions : dict or None
        Of two classes: the ``positive`` one, the ``threshold`` from which it is predicted, how many rows are
        ``true_positives``, ``false_positives``, ``true_negatives`` and ``false_negatives``, and the ``recall``,
        ``specificity`` and ``precision`` (None where they divide by zero). Rows count equally, whatever their weights.
    compared : DataFrame or None
        If there is another model: a row per metric. Columns: ``metric``, ``score`` of the ensemble, ``other`` (that of
        the other model), ``difference`` of the two, its 95 % interval (``lower``, ``upper``) and ``better``, as in
        ``intervals``. Every draw of the bootstrap scores both on the same rows, so the interval says more than those
        of the two scores.
    """

    models: pd.DataFrame
    intervals: pd.DataFrame
    n_rows: int
    subgroups: pd.DataFrame | None = None
    covered: pd.DataFrame | None = None
    means: dict[str, float] | None = None
    decisions: dict[str, Any] | None = None
    compared: pd.DataFrame | None = None

    def __repr__(self) -> str:
        first = self.intervals.iloc[0]
        return f"TableScores({counted(self.n_rows, 'row')}, {first['metric']} {first['score']:.5g})"

    def __str__(self) -> str:
        return "\n\n".join(f"{title}\n{frame.to_string(index=False, na_rep='')}" for title, frame in self._titled())

    def _repr_html_(self) -> str:
        return "".join(f"<p>{title}</p>{frame.to_html(index=False, na_rep='')}" for title, frame in self._titled())

    def _titled(self) -> list[tuple[str, pd.DataFrame]]:
        """Return every part that there is, with a title."""
        parts = {
            f"Ensemble, {counted(self.n_rows, 'row')}, with intervals of 95 %": self.intervals,
            "Ensemble and members": self.models,
            "Means of target and predictions": None if self.means is None else pd.DataFrame([self.means]),
            "Decisions": None if self.decisions is None else pd.DataFrame([self.decisions]),
            "Subgroups": self.subgroups,
            "Intervals and sets of classes": self.covered,
            "Compared with the other model": self.compared,
        }
        return [(title, frame) for title, frame in parts.items() if frame is not None]


def score_table(
    model: Predictor | str | Path,
    X: Any,
    y: Any,
    *,
    metrics: str | Metric | Callable[..., float] | Sequence[str | Metric | Callable[..., float]] | None = None,
    sample_weight: Any = None,
    groups: Any = None,
    by: Any = None,
    coverage: float | None = None,
    by_class: bool = False,
    against: Predictor | str | Path | None = None,
    seed: int = 0,
) -> TableScores:
    """Score an ensemble and each of its members on rows that no training has seen.

    Where the model has tuned decision thresholds, metrics computed from labels use them, for members too. Members are
    not calibrated, the ensemble is.

    Parameters
    ----------
    model : Predictor or path
        The fitted ensemble, or the run directory to load it from.
    X : (n_rows, n_columns) table
        As for `Predictor.predict`.
    y : (n_rows,) array-like
        The target, with labels as in training.
    metrics : str, Metric or function, or a sequence of them, optional
        By default the metric of the run and the usual ones for the task. A function ``f(y_true, y_pred)`` gets labels.
    sample_weight : str or (n_rows,) array-like, optional
        Row weights, at least 0: the name of a column of `X`, or the values.
    groups : str or (n_rows,) array-like, optional
        Groups of rows that belong together, such as those of a patient: the name of a column of `X`, or the values.
        Intervals then say how scores vary from group to group: the bootstrap draws groups instead of rows.
    by : str, list of str or (n_rows,) array-like, optional
        Subgroups to score one by one, such as wards: the name of a column of `X`, those of several columns, or the
        values. At most 50 of each column.
    coverage : float, optional
        If given, intervals (or sets of classes) with this coverage are predicted, and ``covered`` says how many of the
        rows lie within theirs.
    by_class : bool
        Whether sets promise the coverage for each class, see `Predictor.predict_set`.
    against : Predictor or path, optional
        Another model for the same target. ``compared`` says by how much the scores differ.
    seed : int
        Seed of the bootstrap.

    Raises
    ------
    SchemaError, DataError
        If a column is missing, the target holds labels that were not in training, or weights or groups cannot be used.
    UnknownNameError, MetricError
        If there is no such metric, or it cannot be computed.
    InvalidParameterError, IncompatibleParametersError, UsageError
        If there are too many subgroups, the other model predicts something else, or the model cannot promise the
        coverage.

    Examples
    --------
    ::

        test = pandas.read_csv("test.csv")
        scores = cashmere.score_table("income-run", test, test["income"])
        print(scores.intervals)
    """
    predictor = model if isinstance(model, Predictor) else Predictor.load(model)
    frame = predictor.schema.frame_of(X)
    if isinstance(sample_weight, str):
        frame = frame.copy(deep=False)
        sample_weight = take_column(frame, sample_weight, "weights")
    hint = row_order_hint(X, y=y, sample_weight=sample_weight, groups=groups, by=by)
    if hint is not None:
        warnings.warn(RowOrderWarning(hint), stacklevel=level_of_caller())
    if by_class and (coverage is None or not predictor.target.task_type.is_classification):
        raise IncompatibleParametersError(
            "Sets by class (by_class) need coverage and a classification model.",
            {"by_class": by_class, "coverage": coverage},
        )
    if coverage is not None:
        predictor.check_coverage(coverage)
    other = Predictor.load(against) if isinstance(against, str | Path) else against
    if other is not None:
        if not isinstance(other, Predictor):
            expected = "a run directory, a Predictor, or a fitted AutoClassifier or AutoRegressor"
            raise InvalidParameterError("against", type(other).__name__, expected)
        _check_same_target(predictor, other)
    codes = predictor.target.encode(y, n_rows=len(frame))
    asked: list[str | Metric | Callable[..., float]]
    if isinstance(metrics, str | Metric) or callable(metrics):
        asked = [metrics]
    else:
        asked = list(metrics or usual_metrics(predictor))
    target = predictor.target
    labels = target.labels() if target.task_type.is_classification else None
    used = list(
        dict.fromkeys(get_metric(each, target.task_type, positive=target.positive, labels=labels) for each in asked)
    )
    for name in asked:
        if isinstance(name, str) and (hint := frequent_class_hint(target, codes, name)) is not None:
            warnings.warn(TargetWarning(hint), stacklevel=level_of_caller())
    names = [metric.name for metric in used]
    if len({*names, *_OTHER_COLUMNS}) < len(names) + len(_OTHER_COLUMNS):
        expected = f"metrics with different names, none of them {', '.join(_OTHER_COLUMNS)}"
        raise InvalidParameterError("metrics", names, expected)
    weight = None if sample_weight is None else check_weight(sample_weight, len(codes))
    _, structure = take_structure(frame, groups=groups, time=None)
    outputs = predictor.predict_members(frame)
    members = {number: _normalised(each) for number, each in outputs.items()}
    combined = _normalised(predictor.combine(list(outputs.values())))
    weighed = np.arange(len(codes)) if weight is None else np.flatnonzero(weight)
    scored = codes[weighed]
    for metric in used:
        check_range(metric, scored)

    def losses(
        predictions: AnyArray, rows: IntArray, of: Callable[..., float] = _loss, deciding: Predictor = predictor
    ) -> Float64:
        chosen = certain = predictions[rows]
        if chosen.ndim == 2:
            certain = as_certain(decide(chosen, deciding.thresholds), chosen.shape[1])
        row_weight = None if weight is None else weight[rows]
        return np.array(
            [of(m, codes[rows], certain if m.needs == "labels" else chosen, row_weight, target.positive) for m in used]
        )

    of_ensemble = losses(combined, weighed)
    of_members = np.array([losses(each, weighed) for each in members.values()])
    shares = getattr(predictor.ensemble, "weights", (np.nan,) * len(members))  # of stacking there are none
    algorithms = predictor.information.get("algorithms") or {}
    scores = _scores(used, np.vstack([of_ensemble, of_members]))
    models = pd.DataFrame(
        {
            "model": [ENSEMBLE, *("constant" if number < 0 else f"trial {number}" for number in members)],
            "algorithm": ["", *(algorithms.get(str(number), "") for number in members)],
            "weight": [1.0, *shares],
            **dict(zip(names, scores.T, strict=True)),
        }
    )
    best_first = 1 + np.argsort(of_members[:, 0], kind="stable")

    def bounds(of: Callable[[IntArray], Float64], rows: IntArray, found: Float64) -> Float64:
        return _bounds(of, _Units.of(rows, None if structure is None else structure.codes[rows]), found, seed)

    def interval(rows: IntArray, found: Float64) -> Float64:
        drawn = bounds(lambda drawn: losses(combined, drawn, _loss_if_defined), rows, found)
        return np.asarray(np.sort(_scores(used, drawn), axis=0))

    lower, upper = interval(weighed, of_ensemble)
    observed_and_predicted = _compared(codes, combined, target.positive)

    def means(rows: IntArray) -> dict[str, float] | None:
        if not observed_and_predicted:
            return None
        row_weight = None if weight is None else weight[rows]
        found = (float(np.average(each[rows], weights=row_weight)) for each in observed_and_predicted)
        return dict(zip(_NO_MEANS, found, strict=True))

    def of_subgroup(name: str, rows: IntArray, found: Float64, low: Float64, high: Float64) -> pd.DataFrame:
        facts = {"subgroup": name, "n_rows": len(rows), **(means(rows) or _NO_MEANS), "metric": names}
        return pd.DataFrame({**facts, "score": _scores(used, found[None])[0], "lower": low, "upper": high})

    subgroups = None
    divisions = [] if by is None else _divisions(frame, by)
    if divisions:
        tables = [of_subgroup(ALL_ROWS, weighed, of_ensemble, lower, upper)]
        for labels in divisions:
            for name in np.unique(labels[weighed]):
                rows = weighed[labels[weighed] == name]
                found = losses(combined, rows, _loss_if_defined)
                tables.append(of_subgroup(str(name), rows, found, *interval(rows, found)))
        subgroups = pd.concat(tables, ignore_index=True)
    covered = None
    if coverage is not None:
        covered = covered_rows(predictor, frame, codes, coverage, by_class=by_class, weight=weight, divisions=divisions)
    compared = None
    if other is not None:
        of_other = other.predict_members(other.schema.frame_of(X))
        theirs = _normalised(other.combine(list(of_other.values())))
        (others,) = _scores(used, losses(theirs, weighed, deciding=other)[None])
        difference = scores[0] - others

        def differences(rows: IntArray) -> Float64:
            both = losses(combined, rows, _loss_if_defined), losses(theirs, rows, _loss_if_defined, other)
            drawn, of_theirs = _scores(used, np.stack(both))
            return np.asarray(drawn - of_theirs)

        low, high = bounds(differences, weighed, difference)
        compared = pd.DataFrame(
            {
                "metric": names,
                "score": scores[0],
                "other": others,
                "difference": difference,
                "lower": low,
                "upper": high,
                "better": _better(used),
            }
        )
    return TableScores(
        models=models.iloc[[0, *best_first]].reset_index(drop=True),
        intervals=pd.DataFrame(
            {
                "metric": names,
                "score": scores[0],
                "lower": lower,
                "upper": upper,
                "better": _better(used),
            }
        ),
        n_rows=len(weighed),
        subgroups=subgroups,
        covered=covered,
        means=means(weighed),
        decisions=_decisions(predictor, scored, combined[weighed]),
        compared=compared,
    )


def _decisions(predictor: Predictor, codes: IntArray, combined: Float64) -> dict[str, Any] | None:
    """Return the threshold of the positive class and the counts of right and wrong decisions; None without two."""
    target = predictor.target
    if target.task_type is not TaskType.BINARY:
        return None
    counts = count_decisions(codes, decide(combined, predictor.thresholds), target.positive)
    return {"positive": target.classes[target.positive], "threshold": predictor.decision_threshold_, **counts}


def _better(metrics: Sequence[Metric]) -> list[str]:
    return ["higher" if metric.greater_is_better else "lower" for metric in metrics]


def _check_same_target(model: Predictor, other: Predictor) -> None:
    """Raise if two models do not predict the same classes, or not both numbers.

    Raises
    ------
    InvalidParameterError
        If so.
    """
    ours, theirs = (
        list(map(str, each.target.classes)) if each.target.task_type.is_classification else "numbers"
        for each in (model, other)
    )
    if ours != theirs:
        raise InvalidParameterError("against", theirs, f"a model that predicts the same: {ours}")


def _compared(codes: AnyArray, predictions: Float64, positive: int) -> list[AnyArray]:
    """Return targets and predictions whose means can be compared; nothing for more than two classes."""
    if predictions.ndim == 1:
        return [codes, predictions]
    return [codes == positive, predictions[:, positive]] if predictions.shape[1] == 2 else []


def _divisions(frame: pd.DataFrame, by: Any) -> list[AnyArray]:
    """Return the names of the subgroups of the rows, by each column; of several, they begin with that of the column.

    Distinct texts are names of columns, unless there is one per row.
    """
    is_listed = isinstance(by, list | tuple) and len(by) != len(frame) and len(by) > 0
    if not is_listed or not all(isinstance(each, str) for each in by) or len(set(by)) < len(by):
        return [_subgroup_labels(frame, by)]
    if len(by) == 1:
        return [_subgroup_labels(frame, by[0])]
    divisions = [pd.Series(_subgroup_labels(frame, each), dtype=object) for each in by]
    return [(f"{each} " + labels).to_numpy() for each, labels in zip(by, divisions, strict=True)]


def _subgroup_labels(frame: pd.DataFrame, by: Any) -> AnyArray:
    """Return the name of the subgroup of each row.

    Raises
    ------
    UnknownNameError, DataError, InvalidParameterError
        If there is no such column, not one value per row, or too many different ones.
    """
    if isinstance(by, str):
        if by not in frame and {each.strip() for each in by.split(",")} <= set(frame):
            expected = "the name of one column"
            raise InvalidParameterError(
                "by", by, expected, "Give several as --by sex --by ward, or by=['sex', 'ward']."
            )
        if by not in frame:
            raise UnknownNameError("column", by, map(str, frame.columns))
        by = frame[by]
    values = pd.Series(np.asarray(by, dtype=object))
    if len(values) != len(frame):
        raise DataError(f"by must hold one value per row: found {len(values)} for {len(frame)} rows.")
    labels = values.where(values.notna(), _MISSING).map(label_text)
    if labels.nunique() > _MOST_SUBGROUPS:
        expected = f"a column with at most {_MOST_SUBGROUPS} different values"
        raise InvalidParameterError("by", f"{labels.nunique()} values", expected, "Cut numbers into ranges.")
    return labels.to_numpy(dtype=object).astype(str)


def _normalised(output: AnyArray) -> Float64:
    """Return predictions as `Predictor` does: decisions depend on the last digits of ties."""
    exact = output.astype(np.float64)
    return exact if exact.ndim == 1 else np.asarray(exact / exact.sum(axis=1, keepdims=True))


def usual_metrics(predictor: Predictor, own: Metric | None = None) -> list[Metric]:
    """Return the metric of the run and the usual ones for the task.

    Parameters
    ----------
    predictor : Predictor
        The model.
    own : Metric, optional
        The metric of the run. By default its name decides; a custom one, which a model does not contain, is left out.
    """
    target = predictor.target
    usual = [get_metric(name, target.task_type, positive=target.positive) for name in _USUAL[target.task_type]]
    if own is None and not predictor.information.get("custom_metric", False):
        with contextlib.suppress(UnknownNameError, MetricError):  # custom, in models of earlier versions
            name = str(predictor.information.get("metric"))
            own = get_metric(name, target.task_type, positive=target.positive)
    if own is None:
        return usual
    return [own, *(metric for metric in usual if metric.name != own.name)]


def _loss(metric: Metric, y: AnyArray, predictions: AnyArray, weight: Float64 | None, positive: int) -> float:
    """Return a loss; NaN where the metric is not defined: rank metrics of one class, R2 of one value, F1 of no row."""
    if metric.name in _NEEDS_CONTRAST and np.all(y == y[0]):
        return np.nan
    if metric.name in _NEEDS_POSITIVE and not np.any(y == positive):
        return np.nan
    return metric.loss(y, predictions, weight)


def _loss_if_defined(
    metric: Metric, y: AnyArray, predictions: AnyArray, weight: Float64 | None, positive: int
) -> float:
    """Return a loss, or NaN if a custom metric needs more, such as every class, than a draw of few rows has."""
    try:
        return _loss(metric, y, predictions, weight, positive)
    except MetricError:
        return np.nan


def _scores(metrics: Sequence[Metric], losses: Float64) -> Float64:
    return np.array([[m.score(loss) for m, loss in zip(metrics, row, strict=True)] for row in losses])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Units:
    """What a bootstrap draws: rows, or groups of rows.

    Attributes
    ----------
    rows : (n_rows,) array of int
        All rows, those of a unit one after the other.
    starts, sizes : (n_units,) array of int
        Where the rows of each unit begin, and how many they are.
    """

    rows: IntArray
    starts: IntArray
    sizes: IntArray

    @classmethod
    def of(cls, rows: IntArray, groups: IntArray | None) -> _Units:
        """Return the units of rows: each row by itself, or those with the same number in `groups`."""
        if groups is None:
            return cls(rows=rows, starts=np.arange(len(rows)), sizes=np.ones(len(rows), dtype=np.int64))
        _, starts, sizes = np.unique(np.sort(groups), return_index=True, return_counts=True)
        return cls(rows=rows[np.argsort(groups, kind="stable")], starts=starts, sizes=sizes)

    def __len__(self) -> int:
        return len(self.starts)

    def draw(self, n_units: int, rng: np.random.Generator) -> IntArray:
        """Return the rows of units drawn with replacement."""
        drawn = rng.integers(0, len(self), n_units)
        sizes = self.sizes[drawn]
        before = np.cumsum(sizes) - sizes
        positions: IntArray = np.repeat(self.starts[drawn] - before, sizes) + np.arange(sizes.sum())
        return self.rows[positions]


def _bounds(losses: Callable[[IntArray], Float64], units: _Units, found: Float64, seed: int) -> Float64:
    """Return both ends of the intervals of losses, ``(2, n_metrics)``, by bootstrap; NaN for a single group.

    Of many rows, fewer are drawn, and the spread is scaled to the number of rows.
    """
    if len(units) == 1 < len(units.rows):
        return np.full((2, len(found)), np.nan)
    n_drawn = min(len(units), max(2, round(len(units) * _MOST_DRAWN / len(units.rows))))
    rng = np.random.default_rng(seed)
    drawn = np.array([losses(units.draw(n_drawn, rng)) for _ in range(_RESAMPLES)])
    ends = _quantiles(drawn, [(1 - _COVERAGE) / 2, (1 + _COVERAGE) / 2])
    return np.asarray(found + (ends - found) * np.sqrt(n_drawn / len(units)))


def _quantiles(drawn: Float64, shares: Sequence[float]) -> Float64:
    """Return quantiles of each metric over the draws for which it is defined."""
    columns = [column[~np.isnan(column)] for column in drawn.T]
    return np.array([np.quantile(c, shares) if len(c) else np.full(len(shares), np.nan) for c in columns]).T
