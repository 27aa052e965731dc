"""Signs that rows are matched wrongly: their labels occur in another order elsewhere, or only some of them."""

from __future__ import annotations

from typing import Any

import pandas as pd


def row_order_hint(X: object, **given: Any) -> str | None:
    """Return a warning about values whose row labels are those of a table in another order, or some of them.

    None if there are no such values.

    Parameters
    ----------
    X : (n_rows, n_columns) table
        The features. Only pandas objects have row labels (an index).
    given : (n_rows,) array-like
        The target, weights, groups or times of the rows, by name.

    Examples
    --------
    >>> table = pd.DataFrame({"size": [3, 1, 2]})
    >>> row_order_hint(table.sort_values("size"), y=pd.Series([1, 0, 0])).partition(":")[0]
    'The rows of y have the same labels (index) as those of X, but in another order'
    """
    if not isinstance(X, pd.DataFrame):
        return None
    labelled = {
        name: values.index
        for name, values in given.items()
        if isinstance(values, pd.Series | pd.DataFrame)
        and len(values) == len(X)
        and not values.index.equals(X.index)
        and X.index.is_unique
        and values.index.is_unique
    }
    moved = [name for name, labels in labelled.items() if labels.isin(X.index).all()]
    if not moved:
        numbered = pd.RangeIndex(len(X))  # what reset_index() leaves, or a table that was never cut
        shifted = [
            name
            for name, labels in labelled.items()
            if labels.isin(X.index).any() and not labels.equals(numbered) and not X.index.equals(numbered)
        ]
        return (
            None
            if not shifted
            else (
                f"The rows of {', '.join(shifted)} share only some labels (index) with those of X: rows are matched by "
                f"position, not by label. Check that they belong together; if they do, pass {shifted[0]}.to_numpy()."
            )
        )
    return (
        f"The rows of {', '.join(moved)} have the same labels (index) as those of X, but in another order: rows are "
        f"matched by position, not by label. Pass {moved[0]}.loc[X.index], or {moved[0]}.to_numpy() if the positions "
        "are right."
    )
