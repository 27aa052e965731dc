"""Feature operators of the space ``autosklearn6``; see `cashmere.space.named.autosklearn6` for their input.

Ranges, and defaults where known, are those of auto-sklearn 0.13. Operators with the same ranges as in the space
``volcano`` are taken from there. So are names, for example ``select_by_extra_trees``, where auto-sklearn uses the name
of a classifier.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from ConfigSpace import Categorical, Float, Integer, NotEqualsCondition
from ConfigSpace.hyperparameters import Hyperparameter

from cashmere.data.task import TaskProfile
from cashmere.space.component import CLASSIFICATION, BuildContext, Operator, Subspace
from cashmere.space.named.operators import PREPROCESSORS, RESCALERS
from cashmere.space.named.volcano import EXTRA_TREES
from cashmere.space.space import NO_OPERATOR

Values = Mapping[str, Any]

_VOLCANO = {operator.name: operator for operator in (*RESCALERS, *PREPROCESSORS)}


def _with_parameters(subspace: Subspace, *changed: Hyperparameter[Any, Any]) -> Subspace:
    """Return a sub-space with unconditional hyper-parameters added, or replaced if their names exist."""
    parameters = {hp.name: hp for hp in (*subspace.hyperparameters, *changed)}
    return dataclasses.replace(subspace, hyperparameters=list(parameters.values()))


# Categories ----------------------------------------------------------------------------------------------------------


def _numbers(context: BuildContext) -> list[int]:
    return np.flatnonzero(~context.categorical).tolist()


def _categories(context: BuildContext) -> list[int]:
    return np.flatnonzero(context.categorical).tolist()


def _build_levels(values: Values, context: BuildContext) -> Any:
    from cashmere.space.estimators.autosklearn6 import LevelMerger

    if not context.categorical.any():
        return "passthrough"
    return LevelMerger(_categories(context), minimum_fraction=values.get("minimum_fraction", 0.0))


def _coalescer_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(hyperparameters=[Float("minimum_fraction", (1e-4, 0.5), log=True, default=0.01)])


COALESCENCE: tuple[Operator, ...] = (
    Operator(name="minority_coalescer", build=_build_levels, subspace=_coalescer_subspace),
    Operator(name="no_coalescence", build=_build_levels),
)
"""Both turn missing categories into a separate level; the first also merges rare levels."""


def _encoded(encoder: Any, context: BuildContext) -> Any:
    """Encode the categories, and put them after the numbers: imputation and rescaling rely on these coming first."""
    from sklearn.compose import ColumnTransformer

    if not context.categorical.any():
        return "passthrough"
    return ColumnTransformer(
        [("numbers", "passthrough", _numbers(context)), ("categories", encoder, _categories(context))],
        sparse_threshold=0.0,
    )


def _build_one_hot(values: Values, context: BuildContext) -> Any:
    from cashmere.space.estimators.autosklearn6 import LimitedOneHotEncoder

    encoder = LimitedOneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32)
    return _encoded(encoder, context)


def _build_ordinal(values: Values, context: BuildContext) -> Any:
    from sklearn.preprocessing import OrdinalEncoder

    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, dtype=np.float32)
    return _encoded(encoder, context)


def _build_codes(values: Values, context: BuildContext) -> Any:
    return _encoded("passthrough", context)


ENCODINGS: tuple[Operator, ...] = (
    Operator(name="one_hot", build=_build_one_hot),
    Operator(name="ordinal", build=_build_ordinal),
    Operator(name="no_encoding", build=_build_codes),
)
"""One column per level; ranks of the levels in the training rows; or the codes of the whole table."""


# Numbers -------------------------------------------------------------------------------------------------------------


def _on_numbers(transformer: Any, context: BuildContext) -> Any:
    """Apply a transformer to the numbers only: the first columns, once the categories are encoded."""
    from sklearn.compose import ColumnTransformer

    if not context.categorical.any():
        return transformer
    n_numbers = int(np.sum(~context.categorical))
    if n_numbers == 0:
        return "passthrough"
    return ColumnTransformer([("numbers", transformer, list(range(n_numbers)))], remainder="passthrough")


def _build_imputer(values: Values, context: BuildContext, *, strategy: str) -> Any:
    from sklearn.impute import SimpleImputer

    # A column without any value becomes zeros: dropping it would shift the others.
    return _on_numbers(SimpleImputer(strategy=strategy, keep_empty_features=True), context)


IMPUTERS: tuple[Operator, ...] = tuple(
    Operator(name=strategy, build=functools.partial(_build_imputer, strategy=strategy))
    for strategy in ("mean", "median", "most_frequent")
)


def _build_power(values: Values, context: BuildContext) -> Any:
    from sklearn.preprocessing import PowerTransformer

    return PowerTransformer()


def _build_rescaler(values: Values, context: BuildContext, *, of: Operator) -> Any:
    return _on_numbers(of.build(values, context), context)


def _rescaler(name: str, of: Operator, *group: str) -> Operator:
    return Operator(name=name, build=functools.partial(_build_rescaler, of=of), subspace=of.subspace, group=group)


RESCALERS_OF_NUMBERS: tuple[Operator, ...] = (
    _rescaler("standardize", _VOLCANO["standard"], "affine"),
    _rescaler("minmax", _VOLCANO["minmax"], "affine"),
    _rescaler("robust", _VOLCANO["robust"], "affine"),
    _rescaler("quantile", _VOLCANO["quantile"], "shape"),
    _rescaler("power", Operator(name="power", build=_build_power), "shape"),
    _rescaler("normalize", _VOLCANO["normalizer"], "rows"),
    Operator(name="no_rescaling", build=NO_OPERATOR.build, group=("none",)),
)
"""Six rescalers and none; group paths: docs/papers/dacopt.md#group-trees."""


# Balancing -----------------------------------------------------------------------------------------------------------


def weigh_classes(learner: Any) -> Any:
    """Give classes equal weight in the learner: by its ``class_weight`` if it has one, otherwise by row weights."""
    from cashmere.space.estimators.autosklearn6 import BalancedClassifier
    from cashmere.space.estimators.margins import MarginProbabilities

    inner = learner.estimator if isinstance(learner, MarginProbabilities) else learner
    if "class_weight" in inner.get_params(deep=False):
        inner.set_params(class_weight="balanced")
        return learner
    return BalancedClassifier(learner)


def _build_weighting(values: Values, context: BuildContext) -> Any:
    return weigh_classes


BALANCING: tuple[Operator, ...] = (NO_OPERATOR, Operator(name="weighting", build=_build_weighting))
"""Unchanged rows, or classes of equal weight in the learner (not in the preprocessor)."""


# Preprocessors -------------------------------------------------------------------------------------------------------


def _sampled_kernel_subspace(profile: TaskProfile, *, of: Operator) -> Subspace:
    return _with_parameters(of.subspace(profile), Integer("n_components", (50, 10_000), log=True, default=100))


def _polynomial_subspace(profile: TaskProfile) -> Subspace:
    bias = Categorical("include_bias", [True, False], default=True)
    return _with_parameters(_VOLCANO["polynomial"].subspace(profile), bias)


_SCORES = ["chi2", "f", "mutual_info"]


def _percentile_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Float("percentile", (1.0, 99.0), default=50.0),
            Categorical("score", _SCORES, default="chi2"),
        ]
    )


def _rates_subspace(profile: TaskProfile) -> Subspace:
    score = Categorical("score", _SCORES, default="chi2")
    mode = Categorical("mode", ["fpr", "fdr", "fwe"], default="fpr")
    return Subspace(
        hyperparameters=[Float("alpha", (0.01, 0.5), default=0.1), score, mode],
        conditions=[NotEqualsCondition(mode, score, "mutual_info")],
    )


def _build_rates(values: Values, context: BuildContext) -> Any:
    if values["score"] == "mutual_info":  # has no p-values: alpha is the share of columns to keep
        percentile = {"score": "mutual_info", "percentile": 100 * values["alpha"]}
        return _VOLCANO["select_percentile"].build(percentile, context)
    return _VOLCANO["select_univariate"].build(values, context)


def _taken(name: str, *group: str, **changes: Any) -> Operator:
    return dataclasses.replace(_VOLCANO[name], group=group, **changes)


def _sampled_kernel(name: str, *group: str) -> Operator:
    of = _VOLCANO[name]
    return _taken(name, *group, subspace=functools.partial(_sampled_kernel_subspace, of=of))


BUILT_AT_FIT: tuple[Operator, ...] = (
    _taken("select_by_extra_trees", "trees and clusters", "trees", subspace=EXTRA_TREES.subspace),
    _taken("random_trees_embedding", "trees and clusters", "trees"),
    _taken("feature_agglomeration", "trees and clusters"),
    _taken("fast_ica", "projections", "maps"),
    _taken("kernel_pca", "projections", "maps"),
    _taken("polynomial", "projections", "maps", subspace=_polynomial_subspace),
    _sampled_kernel("random_kitchen_sinks", "kernels and linear", "kernels"),
    _sampled_kernel("nystroem", "kernels and linear", "kernels"),
    _taken("select_by_linear_svm", "kernels and linear"),
    _taken("pca", "kernels and linear"),
    _taken("select_percentile", "selection", subspace=_percentile_subspace),
    Operator(
        name="select_rates", build=_build_rates, subspace=_rates_subspace, group=("selection",), tasks=CLASSIFICATION
    ),
)


def build_preprocessor(name: str, values: Values, context: BuildContext) -> Any:
    """Make the transformer of a preprocessor for its input matrix.

    Raises
    ------
    ValueError
        If it needs a kernel matrix of too many rows.
    """
    return next(operator for operator in BUILT_AT_FIT if operator.name == name).build(values, context)
