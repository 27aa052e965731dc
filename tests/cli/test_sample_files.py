"""Predictions in the form of a sample file: which columns, which numbers, in which order."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cashmere import AutoClassifier
from cashmere.cli import app
from cashmere.cli.sample_files import like_sample
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.data.reading import read_table
from cashmere.exceptions import DataError

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.2, 0.5, 0.3]])
LABELS = np.array(["C", "CL", "D"])


def model(labels=LABELS, metric="log_loss", positive=1):
    target = SimpleNamespace(positive=positive)
    return SimpleNamespace(classes_=labels, information={"metric": metric}, target=target)


@pytest.fixture
def write(tmp_path):
    """Write a table of three rows and a sample, and return the predictions in its form."""

    def written(sample, predictor, probabilities=P, *, ids=("007", "=b", "-3")):
        pd.DataFrame({"id": ids, "x": [1, 2, 3]}).to_csv(tmp_path / "test.csv", index=False)
        sample.to_csv(tmp_path / "sample.csv", index=False)
        frame = read_table(tmp_path / "test.csv")
        labels = predictor.classes_[probabilities.argmax(axis=1)] if probabilities is not None else np.arange(3.5, 6)
        return like_sample(tmp_path / "sample.csv", tmp_path / "test.csv", frame, predictor, labels, probabilities)

    return written


@pytest.mark.parametrize("before", ["", "Status_"])
def test_columns_of_classes_come_in_the_order_of_the_sample(write, before):
    names = [before + label for label in ("D", "C", "CL")]
    sample = pd.DataFrame({names[0]: 0.3, "id": ["-3", "007", "=b"], names[1]: 0.3, names[2]: 0.4})
    found = write(sample, model())
    assert list(found) == [names[0], "id", *names[1:]]
    assert found["id"].tolist() == ["-3", "007", "=b"]
    np.testing.assert_array_equal(found[names], P[[2, 0, 1]][:, [2, 0, 1]])


@pytest.mark.parametrize(
    ("metric", "expected"),
    [("roc_auc", [0.2, 0.7, 0.5]), ("accuracy", ["no", "yes", "no"]), ("mine", ["no", "yes", "no"])],
)
def test_one_column_of_two_classes_is_what_the_metric_needs(write, metric, expected):
    p = np.array([[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]])
    sample = pd.DataFrame({"id": ["007", "=b", "-3"], "target": 0})
    assert write(sample, model(np.array(["no", "yes"]), metric), p)["target"].tolist() == expected
    if metric == "roc_auc":
        first = write(sample, model(np.array(["no", "yes"]), metric, positive=0), p)
        assert first["target"].tolist() == [0.8, 0.3, 0.5]


@pytest.mark.parametrize(
    ("labels", "shown", "expected"),
    [
        (["no", "yes"], ["no", "no", "no"], ["no", "yes", "no"]),
        (["no", "yes"], ["maybe", "no", "no"], [0.2, 0.7, 0.5]),
        ([0, 1], [0, 1, 0], [0, 1, 0]),
        ([0.0, 1.0], [1, 0, 0], [0, 1, 0]),
        ([0, 1], [0, 0, 0], [0.2, 0.7, 0.5]),
        ([0, 1], [1.0, 0.5, 0.0], [0.2, 0.7, 0.5]),
    ],
)
def test_a_sample_that_shows_classes_gets_classes(write, labels, shown, expected):
    p = np.array([[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]])
    sample = pd.DataFrame({"id": ["007", "=b", "-3"], "target": shown})
    assert write(sample, model(np.array(labels)), p)["target"].tolist() == expected


def test_whole_numbers_are_written_as_in_the_sample(write):
    p = np.array([[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]])
    for shown, dtype in ((0, "int64"), (0.5, "float64")):
        found = write(pd.DataFrame({"target": [shown] * 3}), model(np.array([0.0, 1.0]), "accuracy"), p)
        assert found["target"].dtype == dtype


def test_values_and_labels_of_several_classes_have_one_column(write):
    sample = pd.DataFrame({"id": ["007", "=b", "-3"], "y": 0})
    assert write(sample, model())["y"].tolist() == ["C", "D", "CL"]
    assert write(sample, model(), None)["y"].tolist() == [3.5, 4.5, 5.5]


def test_without_a_common_column_rows_stay_in_order(write):
    assert write(pd.DataFrame({"y": [0, 0, 0]}), model(), None)["y"].tolist() == [3.5, 4.5, 5.5]
    twice = ("a", "a", "b")
    assert write(pd.DataFrame({"id": twice, "y": 0}), model(), None, ids=twice)["y"].tolist() == [3.5, 4.5, 5.5]


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        ({"id": ["007", "=b", "c"], "y": 0}, "3 rows, the table 3, which by 'id' lacks 1 of them, such as 'c'"),
        ({"id": ["007", "=b"], "y": 0}, "other rows than the table: 2 rows, the table 3. Predict"),
        ({"y": [0, 0]}, "has 2 rows, but the table has 3"),
        ({"id": ["007", "=b", "-3"]}, "has 0 columns that the table lacks. Expected one column for the predictions"),
        (
            {"id": ["007", "=b", "-3"], "C": 0, "D": 0, "E": 0},
            "lacks 'CL', but has 'E'. .* each class: 'C', 'CL', 'D'",
        ),
        ({"id": ["007", "=b", "-3"], "C": 0, "D": 0}, "lacks 'CL'. Expected one column"),
        ({"id": ["007", "=b", "-3"], "a": 0, "b": 0}, "has 2 columns that the table lacks: 'a', 'b'. Expected"),
    ],
)
def test_samples_of_something_else_are_refused(write, sample, words):
    with pytest.raises(DataError, match=words):
        write(pd.DataFrame(sample), model())


def test_whole_numbers_are_the_same_in_every_file(write):
    sample = pd.DataFrame({"id": [2.0, 1.0, 3.0], **{f"Class_{k}": 0.3 for k in (1, 2, 3)}})
    found = write(sample, model(np.array([1.0, 2.0, 3.0])), ids=(1, 2, 3))
    np.testing.assert_array_equal(found[["Class_1", "Class_2", "Class_3"]], P[[1, 0, 2]])


def test_a_target_in_the_table_identifies_nothing(write):
    predictor = model()
    predictor.information["target"] = "x"
    sample = pd.DataFrame({"id": ["007", "=b", "-3"], "x": 0})
    assert write(sample, predictor)["x"].tolist() == ["C", "D", "CL"]


def test_rows_that_cannot_be_told_apart_are_not_reordered(write):
    with pytest.raises(DataError, match="'id' of the table are not unique"):
        write(pd.DataFrame({"id": ["b", "a", "a"], "y": 0}), model(), None, ids=("a", "a", "b"))


def test_command_writes_a_submission(tmp_path):
    table = demo_table().head(300).assign(id=[f"-{i:04}" for i in range(300)])
    X, y = table.drop(columns=[DEMO_TARGET, "id"]), table[DEMO_TARGET]
    AutoClassifier(budget="1trials", isolation="none", include=["lightgbm"], run_directory=tmp_path / "run").fit(X, y)
    test = table.drop(columns=DEMO_TARGET).tail(20)
    test.to_csv(tmp_path / "test.csv", index=False)
    sample = pd.DataFrame({"id": test["id"][::-1], "risk": 0.5})
    sample.to_csv(tmp_path / "sample.csv", index=False)
    command = ["predict", "run", "test.csv", "-o", "submission.csv", "--like", "sample.csv"]
    paths = [str(tmp_path / each) if "." in each or each == "run" else each for each in command]
    done = CliRunner().invoke(app, paths)
    assert done.exit_code == 0, done.output
    found = pd.read_csv(tmp_path / "submission.csv", dtype={"id": str})
    assert list(found) == ["id", "risk"] and found["id"].tolist() == sample["id"].tolist()
    assert found["risk"].min() > 0 and found["risk"].max() < 1
    refused = CliRunner().invoke(app, [*paths, "--proba"])
    assert refused.exit_code == 2 and "The sample (--like) decides the columns" in refused.output
