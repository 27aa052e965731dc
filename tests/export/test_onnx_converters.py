"""Every learner and step, converted alone, computes what it did before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

onnxruntime = pytest.importorskip("onnxruntime")

from scipy.stats import norm  # noqa: E402

from cashmere.data.inference import infer_schema  # noqa: E402
from cashmere.data.preparation import FoldEncoder  # noqa: E402
from cashmere.data.schema import TableSchema  # noqa: E402
from cashmere.data.task import Encoding, TaskProfile, TaskType  # noqa: E402
from cashmere.exceptions import ConversionError  # noqa: E402
from cashmere.export.columns import coded_columns, encoded  # noqa: E402
from cashmere.export.converting import _fold_model  # noqa: E402
from cashmere.export.graph import Graph  # noqa: E402
from cashmere.export.inputs import onnx_inputs, with_gaps_and_unseen_levels  # noqa: E402
from cashmere.export.normal_quantiles import normal_quantile  # noqa: E402
from cashmere.export.steps import outlier_clipper  # noqa: E402
from cashmere.model.fold_model import fit_fold_model  # noqa: E402
from cashmere.space.component import BuildContext  # noqa: E402
from cashmere.space.estimators.outliers import OutlierClipper  # noqa: E402
from cashmere.space.named.registry import make_space  # noqa: E402

N_ROWS, N_TRAIN = 160, 120
CLASSES = {TaskType.BINARY: 2, TaskType.MULTICLASS: 3, TaskType.REGRESSION: 1}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "length": rng.normal(size=N_ROWS),
            "number of things": rng.integers(0, 50, N_ROWS),
            "size": np.exp(rng.normal(size=N_ROWS)),
            "colour": rng.choice(["red", "grün", "blue", "1"], N_ROWS),
            "town": rng.choice([f"town {i}" for i in range(30)], N_ROWS),
            "old": rng.random(N_ROWS) < 0.4,
            "sold": rng.choice(["no", "yes"], N_ROWS),
            "when": pd.Timestamp("1999-12-30T00:30") + pd.to_timedelta(rng.integers(0, 20_000, N_ROWS), unit="h"),
        }
    )
    for name, share in {"length": 0.1, "colour": 0.1, "when": 0.05, "sold": 0.1}.items():
        frame.loc[rng.random(N_ROWS) < share, name] = None
    return frame


@pytest.fixture(scope="module")
def target(frame):
    noise = np.random.default_rng(1).normal(size=N_ROWS)
    return frame["length"].fillna(0) + (frame["colour"] == "red") + frame["number of things"] / 30 + noise / 2


@pytest.fixture(scope="module")
def schema(frame):
    return infer_schema(frame)


@pytest.fixture(scope="module")
def unseen(frame, schema):
    """Unseen rows, then the training rows with gaps and unseen levels."""
    altered = with_gaps_and_unseen_levels(schema, frame.head(N_TRAIN), np.random.default_rng(2))
    return pd.concat([frame.iloc[N_TRAIN:].astype(object), altered], ignore_index=True)


def targets_of(task, target):
    if task is TaskType.REGRESSION:
        return target.to_numpy() * 100 + 1000
    return pd.qcut(target, CLASSES[task], labels=False).to_numpy()


def run(graph, schema, rows):
    session = onnxruntime.InferenceSession(graph.to_model({}).SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, onnx_inputs(schema, rows))[0]


@pytest.mark.parametrize("encoding", list(Encoding))
def test_encoded_columns_are_the_same_bit_for_bit(encoding, frame, target, schema, unseen):
    encoder = FoldEncoder.for_schema(encoding, schema)
    encoder.fit_transform(schema.code(frame), targets_of(TaskType.MULTICLASS, target), TaskType.MULTICLASS, 0)
    graph = Graph()
    matrix = encoded(graph, encoder, coded_columns(graph, schema))
    expected = encoder.transform(schema.code(unseen))
    graph.output("matrix", matrix, expected.shape[1])
    assert np.isnan(expected).any() == (encoding is Encoding.ORDINAL)
    np.testing.assert_array_equal(run(graph, schema, unseen), expected)


@pytest.mark.parametrize("parts", [(), ("month", "hour")])
def test_dates_before_1970_and_after_leap_days_have_the_same_parts(parts):
    days = ["1600-02-29", "1899-12-31", "1900-03-01", "1969-12-31T23:59:59", "1970-01-01", "2000-02-29", "2000-03-01"]
    table = pd.DataFrame({"when": [*days, "2023-12-31T00:00", "2024-02-29T12:30:00.5", None]})
    (column,) = infer_schema(table).columns
    schema = TableSchema(columns=(replace(column, parts=parts),))
    encoder = FoldEncoder.for_schema(Encoding.ORDINAL, schema)
    expected = encoder.fit_transform(schema.code(table), np.arange(10) % 2, TaskType.BINARY, 0)
    graph = Graph()
    graph.output("matrix", encoded(graph, encoder, coded_columns(graph, schema)), expected.shape[1])
    assert expected.shape[1] == (len(parts) or 6)
    np.testing.assert_array_equal(run(graph, schema, table), expected)


def test_normal_quantiles_are_those_of_scipy():
    low = np.geomspace(1e-9, 0.5, 40)
    table = pd.DataFrame({"share": np.concatenate([low, 1 - low[:-1], [0, 1]])})
    schema = infer_schema(table)
    graph = Graph()
    share = coded_columns(graph, schema).numbers.cast(np.float64)
    graph.output("quantile", normal_quantile(graph, share, least=1e-9), 1)
    inside = np.clip(table["share"].to_numpy().astype(np.float32).astype(np.float64), 1e-9, 1 - 1e-9)
    np.testing.assert_allclose(run(graph, schema, table)[:, 0], norm.ppf(inside), rtol=1e-12, atol=1e-14)


def test_outliers_are_clipped_as_in_the_model():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=300), "b": np.exp(rng.normal(size=300))})
    table.loc[[3, 4], "a"], table.loc[5, "b"], table.loc[6, "a"] = (1e30, -1e6), 1e4, None
    schema = infer_schema(table)
    matrix = schema.code(table).values.astype(np.float32)
    clipper = OutlierClipper(np.zeros(2, dtype=bool)).fit(matrix)
    graph = Graph()
    graph.output("clipped", outlier_clipper(graph, clipper, coded_columns(graph, schema).numbers), 2)
    expected = clipper.transform(matrix)
    assert (expected != matrix)[~np.isnan(matrix)].sum() == 3
    np.testing.assert_array_equal(run(graph, schema, table), expected)


def difference(task, name, encoding, values, data):
    """Return the largest difference of a learner, fitted and converted, in probabilities or standard deviations."""
    frame, target, schema, unseen = data
    y = targets_of(task, target)[:N_TRAIN]
    encoder = FoldEncoder.for_schema(encoding, schema)
    X = encoder.fit_transform(schema.code(frame.head(N_TRAIN)), y, task, 0)
    profile = TaskProfile(
        task_type=task, n_rows=N_TRAIN, n_columns=len(schema.used), n_classes=CLASSES[task], has_categories=True
    )
    space = make_space("default", profile)
    given = {f"{name}:encoding": encoding.value} | {f"{name}:{key}": value for key, value in values.items()}
    configuration = space.completed({"algorithm": name} | given)
    assert space.encoding_of(configuration) is encoding
    context = BuildContext(
        task_type=task,
        n_classes=CLASSES[task],
        n_rows=N_TRAIN,
        n_features=X.shape[1],
        categorical=encoder.categorical,
    )
    model = fit_fold_model(space.build(configuration, context), encoding, X, y, n_classes=CLASSES[task])
    graph = Graph()
    matrix = encoded(graph, encoder, coded_columns(graph, schema))
    graph.output("predicted", _fold_model(graph, model, matrix), CLASSES[task])
    expected = model.predict(encoder.transform(schema.code(unseen)))
    got = run(graph, schema, unseen).reshape(expected.shape)
    return np.abs(got - expected).max() / (1 if task.is_classification else expected.std())


CASES = [
    (TaskType.MULTICLASS, "lightgbm", Encoding.ORDINAL, {"extra_trees": True, "features": "arithmetic"}),
    (TaskType.BINARY, "xgboost", Encoding.ORDINAL, {"max_cat_to_onehot": 64}),
    (TaskType.MULTICLASS, "catboost", Encoding.ONEHOT, {"features": "arithmetic"}),
    (TaskType.BINARY, "hist_gradient_boosting", Encoding.ORDINAL, {}),
    (TaskType.MULTICLASS, "extra_trees", Encoding.TARGET, {}),
    (TaskType.BINARY, "logistic_regression", Encoding.ONEHOT, {"scaling": "quantile"}),
    (TaskType.MULTICLASS, "logistic_regression", Encoding.TARGET, {"basis": "similarities", "scaling": "robust"}),
    (TaskType.REGRESSION, "ridge", Encoding.TARGET, {"basis": "bins", "scaling": "quantile"}),
    (TaskType.REGRESSION, "ridge", Encoding.ONEHOT, {"basis": "similarities", "scaling": "standard"}),
    (TaskType.MULTICLASS, "mlp", Encoding.TARGET, {"basis": "bins"}),
    (TaskType.MULTICLASS, "svm", Encoding.TARGET, {}),
    (TaskType.BINARY, "svm", Encoding.ONEHOT, {}),
    (TaskType.REGRESSION, "svm", Encoding.ONEHOT, {}),
]
SLOW_CASES = [
    (TaskType.BINARY, "random_forest", Encoding.ORDINAL, {}),
    (TaskType.BINARY, "lightgbm", Encoding.ORDINAL, {}),
    (TaskType.REGRESSION, "lightgbm", Encoding.ONEHOT, {}),
    (TaskType.MULTICLASS, "xgboost", Encoding.ORDINAL, {"max_cat_to_onehot": 4}),
    (TaskType.REGRESSION, "xgboost", Encoding.TARGET, {"features": "arithmetic"}),
    (TaskType.BINARY, "catboost", Encoding.TARGET, {}),
    (TaskType.REGRESSION, "catboost", Encoding.ONEHOT, {}),
    (TaskType.MULTICLASS, "hist_gradient_boosting", Encoding.ORDINAL, {}),
    (TaskType.REGRESSION, "hist_gradient_boosting", Encoding.TARGET, {}),
    (TaskType.REGRESSION, "extra_trees", Encoding.ORDINAL, {}),
    (TaskType.BINARY, "mlp", Encoding.ONEHOT, {"scaling": "standard"}),
    (TaskType.REGRESSION, "mlp", Encoding.TARGET, {"scaling": "robust"}),
    (TaskType.BINARY, "svm", Encoding.ONEHOT, {"scaling": "quantile"}),
    (TaskType.BINARY, "realmlp", Encoding.ONEHOT, {}),
    (TaskType.MULTICLASS, "realmlp", Encoding.TARGET, {}),
    (TaskType.REGRESSION, "realmlp", Encoding.ONEHOT, {}),
]


@pytest.mark.parametrize(
    "case",
    [*CASES, *(pytest.param(case, marks=pytest.mark.slow) for case in SLOW_CASES)],
    ids=lambda case: f"{case[1]}-{case[0]}-{case[2]}",
)
def test_converted_learners_predict_the_same(case, frame, target, schema, unseen):
    task, name, encoding, values = case
    if name in ("xgboost", "catboost"):
        pytest.importorskip(name)
    largest = difference(task, name, encoding, values, (frame, target, schema, unseen))
    assert largest < 1e-5  # XGBoost adds up in float32


def test_what_has_no_converter_says_so(frame, target, schema, unseen):
    data = (frame, target, schema, unseen)
    with pytest.raises(ConversionError, match="KNeighborsClassifier"):
        difference(TaskType.BINARY, "knn", Encoding.ONEHOT, {}, data)
    pytest.importorskip("catboost")
    with pytest.raises(ConversionError, match="means of the target"):
        difference(TaskType.BINARY, "catboost", Encoding.ORDINAL, {}, data)
