"""A run says which numbers probably stand for missing values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cashmere import AutoRegressor
from cashmere.data.inference import infer_schema
from cashmere.data.placeholders import placeholder_hint, placeholder_numbers
from cashmere.exceptions import ColumnKindWarning, TargetWarning

RNG = np.random.default_rng(0)
N = 60


def table():
    sodium = RNG.normal(140, 3, N)
    sodium[::10] = -999
    return pd.DataFrame({"sodium": sodium, "age": RNG.integers(20, 99, N)})


def test_columns_and_cells_are_named():
    frame = table()
    text = placeholder_hint(infer_schema(frame).code(frame))
    assert text.startswith("Column 'sodium' holds -999 in 6 cells, unlike all other values.")
    clean = frame.replace(-999, np.nan)
    assert placeholder_hint(infer_schema(clean).code(clean)) is None


def test_codes_of_several_answers_are_found_together():
    answers = np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 20)
    for codes in ([98, 99], [88, 99], [77, 88, 97, 98, 99], [998, 999], [-98, -99], [-99, -88]):
        answers[::5] = np.resize(codes, 20)
        assert list(placeholder_numbers(answers)) == sorted(codes)


def test_a_run_warns_of_them_in_its_target():
    model = AutoRegressor(budget="1trials", isolation="none", resampling="holdout", include="ridge")
    target = np.tile([0.0, 5.0, 9.0, 10.0, 99.0, 98.0], N // 6)
    with pytest.warns(TargetWarning, match="The target holds 98 in 10 rows and 99 in 10 rows, unlike all other"):
        model.fit(pd.DataFrame({"age": RNG.normal(size=N)}), target)


def test_a_run_warns_of_them():
    model = AutoRegressor(budget="1trials", isolation="none", resampling="holdout", include="ridge")
    with pytest.warns(ColumnKindWarning, match="'sodium' holds -999"):
        model.fit(table(), RNG.normal(size=N))
