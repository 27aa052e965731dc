from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cashmere.data.inference import infer_schema
from cashmere.data.rows import canonical_rows
from cashmere.exceptions import DataError


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "n": rng.integers(0, 3, n).astype(float),
            "c": pd.Categorical(rng.choice(["a", "b"], n)),
            "s": rng.choice(["x", "y"], n),
            "o": pd.Series(rng.choice(["u", "v"], n), dtype=object),
            "d": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 3, n), unit="D"),
        }
    ).mask(rng.random((n, 5)) < 0.1)
    return frame, rng.integers(0, 2, n)


def same(a, b):
    pd.testing.assert_frame_equal(a.frame, b.frame)
    assert a.schema() == b.schema() == infer_schema(a.frame)
    np.testing.assert_array_equal(a.y, b.y)
    assert (a.weight is None) == (b.weight is None)
    if a.weight is not None:
        np.testing.assert_array_equal(a.weight, b.weight)


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 25), seed=st.integers(0, 10**6))
def test_row_order_does_not_matter(n, seed):
    frame, y = table(n, seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    same(canonical_rows(frame, y), canonical_rows(frame.iloc[order], y[order]))
    weight = rng.choice([0.25, 0.5, 1.5], n)
    a, b = canonical_rows(frame, y, weight), canonical_rows(frame.iloc[order], y[order], weight[order])
    same(a, b)


def test_row_order_does_not_matter_to_equal_objects_of_several_types():
    mixed = pd.DataFrame({"c": pd.Series([True, 1, "a", 1.0, None, "True", 0, False], dtype=object)})
    y = np.arange(8)
    for order in (y[::-1], np.roll(y, 1), np.roll(y, -1)):
        a, b = canonical_rows(mixed, y), canonical_rows(mixed.iloc[order], y[order])
        np.testing.assert_array_equal(a.y, b.y)
        assert a.schema() == b.schema() and a.frame["c"].map(repr).tolist() == b.frame["c"].map(repr).tolist()
    assert mixed["c"].map(type).tolist() == [bool, int, str, float, type(None), str, int, bool]


@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 25), seed=st.integers(0, 10**6), unit=st.sampled_from([1, 0.25, 1000]))
def test_every_row_stays_one_row_whatever_its_weight(n, seed, unit):
    frame, y = table(n, seed)
    weight = np.random.default_rng(seed).integers(1, 4, n)
    weighted = canonical_rows(frame, y, unit * weight)
    assert sorted(weighted.source) == list(range(n))
    np.testing.assert_array_equal(weighted.y, y[weighted.source])
    if weighted.weight is not None:
        np.testing.assert_allclose(weighted.weight, (weight / weight.mean())[weighted.source])


def test_rows_of_weight_zero_are_removed_and_the_other_weights_have_mean_one():
    frame, y = table(4)
    rows = canonical_rows(frame, y, [0, 0.5, 1.5, 2.5])
    assert 0 not in rows.source and rows.weight.mean() == pytest.approx(1) and len(rows.y) == 3


def test_equal_weights_are_left_out():
    frame, y = table(3)
    assert canonical_rows(frame, y, np.full(3, 0.3)).weight is None


def test_order_can_be_kept():
    frame, y = table(10)
    assert canonical_rows(frame, y, keep_order=True).source.tolist() == list(range(10))


def test_text_targets_and_inputs_are_untouched():
    frame, y = table(5)
    before = frame.copy()
    rows = canonical_rows(frame, np.array(["p", "q"])[y])
    assert set(rows.y) <= {"p", "q"}
    pd.testing.assert_frame_equal(frame, before)


BAD = {
    "negative": ([1, -1], "Negative values in data passed to `sample_weight`, first in row 1"),
    "NaN": ([np.nan, 1], "contains NaN"),
    "masked": (np.ma.array([9.0, 1.0], mask=[True, False]), "contains NaN, first in row 0"),
    "infinity": ([np.inf, 1], "contains infinity"),
    "length": ([1, 1, 1], r"sample_weight.shape == \(3,\), expected \(2,\)!"),
    "2-D": ([[1, 1], [1, 1]], r"sample_weight.shape == \(2, 2\)"),
    "zero": ([0, 0], "at least one non-zero"),
    "text": (["a", "b"], "must hold one number per row"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_weights_are_refused(case):
    weight, message = BAD[case]
    frame, y = table(2)
    with pytest.raises(DataError, match=message):
        canonical_rows(frame, y, weight)
