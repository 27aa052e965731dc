"""Descriptors: everything the search needs to know about an algorithm or operator."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cashmere.base.arrays import BoolArray, FloatArray, IntArray
from cashmere.data.task import Encoding, TaskProfile, TaskType
from cashmere.space.path import PathParameter

if TYPE_CHECKING:  # predicting needs no ConfigSpace
    from ConfigSpace.conditions import Condition, ConditionLike
    from ConfigSpace.forbidden import ForbiddenLike
    from ConfigSpace.hyperparameters import Hyperparameter

ALL_TASKS = frozenset(TaskType)
CLASSIFICATION = frozenset({TaskType.BINARY, TaskType.MULTICLASS})
REGRESSION = frozenset({TaskType.REGRESSION})

MAX_COLUMNS = 2000
"""Largest number of columns that a feature operator may make."""

MAX_BYTES = 2 * 1024**3
"""Largest size in bytes, as float64, of a matrix made by a feature operator."""

EXTRAS: Mapping[str, str] = {"catboost": "boost", "imblearn": "imbalance", "xgboost": "boost"}
"""The extra of cashmere that installs a module, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subspace:
    """Hyper-parameters of one component, with their conditions and forbidden clauses (ConfigSpace objects).

    Attributes
    ----------
    hyperparameters, conditions, forbidden : sequence
        Hyper-parameters, conditions and forbidden clauses; names without prefix.
    only_under : mapping of str to Encoding
        Hyper-parameters that only have an effect under one prepared form of the table: they are active if an algorithm
        with several forms chooses this one.
    """

    hyperparameters: Sequence[Hyperparameter[Any, Any]] = ()
    conditions: Sequence[Condition | ConditionLike] = ()
    forbidden: Sequence[ForbiddenLike] = ()
    only_under: Mapping[str, Encoding] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildContext:
    """Facts that a builder may use to make an estimator for one fold.

    Attributes
    ----------
    task_type : TaskType
        Type of task.
    n_classes : int
        Classes present in the fold's training rows (coded 0 .. n_classes - 1); 1 for regression.
    n_rows, n_features : int
        Shape of the fold's prepared training matrix.
    categorical : (n_features,) bool array
        Columns that hold category codes (only under `Encoding.ORDINAL`).
    monotone : tuple of int
        For each column whether predictions (with two classes, the probability of the second) may only increase with it
        (1), only decrease (-1), or both (0); empty if there are no such constraints.
    quantile : float or None
        Level of the quantile to predict instead of the mean.
    power : float or None
        Power of the Tweedie deviance to minimise instead of squared errors: 1 for Poisson, 2 for gamma.
    n_threads : int
        Threads the estimator may use.
    seed : int
        Seed for the estimator's randomness.
    """

    task_type: TaskType
    n_classes: int
    n_rows: int
    n_features: int
    categorical: BoolArray
    monotone: tuple[int, ...] = ()
    quantile: float | None = None
    power: float | None = None
    n_threads: int = 1
    seed: int = 0


Builder = Callable[[Mapping[str, Any], BuildContext], Any]
"""Makes an unfitted scikit-learn estimator from the component's active hyper-parameters (names without prefix)."""


def _no_hyperparameters(profile: TaskProfile) -> Subspace:
    return Subspace()


def _no_variants(profile: TaskProfile) -> Sequence[Mapping[str, Any]]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One algorithm or operator.

    Attributes
    ----------
    name : str
        Value of the choice in the search space; lower case with underscores.
    build : callable
        `Builder`; operators may return the string ``"passthrough"``.
    subspace : callable
        Makes the component's `Subspace` for a `TaskProfile`; hyper-parameter names without prefix.
    group : tuple of str
        Path in the group tree, for example ``("trees", "boosting")``.
    tasks : frozenset of TaskType
        Supported tasks.
    requires : tuple of str
        Modules that must be importable.
    max_rows : int, callable or None
        The component is offered only up to this many rows; a callable returns them for a `TaskProfile`.
    """

    name: str
    build: Builder
    subspace: Callable[[TaskProfile], Subspace] = _no_hyperparameters
    group: tuple[str, ...] = ()
    tasks: frozenset[TaskType] = ALL_TASKS
    requires: tuple[str, ...] = ()
    max_rows: int | Callable[[TaskProfile], int] | None = None

    def most_rows(self, profile: TaskProfile) -> float:
        """Return the number of rows up to which the component is offered for such a task; infinity without a limit."""
        if self.max_rows is None:
            return math.inf
        return self.max_rows(profile) if callable(self.max_rows) else self.max_rows

    def is_available(self, profile: TaskProfile) -> bool:
        """Return whether the component can serve this task on this machine."""
        return (
            profile.task_type in self.tasks
            and profile.n_rows <= self.most_rows(profile)
            and all(importlib.util.find_spec(module) is not None for module in self.requires)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator(Component):
    """A step before the learner: scaler, feature selection, decomposition, ..."""


Resample = Callable[[FloatArray, IntArray], tuple[FloatArray, IntArray]]
"""New rows and class codes ``(n_resampled, n_features)``, ``(n_resampled,)`` from the training rows of a fold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampler(Operator):
    """An operator that changes the rows: over-sampling, under-sampling, both, or neither.

    It acts only on the training rows of a fold, after all other operators and right before the learner is fitted, and
    is not part of the fitted pipeline. Its builder returns a `Resample` function, or ``"passthrough"``. New rows have
    no weight, so resamplers are not offered for weighted rows.
    """

    def is_available(self, profile: TaskProfile) -> bool:
        """Return whether the resampler can serve this task and weighting on this machine."""
        return Component.is_available(self, profile) and not profile.has_weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm(Component):
    """A classifier or regressor family with its sub-space.

    Attributes
    ----------
    encodings : tuple of Encoding
        Prepared forms the algorithm can learn from; with more than one, and categories in the table, the choice
        becomes the hyper-parameter ``encoding``. The first is the default.
    monotone_encodings : tuple of Encoding
        The same if predictions must be monotone in some columns; empty if the algorithm cannot guarantee this. The
        builder finds the directions in `BuildContext.monotone`.
    accepts_weights : bool
        Whether ``fit`` takes ``sample_weight``.
    has_probabilities : bool
        Whether a classifier offers ``predict_proba``.
    trusted_types : tuple of str
        Fully qualified names of types and functions in the fitted estimator that are not on the list of
        `cashmere.model.trusted`, where their forms and what it means to declare one are described.
    path : PathParameter or None
        Parameter that one fit goes through, instead of a search over its values.
    onnx : tuple of Encoding
        Prepared forms of tables with categories under which fitted models convert to ONNX (`cashmere.export`); without
        categories, one is enough.
    variants : callable
        Returns, for a `TaskProfile`, values (names without prefix) that differ from the defaults, each of a further
        configuration worth a trial before the strategy is asked.
    gain, gain_of_variants : float
        What the default and each variant are expected to gain for an ensemble of all first configurations, relative to
        the others, positive. Under a time budget, those with the largest gain per predicted second come first.
    """

    encodings: tuple[Encoding, ...] = (Encoding.ONEHOT,)
    monotone_encodings: tuple[Encoding, ...] = ()
    accepts_weights: bool = True
    has_probabilities: bool = True
    trusted_types: tuple[str, ...] = field(default=())
    path: PathParameter | None = None
    onnx: tuple[Encoding, ...] = ()
    variants: Callable[[TaskProfile], Sequence[Mapping[str, Any]]] = _no_variants
    gain: float = 1.0
    gain_of_variants: float = 1.0

    def forms(self, profile: TaskProfile) -> tuple[Encoding, ...]:
        """Return the prepared forms that the algorithm may learn from for a task."""
        return self.monotone_encodings if any(profile.monotone) else self.encodings

    def is_available(self, profile: TaskProfile) -> bool:
        """Return whether the algorithm can serve this task, metric and weighting on this machine."""
        return (
            Component.is_available(self, profile)
            and bool(self.forms(profile))
            and (self.accepts_weights or not profile.has_weights)
            and (self.has_probabilities or not (profile.needs_probabilities and profile.task_type.is_classification))
        )
