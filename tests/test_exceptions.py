"""Errors carry their objects, are caught under the usual names, and can be sent to another process."""

from __future__ import annotations

import pickle

import pytest
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from cashmere.exceptions import (
    ArrayError,
    CashmereError,
    CertificateError,
    ClusterError,
    ClusterVersionError,
    ColumnTypeError,
    ConversionError,
    IncompatibleParametersError,
    InvalidParameterError,
    LookaheadError,
    MissingDependencyError,
    MissingLibraryError,
    MissingParameterError,
    MissingPredictionsError,
    ModelFileError,
    NoSuccessfulTrialError,
    NotFittedError,
    ObservationsError,
    OutputError,
    RunDirectoryError,
    ShapeError,
    SpaceError,
    StrategyError,
    UnknownNameError,
    UsageError,
)

ERRORS = [
    ArrayError("losses", "losses holds NaN."),
    CertificateError("out.onnx: not written.", certificate=None),
    ClusterError("tcp://host:8786", "does not answer."),
    ClusterVersionError("tcp://host:8786", "has workers that cannot run trials."),
    ColumnTypeError("Column 'a' holds lists.", column="a"),
    ConversionError({"member 7 (knn)": "has no converter"}, "Leave it out."),
    IncompatibleParametersError("a does not go with b.", {"a": 1, "b": 2}),
    InvalidParameterError("size", 0, "at least 1", "Leave it out."),
    LookaheadError("All 2 trials are open.", lookahead=2, n_open=2),
    MissingDependencyError("torch", "A network", "latent"),
    MissingDependencyError("filelock", "cashmere.Study", None),
    MissingLibraryError("model/000003.skops", "lightgbm", "4.7.0"),
    MissingParameterError("budget", "The contest needs a budget."),
    MissingPredictionsError(metric=True, targets=False, n_missing=3),
    ModelFileError("model/manifest.json", "is missing."),
    NoSuccessfulTrialError([(0, "knn", "error", "ValueError")], "Try again."),
    NotFittedError(instance=3, method="predict"),
    OutputError("gone/a.csv", "cannot be written."),
    ObservationsError("Two tables are called 'iris'.", table="iris"),
    RunDirectoryError("run", "is not empty."),
    ShapeError("losses", (2,), (3,)),
    SpaceError("The space is empty.", item="space"),
    StrategyError("The strategy decides nothing.", strategy="bo"),
    UnknownNameError("metric", "accurcy", ["accuracy", "log_loss"]),
    UsageError("Call ask first.", instance=1),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_survives_pickling(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), copy.args, vars(copy)) == (str(error), error.args, vars(error))


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_every_error_has_the_base_class_and_its_objects(error):
    assert isinstance(error, CashmereError)
    assert vars(error)


def test_misuse_is_still_a_value_error():
    for kind in (UsageError, LookaheadError, StrategyError, SpaceError, ArrayError, ObservationsError):
        assert issubclass(kind, ValueError), kind


def test_not_fitted_is_caught_like_that_of_scikit_learn():
    caught = set(SklearnNotFittedError.__mro__) & {ValueError, AttributeError}
    assert caught == {ValueError, AttributeError}
    assert all(issubclass(NotFittedError, kind) for kind in caught)
    assert str(NotFittedError(ERRORS, "predict")) == "This list is not fitted yet. Call fit before predict."


def test_a_parameter_error_says_what_to_try_last():
    assert str(InvalidParameterError("n", 0, "at least 1", "Use 1.")) == "n must be at least 1; got 0. Use 1."
    assert str(InvalidParameterError("n", 0, "at least 1")) == "n must be at least 1; got 0."
    assert str(InvalidParameterError("n", "x" * 9999, "at least 1")).endswith("xxx….")


def test_a_shape_is_put_into_a_sentence():
    error = ShapeError("weights", (2, 1), "(n_rows,)")
    assert str(error) == "The shape of weights must be (n_rows,); got (2, 1)."
    assert (error.name, error.shape, error.expected) == ("weights", (2, 1), "(n_rows,)")


def test_only_similar_names_are_suggested():
    assert "Did you mean" not in str(UnknownNameError("strategy", "bayes", ["bo", "nes"]))
    assert "Did you mean 'nes'?" in str(UnknownNameError("strategy", "ness", ["bo", "nes"]))
    assert "Did you mean 'logistic_regression'?" in str(
        UnknownNameError("algorithm", "logistic", ["logistic_regression"])
    )


def test_many_and_strange_names_are_listed_within_bounds():
    names = [*(f"column {i:04}" for i in range(10_000)), "a\nb\x1b[2J", "x" * 1_000_000]
    text = str(UnknownNameError("column", "y", names))
    assert len(text) < 6000 and "and 9942 more" in text and r"'a\nb\x1b[2J'" in text
