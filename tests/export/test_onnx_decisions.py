"""Labels of every type, thresholds and calibration of converted ensembles."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

onnxruntime = pytest.importorskip("onnxruntime")

from cashmere import Predictor  # noqa: E402
from cashmere.data.inference import infer_schema  # noqa: E402
from cashmere.data.preparation import FoldEncoder  # noqa: E402
from cashmere.data.target import TargetCoding  # noqa: E402
from cashmere.data.task import Encoding, TaskType  # noqa: E402
from cashmere.ensembles import StackedEnsemble, WeightedEnsemble  # noqa: E402
from cashmere.ensembles.calibration import Calibration  # noqa: E402
from cashmere.export import export_onnx  # noqa: E402
from cashmere.model.fold_model import fit_fold_model  # noqa: E402

N_ROWS = 90
LABELS = {
    "texts": ["ä b", "c", "d"],
    "whole numbers": [-1, 5, 2**40],
    "numbers": [0.0, 1.0, 7.0],
    "truth": [False, True],
}
WEIGHTED = WeightedEnsemble((3, 8), (0.25, 0.75))
SHARPER = Calibration(scales=(2.0, 1.5, 1.0), offsets=(0.0, 0.1, -0.2), gain=0.1)


def predictor_of(labels, ensemble=WEIGHTED, **others):
    """Return an ensemble of a constant and a linear member on two folds, one of which lacks the first class."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=N_ROWS), "b": rng.choice(["x", "y", "z"], N_ROWS)})
    target = np.array(labels, dtype=object if isinstance(labels[0], str) else None)[np.arange(N_ROWS) % len(labels)]
    coding, codes = TargetCoding.with_codes(target, "classification")
    schema = infer_schema(frame)
    encoders, models = [], {3: [], 8: []}
    for rows in (np.flatnonzero(codes > 0) if len(labels) > 2 else np.arange(N_ROWS), np.arange(N_ROWS)):
        encoder = FoldEncoder.for_schema(Encoding.ONEHOT, schema)
        X = encoder.fit_transform(schema.code(frame).take(rows), codes[rows], TaskType.MULTICLASS, 0)
        encoders.append({Encoding.ONEHOT: encoder})
        for number, learner in {3: DummyClassifier(strategy="prior"), 8: LogisticRegression()}.items():
            pipeline = Pipeline([("learner", learner)])
            models[number].append(fit_fold_model(pipeline, Encoding.ONEHOT, X, codes[rows], n_classes=len(labels)))
    predictor = Predictor(schema=schema, target=coding, encoders=encoders, ensemble=ensemble, models=models, **others)
    return predictor, frame


def exported(predictor, frame, path):
    certificate = export_onnx(predictor, path, frame)
    assert certificate.n_equal == certificate.n_rows
    assert certificate.largest < 1e-6
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["prediction"], {"a": np.zeros((1, 1), np.float32), "b": np.array([["x"]], dtype=object)})[0]


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_keep_their_type(labels, tmp_path):
    predictor, frame = predictor_of(labels)
    label = exported(predictor, frame, tmp_path / "model.onnx")[0]
    assert label in labels
    assert np.asarray(label).dtype.kind == np.asarray(labels).dtype.kind


@pytest.mark.parametrize("calibration", [None, SHARPER])
@pytest.mark.parametrize("thresholds", [None, np.array([0.5, 0.2, 0.3])])
def test_thresholds_and_calibration_count(thresholds, calibration, tmp_path):
    predictor, frame = predictor_of(LABELS["texts"], thresholds=thresholds, calibration=calibration)
    exported(predictor, frame, tmp_path / "model.onnx")
    assert len(set(predictor.predict(frame))) > 1


def test_thresholds_of_two_classes_count(tmp_path):
    predictor, frame = predictor_of(LABELS["truth"], thresholds=np.array([0.49, 0.51]))
    exported(predictor, frame, tmp_path / "model.onnx")
    assert len(set(predictor.predict(frame))) > 1


def test_stacked_ensemble_of_some_classes(tmp_path):
    coefficients = tuple(tuple(row) for row in np.random.default_rng(1).normal(size=(2, 6)))
    stacked = StackedEnsemble(
        members=(3, 8), coefficients=coefficients, intercepts=(0.1, -0.3), classes=(0, 2), n_classes=3
    )
    exported(*predictor_of(LABELS["texts"], stacked), tmp_path / "model.onnx")
