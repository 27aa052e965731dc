"""The task: what to predict, and the facts about the table that a search space needs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class TaskType(StrEnum):
    """Type of task."""

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
    """Imputed (median, most frequent); one column per level up to 20 levels, else as ``target``; no NaN."""

    TARGET = "target"
    """Imputed; categories replaced by the cross-fitted mean of the target; no NaN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProfile:
    """Facts about a task from which a search space decides what to offer.

    Attributes
    ----------
    task_type : TaskType
        Type of task.
    n_rows, n_columns : int
        Numbers of training rows and of used feature columns.
    n_classes : int
        Number of classes; 1 for regression.
    has_categories : bool
        Whether a categorical column with more than two levels is used.
    most_levels : int
        Levels of the used categorical column that has most of them.
    needs_probabilities : bool
        Whether the metric is computed from probabilities.
    has_weights : bool
        Whether rows have different weights; only algorithms that accept weights are offered then.
    monotone : tuple of int
        For each numeric column whether predictions may only increase with it (1), only decrease (-1), or both (0);
        empty if there are no such constraints. Otherwise only algorithms that guarantee them are offered.
    quantile : float or None
        Level of the quantile to predict, by learners that can; None for the mean.
    power : float or None
        Power of the Tweedie deviance to minimise, by learners that can; see `cashmere.evaluation.Metric`.
    learns_logarithms : bool
        Whether learners learn log(1 + target), and predict targets again.
    """

    task_type: TaskType
    n_rows: int
    n_columns: int
    n_classes: int = 1
    has_categories: bool = False
    most_levels: int = 0
    needs_probabilities: bool = False
    has_weights: bool = False
    monotone: tuple[int, ...] = ()
    quantile: float | None = None
    power: float | None = None
    learns_logarithms: bool = False
