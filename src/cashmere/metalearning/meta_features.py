"""Describe a table by a vector of 40 numbers, by which data sets are compared.

Four kinds (names in `META_FEATURES`): simple (sizes, classes, categories, missing values), statistical (shapes of the
distributions, principal components), information-theoretic (what a column says about the target), and landmarkers
(accuracies of simple classifiers).

Up to `MAX_ROWS` rows, all numbers depend only on the *set* of rows. Rows are first ordered by a hash of their content;
the sample for the costly numbers is drawn evenly from this order, class by class, and so are the folds. There is no
generator and no seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from cashmere.base.arrays import AnyArray, BoolArray, Float64, FloatArray, IntArray
from cashmere.base.threads import one_blas_thread
from cashmere.data.frames import has_labels, to_frame
from cashmere.data.inference import infer_schema
from cashmere.data.target import TargetCoding, Task
from cashmere.data.task import TaskType
from cashmere.exceptions import ArrayError, ShapeError
from cashmere.metalearning.landmarkers import LANDMARKERS, N_FOLDS, landmarker_accuracies

MAX_ROWS = 200_000
"""Largest number of rows used for anything but the numbers of rows and the sizes of classes."""
MAX_SAMPLE_ROWS = 2000
"""Largest number of rows used for principal components, information and landmarkers."""
MAX_SAMPLE_COLUMNS = 300
"""Largest number of columns used for the same; beyond, a choice spread evenly over the table."""

_MAX_LEVELS = 20
_N_BINS = 10
_EXPLAINED = 0.95


def _summary_names(what: str) -> tuple[str, ...]:
    return tuple(f"{what}_{how}" for how in ("min", "max", "mean", "std"))


META_FEATURES: tuple[str, ...] = (
    "log_rows",
    "log_columns",
    "log_classes",
    "log_columns_per_row",
    *_summary_names("class_size"),
    "class_entropy",
    "majority_share",
    "numeric_columns",
    "numeric_share",
    "categorical_columns",
    "categorical_share",
    *_summary_names("categories"),
    "missing_share",
    "rows_with_missing_share",
    "columns_with_missing_share",
    *_summary_names("skewness"),
    *_summary_names("kurtosis"),
    "components_share",
    "component_skewness",
    "component_kurtosis",
    *(f"accuracy_{name}" for name in LANDMARKERS),
    "information_mean",
    "information_max",
)
"""Names of the meta-features, in the order used by every array."""


def meta_features(values: FloatArray, y: AnyArray, *, categorical: BoolArray, task_type: TaskType) -> dict[str, float]:
    """Describe a table by 40 numbers.

    Parameters
    ----------
    values : (n_rows, n_columns) array
        The coded table, see `cashmere.data.schema.CodedTable`: numbers, and codes of categories; NaN or infinite
        where missing. Texts are ignored.
    y : (n_rows,) array
        Class codes, or values in regression.
    categorical : (n_columns,) array of bool
        Which columns hold codes of categories.
    task_type : TaskType
        How to read `y`.

    Returns
    -------
    dict of str to float
        One finite number per name of `META_FEATURES`, in their order, or NaN where there is nothing to describe:
        classes and accuracies in regression, skewness without numeric columns that vary, categories without
        categorical columns, accuracies with a single class or fewer than 3 rows.

    Raises
    ------
    InvalidParameterError
        If the lengths do not agree.

    Notes
    -----
    Logarithms are natural; entropy and information are in nats. Skewness, kurtosis (0 for a normal distribution) and
    ``std`` are those of the population; columns without variation have no skewness or kurtosis.

    From larger tables, `MAX_ROWS` rows are used, evenly spread over the table; only the numbers about rows and classes
    count all of them. The last eleven come from at most `MAX_SAMPLE_ROWS` rows and `MAX_SAMPLE_COLUMNS` columns. For
    components and accuracies, missing numbers are replaced by the median, categories are coded one-hot (the 20 most
    frequent levels), and all columns are standardised. ``components_share`` is the share of the principal components
    that hold 95 % of the variance. ``component_skewness`` is an absolute value, since the sign of a component is
    arbitrary. For the information, numbers are cut into 10 bins of equally many rows, and missing counts as a separate
    value.

    Ishikawa et al. (2025) list no meta-features; these follow Feurer et al. (2015):
    docs/papers/latent.md#meta-features.

    References
    ----------
    Feurer, Springenberg and Hutter (2015), Initializing Bayesian hyperparameter optimization via meta-learning, AAAI.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 1.0], [9.0, np.nan]])
    >>> z = meta_features(rows, np.array([0, 0, 1, 1]), categorical=np.array([False, True]), task_type=TaskType.BINARY)
    >>> len(z), z["majority_share"], z["categories_max"], z["missing_share"]
    (40, 0.5, 2.0, 0.125)
    """
    given: AnyArray = np.asarray(values)
    y, categorical = np.asarray(y), np.asarray(categorical, dtype=bool)
    if given.ndim != 2 or y.shape != (len(given),) or categorical.shape != (given.shape[1],):
        raise ArrayError(
            "values",
            "values, y and categorical must have shapes (n_rows, n_columns), (n_rows,) and (n_columns,); "
            f"got {given.shape}, {y.shape} and {categorical.shape}.",
        )
    every_y = y
    if len(given) > MAX_ROWS:
        chosen = _spread(len(given), MAX_ROWS)
        given, y = given[chosen], y[chosen]
    table: Float64 = given.astype(np.float64)
    table = np.where(np.isfinite(table), table + 0.0, np.nan)  # no negative zero, whose bits differ
    order = np.argsort(_row_hashes(table, y), kind="stable")
    table, y = table[order], y[order]
    is_classification = task_type.is_classification
    features = dict.fromkeys(META_FEATURES, float("nan"))
    if len(table):
        codes = np.unique(y, return_inverse=True)[1] if is_classification else _bins(y.astype(np.float64))
        with one_blas_thread():
            features |= _sizes(table, categorical, n_rows=len(every_y))
            if is_classification:
                features |= _class_sizes(np.unique(every_y, return_counts=True)[1])
            features |= _shapes(table[:, ~categorical])
            features |= _sampled(table, codes, categorical, is_classification=is_classification)
    return {name: float(features[name]) for name in META_FEATURES}


def describe_frame(X: Any, y: Any, task: Task | None = None) -> dict[str, float]:
    """Describe a raw table, with its columns interpreted as in `fit`.

    Parameters
    ----------
    X : (n_rows, n_columns) table
        See `cashmere.data.frames.to_frame`.
    y : (n_rows,) array-like
        Labels or numbers.
    task : TaskType or "classification" or "regression", optional
        The kind of task, if known; inferred by default.

    Returns
    -------
    dict of str to float
        See `meta_features`.

    Raises
    ------
    DataError
        As in `fit`, if table or target cannot be used.
    """
    frame = to_frame(X)
    target = TargetCoding.from_target(y, task)
    coded = infer_schema(frame, named=has_labels(X)).code(frame)
    codes = target.encode(y, n_rows=len(frame))
    return meta_features(coded.values, codes, categorical=coded.categorical, task_type=target.task_type)


# ---------------------------------------------------------------- rows in an order by content


def _row_hashes(values: Float64, y: AnyArray) -> NDArray[np.uint64]:
    """Return pseudo-random numbers that are equal for equal rows."""
    hashes = np.zeros(len(values), dtype=np.uint64)
    for column in (*values.T, y.astype(np.float64)):
        column = np.where(np.isnan(column), np.nan, column)  # a single one of the many bit patterns of NaN
        hashes ^= np.ascontiguousarray(column).view(np.uint64)
        # The finaliser of splitmix64 (Steele, Lea and Flood 2014): every bit affects every other.
        hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashes ^= hashes >> np.uint64(31)
    return hashes


def _spread(n: int, n_chosen: int) -> IntArray:
    """Return at most `n_chosen` of the numbers 0, ..., n - 1, evenly spaced."""
    if n <= n_chosen:
        return np.arange(n)
    return ((np.arange(n_chosen) + 0.5) * n / n_chosen).astype(np.int64)


# ---------------------------------------------------------------- all rows


def _summary(what: str, numbers: FloatArray) -> dict[str, float]:
    """Return minimum, maximum, mean and standard deviation; NaN if there are no numbers."""
    parts = [numbers.min(), numbers.max(), numbers.mean(), numbers.std()] if len(numbers) else [np.nan] * 4
    return dict(zip(_summary_names(what), map(float, parts), strict=True))


def _sizes(values: Float64, categorical: BoolArray, *, n_rows: int) -> dict[str, float]:
    d = values.shape[1]
    features = {
        "log_rows": np.log(n_rows),
        "numeric_columns": d - categorical.sum(),
        "categorical_columns": categorical.sum(),
    }
    if d:
        missing = np.isnan(values)
        features |= {
            "log_columns": np.log(d),
            "log_columns_per_row": np.log(d / n_rows),
            "numeric_share": 1 - categorical.mean(),
            "categorical_share": categorical.mean(),
            "missing_share": missing.mean(),
            "rows_with_missing_share": missing.any(axis=1).mean(),
            "columns_with_missing_share": missing.any(axis=0).mean(),
        }
    levels = [len(np.unique(column[~np.isnan(column)])) for column in values[:, categorical].T]
    return features | _summary("categories", np.array(levels, dtype=np.float64))


def _class_sizes(counts: IntArray) -> dict[str, float]:
    sizes = counts.astype(np.float64)
    features = {"log_classes": np.log(len(sizes)), "majority_share": sizes.max() / sizes.sum()}
    return features | {"class_entropy": _entropy(sizes)} | _summary("class_size", sizes)


def _shapes(numbers: Float64) -> dict[str, float]:
    """Return summaries of skewness and kurtosis over the columns."""
    shapes = np.array([_skewness_kurtosis(column[~np.isnan(column)]) for column in numbers.T]).reshape(-1, 2)
    shapes = shapes[~np.isnan(shapes).any(axis=1)]
    return _summary("skewness", shapes[:, 0]) | _summary("kurtosis", shapes[:, 1])


def _skewness_kurtosis(x: Float64) -> tuple[float, float]:
    r"""Return :math:`m_3 / m_2^{3/2}` and :math:`m_4 / m_2^2 - 3` with central moments; NaN without variation."""
    z = _standardised(x[:, None])
    if z.shape[1] == 0:
        return float("nan"), float("nan")
    squares = z * z
    return float(np.mean(squares * z)), float(np.mean(squares * squares) - 3)


def _standardised(X: Float64) -> Float64:
    """Return the varying columns, scaled to mean 0 and standard deviation 1."""
    if len(X) == 0:
        return X[:, :0]
    X = X[:, X.max(axis=0) > X.min(axis=0)]
    X = X / np.abs(X).max(axis=0)  # squares of huge numbers overflow, those of tiny ones vanish
    X = X - X.mean(axis=0)
    deviation = X.std(axis=0)
    varies = deviation > 0
    standardised: Float64 = X[:, varies] / deviation[varies]
    return standardised


def _entropy(counts: FloatArray) -> float:
    """Return the entropy in nats of the distribution with these counts."""
    shares = counts[counts > 0] / counts.sum()
    return float(max(0.0, -(shares * np.log(shares)).sum()))


# ---------------------------------------------------------------- a sample of rows and columns


def _sampled(values: Float64, codes: IntArray, categorical: BoolArray, *, is_classification: bool) -> dict[str, float]:
    by_class = np.argsort(codes, kind="stable")
    chosen = by_class[_spread(len(codes), MAX_SAMPLE_ROWS)]
    folds = np.arange(len(chosen)) % N_FOLDS  # class by class, so stratified
    hashed = np.argsort(chosen)  # not by class, since the first of equally near neighbours is taken
    chosen, folds = chosen[hashed], folds[hashed]
    columns = _spread(values.shape[1], MAX_SAMPLE_COLUMNS)
    values, categorical, codes = values[np.ix_(chosen, columns)], categorical[columns], codes[chosen]

    information = [
        _mutual_information(_levels(column) if is_category else _bins(column), codes)
        for column, is_category in zip(values.T, categorical, strict=True)
    ]
    features = {}
    if information:
        features = {"information_mean": float(np.mean(information)), "information_max": max(information)}
    Z = _standardised(_numbers(values, categorical))
    Z = Z[:, _spread(Z.shape[1], MAX_SAMPLE_COLUMNS)]
    features |= _components(Z)
    if is_classification:
        accuracies = landmarker_accuracies(Z, codes, folds)
        features |= {f"accuracy_{name}": accuracy for name, accuracy in accuracies.items()}
    return features


def _numbers(values: Float64, categorical: BoolArray) -> Float64:
    """Return the table without missing values: medians for numbers, one-hot codes of frequent levels."""
    parts = []
    for column, is_category in zip(values.T, categorical, strict=True):
        present = column[~np.isnan(column)]
        if is_category:
            levels, counts = np.unique(present, return_counts=True)
            frequent = levels[np.argsort(-counts, kind="stable")[:_MAX_LEVELS]]
            parts.append((column[:, None] == frequent).astype(np.float64))
        else:
            centre = np.quantile(present, 0.5, method="lower") if len(present) else 0.0  # halves of sums may overflow
            parts.append(np.where(np.isnan(column), centre, column)[:, None])
    return np.concatenate(parts, axis=1) if parts else np.empty((len(values), 0))


def _components(Z: Float64) -> dict[str, float]:
    """Return the meta-features of the principal components."""
    if Z.shape[1] == 0:
        return {}
    variances, directions = np.linalg.eigh(Z.T @ Z / len(Z))
    shares = np.cumsum(variances[::-1]) / variances.sum()
    n_needed = int(np.searchsorted(shares, _EXPLAINED - 1e-9)) + 1
    skewness, kurtosis = _skewness_kurtosis(Z @ directions[:, -1])
    return {
        "components_share": n_needed / Z.shape[1],
        "component_skewness": abs(skewness),
        "component_kurtosis": kurtosis,
    }


def _levels(column: Float64) -> IntArray:
    """Return the distinct values numbered 0, 1, ...; missing is one of them."""
    numbers: IntArray = np.unique(column, return_inverse=True)[1]
    return numbers


def _bins(column: Float64) -> IntArray:
    """Return 10 bins of about equally many rows, equal values in the same bin; 0 for missing."""
    bins = np.zeros(len(column), dtype=np.int64)
    present = ~np.isnan(column)
    ranks = stats.rankdata(column[present]) - 0.5  # between 0 and the number of present rows
    bins[present] = 1 + (_N_BINS * ranks / max(len(ranks), 1)).astype(np.int64)
    return bins


def _mutual_information(x: IntArray, y: IntArray) -> float:
    """Return the mutual information of two variables in nats, from their joint counts."""
    n_levels = int(y.max()) + 1
    joint = np.bincount(x * n_levels + y).astype(np.float64)
    return max(
        0.0, _entropy(np.bincount(x).astype(np.float64)) + _entropy(np.bincount(y).astype(np.float64)) - _entropy(joint)
    )


# ---------------------------------------------------------------- vectors


def stack_features(tables: Sequence[Mapping[str, float]]) -> Float64:
    """Return the meta-features of S tables as an array ``(S, 40)``; NaN where a table lacks one."""
    rows = [[table.get(name, float("nan")) for name in META_FEATURES] for table in tables]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(META_FEATURES))


def features_to_json(features: Mapping[str, float]) -> dict[str, float | None]:
    """Return meta-features as plain data for JSON: NaN becomes null."""
    return {name: float(value) if np.isfinite(value) else None for name, value in features.items()}


def features_from_json(stored: Mapping[str, float | None]) -> dict[str, float]:
    """Return the meta-features that `features_to_json` converted."""
    return {name: float("nan") if value is None else float(value) for name, value in stored.items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MetaFeatureScaler:
    """Scale meta-features to the vectors z that rankers compare.

    Attributes
    ----------
    median : (n_features,) array
        Replacements for NaN.
    mean, std : (n_features,) array
        Moments over the source tables after that; `std` is 1 where they do not differ.
    """

    median: Float64
    mean: Float64
    std: Float64

    @classmethod
    def fit(cls, features: FloatArray) -> Self:
        """Learn from source tables.

        Parameters
        ----------
        features : (n_sources, n_features) array
            See `stack_features`; a column that is NaN throughout becomes 0.

        Raises
        ------
        ShapeError
            If there is no source.
        """
        features = np.asarray(features, dtype=np.float64)
        if features.ndim != 2 or len(features) == 0:
            raise ShapeError("features", features.shape, "(n_sources, n_features) with n_sources > 0")
        known = ~np.isnan(features)
        median = np.array([np.median(x[k]) if k.any() else 0.0 for x, k in zip(features.T, known.T, strict=True)])
        filled = np.where(known, features, median)
        differs = filled.max(axis=0) > filled.min(axis=0)
        return cls(median=median, mean=filled.mean(axis=0), std=np.where(differs, filled.std(axis=0), 1.0))

    def apply(self, features: FloatArray) -> Float64:
        """Return standardised features, finite, of the same shape: ``(n_features,)`` or ``(n_tables, n_features)``."""
        features = np.asarray(features, dtype=np.float64)
        scaled: Float64 = (np.where(np.isnan(features), self.median, features) - self.mean) / self.std
        return scaled
