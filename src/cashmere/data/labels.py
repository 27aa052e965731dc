"""The texts of categories, and their codes."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from cashmere.base.arrays import AnyArray, Float64, IntArray

_MIXED = ("mixed", "mixed-integer")
"""Types by `pandas.api.types.infer_dtype` of which equal objects may have different texts."""


def label_text(value: object) -> str:
    """Return the text of a category; equal for 1, 1.0 and "1", which text files do not tell apart."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def other_spelling(label: str, levels: Collection[str]) -> str | None:
    """Return the level that a label spells otherwise, as libraries do; None if there is none.

    Levels are looked up, so many of them should be a set or the keys of a dict.

    Examples
    --------
    >>> other_spelling("True", ("TRUE", "FALSE", "unknown")), other_spelling("1.0", ("1", "2"))
    ('TRUE', '1')
    """
    if label.lower() in ("true", "false"):
        alike = [level for level in levels if level.lower() == label.lower()]
        return alike[0] if len(alike) == 1 else None
    whole = without_zero_decimals(label)
    return whole if whole != label and whole in levels else None


def without_zero_decimals(label: str) -> str:
    """Return the text of a whole number without decimals, which libraries add beside a gap; other texts unchanged.

    Examples
    --------
    >>> without_zero_decimals("-7.00"), without_zero_decimals("1.50"), without_zero_decimals("v1.0")
    ('-7', '1.50', 'v1.0')
    """
    whole = re.fullmatch(r"(-?\d+)\.0+", label)
    return whole[1] if whole else label


def may_merge(objects: AnyArray) -> bool:
    """Return whether objects may be equal with other texts, as True and 1 are: hash tables keep the first of them.

    Examples
    --------
    >>> may_merge(np.array([True, 1, "a"], dtype=object)), may_merge(np.array(["a", None, "b"], dtype=object))
    (True, False)
    """
    return pd.api.types.infer_dtype(objects, skipna=True) in _MIXED


def factorised(series: pd.Series[Any]) -> tuple[IntArray, list[str]]:
    """Return row codes, -1 where missing, into a list of distinct labels."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        raw, values = series.cat.codes.to_numpy(), series.cat.categories.astype(object).to_numpy()
    else:
        objects = series.to_numpy(dtype=object)
        if may_merge(objects):
            pairs = zip(objects, pd.isna(objects), strict=True)
            objects = np.array([None if gone else label_text(value) for value, gone in pairs], dtype=object)
        raw, values = pd.factorize(objects, use_na_sentinel=True)
    used = np.unique(raw[raw >= 0])
    number_of: dict[str, int] = {}
    table = np.full(len(values) + 1, -1, dtype=np.int64)
    for i in used:
        label = label_text(values[i])
        if label:
            table[i] = number_of.setdefault(label, len(number_of))
    return table[raw], list(number_of)


def category_codes(series: pd.Series[Any], categories: tuple[str, ...]) -> tuple[Float64, int]:
    """Return codes, NaN where missing or unseen, and the number of unseen values."""
    codes, labels = factorised(series)
    code_of = {category: float(i) for i, category in enumerate(categories)}
    levels = [label if label in code_of else other_spelling(label, code_of) for label in labels]
    table = np.array([np.nan if level is None else code_of[level] for level in levels] + [np.nan])
    values: Float64 = table[codes]
    return values, int(np.sum(np.isnan(values) & (codes >= 0)))
