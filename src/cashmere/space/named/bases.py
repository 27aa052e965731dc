"""Linear models and networks of the space ``default``: on columns, their bins, or similarities to some rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ConfigSpace import Categorical, EqualsCondition, Float

from cashmere.data.task import TaskProfile
from cashmere.space.component import Algorithm, BuildContext, Subspace
from cashmere.space.named import classic

_N_BINS = 8

_N_SIMILARITIES = 300
"""Rows with which others are compared: enough for a smooth function, and few enough for a quick fit."""

_MOST_COLUMNS = 1000
_MOST_CELLS = 50_000_000
"""Limits of the result of a basis: long tables get fewer bins, or none, and are compared with fewer rows."""


def _linear_subspace(profile: TaskProfile) -> Subspace:
    whole = classic.LOGISTIC_REGRESSION if profile.task_type.is_classification else classic.RIDGE
    basis = Categorical("basis", ["columns", "bins", "similarities"], default="columns")
    width = Float("gamma_factor", (1e-2, 10.0), log=True, default=0.3)
    return Subspace(
        hyperparameters=[*whole.subspace(profile).hyperparameters, basis, width],
        conditions=[EqualsCondition(width, basis, "similarities")],
    )


def _network_subspace(profile: TaskProfile) -> Subspace:
    basis = Categorical("basis", ["columns", "bins"], default="columns")
    return Subspace(hyperparameters=[*classic.MLP.subspace(profile).hyperparameters, basis])


def _build(
    build: Callable[[Mapping[str, Any], BuildContext], Any], values: Mapping[str, Any], context: BuildContext
) -> Any:
    """Return the pipeline of scaler, basis and learner."""
    pipeline = build(values, context)
    pipeline.steps[-1:-1] = _basis(values, context)
    return pipeline


def _basis(values: Mapping[str, Any], context: BuildContext) -> list[tuple[str, Any]]:
    """Return the steps that make the basis."""
    most = _MOST_CELLS // context.n_rows
    if values["basis"] == "bins":
        from cashmere.space.estimators.bases import PiecewiseLinearColumns

        return [("basis", PiecewiseLinearColumns(n_bins=_N_BINS, max_columns=min(_MOST_COLUMNS, most)))]
    if values["basis"] == "similarities":
        from sklearn.kernel_approximation import Nystroem

        from cashmere.space.estimators.autosklearn6 import DoublePrecision

        similarities = Nystroem(
            gamma=values["gamma_factor"] / context.n_features,
            n_components=min(_N_SIMILARITIES, context.n_rows, max(1, most)),
            random_state=context.seed,
        )
        # Similar rows make the matrix of similarities nearly singular: in 32 bits, rounding would affect predictions.
        return [("double", DoublePrecision()), ("basis", similarities)]
    return []


def _linear_variants(profile: TaskProfile) -> Sequence[Mapping[str, Any]]:
    return [{"basis": "similarities"}]


def _on_bases(algorithm: Algorithm, subspace: Callable[[TaskProfile], Subspace]) -> Algorithm:
    return replace(algorithm, subspace=subspace, build=functools.partial(_build, algorithm.build))


LOGISTIC_REGRESSION = replace(_on_bases(classic.LOGISTIC_REGRESSION, _linear_subspace), variants=_linear_variants)
RIDGE = replace(_on_bases(classic.RIDGE, _linear_subspace), variants=_linear_variants)
MLP = _on_bases(classic.MLP, _network_subspace)
