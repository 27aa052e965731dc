"""Boosters of the space ``default``: LightGBM, XGBoost and CatBoost, whose rounds are chosen inside each trial.

docs/benchmarks.md#defaults says where the defaults come from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ConfigSpace import Categorical, Float, Integer
from ConfigSpace.hyperparameters import Hyperparameter

from cashmere.data.task import Encoding, TaskProfile
from cashmere.space.component import BuildContext, Subspace
from cashmere.space.named import classic

Values = Mapping[str, Any]

_RATES = (0.015, 0.3)
"""On four tables, lower ones took thousands of rounds and were no better."""

_FAST_FROM = 50_000
"""Number of rows from which learning rates are higher."""

_ENCODINGS = (Encoding.ORDINAL, Encoding.TARGET, Encoding.ONEHOT)
"""The last one has means of the target for columns of many levels, see `cashmere.data.preparation`."""

_LONG = 20_000
"""Number of rows from which categories are split differently by default."""

_FEW_TRIALS_FROM = 100_000
"""Number of rows from which a minute is enough for only about one configuration of each booster."""

_FEW_LEVELS = 10
"""Number of levels up to which CatBoost splits one from all others by default."""

_MANY_LEVELS = 20
"""Number of levels above which LightGBM also begins with means of the target."""

_FEW_BINS_UP_TO = 10_000
"""Number of rows up to which classes are told apart by half as many bins per column as usual: on short tables, bins
determine the time of a tree (docs/benchmarks.md#time-per-tree). Regression was slightly worse with fewer."""

_OFF = 1e-3
"""Lower end of logarithmic scales, where the parameter has no effect."""

_SLOWER = ("path_smooth", "reg_alpha")
_TOO_SMALL = 0.01
"""Two parameters of LightGBM, and where they begin to have an effect. Above zero, they take up to half as long again:
docs/benchmarks.md#time-per-tree."""


def rate_on(n_rows: int, rate: float) -> float:
    """Return the learning rate for a number of rows that corresponds to one of a short table.

    A round takes time in proportion to the rows. With the rate that is best on a short table, a minute ends before a
    hundredth of a path on a million rows is done, and no trial sees all rows. A rate that grows with the square root of
    the rows makes a path on a hundred times the rows take about ten times as long (docs/paths.md#learning-rates).

    Parameters
    ----------
    n_rows : int
        Rows of the table.
    rate : float
        Learning rate for up to 50,000 rows, above 0.

    Returns
    -------
    float
        At most the highest rate of the space.
    """
    return min(_RATES[1], rate * max(1.0, math.sqrt(n_rows / _FAST_FROM)))


def learning_rate(default: float, profile: TaskProfile) -> Hyperparameter[Any, Any]:
    """Return the learning rate of a booster as a hyper-parameter, given the default for a short table."""
    lowest, highest = _RATES
    n_rows = profile.n_rows
    # On ten million rows, a third of an octave is left to search.
    range_ = (min(highest / 1.25, rate_on(n_rows, lowest)), highest)
    return Float("learning_rate", range_, log=True, default=rate_on(n_rows, default))


def _only_for_codes(hyperparameters: Sequence[Hyperparameter[Any, Any]]) -> dict[str, Encoding]:
    """Declare that hyper-parameters only have an effect where the booster sees the categories themselves."""
    return {hp.name: Encoding.ORDINAL for hp in hyperparameters}


def _bins(context: BuildContext) -> dict[str, int]:
    few = context.task_type.is_classification and context.n_rows <= _FEW_BINS_UP_TO and not context.monotone
    return {"max_bin": 127} if few else {}


# LightGBM ------------------------------------------------------------------------------------------------------------


def _lightgbm_subspace(profile: TaskProfile) -> Subspace:
    categories = _lightgbm_categories(profile) if profile.has_categories else []
    # Smoothing would move leaves after the library has enforced their order.
    smoothing = [] if any(profile.monotone) else [Float("path_smooth", (_OFF, 30.0), log=True, default=_OFF)]
    return Subspace(
        hyperparameters=[
            learning_rate(0.05, profile),
            Integer("num_leaves", (4, 128), log=True, default=31),
            Integer("min_child_samples", (2, 60), log=True, default=20),
            Categorical("extra_trees", [False, True], default=False),
            Float("subsample", (0.5, 1.0), default=0.8),
            Float("colsample_bytree", (0.3, 1.0), default=0.8),
            Float("reg_alpha", (_OFF, 10.0), log=True, default=_OFF),
            Float("reg_lambda", (_OFF, 30.0), log=True, default=1.0),
            *smoothing,
            *categories,
        ],
        only_under=_only_for_codes(categories),
    )


def _lightgbm_categories(profile: TaskProfile) -> list[Hyperparameter[Any, Any]]:
    return [
        # Levels are ordered by their gradients, shrunk as if they had `cat_smooth` more rows, and those with fewer rows
        # in a leaf are left out. With the library's default of ten, the order is noise if a column has dozens of
        # levels: log loss 0.660 on 17,000 rows of `large_200000` (benchmarks), 0.554 with a hundred. On few rows, a
        # hundred leaves out levels that matter.
        Float("cat_smooth", (1.0, 300.0), log=True, default=float(min(100, max(10, 100 * profile.n_rows // _LONG)))),
        Float("cat_l2", (1.0, 300.0), log=True, default=10.0),
        Integer("max_cat_to_onehot", (4, 128), log=True, default=4),
        Integer("min_data_per_group", (2, 200), log=True, default=min(100, max(5, profile.n_rows // 100))),
    ]


def _lightgbm_variants(profile: TaskProfile) -> Sequence[Mapping[str, Any]]:
    # With many levels, splits on their order by gradient and means of the target take turns at being better.
    by_means = [{"encoding": "target"}] if profile.most_levels > _MANY_LEVELS and not any(profile.monotone) else []
    return [{"extra_trees": True, "learning_rate": rate_on(profile.n_rows, 0.03)}, *by_means]


def _build_lightgbm(values: Values, context: BuildContext) -> Any:
    import numpy as np

    from cashmere.space.estimators.boosting import CategoryLGBMClassifier, CategoryLGBMRegressor

    learner = CategoryLGBMClassifier if context.task_type.is_classification else CategoryLGBMRegressor
    return learner(
        # Under constraints, a model of random configurations broke the order once regularisation was off.
        **(values if context.monotone else _switched_off(values)),
        **_bins(context),
        **classic.lightgbm_settings(context),
        category_columns=np.flatnonzero(context.categorical).tolist() or None,
    )


def _switched_off(values: Values) -> dict[str, Any]:
    """Set to zero what is too small to matter: LightGBM chooses splits by slower code for whatever is above zero."""
    return {name: 0.0 if name in _SLOWER and value < _TOO_SMALL else value for name, value in values.items()}


LIGHTGBM = replace(
    classic.LIGHTGBM,
    subspace=_lightgbm_subspace,
    build=_build_lightgbm,
    encodings=_ENCODINGS,
    onnx=_ENCODINGS,
    monotone_encodings=_ENCODINGS,
    variants=_lightgbm_variants,
)


# XGBoost -------------------------------------------------------------------------------------------------------------


def _xgboost_subspace(profile: TaskProfile) -> Subspace:
    # Up to this many levels, each is split from all others. More levels are ordered by their gradients without
    # smoothing, which learns noise (log loss 0.661 on 17,000 rows of `large_200000`, 0.575 with single levels). For
    # small tables, the order is better.
    most = Integer("max_cat_to_onehot", (4, 128), log=True, default=64 if profile.n_rows >= _LONG else 4)
    categories = [most] if profile.has_categories else []
    return Subspace(
        hyperparameters=[
            learning_rate(0.05, profile),
            Integer("max_depth", (2, 10), default=6),
            Float("min_child_weight", (_OFF, 30.0), log=True, default=1.0),
            # Logarithmic: on half of a linear scale, trees would not grow, and paths not end.
            Float("gamma", (_OFF, 5.0), log=True, default=_OFF),
            Float("subsample", (0.5, 1.0), default=0.8),
            Float("colsample_bytree", (0.3, 1.0), default=0.8),
            Float("reg_alpha", (_OFF, 10.0), log=True, default=_OFF),
            Float("reg_lambda", (_OFF, 30.0), log=True, default=1.0),
            *categories,
        ],
        only_under=_only_for_codes(categories),
    )


def _build_xgboost(values: Values, context: BuildContext) -> Any:
    return classic.XGBOOST.build({**values, **_bins(context)}, context)


XGBOOST = replace(
    classic.XGBOOST,
    subspace=_xgboost_subspace,
    build=_build_xgboost,
    encodings=_ENCODINGS,
    monotone_encodings=_ENCODINGS,
    onnx=_ENCODINGS,
)


# CatBoost ------------------------------------------------------------------------------------------------------------


def _catboost_subspace(profile: TaskProfile) -> Subspace:
    categories = _catboost_categories(profile) if profile.has_categories else []
    return Subspace(
        hyperparameters=[
            learning_rate(0.08, profile),
            # With more classes, a round takes so much longer that shallow trees are better in the same time; they are
            # also better alone.
            Integer("depth", (3, 8), default=6 if profile.n_classes <= 2 else 4),
            Float("l2_leaf_reg", (0.1, 30.0), log=True, default=3.0),
            Float("random_strength", (0.1, 10.0), log=True, default=1.0),
            *categories,
        ],
        only_under=_only_for_codes(categories),
    )


def _catboost_categories(profile: TaskProfile) -> list[Hyperparameter[Any, Any]]:
    # Most columns whose levels are combined. Pairs are decisive on some tables (who plays against whom); triples added
    # nothing.
    together = Integer("max_ctr_complexity", (1, 3), default=2)
    return [
        # Few levels are split one from all others; many by target means over earlier rows in a random order.
        Integer("one_hot_max_size", (2, 128), log=True, default=_FEW_LEVELS),
        *([] if any(profile.monotone) else [together]),
    ]


def _catboost_variants(profile: TaskProfile) -> Sequence[Mapping[str, Any]]:
    # A search with a budget of time begins with the cheaper one. On long tables, there would be no time for the other.
    return [{"encoding": "onehot"}] if profile.has_categories and profile.n_rows < _FEW_TRIALS_FROM else []


def _build_catboost(values: Values, context: BuildContext) -> Any:
    import numpy as np

    from cashmere.space.estimators.category_catboost import CategoryCatBoostClassifier, CategoryCatBoostRegressor

    # Columns of two levels are categories, too; with missing values they have three.
    chosen = classic.CATBOOST.build({"one_hot_max_size": _FEW_LEVELS, **values}, context).get_params()
    kind = CategoryCatBoostClassifier if context.task_type.is_classification else CategoryCatBoostRegressor
    learner = kind(**chosen, cat_features=np.flatnonzero(context.categorical).tolist() or None)
    if context.monotone:
        # Splits of numbers are combined with categories, too, and target means of combinations ignore directions
        # (github.com/catboost/catboost/issues/2272).
        learner.set_params(max_ctr_complexity=1)
    if context.n_classes == 2:
        # The library takes ten steps per leaf in fits of 200 rounds and more, but one in shorter ones, and a path is
        # a chain of short ones. On phoneme, one step gives a log loss of 0.286 after 300 rounds, instead of 0.261.
        learner.set_params(leaf_estimation_iterations=10)
    return learner


CATBOOST = replace(
    classic.CATBOOST,
    subspace=_catboost_subspace,
    build=_build_catboost,
    # CatBoost's own target means of levels have no counterpart in ONNX.
    onnx=(Encoding.TARGET, Encoding.ONEHOT),
    variants=_catboost_variants,
)
