"""Columns in which predictions may only rise, or only fall."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from cashmere.data.column import ColumnKind
from cashmere.data.schema import TableSchema
from cashmere.exceptions import InvalidParameterError, UnknownNameError

_SIGNS = {"+": 1, "-": -1}

_KINDS = (ColumnKind.NUMERIC, ColumnKind.BOOLEAN)
"""Learners see a column of these kinds as one number."""


def read_monotone(given: object, name: str) -> tuple[str, ...]:
    """Read a mapping from columns to 1 or -1, or its text, such as ``"age+,price-"``.

    Parameters
    ----------
    given : str, mapping, sequence of texts or None
        What the user gave, or what was read before.
    name : str
        Name of the parameter, for the error.

    Returns
    -------
    tuple of str
        Each column, followed by ``+`` if predictions may only rise with it, by ``-`` if they may only fall.

    Raises
    ------
    InvalidParameterError
        If it is anything else, or names a column twice.

    Examples
    --------
    >>> read_monotone("age+, price-", "monotone")
    ('age+', 'price-')
    >>> read_monotone("age, in years+,price-", "monotone")
    ('age, in years+', 'price-')
    >>> read_monotone({"age": 1}, "monotone")
    ('age+',)
    """
    expected = "columns with a direction each: {'age': 1, 'price': -1} or 'age+,price-'"
    try:
        if isinstance(given, Mapping):
            marks = {sign: mark for mark, sign in _SIGNS.items()}
            texts = [f"{column}{marks[sign]}" for column, sign in given.items()]
        elif isinstance(given, str):
            # Names may contain commas.
            texts = [text.strip() for text in re.split(r"(?<=[+-])\s*,", given) if text.strip()]
        else:
            texts = [] if given is None else list(given)  # type: ignore[call-overload]
        columns = [column for column, _ in map(_parsed, texts)]
    except (TypeError, KeyError, AttributeError):
        raise InvalidParameterError(name, given, expected) from None
    if len(set(columns)) < len(columns):
        raise InvalidParameterError(name, given, expected)
    return tuple(texts)


def _parsed(text: str) -> tuple[str, int]:
    return text[:-1].strip(), _SIGNS[text[-1:]]


def directions(
    monotone: Sequence[str], schema: TableSchema, *, no_features: Collection[str | None] = ()
) -> tuple[int, ...]:
    """Return the direction of each column of numbers, in their order at the beginning of all prepared forms.

    Parameters
    ----------
    monotone : sequence of str
        From `read_monotone`.
    schema : TableSchema
        The columns of the table.
    no_features : collection of str or None
        Columns that have been taken out of the table, for the error.

    Returns
    -------
    tuple of int
        1, -1, or 0 for a column that is not named; empty if none is.

    Raises
    ------
    UnknownNameError
        If there is no such column.
    InvalidParameterError
        If a column is no feature or not used, or is not a number for the learners.
    """
    signs = dict(map(_parsed, monotone))
    columns = {column.name: column for column in schema.columns}
    for name in signs:
        if name not in columns and name in no_features:
            hint = "It tells groups or times, which are no features: leave it out."
            raise InvalidParameterError("monotone", name, "a feature", hint)
        if name not in columns:
            raise UnknownNameError("column", name, columns)
        column = columns[name]
        if column.dropped is not None:
            hint = f"The column is not used ({column.dropped}): leave it out."
            raise InvalidParameterError("monotone", name, "a column that is used", hint)
        if column.kind not in _KINDS:
            hint = f"The column is read as {column.kind.value}: leave it out, or convert it to numbers."
            raise InvalidParameterError("monotone", name, "a column of numbers", hint)
    numbers = [
        signs.get(column.name, 0) if column.kind in _KINDS else 0
        for column in schema.used
        if column.kind is not ColumnKind.CATEGORICAL
        for _ in column.value_names
    ]
    return tuple(numbers) if signs else ()
