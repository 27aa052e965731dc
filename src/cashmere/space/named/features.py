"""Columns that an algorithm may add to its table: the hyper-parameter ``features`` (docs/spaces.md#features)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from ConfigSpace import Categorical

from cashmere.data.task import TaskProfile
from cashmere.space.component import MAX_BYTES, Algorithm, BuildContext, Subspace

FEATURES = "features"
"""Name of the hyper-parameter, after the algorithm's prefix, and of the step of the pipeline."""

NONE, ARITHMETIC = "none", "arithmetic"

_MOST_ROWS = 100_000
"""On longer tables the variant is left out: its columns take memory and time in proportion to the rows."""


def with_features(algorithm: Algorithm) -> Algorithm:
    """Return an algorithm that may add columns to its table."""
    return replace(
        algorithm,
        build=functools.partial(_build, algorithm.build),
        subspace=functools.partial(_subspace, algorithm.subspace),
    )


def added_columns(profile: TaskProfile) -> Sequence[Mapping[str, Any]]:
    """Return the variant of an algorithm `with_features` that adds columns; none on long tables."""
    return [] if any(profile.monotone) or profile.n_rows > _MOST_ROWS else [{FEATURES: ARITHMETIC}]


def _subspace(subspace: Callable[[TaskProfile], Subspace], profile: TaskProfile) -> Subspace:
    whole = subspace(profile)
    if any(profile.monotone):
        return whole  # a ratio of two columns falls where one of them rises
    choice = Categorical(FEATURES, [NONE, ARITHMETIC], default=NONE)
    return replace(whole, hyperparameters=[*whole.hyperparameters, choice])


def _build(
    build: Callable[[Mapping[str, Any], BuildContext], Any], values: Mapping[str, Any], context: BuildContext
) -> Any:
    from sklearn.pipeline import Pipeline

    from cashmere.space.estimators.arithmetic_features import ArithmeticFeatures
    from cashmere.space.estimators.combinations import n_arithmetic_features

    own = {name: value for name, value in values.items() if name != FEATURES}
    n_made = n_arithmetic_features(context.categorical) if values.get(FEATURES) == ARITHMETIC else 0
    if n_made == 0:
        return build(own, context)
    size = (context.n_features + n_made) * context.n_rows * 4
    if size > MAX_BYTES:
        raise ValueError(
            f"With {n_made} columns more the table would take {size / 2**20:.0f} MiB; "
            f"the limit is {MAX_BYTES / 2**20:.0f} MiB."
        )
    categorical = np.concatenate([context.categorical, np.zeros(n_made, dtype=bool)])
    # Settings that depend on the width are those for the original table: some of the new columns may be empty.
    learner = build(own, replace(context, categorical=categorical))
    step = ArithmeticFeatures(context.categorical, context.n_classes, context.seed)
    return Pipeline([(FEATURES, step), ("model", learner)])
