"""Convert a fitted ensemble to one ONNX graph: columns, encoders, members, ensemble, calibration, decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import ModelProto

from cashmere.base.arrays import FloatArray
from cashmere.base.versions import versions
from cashmere.data.task import Encoding
from cashmere.ensembles import StackedEnsemble, WeightedEnsemble
from cashmere.ensembles.calibration import FLOOR
from cashmere.ensembles.stacking import PROBABILITY_CLIP
from cashmere.exceptions import ConversionError
from cashmere.export import boosters, learners, steps
from cashmere.export.columns import coded_columns, encoded
from cashmere.export.graph import Graph, Value
from cashmere.model.fold_model import FoldModel
from cashmere.model.predictor import SHARE_OF_REFITS, Predictor

Converter = Callable[[Graph, Any, Value], Value]

_STEPS: Mapping[str, Converter] = {
    "StandardScaler": steps.standard_scaler,
    "RobustScaler": steps.robust_scaler,
    "QuantileTransformer": steps.quantile_transformer,
    "PiecewiseLinearColumns": steps.piecewise_linear_columns,
    "OutlierClipper": steps.outlier_clipper,
    "DoublePrecision": steps.double_precision,
    "Nystroem": steps.similarities,
    "ArithmeticFeatures": steps.arithmetic_features,
}
"""Converters by name of the class. A custom class with the same name would be noticed, as predictions are compared."""

_LEARNERS: Mapping[str, Converter] = {
    "CategoryLGBMClassifier": learners.lightgbm_classifier,
    "CategoryLGBMRegressor": learners.lightgbm_regressor,
    "XGBClassifier": learners.xgboost_classifier,
    "XGBRegressor": learners.xgboost_regressor,
    "CatBoostClassifier": learners.catboost_classifier,
    "CatBoostRegressor": boosters.catboost_margins,
    "CategoryCatBoostClassifier": learners.catboost_classifier,
    "CategoryCatBoostRegressor": boosters.catboost_margins,
    "CategoryHistogramClassifier": learners.histogram_classifier,
    "CategoryHistogramRegressor": learners.histogram_regressor,
    "ExponentForestClassifier": learners.forest,
    "ExponentForestRegressor": learners.forest,
    "ExponentExtraTreesClassifier": learners.forest,
    "ExponentExtraTreesRegressor": learners.forest,
    "OrderedForestClassifier": learners.forest,
    "RandomForestClassifier": learners.forest,
    "RandomForestRegressor": learners.forest,
    "ExtraTreesClassifier": learners.forest,
    "ExtraTreesRegressor": learners.forest,
    "LogisticRegression": learners.linear_classifier,
    "Ridge": learners.linear_regressor,
    "EarlyStoppedMLPClassifier": learners.network,
    "EarlyStoppedMLPRegressor": learners.network,
    "RealMLPClassifier": learners.realmlp_classifier,
    "RealMLPRegressor": learners.realmlp_regressor,
    "MarginProbabilities": learners.squashed_margins,
    "CoupledMargins": learners.coupled_margins,
    "SVR": learners.support_vector_regressor,
    "DummyClassifier": learners.constant_classifier,
    "DummyRegressor": learners.constant_regressor,
}

PREDICTION, PROBABILITIES = "prediction", "probabilities"
"""Names of the outputs."""


def convert(predictor: Predictor) -> ModelProto:
    """Convert an ensemble into one ONNX model that predicts the same from the same columns.

    Parameters
    ----------
    predictor : Predictor
        The ensemble.

    Returns
    -------
    onnx.ModelProto
        Inputs: one per used column, with its name, ``(n_rows, 1)``. Outputs: ``prediction``, labels or numbers,
        ``(n_rows,)``; for classification ``probabilities``, ``(n_rows, n_classes)``; and finally the predictions of
        each member.

    Raises
    ------
    ConversionError
        If columns or members have no counterpart in ONNX; the message names all of them.
    """
    graph = Graph()
    columns = coded_columns(graph, predictor.schema)
    matrices: dict[tuple[int, Encoding], Value] = {}
    members, reasons = {}, {}
    for number in predictor.ensemble.members:
        parts: dict[bool, list[Value]] = {}
        for k, model in predictor.averaged_models(number).items():
            key = (k, model.encoding)
            if key not in matrices:
                matrices[key] = encoded(graph, predictor.encoders[k][model.encoding], columns)
            try:
                part = _fold_model(graph, model, matrices[key])
                parts.setdefault(predictor.is_refit(k), []).append(part)
            except ConversionError as error:
                reasons[member_name(predictor, number)] = "; ".join(error.reasons.values())
                break
        else:
            means = {refit: _mean(graph, each) for refit, each in parts.items()}
            if len(means) == 2:
                members[number] = means[False] * (1 - SHARE_OF_REFITS) + means[True] * SHARE_OF_REFITS
            else:
                (members[number],) = means.values()
    if reasons:
        advice = (
            "Choose members that do with `cashmere refine RUN --deployable onnx`, or fit with deployable='onnx' "
            "(--deployable onnx)."
        )
        raise ConversionError(reasons, advice)
    combined = _calibrated(graph, predictor, _combined(graph, predictor, members))
    _decide(graph, predictor, combined.cast(np.float32).cast(np.float64))
    n_columns = predictor.target.n_classes if predictor.target.task_type.is_classification else None
    alone = {n: value if n_columns else graph.node("Squeeze", value, np.array([1])) for n, value in members.items()}
    for number, value in alone.items():  # last, so that they are easy to remove
        graph.output(graph.free_name(member_output(number)), value, n_columns)
    return graph.to_model(_facts(predictor))


def member_name(predictor: Predictor, number: int) -> str:
    """Return the name of a member in texts, such as ``member 7 (lightgbm)``."""
    algorithm = predictor.information.get("algorithms", {}).get(str(number), "constant")
    return f"member {number} ({algorithm})"


def member_output(number: int) -> str:
    """Return the name of the output with the predictions of a member."""
    return f"member {number}"


def _fold_model(graph: Graph, model: FoldModel, matrix: Value) -> Value:
    """Return the predictions of a fold model: ``(n_rows, n_classes)``, or one column of values; float32."""
    if model.classes is None:
        values = _learner(graph, model.pipeline, matrix)
        return (values if model.log_limit is None else _of_logarithms(graph, values, model.log_limit)).cast(np.float32)
    if len(model.classes) == 1:
        local = graph.rows_of(np.ones(1, dtype=np.float32), matrix)
    else:
        local = _learner(graph, model.pipeline, matrix).cast(np.float32)
    if len(model.classes) == model.n_classes:
        return local
    spread = np.zeros((len(model.classes), model.n_classes), dtype=np.float32)
    spread[np.arange(len(model.classes)), model.classes] = 1
    return local @ spread


def _of_logarithms(graph: Graph, logarithms: Value, limit: float) -> Value:
    """Return the values of predicted logarithms, see `cashmere.model.log_targets.values_of`."""
    return graph.node("Exp", logarithms.cast(np.float64).at_least(0.0).at_most(limit)) - 1.0


def _learner(graph: Graph, learner: Any, matrix: Value) -> Value:
    kind = type(learner).__name__
    if kind == "Pipeline":
        *before, (_, last) = learner.steps
        for _, step in before:
            matrix = _step(graph, step, matrix)
        return _learner(graph, last, matrix)
    if kind == "TransformedTargetRegressor":
        scaled = _learner(graph, learner.regressor_, matrix).cast(np.float64)
        unscaled: Value = scaled * learner.transformer_.scale_ + learner.transformer_.mean_
        return unscaled
    if kind not in _LEARNERS:
        raise ConversionError({kind: f"contains a {kind}, for which there is no converter"})
    return _LEARNERS[kind](graph, learner, matrix)


def _step(graph: Graph, step: Any, matrix: Value) -> Value:
    kind = type(step).__name__
    if step is None or step == "passthrough":
        return matrix
    if kind not in _STEPS:
        raise ConversionError({kind: f"contains a {kind}, for which there is no converter"})
    return _STEPS[kind](graph, step, matrix)


def _mean(graph: Graph, parts: list[Value]) -> Value:
    """Return the mean, summed in float32 as `Predictor` does."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total / len(parts)


def _combined(graph: Graph, predictor: Predictor, members: Mapping[int, Value]) -> Value:
    """Return the combined predictions of the members, float64."""
    ensemble = predictor.ensemble
    parts = [members[number].cast(np.float64) for number in ensemble.members]
    if isinstance(ensemble, StackedEnsemble):
        return _stacked(graph, ensemble, parts)
    assert isinstance(ensemble, WeightedEnsemble)
    first, *others = (part * weight for part, weight in zip(parts, ensemble.weights, strict=True))
    for part in others:
        first = first + part
    return first


def _stacked(graph: Graph, ensemble: StackedEnsemble, parts: list[Value]) -> Value:
    """Return the linear model of the members' log-odds, log-probabilities or values."""
    if ensemble.classes:
        parts = [graph.node("Log", part.at_least(PROBABILITY_CLIP)) for part in parts]
    if ensemble.n_classes == 2:
        parts = [part @ np.array([[-1.0], [1.0]]) for part in parts]
    outputs = graph.side_by_side(*parts) @ np.array(ensemble.coefficients).T + np.array(ensemble.intercepts)
    if not ensemble.classes:
        return outputs
    spread = np.zeros((len(ensemble.classes), ensemble.n_classes))
    spread[np.arange(len(ensemble.classes)), ensemble.classes] = 1.0
    return graph.node("Softmax", outputs, axis=1) @ spread


def _calibrated(graph: Graph, predictor: Predictor, combined: Value) -> Value:
    if predictor.calibration is None:
        return combined
    logs = graph.node("Log", combined.at_least(FLOOR))
    scales, offsets = np.array(predictor.calibration.scales), np.array(predictor.calibration.offsets)
    return graph.node("Softmax", logs * scales + offsets, axis=1)


def _decide(graph: Graph, predictor: Predictor, combined: Value) -> None:
    """Declare the outputs: labels and probabilities, or values."""
    if not predictor.target.task_type.is_classification:
        if predictor.least_prediction is not None:
            combined = combined.at_least(predictor.least_prediction)
        values = graph.node("Squeeze", combined.cast(np.float32), np.array([1]))
        graph.output(graph.free_name(PREDICTION), values)
        return
    shares = combined / graph.sum_over(combined, 1, keep=True)
    labels = predictor.target.labels()
    texts_or_numbers = labels.astype(object) if labels.dtype.kind in "UO" else labels
    chosen = graph.node("Gather", texts_or_numbers, _chosen(graph, shares, predictor.thresholds))
    graph.output(graph.free_name(PREDICTION), chosen)
    graph.output(graph.free_name(PROBABILITIES), shares.cast(np.float32), len(labels))


def _chosen(graph: Graph, shares: Value, thresholds: FloatArray | None) -> Value:
    """Return the codes of the decided classes, see `cashmere.ensembles.threshold.decide`."""
    if thresholds is None:
        return graph.node("ArgMax", shares, axis=1, keepdims=0)
    if len(thresholds) == 2:
        return (graph.node("Gather", shares, np.array(1), axis=1) >= float(thresholds[1])).cast(np.int64)
    return graph.node("ArgMax", shares / thresholds, axis=1, keepdims=0)


def _facts(predictor: Predictor) -> dict[str, str]:
    made_with = ", ".join(f"{name} {version}" for name, version in versions().items())
    return {
        "cashmere": made_with,
        "task": predictor.target.task_type.value,
        "target": str(predictor.information.get("target")),
        "classes": "\n".join(map(str, predictor.target.labels().tolist())) if predictor.target.classes else "",
    }
