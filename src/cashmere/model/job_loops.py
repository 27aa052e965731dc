"""Tell which fitted pipelines loop over jobs, as some steps of scikit-learn do even with a single job."""

from __future__ import annotations

from typing import Any

_LOOPING = ("sklearn.compose.", "sklearn.ensemble._bagging", "sklearn.ensemble._forest")
"""Modules whose classes loop when they predict or transform. Our forests, which are derived from theirs, do not."""

_INNER = ("estimator_", "operator_", "pipeline")
"""Attributes with another estimator that a step may use."""


def loops_over_jobs(estimator: Any) -> bool:
    """Return whether a fitted pipeline loops over jobs when it predicts; nearest neighbours do if they have a tree."""
    if type(estimator).__module__.startswith(_LOOPING) or getattr(estimator, "_tree", None) is not None:
        return True
    inner = [step for _, step in getattr(estimator, "steps", ())]
    inner += [getattr(estimator, name) for name in _INNER if hasattr(estimator, name)]
    return any(map(loops_over_jobs, inner))
