"""Turn labels into codes and back, and infer the type of task from a target."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from shlex import quote
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import numpy as np
import pandas as pd
from msgspec import Meta

from cashmere.base.arrays import AnyArray, IntArray
from cashmere.base.json_files import checked
from cashmere.base.text import counted
from cashmere.data.amounts import Amounts, StoredAmounts, find_amounts, read_amounts
from cashmere.data.frames import without_values
from cashmere.data.kind_hints import WITH_OTHERS, other_notation
from cashmere.data.labels import label_text
from cashmere.data.task import TaskType
from cashmere.exceptions import ColumnTypeError, DataError, InvalidParameterError

MAX_NUMBER_CLASSES = 20
"""More distinct whole numbers, or amounts, are values."""

_ROWS_PER_INTEGER_CLASS = 3
_LONGEST_LABEL = 10_000
_PAIRS_NAMED = 3
_EXACT_INTEGERS = 2.0**53

Task = TaskType | Literal["classification", "regression"]
"""What the caller may already know about the task."""


def check_target(y: Any, *, n_rows: int | None = None) -> AnyArray:
    """Return the target as a one-dimensional array without missing or infinite values.

    Parameters
    ----------
    y : (n_rows,) array-like
        Labels or numbers. A single column is flattened with a `sklearn.exceptions.DataConversionWarning`.
    n_rows : int, optional
        Number of rows of the feature table.

    Returns
    -------
    (n_rows,) array
        An array of bool, integers, floats, text or objects (Python strings).

    Raises
    ------
    DataError
        If `y` is absent, empty, complex, has another length or shape, holds missing values or infinities.
    """
    from sklearn.utils.validation import column_or_1d

    if y is None:
        raise DataError(
            "cashmere requires y to be passed, but the target y is None. Pass y, or name the target column."
        )
    if isinstance(y, np.ma.MaskedArray) and y.ndim == 1:
        y = pd.Series(y)  # masked values are missing
    if hasattr(y, "iloc") and getattr(y, "ndim", 1) == 1:
        y = pd.Series(y).to_numpy(dtype=object) if _is_extension(y.dtype) else y.to_numpy()
    elif isinstance(y, pd.DataFrame) or type(y).__module__.partition(".")[0] == "polars":
        y = y.to_numpy()
    elif isinstance(y, (list, tuple)) and len({type(value) for value in y}) > 1:
        y = np.array(y, dtype=object)
    elif getattr(getattr(y, "dtype", None), "kind", "") == "c":
        raise DataError("Complex data not supported: y holds complex numbers. Predict their parts one by one.")
    elif isinstance(y, (list, tuple)) and any(isinstance(value, str) for value in y):
        _check_labels(y)  # before they become an array, in which each label takes as much as the longest
    try:
        target: AnyArray = column_or_1d(y, warn=True)
    except (TypeError, ValueError) as error:
        kind = ColumnTypeError if isinstance(error, TypeError) else DataError
        remedy = "the column itself, not its name" if isinstance(y, str) else "a single column, one value per row"
        raise kind(f"{without_values(str(error)).rstrip('. ')}. Pass {remedy}.") from error
    if target.dtype.kind == "T":
        target = target.astype(object)
    if n_rows is not None and len(target) != n_rows:
        raise DataError(
            f"Found input variables with inconsistent numbers of samples: [{n_rows}, {len(target)}]. "
            "X and y must have equally many rows."
        )
    if len(target) == 0:
        raise DataError("Found array with 0 sample(s) in y while a minimum of 1 is required.")
    missing = np.flatnonzero(pd.isna(target))
    if missing.size:
        labels = any(isinstance(label, str) for label in target)
        hint = (
            " If they are a label such as NA, None or null, which pandas takes for missing when it reads text files, "
            "rename it, or pass a table read with keep_default_na=False."
        )
        raise DataError(
            f"Input y contains NaN: {counted(missing.size, 'missing value')} in the target, the first in row "
            f"{missing[0]} (counted from 0). Remove these rows; commands do so with --drop-missing-target."
            f"{hint if labels else ''}"
        )
    if target.dtype == object and pd.api.types.infer_dtype(target, skipna=False) != "string":
        inferred = pd.Series(target).infer_objects()
        target = target if inferred.dtype == object or _is_extension(inferred.dtype) else inferred.to_numpy()
        if target.dtype == object and all(isinstance(value, (Decimal, int, float)) for value in target):
            target = target.astype(np.float64)
    if target.dtype.kind == "f" and np.isinf(target).any():
        infinite = np.flatnonzero(np.isinf(target))
        raise DataError(
            f"Input y contains infinity or a value too large for dtype('float64'): {counted(infinite.size, 'value')} "
            f"in the target, the first in row {infinite[0]} (counted from 0). Remove these rows."
        )
    if target.dtype.kind not in "biufUO" or (target.dtype == object and set(map(type, target)) != {str}):
        kinds = sorted({type(value).__name__ for value in target})
        raise DataError(f"Unknown label type: the target holds {', '.join(kinds)}. Convert it to numbers or text.")
    if target.dtype == object:
        _check_labels(dict.fromkeys(target))  # pandas 2 ignores a NUL at the end of a text
    return target


def rows_with_target(frame: pd.DataFrame, y: Any) -> tuple[pd.DataFrame, Any, int]:
    """Return the rows that have a target.

    Parameters
    ----------
    frame : (n_rows, n_columns) DataFrame
        Features, and other columns.
    y : (n_rows,) array-like
        The target.

    Returns
    -------
    DataFrame, array-like
        The rows that have a target, and their targets: without a gap, whole numbers are integers again.
    int
        Number of rows that are left out.

    Raises
    ------
    DataError
        If no row has a target.

    Examples
    --------
    >>> frame, y, n_missing = rows_with_target(pd.DataFrame({"size": [4, 5, 6]}), [1.0, float("nan"), 0.0])
    >>> frame["size"].tolist(), y.tolist(), n_missing
    ([4, 6], [1, 0], 1)
    """
    if np.ndim(y) != 1 or len(y) != len(frame):  # `check_target` reports a wrong length or shape
        return frame, y, 0
    values = y if isinstance(y, pd.Series) else np.asarray(y, dtype=object)
    present = ~np.asarray(pd.isna(values))
    if present.all():
        return frame, y, 0
    if not present.any():
        raise DataError("No row has a target. Name another target column.")
    kept: AnyArray = np.asarray(y)[present]
    if kept.dtype.kind == "f" and np.all(np.abs(kept) < _EXACT_INTEGERS) and np.all(kept == np.round(kept)):
        kept = kept.astype(np.int64)
    return frame[present], kept, int((~present).sum())


def with_missing(y: pd.Series[Any], values: Collection[str]) -> tuple[pd.Series[Any], list[str]]:
    """Return a target in which some values are missing, such as ``"unknown"`` or 999.

    Parameters
    ----------
    y : (n_rows,) Series
        The target.
    values : collection of str
        What stands for a missing value, as it is written; 999, 999.0 and ``"999"`` are the same.

    Returns
    -------
    Series
        The target; of numbers, if all other values are.
    list of str
        Values that it does not hold.

    Examples
    --------
    >>> y, unknown = with_missing(pd.Series(["12", "unknown", "9.5"]), ["unknown", "none"])
    >>> y.tolist(), unknown
    ([12.0, nan, 9.5], ['none'])
    """
    wanted = {label_text(value) for value in values}
    positions, found = pd.factorize(y)
    labels = [label_text(value) for value in found]
    is_missing = np.array([*(label in wanted for label in labels), False])  # the last one is for gaps, at position -1
    unknown = [value for value in values if label_text(value) not in labels]
    if not is_missing.any():
        return y, unknown
    rest = y.mask(is_missing[positions])
    if all(isinstance(value, str) for value in found):
        numbers = pd.to_numeric(rest.astype(object).str.strip(), errors="coerce")
        rest = numbers if numbers.notna().equals(rest.notna()) and not np.isinf(numbers).any() else rest
    return rest, unknown


def notation_of_target(labels: AnyArray) -> tuple[str, str, str] | None:
    """Return what the texts of a target hold, what to do, and an example, as `other_notation` does for columns.

    Examples
    --------
    >>> notation_of_target(np.array([*map(str, range(40)), "sold"], dtype=object))
    ('numbers and a few other texts', 'leave out their rows (with --missing-target sold)', 'sold')
    """
    notation = other_notation(pd.Series(labels, dtype=object))
    if notation is not None and notation[0] == WITH_OTHERS:
        what, _, example = notation
        return what, f"leave out their rows ({missing_target_option(example)})", example
    return notation


def missing_target_option(value: object) -> str:
    """Return how commands are told that a value of the target stands for none, for a message.

    Examples
    --------
    >>> missing_target_option("on request"), missing_target_option(999.0)
    ("with --missing-target 'on request'", 'with --missing-target 999')
    """
    return f"with --missing-target {quote(label_text(value))}"


def _check_labels(labels: Iterable[object]) -> None:
    """Reject texts that cannot be labels.

    Raises
    ------
    DataError
        If one is too long, or contains a NUL, which arrays of text lose, or a lone surrogate, which files cannot store.
    """
    for label in labels:
        if not isinstance(label, str):
            continue
        if len(label) > _LONGEST_LABEL:
            raise DataError(
                f"A label of the target is {len(label)} characters long ({label[:40]!r}...); expected at most "
                f"{_LONGEST_LABEL}. Shorten it, or choose another target."
            )
        if "\0" in label or not _is_encodable(label):
            what = "a NUL" if "\0" in label else "half of a letter (a lone surrogate)"
            raise DataError(f"The label {label[:60]!r} of the target holds {what}. Remove it.")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _factorised(target: AnyArray) -> tuple[IntArray, AnyArray]:
    """Return the position of each row's label among the sorted distinct labels, and those labels."""
    if target.dtype == object:  # texts: hashing them takes a tenth of the time of sorting
        positions, labels = pd.factorize(target, sort=True)
        return positions, np.asarray(labels, dtype=object)
    labels, positions = np.unique(target, return_inverse=True)
    return positions.reshape(-1), labels


def _is_extension(dtype: object) -> bool:
    return isinstance(dtype, pd.api.extensions.ExtensionDtype)


def infer_task_type(target: AnyArray, *, labels: AnyArray | None = None) -> TaskType:
    """Infer the type of task from a target.

    Text, booleans and categories are classes, but more than 20 different amounts (see `amounts_of`) are values. Numbers
    with a fraction are values. Whole numbers are classes if there are at most two distinct ones, or at most 20 with at
    least 3 rows per distinct number on average.

    Parameters
    ----------
    target : (n_rows,) array
        From `check_target`.
    labels : array, optional
        Its distinct values, if known.

    Examples
    --------
    >>> infer_task_type(np.array(["yes", "no", "no"])).value
    'binary'
    >>> infer_task_type(np.array([0.5, 1.5, 2.0])).value
    'regression'
    """
    labels = _factorised(target)[1] if labels is None else labels
    n_distinct = len(labels)
    if target.dtype.kind in "OU" and n_distinct > MAX_NUMBER_CLASSES:
        amounts, others = amounts_of(labels)
        if amounts is not None and not others:
            return TaskType.REGRESSION
    if target.dtype.kind in "iuf":
        whole = target.dtype.kind != "f" or not np.any(target != np.floor(target))
        few = n_distinct <= max(2, min(MAX_NUMBER_CLASSES, len(target) // _ROWS_PER_INTEGER_CLASS))
        if not whole or not few:
            return TaskType.REGRESSION
    return TaskType.BINARY if n_distinct <= 2 else TaskType.MULTICLASS


def amounts_of(texts: AnyArray) -> tuple[Amounts | None, list[str]]:
    """Return how the numbers of a target are written as text.

    Parameters
    ----------
    texts : (n,) array
        Its distinct texts.

    Returns
    -------
    Amounts or None
        None if they are no amounts (see `find_amounts`), or all are plain numbers, which may name classes.
    list of str
        Texts without a number.

    Examples
    --------
    >>> amounts_of(np.array(["$1,250", "$7.50", "n/a"]))
    (Amounts(decimal='.', sign='$'), ['n/a'])
    >>> amounts_of(np.array([str(number) for number in range(20)]))
    (None, [])
    """
    stripped = pd.Series(texts, dtype=object).str.strip()
    if (amounts := find_amounts(stripped)) is None:
        return None, []
    unread = np.isnan(read_amounts(stripped, amounts))
    if pd.to_numeric(stripped[~unread], errors="coerce").notna().all():
        return None, []
    return amounts, stripped[unread].tolist()


class _StoredCoding(TypedDict):
    task_type: TaskType
    classes: Annotated[list[str | bool | int | float], Meta(max_length=1_000_000)]
    dtype: Annotated[str, Meta(max_length=20)]
    positive: NotRequired[Annotated[int, Meta(ge=0, le=1)]]
    amounts: NotRequired[StoredAmounts]


_N_CLASSES = {TaskType.REGRESSION: (0, 0), TaskType.BINARY: (2, 2), TaskType.MULTICLASS: (2, 1_000_000)}
"""Smallest and largest number of classes of each task."""


@dataclass(frozen=True, kw_only=True)
class TargetCoding:
    """How labels become codes.

    Attributes
    ----------
    task_type : TaskType
        Type of task.
    classes : tuple
        Sorted labels as Python values, position is code; empty for regression.
    dtype : str
        numpy dtype of the labels, for example ``"int64"``, ``"<U3"``, ``"object"``, ``"bool"``.
    positive : int
        Code of the class that is looked for, if there are two: that of F1, average precision and a given threshold.
    amounts : Amounts or None
        How the numbers of a regression are written, if they are text.
    """

    task_type: TaskType
    classes: tuple[Any, ...] = ()
    dtype: str = "float64"
    positive: int = 1
    amounts: Amounts | None = None

    @classmethod
    def from_target(cls, y: Any, task: Task | None = None) -> TargetCoding:
        """Learn the coding of a target.

        Parameters
        ----------
        y : (n_rows,) array-like
            The target.
        task : TaskType or "classification" or "regression", optional
            The type of task, if known; otherwise inferred by `infer_task_type`.

        Raises
        ------
        DataError
            As for `check_target`; also if a regression target is text, a classification target is continuous or has
            a single class, or a binary one has more than two.
        """
        return cls.with_codes(y, task)[0]

    @classmethod
    def with_codes(
        cls, y: Any, task: Task | None = None, *, n_rows: int | None = None
    ) -> tuple[TargetCoding, AnyArray]:
        """Learn the coding of a target, and return it with the codes of the rows; this reads a large target only once.

        Parameters
        ----------
        y, task
            See `from_target`.
        n_rows : int, optional
            Number of rows of the feature table.
        """
        target = check_target(y, n_rows=n_rows)
        if task == "regression":
            amounts = amounts_of(_factorised(target)[1])[0] if target.dtype.kind in "OU" else None
            coding = cls(task_type=TaskType.REGRESSION, amounts=amounts)
            return coding, coding._values(target)
        positions, labels = _factorised(target)
        if task is None and infer_task_type(target, labels=labels) is TaskType.REGRESSION:
            return cls.with_codes(target, TaskType.REGRESSION)
        if target.dtype.kind == "f" and np.any(target != np.floor(target)):
            raise DataError(
                "Unknown label type: continuous. A classifier needs classes, but the target holds fractions. Use a "
                "regressor, or cut the values into classes."
            )
        if len(labels) < 2:
            raise one_class_error(labels.tolist()[0], f"all {len(target)} rows")
        if task is TaskType.BINARY and len(labels) > 2:
            raise DataError(
                f"A binary target has two classes, but this one has {len(labels)}: {_listed(labels.tolist())}. "
                "Ask for 'multiclass'."
            )
        task_type = TaskType.BINARY if len(labels) == 2 else TaskType.MULTICLASS
        dtype = target.dtype.str if target.dtype.kind == "U" else target.dtype.name
        coding = cls(task_type=task_type, classes=tuple(labels.tolist()), dtype=dtype)
        return coding, np.asarray(positions, dtype=np.int64)

    @property
    def n_classes(self) -> int:
        """Number of classes; 1 for regression."""
        return max(len(self.classes), 1)

    def encode(self, y: Any, *, n_rows: int | None = None) -> AnyArray:
        """Return codes ``(n_rows,)`` int64, or values float64 for regression.

        Raises
        ------
        DataError
            As for `check_target`; also for labels that were not in training, or text in regression.
        """
        target = check_target(y, n_rows=n_rows)
        if self.task_type is TaskType.REGRESSION:
            return self._values(target)
        positions, labels = _factorised(target)
        code_of = {label: code for code, label in enumerate(self.classes)}
        unknown = [label for label in labels.tolist() if label not in code_of]
        if unknown:
            raise DataError(
                f"The target holds labels that were not in training: {_listed(unknown)}. "
                f"Known: {_listed(self.classes)}.{_alike(unknown, self.classes)}"
            )
        codes = np.array([code_of[label] for label in labels.tolist()], dtype=np.int64)
        return codes[positions]

    def _values(self, target: AnyArray) -> AnyArray:
        if target.dtype.kind not in "biuf" and self.amounts is not None:
            codes, texts = _factorised(target)
            values = read_amounts(pd.Series(texts, dtype=object).str.strip(), self.amounts)
            if np.isnan(values).any():
                unread, first = int(np.isnan(values)[codes].sum()), str(texts[np.isnan(values)][0])
                raise DataError(
                    f"{counted(unread, 'row')} of the target cannot be read, such as {first!r}; "
                    f"expected numbers such as {self.amounts.example}. Leave out these rows "
                    f"({missing_target_option(first)})."
                )
            return np.asarray(values[codes])
        if target.dtype.kind not in "biuf":
            if (notation := notation_of_target(target)) is not None:
                what, remedy, example = notation
                raise DataError(
                    f"A regression target must hold plain numbers, but it holds {what}, such as {example!r}: {remedy}."
                )
            raise DataError(
                f"A regression target must hold numbers, but it holds text, for example {str(target[0])!r}. "
                "Convert it with pandas.to_numeric, or use a classifier."
            )
        return target.astype(np.float64)

    def decode(self, codes: AnyArray) -> AnyArray:
        """Return the labels of codes, in the dtype of the training target; regression values unchanged."""
        if self.task_type is TaskType.REGRESSION:
            return codes
        labels = self.labels()
        return labels[codes]

    def labels(self) -> AnyArray:
        """Return all labels in code order, shape ``(n_classes,)``; like scikit-learn's ``classes_``."""
        return np.array(self.classes, dtype=np.dtype(self.dtype))

    def looking_for(self, label: Any) -> TargetCoding:
        """Return the same coding with another positive class.

        Parameters
        ----------
        label : str, bool, int, float or None
            One of two classes, or how it is written: ``"0"`` for 0. None leaves the coding as it is.

        Raises
        ------
        InvalidParameterError
            If there are not two classes, or it is none of them.

        Examples
        --------
        >>> TargetCoding.from_target(["fraud", "ok"]).looking_for("fraud").positive
        0
        """
        if label is None:
            return self
        if self.task_type is not TaskType.BINARY:
            kind = "values" if self.task_type is TaskType.REGRESSION else f"{len(self.classes)} classes"
            raise InvalidParameterError("pos_label", label, "None", f"The target has {kind}, not two classes.")
        codes = [code for code, known in enumerate(self.classes) if known == label]
        codes = codes or [code for code, known in enumerate(self.classes) if label_text(known) == str(label)]
        if not codes:
            raise InvalidParameterError("pos_label", label, f"one of the two classes, {_listed(self.classes)}")
        return replace(self, positive=codes[0])

    def to_json(self) -> dict[str, Any]:
        """Return the coding as plain data for `json.dump`."""
        described: dict[str, Any] = {
            "task_type": self.task_type.value,
            "classes": list(self.classes),
            "dtype": self.dtype,
        }
        if self.positive != 1:
            described["positive"] = self.positive
        if self.amounts is not None:
            described["amounts"] = self.amounts.to_json()
        return described

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TargetCoding:
        """Return the coding written by `to_json`.

        Raises
        ------
        ValueError
            If the data are not a coding.
        """
        stored = checked(data, _StoredCoding)
        task_type, classes = stored["task_type"], tuple(stored["classes"])
        least, most = _N_CLASSES[task_type]
        if not least <= len(classes) <= most or len(set(classes)) < len(classes):
            raise ValueError(f"a target of the task {task_type} has {len(classes)} classes, or one of them twice")
        dtype = np.dtype(stored["dtype"])
        longest = max((len(label) for label in classes if isinstance(label, str)), default=1)
        if dtype.kind not in "biufUO" or not 0 <= dtype.itemsize <= max(16, 4 * longest):
            raise ValueError(f"labels cannot have the type {stored['dtype']!r}")
        np.array(classes, dtype=dtype)  # raises ValueError or OverflowError for labels that do not fit
        positive = stored.get("positive", 1)
        if positive != 1 and task_type is not TaskType.BINARY:
            raise ValueError(f"a target of the task {task_type} has no positive class")
        amounts = Amounts.from_json(stored["amounts"]) if "amounts" in stored else None
        if amounts is not None and task_type is not TaskType.REGRESSION:
            raise ValueError(f"a target of the task {task_type} has no amounts")
        return cls(task_type=task_type, classes=classes, dtype=stored["dtype"], positive=positive, amounts=amounts)


def one_class_error(label: object, rows: str) -> DataError:
    """Return the error for a classification target in which some rows, described in words, have all the same label."""
    return DataError(
        f"Classifier can't train when only one class is present: {rows} are {label!r}. Add rows of another class."
    )


def _alike(unknown: Iterable[Any], known: Iterable[Any]) -> str:
    """Return a sentence about unknown labels that look like known ones in another notation; nothing if none does."""

    def looks(label: Any) -> str:
        return " ".join(label_text(label).split()).casefold()

    same = {looks(label): label for label in known}
    pairs = [f"{label!r} may be {same[looks(label)]!r}" for label in unknown if looks(label) in same]
    return f" {', '.join(pairs[:_PAIRS_NAMED])}: write them as in training." if pairs else ""


def _listed(labels: Any) -> str:
    shown = [repr(label) for label in labels]
    return ", ".join(shown[:10]) + (f", ... ({len(shown)} in all)" if len(shown) > 10 else "")
