from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cashmere.data.frames import feature_names, to_frame
from cashmere.exceptions import CashmereError, DataError


def test_arrays_get_generated_names():
    frame = to_frame(np.arange(6.0).reshape(3, 2))
    assert list(frame.columns) == ["x0", "x1"] and frame.dtypes.tolist() == [np.float64] * 2


def test_given_names_are_used_for_arrays_only():
    assert list(to_frame([[1, 2]], columns=["a", "b"]).columns) == ["a", "b"]
    frame = pd.DataFrame({"z": [1]})
    assert to_frame(frame, columns=["a"]) is frame


def test_pandas_frame_is_kept():
    frame = pd.DataFrame({"a": [1.0, np.nan], "b": ["x", None]})
    assert to_frame(frame) is frame


def test_columns_of_any_name_become_plain():
    pa = pytest.importorskip("pyarrow")
    coded = pa.array(["x", None, "y"]).dictionary_encode()
    dictionary = pd.Series(pd.array(coded, dtype=pd.ArrowDtype(coded.type)))
    frame = pd.DataFrame({"self": np.arange(3, dtype=">i4"), "b": 1.5, "kwargs": dictionary})
    plain = to_frame(frame)
    assert list(plain) == ["self", "b", "kwargs"] and plain["self"].tolist() == [0, 1, 2]
    assert plain["self"].dtype == np.int32 and isinstance(plain["kwargs"].dtype, pd.CategoricalDtype)
    assert not frame["self"].dtype.isnative and to_frame(frame[["kwargs"]].rename(columns={"kwargs": "self"})).size == 3


def test_integer_names_become_text_and_are_no_feature_names():
    frame = pd.DataFrame(np.eye(2))
    assert list(to_frame(frame).columns) == ["0", "1"] and feature_names(frame) is None
    assert list(frame.columns) == [0, 1]


def test_text_names_are_feature_names():
    names = feature_names(pd.DataFrame({"a": [1], "b": [2]}))
    assert names.dtype == object and names.tolist() == ["a", "b"]
    assert feature_names(np.eye(2)) is None


def test_polars_and_arrow_tables():
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    content = {"a": [1, None], "b": ["x", "y"], "c": [True, False]}
    for table in (pl.DataFrame(content), pl.DataFrame(content).lazy(), pa.table(content)):
        assert feature_names(table).tolist() == ["a", "b", "c"]
        frame = to_frame(table)
        assert frame.shape == (2, 3) and frame["b"].tolist() == ["x", "y"] and frame["c"].dtype == bool


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array, sparse.csc_array, sparse.coo_array])
def test_sparse_becomes_dense(form):
    assert to_frame(form(np.eye(3))).to_numpy().tolist() == np.eye(3).tolist()


def test_huge_sparse_is_refused():
    with pytest.raises(DataError, match="Reduce its dimensions"):
        to_frame(sparse.csr_array((1_000_000, 1_000_000)))


def test_lists_keep_the_type_of_each_column():
    frame = to_frame([[1, "a", True], [2, "b", False]])
    assert frame["x0"].tolist() == [1, 2] and frame["x0"].dtype == np.int64 and frame["x2"].dtype == bool


def test_masked_cells_are_missing():
    hidden = np.ma.array([[1, 2], [3, 999]], mask=[[False, False], [False, True]])
    assert to_frame(hidden)["x1"].isna().tolist() == [False, True] and to_frame(hidden)["x0"].tolist() == [1, 3]
    assert to_frame(np.ma.array(np.eye(2))).to_numpy().tolist() == np.eye(2).tolist()


def test_long_numbers_and_texts_of_numpy_become_plain():
    for X in (np.eye(2, dtype=np.longdouble), pd.DataFrame(np.eye(2, dtype=np.longdouble))):
        assert (to_frame(X).dtypes == np.float64).all()
    if hasattr(np.dtypes, "StringDType"):  # numpy 2
        texts = np.array([["a", "b"], ["c", "d"]], dtype=np.dtypes.StringDType())
        pd.testing.assert_frame_equal(to_frame(texts), to_frame(texts.astype(object)))


BAD = {
    "1-D": (np.arange(3), "Expected 2D array, got 1D array instead"),
    "series": (pd.Series([1, 2]), "Expected a 2-dimensional container"),
    "scalar": (3, "Expected 2D array"),
    "3-D": (np.zeros((2, 2, 2)), "dim 3"),
    "no rows": (np.empty((0, 3)), r"Found array with 0 sample\(s\)"),
    "no columns": (np.empty((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required."),
    "no rows, pandas": (pd.DataFrame({"a": []}), r"0 sample\(s\)"),
    "no columns, pandas": (pd.DataFrame(index=range(3)), r"0 feature\(s\) \(shape=\(3, 0\)\)"),
    "complex": (np.ones((2, 2)) * 1j, "Complex data not supported"),
    "complex, pandas": (pd.DataFrame({"a": [1j]}), "Complex data not supported"),
    "complex, sparse": (sparse.csr_array(np.eye(2) * 1j), "Complex data not supported"),
    "infinity": (np.array([[1.0, np.inf]]), "Input X contains infinity.*'x1'"),
    "infinity in objects": (np.array([["a", -np.inf]], dtype=object), "infinity.*'x1'"),
    "infinity, pandas": (pd.DataFrame({"good": [1.0], "bad": [-np.inf]}), "infinity.*'bad'"),
    "infinity, nullable": (pd.DataFrame({"bad": pd.array([np.inf, None], dtype="Float64")}), "infinity.*'bad'"),
    "repeated names": (pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]), "'a' occurs more than once"),
    "names equal as text": (pd.DataFrame([[1, 2]], columns=pd.Index([1, 1])), "'1' occurs"),
    "ragged": ([[1, 2], [3]], "inhomogeneous"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_features_are_refused(case):
    X, message = BAD[case]
    with pytest.raises(DataError, match=message) as caught:
        to_frame(X)
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, CashmereError)


def test_mixed_names_are_a_type_error():
    with pytest.raises(TypeError, match="Feature names are only supported"):
        to_frame(pd.DataFrame([[1, 2]], columns=["a", 1]))


def test_wrong_number_of_given_names():
    with pytest.raises(ValueError, match="X has 2 features, but 3 features are expected as input"):
        to_frame(np.eye(2), columns=["a", "b", "c"])


@pytest.mark.parametrize("given", ["new.csv", Path("new.csv"), None])
def test_paths_are_no_tables(given):
    with pytest.raises(DataError, match=r"Expected 2D array, got .* instead\. Read the file first"):
        to_frame(given)
