"""Columns in which predictions are monotone: how they are named, and which can be."""

from __future__ import annotations

import pandas as pd
import pytest

from cashmere.data.inference import infer_schema
from cashmere.data.monotone import directions, read_monotone
from cashmere.exceptions import InvalidParameterError, UnknownNameError


@pytest.fixture(scope="module")
def schema():
    n = 60
    return infer_schema(
        pd.DataFrame(
            {
                "day": pd.date_range("2020-01-01", periods=n),
                "city": ["a", "b", "c"] * (n // 3),
                "age": [float(i % 7) for i in range(n)],
                "same": 1.0,
                "note": [f"some words about number {i} here" for i in range(n)],
                "member": [i % 2 == 0 for i in range(n)],
                "price": [float(i % 11) for i in range(n)],
                "copy": [float(i % 11) for i in range(n)],
            }
        )
    )


def test_texts_and_mappings_are_read_alike():
    assert read_monotone(" age+,price- ", "monotone") == read_monotone({"age": 1, "price": -1}, "monotone")
    assert read_monotone(["age+", "price-"], "monotone") == ("age+", "price-")
    assert read_monotone({"C++, or C-": -1.0}, "monotone") == ("C++, or C--",)
    assert read_monotone(None, "monotone") == read_monotone({}, "monotone") == read_monotone("", "monotone") == ()


@pytest.mark.parametrize(
    "given", ["age", "age+,price", {"age": 0}, {"age": "up"}, 3, [3], "age+,age-", {"a": 1, "a ": 1}]
)
def test_columns_without_a_direction_are_refused(given):
    with pytest.raises(InvalidParameterError, match=r"^--monotone must be columns with a direction each"):
        read_monotone(given, "--monotone")


def test_directions_are_in_the_order_of_the_numbers(schema):
    parts_of_date = (0,) * 5
    assert directions(("price-", "age+"), schema) == (*parts_of_date, 1, 0, -1)
    assert directions(("member+",), schema) == (*parts_of_date, 0, 1, 0)
    assert directions((), schema) == ()


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("city", "read as categorical"),
        ("note", "read as text"),
        ("day", "read as date"),
        ("same", r"not used \(constant\)"),
        ("copy", r"not used \(duplicate of 'price'\)"),
    ],
)
def test_columns_other_than_numbers_are_refused_by_name(schema, column, message):
    with pytest.raises(InvalidParameterError, match=f"monotone must be .* got '{column}'.*{message}"):
        directions((f"{column}+",), schema)


def test_unknown_columns_are_named(schema):
    with pytest.raises(UnknownNameError, match="Did you mean 'price'"):
        directions(("prise-",), schema)
