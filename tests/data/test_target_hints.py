from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cashmere import AutoClassifier
from cashmere.data.target import TargetCoding
from cashmere.data.target_hints import (
    class_order_hint,
    counts_hint,
    feature_that_is_the_target,
    frequent_class_hint,
    missing_outcome_hint,
    target_hint,
    values_hint,
    zeros_hint,
)
from cashmere.exceptions import DataError, TargetWarning


def hint(labels, task=None) -> str | None:
    return target_hint(TargetCoding.from_target(labels, task))


@pytest.mark.parametrize("values", [["a", "b", "a"], [1.0, np.nan, 2.0], [True, False, True]])
def test_target_among_the_features_is_found_by_its_name_and_values(values):
    table = pd.DataFrame({"x": [1, 2, 3], "y": values})
    told = feature_that_is_the_target(table, table["y"])
    assert told is not None and "column 'y' has its name and its values" in told and "X.drop(columns='y')" in told
    other = table["y"].iloc[::-1].rename("x")
    for frame, y in ((table, other), (table, table["y"].to_numpy()), (table[["x"]], table["y"])):
        assert feature_that_is_the_target(frame, y) is None
    assert feature_that_is_the_target(table, table["y"].astype("category")) is not None
    assert feature_that_is_the_target(table, table["y"].set_axis([7, 8, 9])) is not None


def test_many_classes_in_the_notation_of_numbers_are_named_with_a_remedy():
    assert hint([f"{i},{i:03}" for i in range(1, 40)]) == (
        "The target holds numbers with commas, such as '1,001', which are read as classes: read the file with "
        "pandas.read_csv(..., decimal=','), or thousands=',' if they separate thousands."
    )
    assert "numbers with % or a currency sign, such as '0 €'" in hint([f"{i} €" for i in range(40)], "classification")
    assert hint([f"{i} €" for i in range(40)]) is None  # values
    assert "numbers and a few other texts, such as 'sold'" in hint([*map(str, range(40)), "sold"])


def test_spellings_of_a_class_are_named():
    found = hint(["yes", " yes", "YES", "no", "No", "?"])
    assert "differ only in case or blanks (' yes' and 'YES' and 'yes'; 'No' and 'no'):" in found


@pytest.mark.parametrize(
    "labels",
    [["10%", "20%", "30%"], ["a", "b"], [1, 2, 3], [True, False], [0.5, 1.5, 2.5], [f"k{i}" for i in range(30)]],
)
def test_other_targets_get_no_hint(labels):
    assert hint(labels) is None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["3,14", "2,5"], "holds numbers with commas, such as '3,14': read the file with .*decimal=','"),
        (["0.5", "1.5"], "holds text, for example '0.5'. Convert it with pandas.to_numeric"),
        (["low", "high"], "or use a classifier"),
    ],
)
def test_text_in_regression_is_refused_with_a_remedy(values, words):
    with pytest.raises(DataError, match=words):
        TargetCoding.with_codes(values, "regression")


@pytest.mark.parametrize(
    ("target", "words"), [("price", "the column itself, not its name"), ([[1, 2], [3, 4]], "one value per row")]
)
def test_target_of_another_shape_is_refused_with_a_remedy(target, words):
    with pytest.raises(DataError, match=f"y should be a 1d array, got an array of shape .* instead. Pass .*{words}"):
        TargetCoding.from_target(target)


def test_values_that_teach_nothing_are_reported():
    assert values_hint(np.full(5, 3.0)).startswith("Every row has the target 3: there is nothing to predict.")
    seconds = 1.7e9 + np.linspace(0, 600, 50)
    assert "from 1700000000 to 1700000600. Subtract 1700000000 from them" in values_hint(seconds)


@pytest.mark.parametrize("values", [np.linspace(0, 1, 10**5), np.array([1e300, -1e300, 0.0]), 1e9 * np.arange(9.0)])
def test_other_values_are_not(values):
    assert values_hint(values) is None


def test_many_consecutive_whole_numbers_may_be_amounts():
    text = counts_hint(TargetCoding.from_target(list(range(1, 19)) * 5))
    assert text.startswith("The target holds the whole numbers 1 to 18, which are read as 18 classes.")
    for other in (range(10), [*range(11), 20], [f"c{i}" for i in range(15)]):
        assert counts_hint(TargetCoding.from_target(list(other) * 5)) is None


def test_zeros_under_a_percentage_error_are_reported():
    y = np.array([0.0, 0.0, 1.5, 2.0])
    assert zeros_hint(y, "mape").startswith("The metric mape divides by the target, which is 0 in 2 of 4 rows:")
    assert zeros_hint(y, "mae") is None
    assert zeros_hint(y[2:], "mape") is None


def test_metric_of_the_frequent_class_is_reported():
    coding, codes = TargetCoding.with_codes(["ok"] * 9 + ["fraud"])
    found = frequent_class_hint(coding, codes, "average_precision")
    assert "'ok', the second in sorted order, to which 90 % of the rows belong. If 'fraud' is what you look" in found
    assert "pos_label='fraud' (--pos-label fraud)" in found
    assert frequent_class_hint(coding, codes, "roc_auc") is None
    assert frequent_class_hint(coding.looking_for("fraud"), codes, "f1") is None
    assert frequent_class_hint(*TargetCoding.with_codes([0] * 9 + [1]), "f1") is None
    assert frequent_class_hint(*TargetCoding.with_codes([0, 1, 2] * 9), "f1") is None


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        (["Unknown ", "no", "yes"], "Class 'Unknown ' of the target (10 rows) looks like a missing outcome. If so,"),
        (
            ["N/A", "no", "yes", "-"],
            "Classes '-' of the target (40 rows), 'N/A' of the target (10 rows) look like missing",
        ),
        ([9, 0, 1], "Class 9 of the target (10 rows)"),
        ([99.0, 1.0, 2.0], "Class 99.0 of the target (10 rows)"),
        (["-9", "0", "1"], "Class '-9' of the target (10 rows)"),
        (["999", "dead", "alive"], "Class '999' of the target (10 rows)"),
    ],
)
def test_classes_that_look_like_missing_outcomes_are_named(labels, shown):
    rows = np.repeat(np.array(labels), [10, 80, 80, 40][: len(labels)])
    text = missing_outcome_hint(*TargetCoding.with_codes(rows))
    assert text.startswith(shown) and "with --missing-target" in text


@pytest.mark.parametrize(
    "rows",
    [
        list(range(10)) * 9,  # digits
        [0, 1, 2] * 9,
        [1, 2, 3, 9] * 9,
        [7, 8, 9] * 9,
        [0, 1, 9] * 9,  # many of 9
        ["A1", "B2", "9"] * 3 + ["A1", "B2"] * 9,
        ["none", "low", "high"] * 9,
        ["unknown", "known"] * 9,  # what is to be told apart
        [True, False] * 9,
    ],
)
def test_other_classes_are_no_missing_outcomes(rows):
    assert missing_outcome_hint(*TargetCoding.with_codes(rows)) is None


@pytest.mark.parametrize(
    ("y", "is_known"),
    [
        (["low", "mid", "high"], False),
        (["0", "5", "10"], False),  # sorted as texts
        (["1", "2", "10", "3"], False),
        (["1", "2", "3"], True),
        ([0, 5, 10], True),
        (["low", "high"], True),  # the order of two does not matter
        (pd.Categorical(["low", "mid", "high"], ["low", "mid", "high"], ordered=True), False),
        (pd.Categorical(["low", "mid", "high"], ["low", "mid", "high"]), False),
        (pd.Categorical(["a", "b", "c"], ["a", "b", "c", "d"], ordered=True), True),
        (pd.Categorical(["a", "b", "c"], ["c", "b", "a"], ordered=True), True),  # kappa is the same backwards
        (pd.Categorical([1, 2, 3], [2, 1, 3], ordered=True), False),
    ],
)
def test_metric_of_ordered_classes_tells_their_order_unless_it_is_known(y, is_known):
    y = pd.Series(y)
    coding = TargetCoding.from_target(y, "classification")
    assert (class_order_hint(coding, y, "quadratic_kappa") is None) == is_known
    assert class_order_hint(coding, y, "accuracy") is None


def test_fit_tells_the_order_of_the_classes():
    x = np.arange(60)
    y = pd.Series(pd.Categorical.from_codes(x % 3, ["low", "mid", "high"], ordered=True))
    model = AutoClassifier(
        metric="quadratic_kappa", budget="1trials", include="logistic_regression", isolation="none", n_workers=1
    )
    with pytest.warns(TargetWarning, match="quadratic_kappa takes the classes in the order 'high', 'low', 'mid'"):
        model.fit(pd.DataFrame({"x": x}), y)
