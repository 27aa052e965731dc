"""A run says which numbers probably stand for missing values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cashmere import AutoRegressor
from cashmere.data.placeholders import placeholder_hint
from cashmere.data.schema import infer_schema
from cashmere.exceptions import ColumnKindWarning

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


def test_a_run_warns_of_them():
    model = AutoRegressor(budget="1trials", isolation="none", resampling="holdout", include="ridge")
    with pytest.warns(ColumnKindWarning, match="'sodium' holds -999"):
        model.fit(table(), RNG.normal(size=N))
