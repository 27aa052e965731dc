"""The task: what to predict, and the facts about the table that a search space needs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class TaskType(StrEnum):
    """Kind of target."""

    BINARY = "binary"
    MULTICLASS = "multiclass"
    REGRESSION = "regression"

    @property
    def is_classification(self) -> bool:
        """Whether predictions are class probabilities."""
        return self is not TaskType.REGRESSION


class Encoding(StrEnum):
    """The prepared forms of a table. Each is computed once per fold, inside its training rows."""

    ORDINAL = "ordinal"
    """Categories as codes (unknown and missing: NaN), numbers with NaN kept; for trees that split on categories."""

    ONEHOT = "onehot"
    """Imputed (median, most frequent); one column per level up to 20 levels, else codes; no NaN."""

    TARGET = "target"
    """Imputed; categories replaced by the cross-fitted mean of the target; no NaN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProfile:
    """Facts about a task by which a search space decides what to offer.

    Attributes
    ----------
    task_type : TaskType
        Kind of target.
    n_rows, n_columns : int
        Training rows and used feature columns of the table.
    n_classes : int
        Number of classes; 1 for regression.
    has_categories : bool
        Whether any used column is categorical with more than two levels.
    needs_probabilities : bool
        Whether the metric is computed from probabilities.
    fractional_weights : bool
        Whether rows carry weights that are not whole numbers: only algorithms that accept weights are offered then.
    monotone : tuple of int
        For each column of numbers whether predictions may only rise with it (1), only fall (-1), or both (0); empty if
        nothing is asked of any. Otherwise only algorithms that can keep to it are offered.
    quantile : float or None
        Level of the quantile that learners are to predict, if they can; otherwise the mean.
    """

    task_type: TaskType
    n_rows: int
    n_columns: int
    n_classes: int = 1
    has_categories: bool = False
    needs_probabilities: bool = False
    fractional_weights: bool = False
    monotone: tuple[int, ...] = ()
    quantile: float | None = None
