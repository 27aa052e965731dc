from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cashmere.data.far_values import far_values_hint
from cashmere.data.inference import infer_schema
from cashmere.data.schema import TableSchema
from cashmere.inspection import inspect_table

RNG = np.random.default_rng(0)
TRAINING = pd.DataFrame(
    {
        "age": RNG.integers(18, 91, 500),
        "egfr": RNG.normal(70, 20, 500).clip(8, 140).round(),
        "crp": np.exp(RNG.normal(2, 1, 500)),
        "degrees": RNG.integers(-5, 30, 500),
        "moment": 1_700_000_000 + np.arange(500),
        "class": ["I", "II"] * 250,
    }
)
SCHEMA = infer_schema(TRAINING)


def hint(schema=SCHEMA, *, compact=False, **columns):
    return far_values_hint(schema.code(TRAINING.assign(**columns), compact=compact))


def some(name, value, n):
    """Return a column in which a value is in some rows."""
    return TRAINING[name].where(np.arange(500) >= n, value)


@pytest.mark.parametrize("compact", [False, True])
def test_far_numbers_are_told_with_the_range_in_training(compact):
    assert hint(compact=compact, egfr=some("egfr", 999, 61)) == (
        f"61 of 500 values of column 'egfr' are unlike those in training ({TRAINING['egfr'].min():.0f} to "
        f"{TRAINING['egfr'].max():.0f}), such as 999. Convert them if their unit is another one; leave cells empty if "
        "they stand for missing values."
    )
    assert "values of column 'crp' are unlike" in hint(compact=compact, crp=TRAINING["crp"] * 100)
    assert "'moment' are unlike those in training (1700000000 to 1700000499), such as 1800000000" in hint(
        compact=compact, moment=1_800_000_000
    )


@pytest.mark.parametrize(
    "columns",
    [
        {"age": some("age", 99, 3)},
        {"age": some("age", -1, 3)},
        {"egfr": some("egfr", -9, 3)},
        {"crp": some("crp", 9999, 3)},
        {"degrees": some("degrees", -999, 3)},
        {"age": -TRAINING["age"]},
        {"class": "I", "egfr": some("egfr", np.nan, 400).where(np.arange(500) < 490, 500)},
    ],
)
def test_codes_of_missing_values_and_far_numbers(columns):
    assert f"{list(columns)[-1]!r} are unlike" in hint(**columns)


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"age": some("age", 999, 2)},  # few
        {"age": some("age", 150, 4)},
        {"age": TRAINING["age"] + 15},  # drift
        {"age": some("age", 95, 100)},
        {"crp": some("crp", TRAINING["crp"].max() * 1.9, 100)},  # a tail
        {"degrees": some("degrees", -9, 10)},  # colder, not missing
        {"degrees": some("degrees", -7, 10).where(np.arange(500) > 3, -9)},
        {"egfr": np.nan},
        {"class": "III"},
        {"moment": TRAINING["moment"] + 400},
    ],
)
def test_ordinary_numbers_are_not_told(columns):
    assert hint(**columns) is None


def test_many_columns_take_one_message():
    table = pd.DataFrame({f"c{i}": np.arange(40.0) * (i + 1) for i in range(9)} | {"d": np.arange(40) ** 2})
    told = far_values_hint(infer_schema(table).code(table + 1e6))
    assert told.count("unlike those in training") == 3
    assert "So are values of 'c3', 'c4', 'c5' and 4 more. Convert" in told


def test_stored_schemas_keep_the_range_and_need_none():
    stored = SCHEMA.to_json()
    assert TableSchema.from_json(stored) == SCHEMA
    for column in stored["columns"]:
        column.pop("lowest", None), column.pop("highest", None)
    assert hint(TableSchema.from_json(stored), egfr=999.0) is None


def test_largest_numbers_are_not_far():
    table = pd.DataFrame({"size": np.linspace(1e39, 1.7e308, 30)})
    coded = infer_schema(table).code(table, compact=True)
    assert far_values_hint(coded) is None
    table = pd.DataFrame({"size": np.linspace(-3e38, 3e38, 30)})
    assert far_values_hint(infer_schema(table).code(table * 1.1, compact=True)) is None


def test_inspection_tells_of_far_new_rows():
    found = inspect_table(TRAINING, new_rows=TRAINING.assign(egfr=some("egfr", 999, 61)))
    assert any(f.kind == "other new rows" and "such as 999" in f.sentence for f in found.findings)
