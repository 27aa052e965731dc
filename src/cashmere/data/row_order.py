"""Signs that rows are matched wrongly: their labels occur in another order elsewhere."""

from __future__ import annotations

from typing import Any

import pandas as pd


def row_order_hint(X: object, **given: Any) -> str | None:
    """Return a warning about values whose row labels are those of a table in another order; None if there are none.

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
    moved = [
        name
        for name, values in given.items()
        if isinstance(values, pd.Series | pd.DataFrame)
        and len(values) == len(X)
        and not values.index.equals(X.index)
        and X.index.is_unique
        and values.index.is_unique
        and values.index.isin(X.index).all()
    ]
    if not moved:
        return None
    return (
        f"The rows of {', '.join(moved)} have the same labels (index) as those of X, but in another order: rows are "
        f"matched by position, not by label. Pass {moved[0]}.loc[X.index], or {moved[0]}.to_numpy() if the positions "
        "are right."
    )
