"""Signs of a doubtful target: among the features, classes in another notation or spelling, or for missing outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cashmere.base.arrays import AnyArray
from cashmere.base.text import counted, first_of, shown_spellings
from cashmere.data.inference import float32_offset
from cashmere.data.labels import label_text
from cashmere.data.placeholders import ROWS_OF_HINT, placeholder_numbers
from cashmere.data.target import (
    MAX_NUMBER_CLASSES,
    TargetCoding,
    amounts_of,
    missing_target_option,
    notation_of_target,
)

_NAMED = 3
_CLASSES_NAMED = 5

_OF_SECOND_CLASS = ("f1", "average_precision")
"""Metrics that look for one of two classes."""

_MANY_NUMBERS = 11
"""Consecutive whole numbers that are more likely amounts than classes: more than there are digits."""

_DIVIDES_BY_TARGET = "mape"

_WORDS_FOR_MISSING = frozenset(
    {"unknown", "unk", "not known", "missing", "not available", "not recorded", "not reported", "no answer"}
    | {"n/a", "na", "n.a.", "#n/a", "<na>", "nan", "null", "?", "??", "-", "--", ".", "unbekannt", "k.a."}
)
"""Classes that probably say that an outcome is missing, in small letters. "None" is often one, as of defects."""

_NUMBERS_FOR_MISSING = frozenset({"9", "99", "999", "9999", "-9", "-99", "-999", "-9999"})
_OTHER_NUMBERS = (frozenset({"0", "1"}), frozenset({"1", "2"}))
"""A number stands for a missing outcome if the other two classes are words, or one of these pairs of numbers."""

_MOST_OF_NUMBER = 0.25
"""Largest share of rows for which a number may stand for a missing outcome."""

_ORDERS_CLASSES = "quadratic_kappa"


def feature_that_is_the_target(frame: pd.DataFrame, y: object) -> str | None:
    """Return a warning if the target is still among the features, under its own name, else None.

    Parameters
    ----------
    frame : DataFrame
        The features.
    y : array or Series
        The target; only a Series with a name can be found.
    """
    name = getattr(y, "name", None)
    if not isinstance(y, pd.Series) or not isinstance(name, str) or name not in frame or len(frame) != len(y):
        return None
    feature, target = (each.astype(object).reset_index(drop=True) for each in (frame[name], y))
    if not feature.equals(target):
        return None
    return (
        f"The features contain the target: column {name!r} has its name and its values, so scores will be far too "
        f"good, and new rows have no such column. Leave it out: X = X.drop(columns={name!r})."
    )


def target_hint(coding: TargetCoding) -> str | None:
    """Return a warning about classes that were probably meant otherwise; None if there are none.

    Parameters
    ----------
    coding : TargetCoding
        The classes. Numbers and dates in another notation are only reported if there are so many classes that plain
        numbers would be values.

    Examples
    --------
    >>> target_hint(TargetCoding.from_target(["yes", "Yes ", "no"])).partition(":")[0]
    "The target has classes that differ only in case or blanks ('Yes ' and 'yes')"
    """
    if not coding.classes or not all(isinstance(label, str) for label in coding.classes):
        return None
    sentences = []
    if len(coding.classes) > MAX_NUMBER_CLASSES:
        labels = np.array(coding.classes, dtype=object)
        if (notation := notation_of_target(labels)) is not None:
            what, remedy, example = notation
            sentences.append(f"The target holds {what}, such as {example!r}, which are read as classes: {remedy}.")
        amounts, others = amounts_of(labels)
        if amounts is not None and others:
            sentences.append(
                f"The target holds amounts such as {amounts.example}, but also {others[0]!r}. All are read as classes: "
                f"leave out rows without a number ({missing_target_option(others[0])})."
            )
    if shown := shown_spellings(coding.classes):
        sentences.append(
            f"The target has classes that differ only in case or blanks ({shown}): if they are the same class, write "
            "them alike."
        )
    return " ".join(sentences) or None


def missing_outcome_hint(coding: TargetCoding, codes: AnyArray) -> str | None:
    """Return a warning about a class beside two others or more that probably stands for a missing outcome, else None.

    Parameters
    ----------
    coding : TargetCoding
        The classes.
    codes : (n_rows,) array of int
        Their codes.

    Examples
    --------
    >>> coding, codes = TargetCoding.with_codes(["no", "yes", "no", "unknown"])
    >>> missing_outcome_hint(coding, codes).partition(".")[0]
    "Class 'unknown' of the target (1 row) looks like a missing outcome"
    """
    if len(coding.classes) <= 2:
        return None
    texts = [label_text(label) for label in coding.classes]
    found = [code for code, text in enumerate(texts) if " ".join(text.split()).casefold() in _WORDS_FOR_MISSING]
    if not found and len(texts) == 3:
        found = [
            code
            for code, text in enumerate(texts)
            if text in _NUMBERS_FOR_MISSING
            and _are_an_outcome({*texts} - {text})
            and np.count_nonzero(codes == code) <= _MOST_OF_NUMBER * len(codes)
        ]
    if not found:
        return None
    shown = ", ".join(
        f"{coding.classes[code]!r} of the target ({counted(int(np.count_nonzero(codes == code)), 'row')})"
        for code in found[:_NAMED]
    )
    what = f"Class {shown} looks like a missing outcome"
    if len(found) > 1:
        what = f"Classes {shown} look like missing outcomes"
    return (
        f"{what}. If so, models should not learn to predict it: leave such rows out "
        f"({missing_target_option(texts[found[0]])})."
    )


def _are_an_outcome(texts: set[str]) -> bool:
    """Return whether two classes are words, or 0 and 1, or 1 and 2."""
    return texts in _OTHER_NUMBERS or not any(character.isdigit() for text in texts for character in text)


def counts_hint(coding: TargetCoding) -> str | None:
    """Return a warning if many consecutive whole numbers were taken for classes, which may be amounts; else None.

    Parameters
    ----------
    coding : TargetCoding
        The classes, inferred and not asked for.

    Examples
    --------
    >>> counts_hint(TargetCoding.from_target(list(range(12)) * 5)).partition(".")[0]
    'The target holds the whole numbers 0 to 11, which are read as 12 classes'
    """
    labels = coding.classes
    if len(labels) < _MANY_NUMBERS or not all(isinstance(label, int | float) for label in labels):
        return None
    if labels[-1] - labels[0] != len(labels) - 1:
        return None
    return (
        f"The target holds the whole numbers {labels[0]:g} to {labels[-1]:g}, which are read as {len(labels)} classes. "
        "If they are amounts, ask for --task regression; if they are classes, --task multiclass says so."
    )


def frequent_class_hint(coding: TargetCoding, codes: AnyArray, metric: str) -> str | None:
    """Return a warning if a metric is of the second of two classes, to which most rows belong; else None.

    Parameters
    ----------
    coding : TargetCoding
        The classes.
    codes : (n_rows,) array of int
        Their codes.
    metric : str
        Name of a built-in metric.

    Examples
    --------
    >>> coding, codes = TargetCoding.with_codes(["ok", "ok", "fraud"])
    >>> frequent_class_hint(coding, codes, "f1").partition(".")[0]
    "The metric f1 is that of the class 'ok', the second in sorted order, to which 67 % of the rows belong"
    """
    if metric not in _OF_SECOND_CLASS or len(coding.classes) != 2 or coding.positive == 0:
        return None
    share = float(np.mean(codes == 1))
    if share <= 0.5:
        return None
    first, second = coding.classes
    return (
        f"The metric {metric} is that of the class {second!r}, the second in sorted order, to which "
        f"{100 * share:.0f} % of the rows belong. If {first!r} is what you look for, search with pos_label={first!r} "
        f"(--pos-label {first})."
    )


def class_order_hint(coding: TargetCoding, y: object, metric: str) -> str | None:
    """Return a warning if a metric takes classes in the order of their labels, which may be another one; else None.

    Parameters
    ----------
    coding : TargetCoding
        The classes.
    y : array-like
        The target; ordered categories of pandas tell their order.
    metric : str
        Name of a built-in metric.

    Examples
    --------
    >>> hint = class_order_hint(TargetCoding.from_target(["low", "mid", "high"]), None, "quadratic_kappa")
    >>> hint.partition(".")[0]
    "The metric quadratic_kappa takes the classes in the order 'high', 'low', 'mid'"
    >>> class_order_hint(TargetCoding.from_target(["1", "2", "3"]), None, "quadratic_kappa")
    """
    classes = list(coding.classes)
    if metric != _ORDERS_CLASSES or len(classes) < 3 or _known_order(y, classes) in (classes, classes[::-1]):
        return None
    return (
        f"The metric {metric} takes the classes in the order {first_of(classes, most=_CLASSES_NAMED)}. If they have "
        "another order, number them in it, such as 0, 1, 2."
    )


def _known_order(y: object, classes: list[Any]) -> list[Any] | None:
    """Return the classes in the order of ordered categories or, without any, in that of their numbers; else None."""
    dtype = getattr(y, "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
        return [label for label in dtype.categories.tolist() if label in set(classes)]
    try:
        return sorted(classes, key=float)
    except ValueError:
        return None


def zeros_hint(values: AnyArray, metric: str) -> str | None:
    """Return a warning if a metric divides by targets, and some of them are 0; else None.

    Parameters
    ----------
    values : (n_rows,) array of float64
        The target of a regression.
    metric : str
        Name of a built-in metric.

    Examples
    --------
    >>> zeros_hint(np.array([0.0, 2.0]), "mape").partition(":")[0]
    'The metric mape divides by the target, which is 0 in 1 of 2 rows'
    """
    n_zeros = int(np.count_nonzero(values == 0)) if metric == _DIVIDES_BY_TARGET else 0
    if not n_zeros:
        return None
    return (
        f"The metric {metric} divides by the target, which is 0 in {n_zeros:,} of {len(values):,} rows: their errors "
        "outweigh all others. Choose mae, or leave these rows out."
    )


def values_hint(values: AnyArray) -> str | None:
    """Return a warning about values that are all the same, stand for missing ones, or differ too little for 32 bits.

    None if there are no such values.

    Parameters
    ----------
    values : (n_rows,) array of float64
        The target of a regression.

    Examples
    --------
    >>> values_hint(np.array([3.0, 3.0])).partition(":")[0]
    'Every row has the target 3'
    >>> values_hint(1.7e9 + np.arange(100.0)).partition(",")[0]
    'Models calculate with 32 bits'
    >>> values_hint(np.array([3.0, 8.0, 99.0, 5.0, 99.0, 99.0])).partition(",")[0]
    'The target holds 99 in 3 rows'
    """
    low, high = float(values.min()), float(values.max())
    if low == high:
        return (
            f"Every row has the target {low:.6g}: there is nothing to predict. Check which column and rows these are."
        )
    if codes := placeholder_numbers(values[:ROWS_OF_HINT]):
        shown = " and ".join(f"{number} in {counted(count, 'row')}" for number, count in codes.items())
        return (
            f"The target holds {shown}, unlike all other values. Where this stands for missing values, leave out these "
            f"rows ({missing_target_option(next(iter(codes)))})."
        )
    if float32_offset(values) == 0:
        return None
    return (
        f"Models calculate with 32 bits, which hardly tell the values of the target apart, from {low:.12g} to "
        f"{high:.12g}. Subtract {low:.12g} from them, and add it to the predictions."
    )
