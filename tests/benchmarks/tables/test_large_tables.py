from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
import pytest

from benchmarks.tables import large
from benchmarks.tables.manifest import find_tables


def make(folder, *rows, seed=0) -> None:
    large.main(argparse.Namespace(out=folder, rows=list(rows), seed=seed))


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(large, "_BLOCK", 400)


def test_tables_are_found_and_longer_ones_begin_with_shorter_ones(tmp_path, small_blocks, capsys):
    make(tmp_path, 300)
    make(tmp_path, 300, 1000)
    assert capsys.readouterr().out.splitlines() == [
        "large_300: written",
        "large_300: already there",
        "large_1000: written",
    ]
    (X, y), (X_long, y_long) = (table.read() for table in find_tables(tmp_path, ["large_300", "large_1000"]))
    assert X.shape == (300, 30)
    assert X_long.shape == (1000, 30)
    pd.testing.assert_frame_equal(X, X_long.iloc[:300], check_categorical=False)
    assert list(y) == list(y_long[:300])
    assert set(y_long) == {"yes", "no"}
    assert X_long.select_dtypes("category").nunique().tolist() == [50] * 5


def test_blocks_and_seeds_differ(small_blocks):
    first, second, other = large.draw(300), large.draw(300, block=1), large.draw(300, seed=1)
    assert not np.array_equal(first[0], second[0])
    assert not np.array_equal(first[0], other[0])


def test_table_without_rows_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="--rows 0"):
        make(tmp_path, 0)


def test_classes_depend_on_interactions_alone():
    """Numbers say nothing by themselves, apart from the weak seventh and the size of the fifth."""
    numbers, _, y = large.draw(20_000)
    linear = [abs(np.corrcoef(column, y)[0, 1]) for column in numbers.T]
    assert max(linear[:6] + linear[7:]) < 0.03
    assert np.corrcoef(np.sign(numbers[:, 0] * numbers[:, 1]), y)[0, 1] > 0.15
