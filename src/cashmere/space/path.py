"""Hyper-parameters that one fit can go through, so that no value needs a fit of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from cashmere.base.arrays import AnyArray, BoolArray, FloatArray
from cashmere.data.task import TaskType


@dataclass(frozen=True, slots=True, kw_only=True)
class PathData:
    """The rows of one fold, as they reach the learner.

    Attributes
    ----------
    X : (n_rows, n_columns) array
        Training rows, after all steps before the learner.
    y : (n_rows,) array
        Class codes 0 .. n_classes - 1, all of which occur, or values.
    weight : (n_rows,) array or None
        Row weights.
    unseen : (n_unseen, n_columns) array
        Rows to predict, after the same steps.
    n_classes : int
        Classes present; 1 for regression.
    categorical : (n_columns,) bool array
        Columns of category codes.
    n_threads : int
        Threads the learner may use.
    """

    X: FloatArray
    y: AnyArray
    weight: FloatArray | None
    unseen: FloatArray
    n_classes: int
    categorical: BoolArray
    n_threads: int


class FittedPath(Protocol):
    """A fit of one learner on one fold that can be paused, evaluated, and continued."""

    def advance(self, position: float) -> None:
        """Continue the fit up to a position.

        Parameters
        ----------
        position : float
            The next of `PathParameter.positions`.

        Raises
        ------
        FloatingPointError
            If the fit diverges: the path then ends at the position before, as it does if predictions are not finite.
        """
        ...

    def predict(self) -> FloatArray:
        """Predict the unseen rows with the learner as fitted so far.

        Returns
        -------
        (n_unseen, n_classes) or (n_unseen,) array
            Probabilities of the classes present, or values.
        """
        ...

    def learner_at(self, position: float) -> Any:
        """Return the fitted learner as it was at an earlier or the present position."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PathParameter:
    """A hyper-parameter that one fit goes through: rounds, trees, epochs, a penalty (docs/paths.md).

    It is not in the search space: its value is chosen within the trial, by the loss of the predictions for all unseen
    rows, and is the same for all folds.

    Attributes
    ----------
    name : str
        For reports: ``"rounds"``, ``"trees"``, ``"epochs"``, ``"C"``, ``"alpha"``, ``"sharpness"``.
    positions : callable
        Rows and classes of the first fold -> the values to try, in the order in which a fit reaches them.
    follow : callable
        Begins the fit of the learner that `Component.build` has made.
    patience : int or None
        The fit ends after this many positions without a lower loss, later on after fewer (docs/paths.md); None goes to
        the end.
    beyond : int
        How many positions after the one with the lowest loss models are kept, if the fit has gone that far: an ensemble
        may gain from members a little past their own optimum.
    pace : str or None
        Name of a hyper-parameter, such as a learning rate, to which the speed of the path is proportional: with twice
        its value, the lowest loss comes after half as many positions.
    metric : str or None
        Name of the metric that chooses the position; None: that of the search, or the Brier score if it counts labels.
        For parameters of calibration, which ranks, and so some metrics, do not depend on.
    tasks : frozenset of TaskType
        Where the algorithm is followed; elsewhere, it is fitted as without a path.
    """

    name: str
    positions: Callable[[int, int], tuple[float, ...]]
    follow: Callable[[Any, PathData], FittedPath]
    patience: int | None = None
    beyond: int = 0
    pace: str | None = None
    metric: str | None = None
    tasks: frozenset[TaskType] = frozenset(TaskType)
