"""What a run is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cashmere.base.cores import available_cores
from cashmere.data.task import TaskType
from cashmere.ensembles import METHODS
from cashmere.exceptions import InvalidParameterError, UnknownNameError
from cashmere.records.budget import Budget
from cashmere.records.trial import FOLD_RACING

_DECISIONS = ("auto", "tune", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What a run is asked to do; kept in ``run.json``.

    Attributes
    ----------
    task : str
        ``"auto"``, ``"classification"``, or a `TaskType`.
    metric, strategy, space, resampling : str or object
        Names, or the user's own objects (a callable metric, a `Strategy`, a function from `TaskProfile` to `Space`,
        a scikit-learn splitter). Own objects are needed again to resume.
    budget : str
        See `Budget`.
    n_workers : int or None
        Trials at a time, at most the lookahead; by default the cores this process may use, but at most 4. Results do
        not depend on it up to half the lookahead.
    lookahead : int or None
        See `Study`; by default 8, or twice the workers if that is more.
    seed : int
        Of everything random.
    memory_mib, trial_seconds : float or None
        Limits of one trial. By default four fifths of the free memory over the workers; a sixth of a time
        budget (at least 10 s), else 10 minutes.
    isolation : {"process", "none"}
        Whether trials run in watched worker processes; without, limits are not enforced.
    ensemble : str
        ``"selection"``, ``"bagging"``, ``"stacking"`` or ``"best"``.
    ensemble_size : int
        Picks of the greedy selection (with replacement).
    decision_threshold : {"auto", "tune", "none"} or float
        How `predict` gets from probabilities to classes. ``"tune"`` chooses thresholds for the metric, or for balanced
        accuracy if the metric is computed from probabilities; ``"auto"`` does so for metrics computed from labels,
        except accuracy, for which it gains nothing; ``"none"`` takes the most probable class. A number t in (0, 1), for
        two classes only, predicts the second class where its probability is at least t.
    fold_racing : {"none", "incumbent"}
        Whether trials that cannot win are given up after some folds, see `cashmere.study.Study`.
    target_name : str
        Name of the target column, for reports.
    """

    task: str = "auto"
    metric: Any = None
    budget: str = "10m"
    strategy: Any = "bo"
    space: Any = "default"
    resampling: Any = "auto"
    n_workers: int | None = None
    lookahead: int | None = None
    seed: int = 0
    memory_mib: float | None = None
    trial_seconds: float | None = None
    isolation: str = "process"
    ensemble: str = "selection"
    ensemble_size: int = 25
    decision_threshold: str | float = "auto"
    fold_racing: str = "none"
    target_name: str = "target"

    def __post_init__(self) -> None:
        for name in ("n_workers", "ensemble_size", "lookahead"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | np.integer) or value < 1):
                raise InvalidParameterError(name, value, "a whole number of at least 1")
        if not isinstance(self.seed, int | np.integer) or not 0 <= self.seed < 2**32:
            raise InvalidParameterError("seed", self.seed, "a whole number from 0 to 2**32 - 1")
        if self.isolation not in ("process", "none"):
            raise InvalidParameterError("isolation", self.isolation, "'process' or 'none'")
        if self.lookahead is not None and self.workers > self.lookahead and self.isolation == "process":
            expected = f"at most the lookahead ({self.lookahead}), so that the run does not depend on it"
            raise InvalidParameterError("n_workers", self.n_workers, expected)
        if self.ensemble not in METHODS:
            raise UnknownNameError("ensemble method", self.ensemble, METHODS)
        threshold = self.decision_threshold
        is_number = isinstance(threshold, int | float)
        if not (0 < threshold < 1 if is_number else threshold in _DECISIONS):  # type: ignore[operator]
            expected = "'auto', 'tune', 'none' or a number between 0 and 1"
            raise InvalidParameterError("decision_threshold", threshold, expected)
        if self.fold_racing not in FOLD_RACING:
            raise InvalidParameterError("fold_racing", self.fold_racing, "'none' or 'incumbent'")
        Budget.parse(self.budget)

    def check_task(self, task_type: TaskType) -> None:
        """Refuse a decision threshold that does not fit the task.

        Raises
        ------
        InvalidParameterError
            Naming what fits.
        """
        threshold = self.decision_threshold
        if task_type is TaskType.REGRESSION and threshold not in ("auto", "none"):
            raise InvalidParameterError("decision_threshold", threshold, "'auto' or 'none' for regression")
        if task_type is TaskType.MULTICLASS and not isinstance(threshold, str):
            expected = "'auto', 'tune' or 'none' for more than two classes"
            raise InvalidParameterError("decision_threshold", threshold, expected)

    @property
    def workers(self) -> int:
        """Trials at a time: what was asked for, or the default."""
        if self.n_workers is not None:
            return self.n_workers
        return 1 if self.isolation == "none" else min(4, available_cores(), self.lookahead or 4)

    @property
    def own_objects(self) -> dict[str, str]:
        """Settings that are objects rather than names, with a description of each."""
        names = ("metric", "strategy", "space", "resampling")
        return {n: repr(v) for n in names if (v := getattr(self, n)) is not None and not isinstance(v, str)}

    def to_json(self) -> dict[str, Any]:
        """Return plain data; own objects become their description and are listed under ``own_objects``."""
        return {
            **{f.name: getattr(self, f.name) for f in fields(self)},
            **self.own_objects,
            "own_objects": sorted(self.own_objects),
        }
