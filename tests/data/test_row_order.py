from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cashmere.data.row_order import row_order_hint

TABLE = pd.DataFrame({"size": [3.0, 1.0, 2.0, 5.0]}, index=[7, 8, 9, 10])
TARGET = pd.Series([0, 1, 0, 1], index=TABLE.index)


def test_sorted_table_with_an_unsorted_target_is_reported():
    found = row_order_hint(TABLE.sort_values("size"), y=TARGET, groups="size", time=None)
    assert found.startswith("The rows of y have the same labels (index) as those of X, but in another order:")
    assert found.endswith("Pass y.loc[X.index], or y.to_numpy() if the positions are right.")
    both = row_order_hint(TABLE, y=TARGET[::-1], sample_weight=TARGET[::-1])
    assert both.startswith("The rows of y, sample_weight have")


@pytest.mark.parametrize(
    "target",
    [TARGET, TARGET.reset_index(drop=True), TARGET.to_numpy(), TARGET.iloc[:2], TARGET.set_axis([7, 7, 8, 9]), "size"],
)
def test_other_rows_are_matched_by_position(target):
    assert row_order_hint(TABLE, y=target) is None
    assert row_order_hint(np.zeros((4, 1)), y=target) is None
    assert row_order_hint(TABLE.set_axis([7, 7, 8, 9]), y=target) is None


def test_rows_that_share_only_some_labels_are_reported():
    shifted = TARGET.set_axis([8, 9, 10, 11])
    found = row_order_hint(TABLE, y=shifted)
    assert found.startswith(
        "The rows of y share only some labels (index) with those of X: rows are matched by position"
    )
    assert row_order_hint(TABLE, y=TARGET.set_axis([11, 12, 13, 14])) is None
    # What reset_index() leaves on either side is no sign of a mistake.
    assert row_order_hint(TABLE.set_axis([2, 3, 4, 5]), y=TARGET.reset_index(drop=True)) is None
    assert row_order_hint(TABLE.reset_index(drop=True), y=TARGET.set_axis([2, 3, 4, 5])) is None
