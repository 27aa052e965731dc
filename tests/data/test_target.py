from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

from cashmere.data.target import TargetCoding, check_target, infer_task_type, rows_with_target, with_missing
from cashmere.data.task import TaskType
from cashmere.exceptions import DataError, InvalidParameterError

BINARY, MULTICLASS, REGRESSION = TaskType

TASKS = {
    "text": (["a", "b", "c"], MULTICLASS),
    "booleans": ([True, False], BINARY),
    "category": (pd.Categorical(["x", "y", "x"]), BINARY),
    "fractions": ([0.5, 1.5, 2.5], REGRESSION),
    "two fractions": ([0.5, 1.5, 0.5], REGRESSION),
    "zero and one": ([0, 1, 1], BINARY),
    "whole floats": ([1.0, 2.0, 3.0] * 5, MULTICLASS),
    "few integers": (list(range(10)) * 3, MULTICLASS),
    "seldom repeated integers": (list(range(10)) * 2, REGRESSION),
    "many integers": (list(range(30)) * 100, REGRESSION),
    "nullable integers": (pd.array([0, 1, 1], dtype="Int64"), BINARY),
}


@pytest.mark.parametrize("case", TASKS)
def test_task_type_is_inferred(case):
    y, expected = TASKS[case]
    assert infer_task_type(check_target(pd.Series(y))) is expected


LABELS = {
    "integers": np.array([3, -1, 3, 7]),
    "small integers": np.array([1, 0, 1], dtype=np.int8),
    "whole floats": np.array([1.0, 2.0]),
    "booleans": np.array([True, False]),
    "fixed text": np.array(["no", "yes"]),
    "objects": np.array(["no", "yes"], dtype=object),
    "objects of integers": np.array([1, 2, 1], dtype=object),
    "pandas text": pd.Series(["no", "yes"]),
    "pandas category": pd.Series(pd.Categorical(["b", "a", "b"])),
    "list": ["b", "a"],
    "integer list": [2, 1],
}


@pytest.mark.parametrize("case", LABELS)
def test_labels_survive_coding_and_json(case):
    y = LABELS[case]
    coding = TargetCoding.from_target(y, "classification")
    assert TargetCoding.from_json(json.loads(json.dumps(coding.to_json()))) == coding
    codes = coding.encode(y)
    assert codes.dtype == np.int64 and codes.min() == 0 and codes.max() == coding.n_classes - 1
    decoded = coding.decode(codes)
    assert decoded.tolist() == list(y)
    if isinstance(y, np.ndarray) and case != "objects of integers":
        assert decoded.dtype == y.dtype
    assert coding.labels().tolist() == sorted(set(y))


def test_regression_is_float_and_unchanged():
    coding = TargetCoding.from_target([1, 2, 4], "regression")
    values = coding.encode([1, 2, 4])
    assert values.dtype == np.float64 and coding.decode(values) is values and coding.n_classes == 1


def test_two_classes_are_binary_whatever_the_task():
    assert TargetCoding.from_target([0, 1], TaskType.MULTICLASS).task_type is BINARY


def test_column_vector_is_flattened_with_a_warning():
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        assert check_target(np.array([[1], [2]])).shape == (2,)


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=5) | st.sampled_from(["a", "b"]),
        min_size=2,
        max_size=30,
    )
)
def test_any_text_without_nul_survives(labels):
    if len(set(labels)) > 1:
        coding = TargetCoding.from_target(np.array(labels, dtype=object))
        coding = TargetCoding.from_json(json.loads(json.dumps(coding.to_json())))
        assert coding.decode(coding.encode(np.array(labels, dtype=object))).tolist() == labels


@pytest.mark.parametrize(("label", "what"), [("a\0", "a NUL"), ("\ud800", "half of a letter")])
def test_texts_that_files_cannot_hold_are_refused(label, what):
    with pytest.raises(DataError, match=f"holds {what}.* Remove it"):
        TargetCoding.from_target(np.array(["a", label], dtype=object))


BAD = {
    "absent": (None, None, "requires y to be passed, but the target y is None"),
    "empty": ([], None, r"0 sample\(s\)"),
    "two columns": (np.zeros((3, 2)), None, "y should be a 1d array"),
    "NaN": ([1.0, np.nan, np.nan], None, "Input y contains NaN: 2 missing.*row 1"),
    "None among text": (["a", None], None, "contains NaN: 1 missing"),
    "NA": (pd.Series([1, pd.NA], dtype="Int64"), None, "contains NaN: 1 missing"),
    "NaT": (pd.Series([pd.NaT, pd.Timestamp("2020")]), None, "contains NaN"),
    "infinity": ([1.0, np.inf, -np.inf], None, "Input y contains infinity.*: 2 values in the target.*row 1 "),
    "complex": ([1j, 2j], None, "Complex data not supported"),
    "dates": (pd.to_datetime(["2020", "2021"]).to_series(), None, "Unknown label type"),
    "objects": ([{"a": 1}, {"b": 2}], None, "Unknown label type|unhashable"),
    "text and numbers": (["a", 1], None, "Unknown label type"),
    "one class": (["a", "a"], None, "only one class is present"),
    "one class of numbers": (np.ones(5), "classification", "only one class is present"),
    "three classes for binary": ([1, 2, 3], BINARY, "has two classes, but this one has 3"),
    "continuous classes": ([0.5, 1.5], "classification", "Unknown label type: continuous"),
    "text for regression": (["a", "b"], "regression", "must hold numbers"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_target_is_refused(case):
    y, task, message = BAD[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataConversionWarning)
        with pytest.raises(DataError, match=message):
            TargetCoding.from_target(y, task)


def test_masked_values_are_missing():
    with pytest.raises(DataError, match=r"1 missing value in the target, the first in row 2"):
        TargetCoding.with_codes(np.ma.array([0, 1, 9, 0], mask=[False, False, True, False]))
    assert TargetCoding.with_codes(np.ma.array([0, 1, 0]))[1].tolist() == [0, 1, 0]


def test_texts_of_numpy_are_labels():
    if hasattr(np.dtypes, "StringDType"):  # numpy 2
        target, codes = TargetCoding.with_codes(np.array(["no", "yes", "no"], dtype=np.dtypes.StringDType()))
        assert target.labels().tolist() == ["no", "yes"] and codes.tolist() == [0, 1, 0]


@pytest.mark.parametrize(("labels", "is_named"), [(["mild", None, "none"], True), ([1.0, None, 2.0], False)])
def test_missing_labels_may_be_words_for_missing(labels, is_named):
    with pytest.raises(DataError) as caught:
        check_target(pd.Series(labels))
    assert ("a label such as NA, None or null" in str(caught.value)) is is_named


@pytest.mark.parametrize(
    ("y", "kept"),
    [
        (pd.Series([0.0, np.nan, 1.0], index=[7, 8, 9]), [0, 1]),  # integers in the file
        (pd.Series([0.5, np.nan, 1.0]), [0.5, 1.0]),
        (pd.Series([2, pd.NA, 3], dtype="Int64"), [2, 3]),
        (pd.Series(["a", None, "b"], dtype="category"), ["a", "b"]),
        (["a", None, "b"], ["a", "b"]),
        (np.array([1e300, np.nan, 2.0]), [1e300, 2.0]),
    ],
)
def test_rows_with_target_keep_their_order_and_the_types_of_their_targets(y, kept):
    frame, targets, n_missing = rows_with_target(pd.DataFrame({"row": [0, 1, 2]}), y)
    assert n_missing == 1 and frame["row"].tolist() == [0, 2]
    assert targets.tolist() == kept and [type(a) for a in targets.tolist()] == [type(b) for b in kept]


def test_table_with_all_targets_is_not_copied():
    frame, y = pd.DataFrame({"row": [0, 1]}), pd.Series([1.0, 2.0])
    same, targets, n_missing = rows_with_target(frame, y)
    assert same is frame and targets is y and n_missing == 0


def test_wrong_length_is_refused():
    with pytest.raises(DataError, match=r"inconsistent numbers of samples: \[3, 2\]"):
        check_target([1, 2], n_rows=3)


def test_unknown_label_is_named():
    coding = TargetCoding.from_target(["a", "b"])
    with pytest.raises(DataError, match=r"not in training: 'c'. Known: 'a', 'b'.$"):
        coding.encode(["a", "c"])


@pytest.mark.parametrize(
    ("known", "new", "message"),
    [(["no", "yes"], ["Yes ", "no"], "'Yes ' may be 'yes': write them as in training"),
     ([0, 1], ["0", "1"], "'0' may be 0, '1' may be 1: write them"), (["1", "2"], [1.0, 2.0], "1.0 may be '1'")],
)  # fmt: skip
def test_label_in_another_notation_is_recognised(known, new, message):
    with pytest.raises(DataError, match=re.escape(message)):
        TargetCoding.from_target(known * 2, "classification").encode(new)


@pytest.mark.parametrize(
    ("labels", "given", "code"),
    [(["a", "b"], "a", 0), (["a", "b"], "b", 1), ([3, 5], 3, 0), ([3, 5], "3", 0), ([0.0, 1.0], "0", 0),
     ([False, True], "False", 0), ([False, True], True, 1), (["1", "2"], 1, 0)],
)  # fmt: skip
def test_positive_class_is_named_as_written(labels, given, code):
    coding = TargetCoding.from_target(labels * 2, "classification").looking_for(given)
    assert coding.positive == code
    assert TargetCoding.from_json(coding.to_json()) == coding


@pytest.mark.parametrize(
    ("labels", "given", "message"),
    [(["a", "b"], "c", "one of the two classes, 'a', 'b'"), (["a", "b", "c"], "a", "has 3 classes, not two"),
     ([0.5, 1.5], 1.5, "has values, not two classes")],
)  # fmt: skip
def test_positive_class_must_be_one_of_two(labels, given, message):
    coding = TargetCoding.from_target(labels * 2)
    with pytest.raises(InvalidParameterError, match=f"pos_label must be .*{message}"):
        coding.looking_for(given)


@pytest.mark.parametrize("positive", [2, -1, "a", 0.5])
def test_stored_positive_class_is_a_code(positive):
    stored = TargetCoding.from_target(["a", "b"]).to_json()
    with pytest.raises(ValueError):
        TargetCoding.from_json({**stored, "positive": positive})
    with pytest.raises(ValueError, match="has no positive class"):
        TargetCoding.from_json({**TargetCoding.from_target(["a", "b", "c"]).to_json(), "positive": 0})


@pytest.mark.parametrize(
    ("given", "values", "expected"),
    [
        (["1", "2.5", "unknown", None], ["unknown"], [1.0, 2.5, np.nan, np.nan]),
        (["$1", "$2.5", "on request"], ["on request"], ["$1", "$2.5", np.nan]),
        (["yes", "no", " unknown "], ["unknown"], ["yes", "no", np.nan]),
        ([0, 1, 999], ["999"], [0.0, 1.0, np.nan]),
        ([0.0, 1.0, -9.0], ["-9"], [0.0, 1.0, np.nan]),
        ([True, False, "?"], ["?"], [True, False, np.nan]),
        (pd.Categorical(["0", "1", "?"]), ["?"], [0.0, 1.0, np.nan]),
        (["1", "inf", "?"], ["?"], ["1", "inf", np.nan]),
    ],
)
def test_values_that_stand_for_none_are_missing(given, values, expected):
    y, unknown = with_missing(pd.Series(given), values)
    assert not unknown
    pd.testing.assert_series_equal(y.astype(object), pd.Series(expected, dtype=object))


def test_values_that_a_target_does_not_hold_are_named_and_change_nothing():
    y = pd.Series(["1", "2", None])
    same, unknown = with_missing(y, ["3", "?"])
    assert same is y and unknown == ["3", "?"]
