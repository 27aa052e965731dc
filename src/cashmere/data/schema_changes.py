"""What newer rows no longer hold of the columns that an earlier run has learned from."""

from __future__ import annotations

from cashmere.base.text import first_of
from cashmere.data.schema import TableSchema

_SHOWN = 3


def lost_columns_hint(earlier: TableSchema, newer: TableSchema) -> str | None:
    """Return a warning that names the columns which were used earlier and are dropped now; None if there are none.

    Examples
    --------
    >>> from cashmere.data.inference import infer_schema
    >>> import pandas as pd
    >>> earlier = infer_schema(pd.DataFrame({"age": [35, 42, 51], "shop": ["a", "b", "b"]}))
    >>> newer = infer_schema(pd.DataFrame({"age": [35, 35, 35], "shop": ["a", "a", "b"]}))
    >>> lost_columns_hint(earlier, newer)
    "Left out: 'age' (constant), which the earlier run has used. Check what the newer rows hold there."
    """
    why = {column.name: column.dropped for column in newer.columns if column.dropped is not None}
    lost = [f"{column.name!r} ({why[column.name]})" for column in earlier.used if column.name in why]
    if not lost:
        return None
    return f"Left out: {', '.join(lost)}, which the earlier run has used. Check what the newer rows hold there."


def recoded_columns_hint(earlier: TableSchema, newer: TableSchema) -> str | None:
    """Return a warning about columns none of whose categories was there earlier; None if there are none.

    Examples
    --------
    >>> from cashmere.data.inference import infer_schema
    >>> import pandas as pd
    >>> earlier, newer = (
    ...     infer_schema(pd.DataFrame({"paid": values})) for values in (["late", "on time"], ["in time", "too late"])
    ... )
    >>> recoded_columns_hint(earlier, newer).partition(":")[0]
    "No category of column 'paid' is one of the earlier run"
    """
    before = {column.name: column.categories for column in earlier.used if column.categories}
    sentences = [
        f"No category of column {column.name!r} is one of the earlier run: it had "
        f"{first_of(before[column.name], most=_SHOWN)}; now there are {first_of(column.categories, most=_SHOWN)}."
        for column in newer.used
        if column.categories and column.name in before and not {*column.categories} & {*before[column.name]}
    ]
    if not sentences:
        return None
    advice = "They are learned from scratch. If only their notation has changed, write them as in the earlier table."
    return " ".join([*sentences, advice])
