"""Columns that options name: one each, or several separated by commas."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def listed_columns(names: Sequence[str] | None, columns: Collection[str]) -> list[str]:
    """Return the columns that an option names, which may be given several times.

    Parameters
    ----------
    names : sequence of str, optional
        Each a column, or several with commas between them; a column whose name has commas is that column.
    columns : collection of str
        Those of the table. Unknown names are returned as they are.

    Examples
    --------
    >>> listed_columns(["a, b", "c,d", "e,f"], ["a", "b", "c,d", "e"])
    ['a', 'b', 'c,d', 'e,f']
    """
    found = []
    for name in names or ():
        parts = [part.strip() for part in name.split(",")]
        found += parts if name not in columns and all(part in columns for part in parts) else [name]
    return found
