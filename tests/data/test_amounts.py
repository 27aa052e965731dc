"""Numbers as people write them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cashmere import AutoClassifier, AutoRegressor, Predictor
from cashmere.data.amounts import Amounts, find_amounts, read_amounts
from cashmere.data.column import ColumnKind
from cashmere.data.inference import infer_schema
from cashmere.data.other_columns import read_times
from cashmere.data.schema import TableSchema
from cashmere.data.target import TargetCoding, infer_task_type
from cashmere.data.target_hints import target_hint
from cashmere.data.task import TaskType
from cashmere.exceptions import DataError, SchemaError
from cashmere.inspection import inspect_table


def texts(*values):
    return pd.Series(values, dtype=object)


def column_of(values, name="price"):
    (column,) = infer_schema(pd.DataFrame({name: pd.Series(values, dtype=object)})).columns
    return column


def european(number):
    return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))


MANY = np.random.default_rng(0).lognormal(7, 1, 40).round(2)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["$1,234.50", "$7"], Amounts(sign="$")),
        (["-$3.5", "$ 4", "($12)"], Amounts(sign="$")),
        (["$1,200", "$950"], Amounts(sign="$")),
        (["1.200 €", "950 €"], Amounts(decimal=",", sign="€")),
        (["R$ 1.200,50", "R$ 3"], Amounts(decimal=",", sign="R$")),
        (["Rs. 500", "Rs. 1,200"], Amounts(sign="Rs.")),
        (["1.234,50 €", "0,99 €"], Amounts(decimal=",", sign="€")),
        (["CHF 1'234.50", "CHF 3"], Amounts(sign="CHF")),
        (["1 234,50 kr", "3 kr"], Amounts(decimal=",", sign="kr")),
        (["58.6 %", "3%"], Amounts(sign="%")),
        (["5 kg", "12 kg", "unknown"], Amounts(sign="kg")),
        ([f"{number} EUR" for number in range(600)], Amounts(sign="EUR")),
        (["36 months", "60 months"], Amounts(sign="months")),
        (["1 year", "2 years", "3 years"], Amounts(sign="years")),
        (["1 Stunde", "2,5 Stunden"], Amounts(decimal=",", sign="Stunden")),
        (["kr 1 200", "kr 12,50"], Amounts(decimal=",", sign="kr")),
        (["21.5°C", "-3°C"], Amounts(sign="°C")),
        ([f"{each:,.2f}" for each in MANY], Amounts()),
        ([european(each) for each in MANY], Amounts(decimal=",")),
        ([f"{each:.2f}".replace(".", ",") for each in MANY], Amounts(decimal=",")),
        ([f"{each:,.0f}".replace(",", " ") for each in MANY], Amounts()),
    ],
)
def test_found(values, expected):
    assert find_amounts(texts(*values)) == expected


@pytest.mark.parametrize(
    "values",
    [
        ["$5", "€5"],
        ["5 m", "5 km"],
        ["$5", "7 %"],
        ["1,200 kg", "950 kg"],
        [f"{i},{j}" for i in range(4) for j in range(4)],  # pairs of answers
        [f"{each:,.0f}" for each in range(1000, 1040)],  # or decimals?
        [f"{each:,.2f}" for each in MANY[:5]],
        [f"({each})" for each in range(40)],
        [f"{100 + i} 555 {700 + i}" for i in range(40)],  # telephones
        [f"12.{i}.3" for i in range(40)],  # versions
        [f"2024-01-{i:02}" for i in range(1, 30)],
        [f"{i}-{i + 9}" for i in range(0, 90, 3)],
        [f"{i} of {i + 1}" for i in range(40)],
        [f"B{i}" for i in range(40)],
        ["a", "b"],
        [],
    ],
)
def test_uncertain(values):
    assert find_amounts(texts(*values)) is None


@given(
    st.lists(st.floats(-1e9, 1e9).map(lambda number: round(number, 2)), min_size=1, max_size=20),
    st.sampled_from([".", ","]),
    st.sampled_from(["", "$", "€", "EUR"]),
    st.booleans(),
)
def test_what_is_written_is_read(numbers, decimal, sign, is_behind):
    written = [f"{each:,.2f}" if decimal == "." else european(each) for each in numbers]
    written = [f"{each} {sign}" if is_behind else f"{sign} {each}" for each in written]
    read = read_amounts(texts(*written).str.strip(), Amounts(decimal=decimal, sign=sign))
    np.testing.assert_array_equal(read, numbers)


def test_what_is_not_written_so_is_missing():
    values = ["$5", "€5", "5 %", "1,23", "(5", "--5", "(-5)", "", "$", "1,234,56"]
    assert np.isnan(read_amounts(texts(*values), Amounts(sign="$"))).tolist() == [False, *[True] * 9]


@pytest.mark.parametrize("write", ["${:,.2f}", "{:,.2f} USD", "{:,.2f} %", "{:,.2f}"])
def test_a_column_of_amounts_is_numeric(write):
    column = column_of([*(write.format(each) for each in MANY), "-"])
    assert column.kind is ColumnKind.NUMERIC
    assert column.missing_texts == ("-",)
    assert (column.lowest, column.highest) == (MANY.min(), MANY.max())


def test_plain_numbers_have_no_notation():
    assert column_of(["1.5", "2", "1e3"]).amounts is None
    assert column_of(pd.Series(["$1", "$2"], dtype="category")).kind is ColumnKind.NUMERIC  # as object
    frame = pd.DataFrame({"price": pd.Series(["$1", "$2"], dtype="category")})
    assert infer_schema(frame).columns[0].kind is ColumnKind.CATEGORICAL


def test_later_tables_may_hold_numbers_or_amounts():
    schema = infer_schema(pd.DataFrame({"price": [european(each) + " €" for each in MANY]}))
    schema = TableSchema.from_json(json.loads(json.dumps(schema.to_json())))
    later = pd.DataFrame({"price": ["1.234,5 €", 1234.5, "1234,50", None, " 1.234,50 "]})
    np.testing.assert_array_equal(schema.code(later).values[:, 0], [1234.5, 1234.5, 1234.5, np.nan, 1234.5])
    np.testing.assert_array_equal(schema.code(pd.DataFrame({"price": [3.5]})).values[:, 0], [3.5])


@pytest.mark.parametrize("value", ["$1,234.50", "1,234.50 €", "dear"])
def test_other_notations_are_refused(value):
    schema = infer_schema(pd.DataFrame({"price": [european(each) + " €" for each in MANY]}))
    with pytest.raises(SchemaError, match="'price' must hold numbers such as 1234,5 € as in training"):
        schema.code(pd.DataFrame({"price": ["3,50 €", value]}))


@pytest.mark.parametrize(
    "changes",
    [
        {"amounts": {"decimal": ";", "sign": ""}},
        {"amounts": {"decimal": ".", "sign": "(.*)+"}},
        {"amounts": {"decimal": "."}},
        {"kind": "categorical", "amounts": {"decimal": ".", "sign": ""}},
    ],
)
def test_damaged_schemas_are_refused(changes):
    stored = infer_schema(pd.DataFrame({"price": [1.0, 2.0]})).to_json()
    stored["columns"][0].update(changes)
    with pytest.raises(ValueError, match=r"amounts|decimal|sign"):
        TableSchema.from_json(stored)


def test_inspection_says_how_they_are_read():
    table = pd.DataFrame(
        {
            "dollars": [f"${each:,.2f}" for each in MANY],
            "euros": [european(each) + " €" for each in MANY],
            "y": (np.argsort(np.argsort(MANY)) < 20).astype(int),
        }
    )
    found = " ".join(finding.sentence for finding in inspect_table(table.drop(columns="y"), table["y"]).findings)
    assert "Column 'dollars' is text, read as numbers of $." in found
    assert "'euros' is not used: duplicate of 'dollars'" in found


def test_amounts_order_rows():
    np.testing.assert_array_equal(read_times(pd.Series(["$1,000.5", "$20"]), "when"), [1000.5, 20.0])


@pytest.mark.long
def test_a_model_learns_from_amounts(tmp_path):
    rng = np.random.default_rng(1)
    prices = rng.lognormal(7, 1, 200)
    X = pd.DataFrame({"price": [f"${each:,.2f}" for each in prices], "noise": rng.random(200)})
    y = prices > np.median(prices)
    AutoClassifier(budget="3trials", isolation="none", run_directory=tmp_path / "run").fit(X[:150], y[:150])
    assert (Predictor.load(tmp_path / "run").predict(X[150:]) == y[150:]).mean() > 0.9


DOLLARS = [f"${each:,.2f} " for each in MANY]


@pytest.mark.parametrize("task", [None, "regression"])
def test_a_target_of_amounts_is_a_regression(task):
    coding, values = TargetCoding.with_codes(DOLLARS, task)
    assert coding.task_type is TaskType.REGRESSION
    np.testing.assert_allclose(values, MANY)
    restored = TargetCoding.from_json(json.loads(json.dumps(coding.to_json())))
    assert restored == coding
    np.testing.assert_allclose(restored.encode(["$1,000", "7"]), [1000, 7])
    np.testing.assert_allclose(restored.encode([2.5, 7]), [2.5, 7])


@pytest.mark.parametrize(
    "labels",
    [
        ["500 mg", "1000 mg"] * 20,
        ["0,5 l", "1,5 l", "2 l"] * 20,
        [str(number) for number in range(30)],
        [*DOLLARS, "n/a"],
        [*DOLLARS, "€5"],
    ],
)
def test_what_may_name_classes_is_no_regression(labels):
    assert infer_task_type(np.array(labels, dtype=object)).is_classification


def test_few_amounts_are_numbers_if_asked_for():
    np.testing.assert_allclose(TargetCoding.with_codes(["500 mg", "1000 mg"], "regression")[1], [500, 1000])


def test_units_may_be_singular_or_plural_later():
    assert read_amounts(texts("1 year", "2 years"), Amounts(sign="years")).tolist() == [1, 2]
    assert read_amounts(texts("1 year", "2 years"), Amounts(sign="year")).tolist() == [1, 2]
    assert np.isnan(read_amounts(texts("1 k", "2 g"), Amounts(sign="kg"))).all()


def test_texts_among_amounts_of_a_target_are_named():
    hint = target_hint(TargetCoding.from_target([*DOLLARS, "n/a"]))
    assert "such as 1234.5 $, but also 'n/a'" in hint
    with pytest.raises(DataError, match=r"2 rows of the target cannot be read, such as 'n/a'.*1234\.5 \$"):
        TargetCoding.with_codes([*DOLLARS, "n/a", "n/a"], "regression")
    with pytest.raises(DataError, match=r"1 row of the target cannot be read, such as '€7'"):
        TargetCoding.from_target(DOLLARS).encode(["$5", "€7"])


@pytest.mark.parametrize(
    "changes",
    [{"amounts": {"decimal": ".", "sign": "(.*)+"}}, {"task_type": "binary", "classes": ["a", "b"], "dtype": "<U1"}],
)
def test_damaged_targets_are_refused(changes):
    with pytest.raises(ValueError, match="amounts"):
        TargetCoding.from_json(TargetCoding.from_target(DOLLARS).to_json() | changes)


def test_inspection_says_how_a_target_is_read():
    table = pd.DataFrame({"size": MANY.astype(int)})
    found = inspect_table(table, pd.Series([european(each) + " €" for each in MANY]))
    assert f"regression, numbers of € with a decimal comma from {MANY.min():.5g} to" in found.summary()


@pytest.mark.long
def test_a_model_predicts_amounts(tmp_path):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"size": rng.random(200), "rooms": rng.integers(1, 5, 200)})
    prices = 1000 * X["size"] + 300 * X["rooms"]
    y = [f"${each:,.2f}" for each in prices]
    model = AutoRegressor(budget="3trials", isolation="none", run_directory=tmp_path / "run").fit(X[:150], y[:150])
    assert model.score(X[150:], y[150:]) == model.score(X[150:], prices[150:].round(2)) > 0.8
    assert np.abs(Predictor.load(tmp_path / "run").predict(X[150:]) - prices[150:]).mean() < 150
