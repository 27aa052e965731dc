from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cashmere.data.inference import infer_schema
from cashmere.data.schema import TableSchema
from cashmere.data.unknown_values import unknown_values_hint

DAYS = [f"2024-03-{day:02}" for day in range(1, 31)]
TRAINING = pd.DataFrame(
    {
        "size": np.arange(30.0),
        "colour": ["red", "green", "blue", "grey", "white"] * 6,
        "sold": DAYS,
        "flag": ["yes", "no", None] * 10,
        "seldom": ["low", None, None, "high", None] * 6,
        "note": [f"this is what was written on day {day}" for day in DAYS],
    }
)
SCHEMA = infer_schema(TRAINING)


def hint(**columns):
    table = TRAINING.assign(**columns)
    return unknown_values_hint(table, SCHEMA.code(table))


def test_columns_without_a_known_value_are_named():
    assert hint(colour=["rot", "gruen"] * 15) == (
        "None of the 30 values of column 'colour' was known in training: it had 'blue', 'green', 'grey' and 2 more and "
        "now has 'rot', 'gruen'. They are treated as missing; write them as in the training table."
    )
    told = hint(colour=["rot"] * 30, sold=[day.replace("-", "") for day in DAYS])
    assert "'colour'" in told and "dates such as 2024-01-31 and now has '20240301'" in told


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"colour": ["rot"] * 29 + ["red"]},  # one is known
        {"seldom": [None] * 30},  # mostly missing in training, too
        {"size": [np.nan] * 29 + [1.0]},
        {"colour": ["rot"] * 19 + [None] * 11},  # few
        {"size": np.arange(30.0) + 20},
    ],
)
def test_other_tables_are_not_doubted(columns):
    assert hint(**columns) is None


def test_tables_without_names_are_looked_at():
    schema = infer_schema(TRAINING, named=False)
    table = TRAINING.assign(colour="rot").set_axis([10, 11, 12, 13, 14, 15], axis=1)
    assert "'colour' was known in training" in unknown_values_hint(table, schema.code(table))


def test_columns_without_any_value_are_named():
    assert hint(size=None) == (
        "Column 'size' has no value in these 30 rows: in training, each of the rows had one. Look for what was lost on "
        "the way."
    )
    for name in ("colour", "sold", "note"):
        assert f"Column {name!r} has no value" in hint(**{name: None})
    schema = infer_schema(TRAINING.assign(size=[np.nan, *range(29)]))
    table = TRAINING.assign(size=np.nan)
    assert "in training, 96.7% of the rows had one" in unknown_values_hint(table, schema.code(table))
    assert "in training, 66.7% of the rows had one" in hint(flag=None)


def test_numbers_unlike_those_in_training_are_told():
    assert hint(size=1000 + np.arange(30.0)).startswith("30 of 30 values of column 'size' are unlike those in training")


def test_few_rows_without_values_are_no_surprise():
    table = TRAINING.assign(size=np.nan).head(19)
    assert unknown_values_hint(table, SCHEMA.code(table)) is None


def test_models_of_earlier_versions_know_no_shares():
    stored = SCHEMA.to_json()
    for column in stored["columns"]:
        del column["missing"]
    table = TRAINING.assign(size=np.nan)
    assert unknown_values_hint(table, TableSchema.from_json(stored).code(table)) is None
