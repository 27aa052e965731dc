"""Algorithms of the space ``classic``: few, strong, each with the hyper-parameters that matter.

Ranges follow AutoGluon's (docs/spaces.md#default), widened where small tables need it; the defaults should be good
without any search. No learner stops early on validation rows: they are used for selection and must not be used twice.
Libraries are imported by the builders, so that importing a space is light.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ConfigSpace import Categorical, Float, Integer

from cashmere.data.task import Encoding, TaskProfile
from cashmere.space.component import CLASSIFICATION, REGRESSION, Algorithm, BuildContext, Subspace

Values = Mapping[str, Any]

NATIVE = (Encoding.ORDINAL, Encoding.TARGET)
"""For learners that split on categories themselves."""

TREES = (Encoding.ORDINAL, Encoding.ONEHOT, Encoding.TARGET)
"""For trees that take codes as numbers and handle missing values."""

DENSE = (Encoding.ONEHOT, Encoding.TARGET)
"""For learners that need numbers without gaps."""

_DEVIANCE = {1.0: "poisson", 2.0: "gamma"}
"""Names of losses by the power of the deviance; between them, it is Tweedie."""

SCALERS = ("standard", "robust", "quantile")

OUTLIERS = "outliers"
"""Name of the step that clips outliers."""


def scaler(name: str, context: BuildContext) -> Any:
    """Return the transformer that scales columns to a common range.

    Parameters
    ----------
    name : {"standard", "robust", "quantile"}
        Mean and deviation; median and quartiles; or ranks mapped to a normal distribution.
    context : BuildContext
        Facts about the fold.
    """
    from sklearn.preprocessing import QuantileTransformer, RobustScaler, StandardScaler

    if name == "standard":
        return StandardScaler()
    if name == "robust":
        return RobustScaler()
    return QuantileTransformer(
        n_quantiles=min(1000, context.n_rows), output_distribution="normal", random_state=context.seed
    )


def scaled(name: str, learner: Any, context: BuildContext) -> Any:
    """Return a pipeline that clips outliers, scales columns, and ends with a learner."""
    pipeline = without_outliers(learner, context)
    pipeline.steps.insert(-1, ("scaler", scaler(name, context)))
    return pipeline


def without_outliers(learner: Any, context: BuildContext, *, factor: float = 3.0) -> Any:
    """Return a pipeline that clips outliers before a learner, see `OutlierClipper`."""
    from sklearn.pipeline import Pipeline

    from cashmere.space.estimators.outliers import OutlierClipper

    return Pipeline([(OUTLIERS, OutlierClipper(context.categorical, factor)), ("model", learner)])


def standardised_target(regressor: Any) -> Any:
    """Wrap a regressor whose settings assume a target of mean 0 and variance 1."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler

    return TransformedTargetRegressor(regressor=regressor, transformer=StandardScaler())


def _scaling() -> Any:
    return Categorical("scaling", SCALERS, default="standard")


def _rounds(profile: TaskProfile) -> tuple[tuple[int, int], int]:
    """Return range and default of the number of boosting rounds; every round grows one tree per class."""
    return ((50, 1000), 300) if profile.n_classes <= 10 else ((20, 300), 100)


def _is_classification(context: BuildContext) -> bool:
    return context.task_type.is_classification


# LightGBM ------------------------------------------------------------------------------------------------------------


def _lightgbm_subspace(profile: TaskProfile) -> Subspace:
    bounds, rounds = _rounds(profile)
    return Subspace(
        hyperparameters=[
            Integer("n_estimators", bounds, log=True, default=rounds),
            Float("learning_rate", (0.005, 0.3), log=True, default=0.05),
            Integer("num_leaves", (4, 128), log=True, default=31),
            Integer("min_child_samples", (2, 60), log=True, default=20),
            Float("subsample", (0.5, 1.0), default=0.8),
            Float("colsample_bytree", (0.3, 1.0), default=0.8),
            Float("reg_lambda", (1e-3, 30.0), log=True, default=1.0),
        ]
    )


def _build_lightgbm(values: Values, context: BuildContext) -> Any:
    import numpy as np

    from cashmere.space.estimators.boosting import CategoryLGBMClassifier, CategoryLGBMRegressor

    learner = CategoryLGBMClassifier if _is_classification(context) else CategoryLGBMRegressor
    return learner(
        **values,
        **lightgbm_settings(context),
        min_data_per_group=min(100, max(5, context.n_rows // 100)),
        category_columns=np.flatnonzero(context.categorical).tolist() or None,
    )


def lightgbm_settings(context: BuildContext) -> dict[str, Any]:
    """Return the LightGBM settings shared by all spaces: silent, with equal results for any number of threads."""
    monotone: dict[str, Any] = {}
    if context.monotone:
        # "basic" bounds both sides of a split by its middle, much tighter than needed; "advanced" lets some leaves
        # break the order (github.com/lightgbm-org/LightGBM/issues/5358).
        monotone = {"monotone_constraints": list(context.monotone), "monotone_constraints_method": "intermediate"}
    aim: dict[str, Any] = {} if context.quantile is None else {"objective": "quantile", "alpha": context.quantile}
    if context.power is not None:
        aim = {"objective": _DEVIANCE.get(context.power, "tweedie")}
        if context.power not in _DEVIANCE:
            aim["tweedie_variance_power"] = context.power
    return {
        **monotone,
        **aim,
        "subsample_freq": 1,
        "n_jobs": context.n_threads,
        "random_state": context.seed,
        "deterministic": True,
        "force_row_wise": True,
        "verbose": -1,
    }


LIGHTGBM = Algorithm(
    name="lightgbm",
    build=_build_lightgbm,
    subspace=_lightgbm_subspace,
    group=("trees", "boosting"),
    encodings=NATIVE,
    onnx=NATIVE,
    monotone_encodings=NATIVE,
    requires=("lightgbm",),
)


# XGBoost -------------------------------------------------------------------------------------------------------------


def _xgboost_subspace(profile: TaskProfile) -> Subspace:
    bounds, rounds = _rounds(profile)
    return Subspace(
        hyperparameters=[
            Integer("n_estimators", bounds, log=True, default=rounds),
            Float("learning_rate", (0.005, 0.3), log=True, default=0.05),
            Integer("max_depth", (2, 10), default=6),
            Float("min_child_weight", (0.1, 30.0), log=True, default=1.0),
            Float("gamma", (0.0, 5.0), default=0.0),
            Float("subsample", (0.5, 1.0), default=0.8),
            Float("colsample_bytree", (0.3, 1.0), default=0.8),
            Float("reg_lambda", (0.1, 30.0), log=True, default=1.0),
        ]
    )


def _build_xgboost(values: Values, context: BuildContext) -> Any:
    from xgboost import XGBClassifier, XGBRegressor

    categories: dict[str, Any] = {}
    if context.categorical.any():
        kinds = ["c" if is_code else "q" for is_code in context.categorical]
        categories = {"feature_types": kinds, "enable_categorical": True}
    level, power = context.quantile, context.power
    aim: dict[str, Any] = {} if level is None else {"objective": "reg:quantileerror", "quantile_alpha": level}
    if power is not None:
        aim = {"objective": {1.0: "count:poisson", 2.0: "reg:gamma"}.get(power, "reg:tweedie")}
        if power not in _DEVIANCE:
            aim["tweedie_variance_power"] = power
    monotone = {"monotone_constraints": str(context.monotone)} if context.monotone else {}
    learner = XGBClassifier if _is_classification(context) else XGBRegressor
    return learner(
        **values,
        **categories,
        **monotone,
        **aim,
        tree_method="hist",
        n_jobs=context.n_threads,
        random_state=context.seed,
        verbosity=0,
    )


XGBOOST = Algorithm(
    name="xgboost",
    build=_build_xgboost,
    subspace=_xgboost_subspace,
    group=("trees", "boosting"),
    encodings=NATIVE,
    onnx=NATIVE,
    monotone_encodings=NATIVE,
    requires=("xgboost",),
)


# CatBoost ------------------------------------------------------------------------------------------------------------


def _catboost_subspace(profile: TaskProfile) -> Subspace:
    (low, high), rounds = _rounds(profile)
    return Subspace(
        hyperparameters=[
            Integer("iterations", (low, high), log=True, default=rounds),
            Float("learning_rate", (0.01, 0.3), log=True, default=0.08),
            Integer("depth", (3, 8), default=6),
            Float("l2_leaf_reg", (1.0, 30.0), log=True, default=3.0),
            Float("random_strength", (0.1, 10.0), log=True, default=1.0),
        ]
    )


def _build_catboost(values: Values, context: BuildContext) -> Any:
    from catboost import CatBoostClassifier, CatBoostRegressor

    learner = CatBoostClassifier if _is_classification(context) else CatBoostRegressor
    # With constraints, it would shrink the first part of a path, but not what continues it, and print so for each.
    monotone = {"monotone_constraints": list(context.monotone), "model_shrink_rate": 0.0} if context.monotone else {}
    aim = {} if context.quantile is None else {"loss_function": f"Quantile:alpha={context.quantile!r}"}
    # Its deviances start from predictions of 1, far from large targets, and it knows no gamma deviance: with squared
    # errors it is better (docs/benchmarks.md#deviances).
    # Measured on satimage and eucalyptus: a quarter of the borders and half of the columns per split take a third of
    # the time and do not change the loss. Narrow tables need all of their columns.
    return learner(
        **values,
        **monotone,
        **aim,
        border_count=64,
        rsm=0.5 if context.n_features >= 16 else 1.0,
        thread_count=context.n_threads,
        random_seed=context.seed,
        logging_level="Silent",
        allow_writing_files=False,
    )


CATBOOST = Algorithm(
    name="catboost",
    build=_build_catboost,
    subspace=_catboost_subspace,
    group=("trees", "boosting"),
    # CatBoost handles categories only as integers or text, not in a matrix of floats, so codes are numbers here.
    encodings=(Encoding.ORDINAL, Encoding.TARGET, Encoding.ONEHOT),
    onnx=(Encoding.ORDINAL, Encoding.TARGET, Encoding.ONEHOT),
    monotone_encodings=(Encoding.ORDINAL, Encoding.TARGET, Encoding.ONEHOT),
    requires=("catboost",),
)


# Histogram gradient boosting of scikit-learn -------------------------------------------------------------------------


def _histogram_subspace(profile: TaskProfile) -> Subspace:
    (low, high), rounds = _rounds(profile)
    return Subspace(
        hyperparameters=[
            Integer("max_iter", (low, high // 2), log=True, default=min(rounds, 200)),
            Float("learning_rate", (0.01, 0.3), log=True, default=0.06),
            Integer("max_leaf_nodes", (4, 128), log=True, default=24),
            Integer("min_samples_leaf", (2, 60), log=True, default=20),
            Float("l2_regularization", (1e-3, 30.0), log=True, default=1.0),
            Float("max_features", (0.3, 1.0), default=0.8),
        ]
    )


def _build_histogram(values: Values, context: BuildContext) -> Any:
    from cashmere.space.estimators.boosting import CategoryHistogramClassifier, CategoryHistogramRegressor

    learner = CategoryHistogramClassifier if _is_classification(context) else CategoryHistogramRegressor
    categorical = context.categorical if context.categorical.any() else None
    monotone = {"monotonic_cst": list(context.monotone)} if context.monotone else {}
    aim: dict[str, Any] = {} if context.quantile is None else {"loss": "quantile", "quantile": context.quantile}
    if context.power in _DEVIANCE:  # it knows no others
        aim = {"loss": _DEVIANCE[context.power]}
    return learner(
        **values,
        **monotone,
        **aim,
        categorical_features=categorical,
        early_stopping=False,
        random_state=context.seed,
    )


HIST_GRADIENT_BOOSTING = Algorithm(
    name="hist_gradient_boosting",
    build=_build_histogram,
    subspace=_histogram_subspace,
    group=("trees", "boosting"),
    encodings=NATIVE,
    onnx=NATIVE,
    monotone_encodings=NATIVE,
)


# Forests -------------------------------------------------------------------------------------------------------------

N_TREES = 150
"""Trees of a forest: enough for stable probabilities; no more, because the forest of every fold is stored."""


def _forest_subspace(profile: TaskProfile) -> Subspace:
    is_classification = profile.task_type.is_classification
    criterion = [Categorical("criterion", ["gini", "entropy"], default="gini")] if is_classification else []
    smallest_leaf = min(20, 2 + profile.n_rows // 5000)  # keeps files small with many rows
    return Subspace(
        hyperparameters=[
            *criterion,
            Float("max_features", (0.2, 1.0), default=0.5 if is_classification else 0.75),
            Integer("min_samples_leaf", (1, 30), log=True, default=smallest_leaf),
        ]
    )


def _forest_settings(context: BuildContext) -> dict[str, Any]:
    monotone = {"monotonic_cst": list(context.monotone)} if context.monotone else {}
    return {**monotone, "n_estimators": N_TREES, "n_jobs": context.n_threads, "random_state": context.seed}


def _build_random_forest(values: Values, context: BuildContext) -> Any:
    from cashmere.space.estimators.forests import ExponentForestClassifier, ExponentForestRegressor

    learner = ExponentForestClassifier if _is_classification(context) else ExponentForestRegressor
    return learner(**values, **_forest_settings(context))


def _build_extra_trees(values: Values, context: BuildContext) -> Any:
    from cashmere.space.estimators.forests import ExponentExtraTreesClassifier, ExponentExtraTreesRegressor

    learner = ExponentExtraTreesClassifier if _is_classification(context) else ExponentExtraTreesRegressor
    # They draw splits between the smallest and the largest number of a column. If all drawn for a node leave too few
    # rows on one side, it becomes a leaf, so long tails are harmful, too: docs/benchmarks.md#outliers.
    return without_outliers(learner(**values, **_forest_settings(context)), context, factor=1.0)


RANDOM_FOREST = Algorithm(
    name="random_forest",
    build=_build_random_forest,
    subspace=_forest_subspace,
    group=("trees", "forests"),
    encodings=TREES,
    onnx=TREES,
    monotone_encodings=DENSE,  # scikit-learn's trees take gaps or directions, not both
)

EXTRA_TREES = Algorithm(
    name="extra_trees",
    build=_build_extra_trees,
    subspace=_forest_subspace,
    group=("trees", "forests"),
    encodings=TREES,
    onnx=TREES,
    monotone_encodings=DENSE,  # scikit-learn's trees take gaps or directions, not both
)


# Linear models -------------------------------------------------------------------------------------------------------


def _logistic_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(hyperparameters=[Float("C", (1e-3, 1e3), log=True, default=1.0), _scaling()])


def _build_logistic(values: Values, context: BuildContext) -> Any:
    from sklearn.linear_model import LogisticRegression

    learner = LogisticRegression(C=values["C"], max_iter=1000, random_state=context.seed)
    return scaled(values["scaling"], learner, context)


LOGISTIC_REGRESSION = Algorithm(
    name="logistic_regression",
    build=_build_logistic,
    subspace=_logistic_subspace,
    group=("linear",),
    tasks=CLASSIFICATION,
    encodings=DENSE,
    onnx=DENSE,
)


def _ridge_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(hyperparameters=[Float("alpha", (1e-3, 1e4), log=True, default=1.0), _scaling()])


def _build_ridge(values: Values, context: BuildContext) -> Any:
    from sklearn.linear_model import Ridge

    learner = standardised_target(Ridge(alpha=values["alpha"], random_state=context.seed))
    return scaled(values["scaling"], learner, context)


RIDGE = Algorithm(
    name="ridge",
    build=_build_ridge,
    subspace=_ridge_subspace,
    group=("linear",),
    tasks=REGRESSION,
    encodings=DENSE,
    onnx=DENSE,
)


# Neural network ------------------------------------------------------------------------------------------------------


def _mlp_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Integer("n_layers", (1, 3), default=2),
            Integer("width", (16, 256), log=True, default=128),
            Float("alpha", (1e-7, 1.0), log=True, default=1e-3),
            Float("learning_rate_init", (1e-4, 3e-2), log=True, default=2e-3),
            _scaling(),
        ]
    )


def _build_mlp(values: Values, context: BuildContext) -> Any:
    from cashmere.space.estimators.networks import EarlyStoppedMLPClassifier, EarlyStoppedMLPRegressor

    settings: dict[str, Any] = {
        "hidden_layer_sizes": (values["width"],) * values["n_layers"],
        "alpha": values["alpha"],
        "learning_rate_init": values["learning_rate_init"],
        "batch_size": min(context.n_rows, 64 if context.n_rows < 10_000 else 256),
        "max_iter": max(10, min(200, 5_000_000 // context.n_rows)),  # bounds the time on long tables
        "early_stopping": True,
        "n_iter_no_change": 15,
        "random_state": context.seed,
    }
    if _is_classification(context):
        return scaled(values["scaling"], EarlyStoppedMLPClassifier(**settings), context)
    return scaled(values["scaling"], standardised_target(EarlyStoppedMLPRegressor(**settings)), context)


MLP = Algorithm(name="mlp", build=_build_mlp, subspace=_mlp_subspace, group=("neural",), encodings=DENSE, onnx=DENSE)


# Neighbours and kernels ----------------------------------------------------------------------------------------------


def _knn_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Integer("n_neighbors", (1, 100), log=True, default=10),
            Categorical("weights", ["distance", "uniform"], default="distance"),
            Integer("p", (1, 2), default=2),
            _scaling(),
        ]
    )


def _build_knn(values: Values, context: BuildContext) -> Any:
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    learner = KNeighborsClassifier if _is_classification(context) else KNeighborsRegressor
    model = learner(
        n_neighbors=min(values["n_neighbors"], context.n_rows),
        weights=values["weights"],
        p=values["p"],
        n_jobs=context.n_threads,
    )
    return scaled(values["scaling"], model, context)


KNN = Algorithm(
    name="knn",
    build=_build_knn,
    subspace=_knn_subspace,
    group=("neighbours",),
    max_rows=50_000,
    encodings=DENSE,
    accepts_weights=False,
)


def _svm_subspace(profile: TaskProfile) -> Subspace:
    epsilon = [Float("epsilon", (1e-3, 1.0), log=True, default=0.1)] if not profile.task_type.is_classification else []
    return Subspace(
        hyperparameters=[
            Float("C", (1e-2, 1e3), log=True, default=1.0),
            Float("gamma_factor", (1e-2, 10.0), log=True, default=1.0),
            *epsilon,
            _scaling(),
        ]
    )


def svm_settings(values: Values, context: BuildContext) -> dict[str, Any]:
    """Return the settings of a support vector machine; its width is relative to the number of columns."""
    return {"C": values["C"], "gamma": values["gamma_factor"] / context.n_features, "max_iter": 100_000}


def _build_svm(values: Values, context: BuildContext) -> Any:
    from sklearn.svm import SVC, SVR

    from cashmere.space.estimators.margins import MarginProbabilities

    settings = svm_settings(values, context)
    learner: Any
    if _is_classification(context):
        learner = MarginProbabilities(SVC(**settings, random_state=context.seed))
    else:
        learner = standardised_target(SVR(**settings, epsilon=values["epsilon"]))
    return scaled(values["scaling"], learner, context)


SVM = Algorithm(
    name="svm",
    build=_build_svm,
    subspace=_svm_subspace,
    group=("kernels",),
    max_rows=5000,
    encodings=DENSE,
    onnx=DENSE,
)


CLASSIC_ALGORITHMS: tuple[Algorithm, ...] = (
    LIGHTGBM,
    XGBOOST,
    CATBOOST,
    HIST_GRADIENT_BOOSTING,
    RANDOM_FOREST,
    EXTRA_TREES,
    LOGISTIC_REGRESSION,
    RIDGE,
    MLP,
    KNN,
    SVM,
)
"""Strong and cheap ones first: the first trials of a search are their defaults, in this order."""
