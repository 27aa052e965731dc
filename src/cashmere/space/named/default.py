"""Algorithms of the space ``default``: stronger than ``classic``, with rounds, trees, ... chosen inside each trial."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ConfigSpace import Float, Integer
from ConfigSpace.hyperparameters import Hyperparameter

from cashmere.data.task import TaskProfile
from cashmere.space.component import CLASSIFICATION, Algorithm, BuildContext, Subspace
from cashmere.space.named import bases, boosters, classic, realmlp
from cashmere.space.named.features import added_columns, with_features
from cashmere.space.path import FittedPath, PathData, PathParameter
from cashmere.space.paths.positions import geometric

_MOST_ROUNDS = 10_000
_MOST_TREES_OF_ROUNDS = 40_000
"""With more than two classes, a round grows one tree for each."""

_PATIENCE = 2
"""Positions are half an octave apart, so a fit ends at twice its best value."""


def _rounds(n_rows: int, n_classes: int) -> tuple[float, ...]:
    return geometric(10, max(500, min(_MOST_ROUNDS, _MOST_TREES_OF_ROUNDS // max(1, n_classes))))


def _trees(n_rows: int, n_classes: int) -> tuple[float, ...]:
    return geometric(10, classic.N_TREES)


def _epochs(n_rows: int, n_classes: int) -> tuple[float, ...]:
    return geometric(1, max(10, min(200, 5_000_000 // n_rows)))  # bounds the time on long tables


def _cycles(n_rows: int, n_classes: int) -> tuple[float, ...]:
    from cashmere.space.paths.realmlp import ends_of_cycles

    return ends_of_cycles(min(252, 2_000_000 // n_rows))  # bounds the time on long tables


def _inverse_penalties(n_rows: int, n_classes: int) -> tuple[float, ...]:
    return tuple(10.0 ** (k / 2) for k in range(-6, 7))


def _penalties(n_rows: int, n_classes: int) -> tuple[float, ...]:
    return tuple(10.0 ** (k / 2) for k in range(8, -7, -1))


def _sharpness(n_rows: int, n_classes: int) -> tuple[float, ...]:
    return tuple(2.0 ** (k / 2) for k in range(-3, 9))


def _follow_lightgbm(learner: Any, data: PathData) -> FittedPath:
    from cashmere.space.paths.lightgbm import LightGBMPath

    return LightGBMPath(learner, data)


def _follow_xgboost(learner: Any, data: PathData) -> FittedPath:
    from cashmere.space.paths.xgboost import XGBoostPath

    return XGBoostPath(learner, data)


def _follow_catboost(learner: Any, data: PathData) -> FittedPath:
    from cashmere.space.paths.catboost import CatBoostPath

    return CatBoostPath(learner, data)


def _follow_histogram(learner: Any, data: PathData) -> FittedPath:
    from cashmere.space.paths.histogram import HistogramPath

    return HistogramPath(learner, data)


def _follow_forest(learner: Any, data: PathData) -> FittedPath:
    from cashmere.space.paths.forest import ForestPath

    return ForestPath(learner, data)


def _follow_logistic(learner: Any, data: PathData) -> FittedPath:
    from cashmere.space.paths.penalty import LogisticPath

    return LogisticPath(learner, data)


def _follow_ridge(learner: Any, data: PathData) -> FittedPath:
    from cashmere.space.paths.penalty import RidgePath
    from cashmere.space.paths.standardised_target import StandardisedTargetPath

    return StandardisedTargetPath(RidgePath, learner, data)


def _follow_sharpness(learner: Any, data: PathData) -> FittedPath:
    from cashmere.space.paths.sharpness import SharpnessPath

    return SharpnessPath(learner, data)


def _follow_epochs(learner: Any, data: PathData) -> FittedPath:
    from cashmere.space.paths.epochs import EpochsPath
    from cashmere.space.paths.standardised_target import StandardisedTargetPath

    return EpochsPath(learner, data) if data.n_classes > 1 else StandardisedTargetPath(EpochsPath, learner, data)


def _follow_realmlp(learner: Any, data: PathData) -> FittedPath:
    from cashmere.space.paths.realmlp import RealMLPPath
    from cashmere.space.paths.standardised_target import StandardisedTargetPath

    return RealMLPPath(learner, data) if data.n_classes > 1 else StandardisedTargetPath(RealMLPPath, learner, data)


def _changed_subspace(
    subspace: Callable[[TaskProfile], Subspace],
    changed: Callable[[TaskProfile], Sequence[Hyperparameter[Any, Any]]],
    profile: TaskProfile,
) -> Subspace:
    whole, others = subspace(profile), {hp.name: hp for hp in changed(profile)}
    return replace(whole, hyperparameters=[others.get(hp.name, hp) for hp in whole.hyperparameters])


def _changing(algorithm: Algorithm, changed: Callable[[TaskProfile], Sequence[Hyperparameter[Any, Any]]]) -> Algorithm:
    """Return an algorithm with other ranges or defaults of some hyper-parameters."""
    return replace(algorithm, subspace=functools.partial(_changed_subspace, algorithm.subspace, changed))


def _of_neighbours(profile: TaskProfile) -> Sequence[Hyperparameter[Any, Any]]:
    # Many neighbours are best alone, but add nothing to an ensemble; few have a high loss, but lower that of the
    # ensemble by up to 6 % (docs/paths.md). So their number is searched, not followed, and few are tried first.
    return [Integer("n_neighbors", (1, 100), log=True, default=2)]


def _of_histograms(profile: TaskProfile) -> Sequence[Hyperparameter[Any, Any]]:
    return [boosters.learning_rate(0.06, profile)]


def _of_extra_trees(profile: TaskProfile) -> Sequence[Hyperparameter[Any, Any]]:
    # Leaves of single rows are sometimes much better: docs/benchmarks.md#leaves-of-single-rows.
    return [Integer("min_samples_leaf", (1, 30), log=True, default=_smallest_leaf(profile))]


def _smallest_leaf(profile: TaskProfile) -> int:
    return min(20, 1 + profile.n_rows // 5000)  # keeps files small with many rows


def _extra_trees_variants(profile: TaskProfile) -> Sequence[Mapping[str, Any]]:
    return [{"max_features": 0.85, "min_samples_leaf": _smallest_leaf(profile) + 1}]


def _of_support_vectors(profile: TaskProfile) -> Sequence[Hyperparameter[Any, Any]]:
    # For classification, 0.1 is worse than 1, and 1 mostly worse than 3: docs/paths.md#sharpness.
    least, width = (1.0, 1.0) if profile.task_type.is_classification else (1e-2, 0.3)
    return [
        Float("C", (least, 1e3), log=True, default=10.0),
        Float("gamma_factor", (1e-2, 10.0), log=True, default=width),
    ]


def _most_rows_of_support_vectors(profile: TaskProfile) -> int:
    # About 5,000 rows for every two classes: docs/benchmarks.md#contributions.
    return max(5_000, min(20_000, 2_500 * profile.n_classes))


def _build_svm(values: Mapping[str, Any], context: BuildContext) -> Any:
    if not context.task_type.is_classification:
        return classic.SVM.build(values, context)
    from sklearn.svm import SVC

    from cashmere.space.estimators.margins import CoupledMargins

    machine = SVC(**classic.svm_settings(values, context), decision_function_shape="ovo", random_state=context.seed)
    return classic.scaled(values["scaling"], CoupledMargins(machine), context)


def _without(subspace: Callable[[TaskProfile], Subspace], name: str, profile: TaskProfile) -> Subspace:
    whole = subspace(profile)
    return replace(whole, hyperparameters=[hp for hp in whole.hyperparameters if hp.name != name])


def _build_at(
    build: Callable[[Mapping[str, Any], BuildContext], Any],
    fixed: Mapping[str, Any],
    values: Mapping[str, Any],
    context: BuildContext,
) -> Any:
    return build({**values, **fixed}, context)


def _followed(algorithm: Algorithm, path: PathParameter, name: str, value: Any) -> Algorithm:
    """Return an algorithm that goes through its hyper-parameter `name`; its learner is built with `value`."""
    # Functions of modules, not closures, because a space is pickled with every trial.
    return replace(
        algorithm,
        build=functools.partial(_build_at, algorithm.build, {name: value}),
        subspace=functools.partial(_without, algorithm.subspace, name),
        path=path,
    )


def _boosting(follow: Callable[[Any, PathData], FittedPath]) -> PathParameter:
    return PathParameter(
        name="rounds", positions=_rounds, follow=follow, patience=_PATIENCE, beyond=1, pace="learning_rate"
    )


_SMALL = 1 / 3
"""Gain of those that rarely lower the loss of an ensemble of the others: docs/benchmarks.md#contributions."""

_POOR_ALONE = 1 / 5
"""Gain of those that help an ensemble, but often predict worse than a constant alone: a budget may end after the first
trial, so it should be another, though these are the quickest."""

_TREES = PathParameter(name="trees", positions=_trees, follow=_follow_forest, patience=_PATIENCE)

DEFAULT_ALGORITHMS: tuple[Algorithm, ...] = (
    with_features(_followed(boosters.LIGHTGBM, _boosting(_follow_lightgbm), "n_estimators", 100)),
    # Where added columns matter, a search that begins without them finds them late.
    replace(
        with_features(_followed(boosters.XGBOOST, _boosting(_follow_xgboost), "n_estimators", 100)),
        variants=added_columns,
    ),
    with_features(_followed(boosters.CATBOOST, _boosting(_follow_catboost), "iterations", 100)),
    replace(
        _followed(
            _changing(classic.HIST_GRADIENT_BOOSTING, _of_histograms), _boosting(_follow_histogram), "max_iter", 100
        ),
        gain=_SMALL,
    ),
    replace(classic.RANDOM_FOREST, path=_TREES, gain=_SMALL),
    replace(
        _changing(classic.EXTRA_TREES, _of_extra_trees),
        path=_TREES,
        variants=_extra_trees_variants,
        gain=_SMALL,
        gain_of_variants=_SMALL,
    ),
    replace(
        _followed(
            bases.LOGISTIC_REGRESSION,
            PathParameter(name="C", positions=_inverse_penalties, follow=_follow_logistic, patience=_PATIENCE),
            "C",
            1.0,
        ),
        gain_of_variants=_SMALL,
    ),
    replace(
        _followed(bases.RIDGE, PathParameter(name="alpha", positions=_penalties, follow=_follow_ridge), "alpha", 1.0),
        gain_of_variants=_SMALL,
    ),
    replace(
        bases.MLP, path=PathParameter(name="epochs", positions=_epochs, follow=_follow_epochs, patience=_PATIENCE + 1)
    ),
    replace(_changing(classic.KNN, _of_neighbours), gain=_POOR_ALONE),
    replace(
        _changing(classic.SVM, _of_support_vectors),
        max_rows=_most_rows_of_support_vectors,
        gain=_SMALL,
        build=_build_svm,
        path=PathParameter(
            name="sharpness", positions=_sharpness, follow=_follow_sharpness, metric="log_loss", tasks=CLASSIFICATION
        ),
    ),
    # Each position takes as long as all before it, so one that is no better ends the fit.
    replace(realmlp.REALMLP, path=PathParameter(name="epochs", positions=_cycles, follow=_follow_realmlp, patience=1)),
)
"""In the order of the space ``classic``, followed by what it lacks."""
