"""Columns of short strings: phrases of recurring words are text, names and codes are not."""

import numpy as np
import pandas as pd
import pytest

from cashmere.data import column_kinds
from cashmere.data.column import ColumnKind
from cashmere.data.inference import infer_schema

RNG = np.random.default_rng(0)
WORDS = np.array([f"{first}{second}ing" for first in "bcdfglmnprst" for second in "aeiou"])


def phrases(n_rows, n_words, words=WORDS):
    return [" ".join(RNG.choice(words, n_words)) for _ in range(n_rows)]


def kind_of(values):
    return infer_schema(pd.DataFrame({"t": values})).columns[0].kind


@pytest.mark.parametrize("n_words", [2, 3, 4])
def test_phrases_of_recurring_words_are_text(n_words):
    assert kind_of(phrases(600, n_words)) is ColumnKind.TEXT
    assert kind_of([f"{number} {phrase}" for number, phrase in enumerate(phrases(600, n_words))]) is ColumnKind.TEXT


@pytest.mark.parametrize(
    "values",
    [
        [f"user {number}" for number in range(600)],
        [f"AB-{number} X" for number in range(600)],
        [f"{first}o {number}ski" for number, first in enumerate(RNG.choice(WORDS, 600))],  # names
        phrases(600, 1),
        phrases(600, 2, WORDS[:10]),  # a hundred levels
        [*["one", "two"] * 20],
    ],
)
def test_codes_names_and_levels_are_no_text(values):
    assert kind_of(values) is ColumnKind.CATEGORICAL


def test_the_kind_does_not_depend_on_the_order_of_the_rows(monkeypatch):
    monkeypatch.setattr(column_kinds, "_PHRASES_READ", 30)
    words = np.array([f"{word}{i}" for i, word in enumerate(WORDS)] + ["rare"])
    for n_words in (10, 20, 30, 40):
        values = pd.Series(phrases(200, 2, words[:n_words]))
        kinds = {kind_of(values.sample(frac=1, random_state=seed).tolist()) for seed in range(10)}
        assert len(kinds) == 1


def test_strings_of_exactly_four_words_need_recurring_ones():
    own = [f"a{i}x b{i}x c{i}x d{i}x" for i in range(300)]
    assert kind_of(own) is ColumnKind.CATEGORICAL
    assert kind_of([f"{text} e{i}x" for i, text in enumerate(own)]) is ColumnKind.TEXT
