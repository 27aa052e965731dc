"""Learners of the space ``volcano``: eleven classifiers, ten regressors.

Ranges are those of MindWare (docs/spaces.md#volcano); defaults are those of auto-sklearn, the source of MindWare's
ranges, or of the library.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from ConfigSpace import (
    Categorical,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    InCondition,
    Integer,
    OrdinalHyperparameter,
)
from ConfigSpace.hyperparameters import Hyperparameter

from cashmere.data.task import TaskProfile, TaskType
from cashmere.space.component import CLASSIFICATION, REGRESSION, Algorithm, BuildContext, Subspace
from cashmere.space.named.classic import lightgbm_settings, standardised_target
from cashmere.space.named.operators import C_RANGE, GAMMA_RANGE
from cashmere.space.space import ALGORITHM

Values = Mapping[str, Any]


def _boolean(name: str, *, default: bool) -> Hyperparameter[Any, Any]:
    return Categorical(name, [True, False], default=default)


def _steps(name: str, values: list[Any], default: Any) -> Hyperparameter[Any, Any]:
    return OrdinalHyperparameter(name, values, default_value=default)


def _tenths(low: int, high: int) -> list[float]:
    return [k / 10 for k in range(low, high + 1)]


def _splits() -> list[Hyperparameter[Any, Any]]:
    return [Integer("min_samples_split", (2, 20), default=2), Integer("min_samples_leaf", (1, 20), default=1)]


# Trees ---------------------------------------------------------------------------------------------------------------


def _adaboost_subspace(profile: TaskProfile) -> Subspace:
    deepest = 8 if profile.task_type.is_classification else 10
    shallowest = 2 if profile.task_type.is_classification else 1
    return Subspace(
        hyperparameters=[
            Integer("n_estimators", (50, 500), default=50),
            Float("learning_rate", (0.01, 2.0), log=True, default=0.1),
            Integer("max_depth", (shallowest, deepest), default=2),
        ]
    )


def _build_adaboost(values: Values, context: BuildContext) -> Any:
    from sklearn.ensemble import AdaBoostClassifier, AdaBoostRegressor
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    boosting: dict[str, Any] = {
        "n_estimators": values["n_estimators"],
        "learning_rate": values["learning_rate"],
        "random_state": context.seed,
    }
    if context.task_type.is_classification:
        return AdaBoostClassifier(DecisionTreeClassifier(max_depth=values["max_depth"]), **boosting)
    return AdaBoostRegressor(DecisionTreeRegressor(max_depth=values["max_depth"]), **boosting)


def _forest_subspace(profile: TaskProfile, *, bootstrap: bool) -> Subspace:
    is_classification = profile.task_type.is_classification
    criteria = ["gini", "entropy"] if is_classification else ["squared_error", "absolute_error"]
    return Subspace(
        hyperparameters=[
            Categorical("criterion", criteria, default=criteria[0]),
            Float("max_features", (0.0, 1.0), default=0.5 if is_classification else 1.0),
            *_splits(),
            _boolean("bootstrap", default=bootstrap),
        ]
    )


def _build_random_forest(values: Values, context: BuildContext) -> Any:
    from cashmere.space.estimators.forests import ExponentForestClassifier, ExponentForestRegressor

    learner = ExponentForestClassifier if context.task_type.is_classification else ExponentForestRegressor
    return learner(**values, n_estimators=100, n_jobs=context.n_threads, random_state=context.seed)


def _build_extra_trees(values: Values, context: BuildContext) -> Any:
    from cashmere.space.estimators.forests import ExponentExtraTreesClassifier, ExponentExtraTreesRegressor

    learner = ExponentExtraTreesClassifier if context.task_type.is_classification else ExponentExtraTreesRegressor
    return learner(**values, n_estimators=100, n_jobs=context.n_threads, random_state=context.seed)


def _gradient_boosting_subspace(profile: TaskProfile) -> Subspace:
    learning_rate = Float("learning_rate", (0.01, 1.0), log=True, default=0.1)
    max_features = Float("max_features", (0.1, 1.0), default=1.0)
    if profile.task_type.is_classification:
        depth, subsample = Integer("max_depth", (1, 8), default=3), Float("subsample", (0.01, 1.0), default=1.0)
        return Subspace(hyperparameters=[learning_rate, depth, *_splits(), subsample, max_features])
    return Subspace(
        hyperparameters=[
            Categorical("loss", ["squared_error", "absolute_error"], default="squared_error"),
            learning_rate,
            Integer("n_estimators", (50, 500), default=100),
            Integer("max_depth", (1, 10), default=3),
            *_splits(),
            Float("subsample", (0.1, 1.0), default=1.0),
            max_features,
        ]
    )


def _build_gradient_boosting(values: Values, context: BuildContext) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

    if context.task_type.is_classification:
        return GradientBoostingClassifier(**values, n_estimators=100, random_state=context.seed)
    return GradientBoostingRegressor(**values, random_state=context.seed)


def _lightgbm_classifier_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            _steps("n_estimators", list(range(100, 1001, 50)), 500),
            Integer("num_leaves", (31, 2047), default=128),
            Float("learning_rate", (1e-3, 0.3), log=True, default=0.1),
            Integer("min_child_samples", (5, 30), default=20),
            _steps("subsample", _tenths(7, 10), 1.0),
            _steps("colsample_bytree", _tenths(7, 10), 1.0),
        ]
    )


def _lightgbm_regressor_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Integer("n_estimators", (100, 1000), default=500),
            Integer("num_leaves", (31, 1023), default=31),
            Float("learning_rate", (0.025, 0.3), log=True, default=0.1),
            Float("min_child_weight", (1.0, 10.0), default=1.0),
            Float("subsample", (0.5, 1.0), default=1.0),
            Float("colsample_bytree", (0.5, 1.0), default=1.0),
            Float("reg_alpha", (1e-10, 10.0), log=True, default=1e-10),
            Float("reg_lambda", (1e-10, 10.0), log=True, default=1e-10),
        ]
    )


def _build_lightgbm(values: Values, context: BuildContext) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    if context.task_type.is_classification:
        return LGBMClassifier(**values, max_depth=15, **lightgbm_settings(context))
    return LGBMRegressor(**values, **lightgbm_settings(context))


# Neighbours and discriminants ----------------------------------------------------------------------------------------


def _knn_subspace(profile: TaskProfile) -> Subspace:
    norm = [] if profile.task_type.is_classification else [Integer("p", (1, 2), default=2)]
    return Subspace(
        hyperparameters=[
            Integer("n_neighbors", (1, 100), log=True, default=5),
            Categorical("weights", ["uniform", "distance"], default="uniform"),
            *norm,
        ]
    )


def _build_knn(values: Values, context: BuildContext) -> Any:
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    learner = KNeighborsClassifier if context.task_type.is_classification else KNeighborsRegressor
    n_neighbors = min(values["n_neighbors"], context.n_rows)
    return learner(**{**values, "n_neighbors": n_neighbors}, n_jobs=context.n_threads)


def _lda_subspace(profile: TaskProfile) -> Subspace:
    shrinkage = Categorical("shrinkage", ["none", "auto", "manual"], default="none")
    factor = Float("shrinkage_factor", (0.0, 1.0), default=0.5)
    return Subspace(
        hyperparameters=[
            shrinkage,
            factor,
            Integer("n_components", (1, 250), default=10),
            Float("tol", (1e-5, 1e-1), log=True, default=1e-4),
        ],
        conditions=[EqualsCondition(factor, shrinkage, "manual")],
    )


def _build_lda(values: Values, context: BuildContext) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    # n_components is in the table, but scikit-learn uses it only in `transform`, so predictions do not depend on it.
    # None never exceeds min(classes - 1, d), however many columns the operators leave.
    if values["shrinkage"] == "none":
        return LinearDiscriminantAnalysis(solver="svd", tol=values["tol"])
    shrinkage = "auto" if values["shrinkage"] == "auto" else values["shrinkage_factor"]
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage, tol=values["tol"])


def _qda_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(hyperparameters=[Float("reg_param", (0.0, 1.0), default=0.01)])


def _build_qda(values: Values, context: BuildContext) -> Any:
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

    return QuadraticDiscriminantAnalysis(reg_param=values["reg_param"])


# Linear models -------------------------------------------------------------------------------------------------------


def penalised_logistic_regression(*, l1_ratio: float, **settings: Any) -> Any:
    """Return a logistic regression with an l2 (0), l1 (1) or mixed penalty, for every supported scikit-learn.

    scikit-learn 1.8 deprecated ``penalty``: there, only the ratio counts.
    """
    import sklearn
    from sklearn.linear_model import LogisticRegression

    if tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 8):
        return LogisticRegression(l1_ratio=l1_ratio, **settings)
    penalty = {0.0: "l2", 1.0: "l1"}.get(l1_ratio, "elasticnet")
    return LogisticRegression(penalty=penalty, l1_ratio=l1_ratio if penalty == "elasticnet" else None, **settings)


def _logistic_subspace(profile: TaskProfile) -> Subspace:
    solvers = ["liblinear", "saga"]
    if profile.task_type is TaskType.MULTICLASS and profile.has_weights:
        solvers = ["saga"]  # with more classes, liblinear needs one-vs-rest, which takes no row weights
    return Subspace(
        hyperparameters=[
            Float("C", (0.03125, 10.0), log=True, default=1.0),
            Float("tol", (1e-6, 1e-2), log=True, default=1e-4),
            Categorical("penalty", ["l2", "l1"], default="l2"),
            Categorical("solver", solvers, default=solvers[0]),
        ]
    )


def _build_logistic(values: Values, context: BuildContext) -> Any:
    from sklearn.multiclass import OneVsRestClassifier

    learner = penalised_logistic_regression(
        l1_ratio=1.0 if values["penalty"] == "l1" else 0.0,
        C=values["C"],
        tol=values["tol"],
        solver=values["solver"],
        max_iter=3000,
        random_state=context.seed,
    )
    return OneVsRestClassifier(learner) if values["solver"] == "liblinear" and context.n_classes > 2 else learner


def _liblinear_svc_subspace(profile: TaskProfile) -> Subspace:
    penalty = Categorical("penalty", ["l2", "l1"], default="l2")
    loss = Categorical("loss", ["squared_hinge", "hinge"], default="squared_hinge")
    dual = _boolean("dual", default=False)
    return Subspace(
        hyperparameters=[
            penalty,
            loss,
            dual,
            Float("tol", (1e-5, 1e-1), log=True, default=1e-4),
            Float("C", C_RANGE, log=True, default=1.0),
        ],
        forbidden=[
            ForbiddenAndConjunction(ForbiddenEqualsClause(penalty, "l1"), ForbiddenEqualsClause(loss, "hinge")),
            ForbiddenAndConjunction(
                ForbiddenEqualsClause(penalty, "l2"),
                ForbiddenEqualsClause(loss, "hinge"),
                ForbiddenEqualsClause(dual, False),
            ),
            ForbiddenAndConjunction(ForbiddenEqualsClause(penalty, "l1"), ForbiddenEqualsClause(dual, True)),
        ],
    )


def _build_liblinear_svc(values: Values, context: BuildContext) -> Any:
    from sklearn.svm import LinearSVC

    from cashmere.space.estimators.margins import MarginProbabilities

    return MarginProbabilities(LinearSVC(**values, random_state=context.seed))


def _epsilon() -> Hyperparameter[Any, Any]:
    return _steps("epsilon", [1e-4, 1e-3, 1e-2, 1e-1, 1.0], 1e-1)


def _liblinear_svr_subspace(profile: TaskProfile) -> Subspace:
    loss = Categorical("loss", ["squared_epsilon_insensitive", "epsilon_insensitive"])
    dual = _boolean("dual", default=False)
    return Subspace(
        hyperparameters=[
            _epsilon(),
            loss,
            dual,
            Float("tol", (1e-5, 1e-1), log=True, default=1e-4),
            Float("C", C_RANGE, log=True, default=1.0),
        ],
        forbidden=[
            ForbiddenAndConjunction(
                ForbiddenEqualsClause(loss, "epsilon_insensitive"), ForbiddenEqualsClause(dual, False)
            )
        ],
    )


def _build_liblinear_svr(values: Values, context: BuildContext) -> Any:
    from sklearn.svm import LinearSVR

    return standardised_target(LinearSVR(**values, random_state=context.seed))


def _penalised_subspace(profile: TaskProfile, *, alpha: float, solvers: tuple[str, ...] = ()) -> Subspace:
    solver = [Categorical("solver", solvers, default=solvers[0])] if solvers else []
    return Subspace(
        hyperparameters=[
            Float("alpha", (0.01, 32.0), log=True, default=alpha),
            Float("tol", (1e-6, 1e-2), log=True, default=1e-4),
            _steps("max_iter", list(range(100, 1001, 100)), 1000),
            *solver,
        ]
    )


def _build_lasso(values: Values, context: BuildContext) -> Any:
    from sklearn.linear_model import Lasso

    return standardised_target(Lasso(**values, random_state=context.seed))


def _build_ridge(values: Values, context: BuildContext) -> Any:
    from sklearn.linear_model import Ridge

    return standardised_target(Ridge(**values, random_state=context.seed))


# Kernels -------------------------------------------------------------------------------------------------------------


def _libsvm_subspace(profile: TaskProfile) -> Subspace:
    kernel = Categorical("kernel", ["rbf", "poly", "sigmoid"], default="rbf")
    degree = Integer("degree", (2, 5), default=3)
    coef0 = Float("coef0", (-1.0, 1.0), default=0.0)
    epsilon = [] if profile.task_type.is_classification else [_epsilon()]
    return Subspace(
        hyperparameters=[
            *epsilon,
            Float("C", C_RANGE, log=True, default=1.0),
            kernel,
            degree,
            Float("gamma", GAMMA_RANGE, log=True, default=0.1),
            coef0,
            _boolean("shrinking", default=True),
            Float("tol", (1e-5, 1e-1), log=True, default=1e-3),
        ],
        conditions=[EqualsCondition(degree, kernel, "poly"), InCondition(coef0, kernel, ["poly", "sigmoid"])],
    )


def _build_libsvm(values: Values, context: BuildContext) -> Any:
    from sklearn.svm import SVC, SVR

    from cashmere.space.estimators.margins import MarginProbabilities

    if context.task_type.is_classification:
        return MarginProbabilities(SVC(**values, max_iter=10_000, random_state=context.seed))
    return standardised_target(SVR(**values, max_iter=10_000))


ADABOOST = Algorithm(name="adaboost", build=_build_adaboost, subspace=_adaboost_subspace, group=("trees", "boosting"))
RANDOM_FOREST = Algorithm(
    name="random_forest",
    build=_build_random_forest,
    subspace=functools.partial(_forest_subspace, bootstrap=True),
    group=("trees", "forests"),
)
EXTRA_TREES = Algorithm(
    name="extra_trees",
    build=_build_extra_trees,
    subspace=functools.partial(_forest_subspace, bootstrap=False),
    group=("trees", "forests"),
)
GRADIENT_BOOSTING = Algorithm(
    name="gradient_boosting",
    build=_build_gradient_boosting,
    subspace=_gradient_boosting_subspace,
    group=("trees", "boosting"),
)
KNN = Algorithm(name="knn", build=_build_knn, subspace=_knn_subspace, group=("neighbours",), accepts_weights=False)
LDA = Algorithm(
    name="lda",
    build=_build_lda,
    subspace=_lda_subspace,
    group=("discriminants",),
    tasks=CLASSIFICATION,
    accepts_weights=False,
)
QDA = Algorithm(
    name="qda",
    build=_build_qda,
    subspace=_qda_subspace,
    group=("discriminants",),
    tasks=CLASSIFICATION,
    accepts_weights=False,
)
LOGISTIC_REGRESSION = Algorithm(
    name="logistic_regression",
    build=_build_logistic,
    subspace=_logistic_subspace,
    group=("linear",),
    tasks=CLASSIFICATION,
)
LIBLINEAR_SVC = Algorithm(
    name="liblinear_svc",
    build=_build_liblinear_svc,
    subspace=_liblinear_svc_subspace,
    group=("linear",),
    tasks=CLASSIFICATION,
)
LIBSVM_SVC = Algorithm(
    name="libsvm_svc", build=_build_libsvm, subspace=_libsvm_subspace, group=("kernels",), tasks=CLASSIFICATION
)
LIGHTGBM_CLASSIFIER = Algorithm(
    name="lightgbm",
    build=_build_lightgbm,
    subspace=_lightgbm_classifier_subspace,
    group=("trees", "boosting"),
    tasks=CLASSIFICATION,
    requires=("lightgbm",),
)
LASSO = Algorithm(
    name="lasso",
    build=_build_lasso,
    subspace=functools.partial(_penalised_subspace, alpha=0.05),
    group=("linear",),
    tasks=REGRESSION,
)
RIDGE = Algorithm(
    name="ridge",
    build=_build_ridge,
    subspace=functools.partial(_penalised_subspace, alpha=1.0, solvers=("auto", "saga")),
    group=("linear",),
    tasks=REGRESSION,
)
LIBLINEAR_SVR = Algorithm(
    name="liblinear_svr",
    build=_build_liblinear_svr,
    subspace=_liblinear_svr_subspace,
    group=("linear",),
    tasks=REGRESSION,
)
LIBSVM_SVR = Algorithm(
    name="libsvm_svr", build=_build_libsvm, subspace=_libsvm_subspace, group=("kernels",), tasks=REGRESSION
)
LIGHTGBM_REGRESSOR = Algorithm(
    name="lightgbm",
    build=_build_lightgbm,
    subspace=_lightgbm_regressor_subspace,
    group=("trees", "boosting"),
    tasks=REGRESSION,
    requires=("lightgbm",),
)

VOLCANO_CLASSIFIERS: tuple[Algorithm, ...] = (
    ADABOOST,
    RANDOM_FOREST,
    EXTRA_TREES,
    GRADIENT_BOOSTING,
    KNN,
    LDA,
    QDA,
    LOGISTIC_REGRESSION,
    LIBLINEAR_SVC,
    LIBSVM_SVC,
    LIGHTGBM_CLASSIFIER,
)
"""Eleven classifiers, in the order of Shen et al. (2022), table 6."""

VOLCANO_REGRESSORS: tuple[Algorithm, ...] = (
    ADABOOST,
    RANDOM_FOREST,
    EXTRA_TREES,
    GRADIENT_BOOSTING,
    KNN,
    LASSO,
    RIDGE,
    LIBLINEAR_SVR,
    LIBSVM_SVR,
    LIGHTGBM_REGRESSOR,
)
"""Ten regressors."""

VOLCANO_FORBIDDEN: tuple[Mapping[str, tuple[str, ...]], ...] = (
    {"preprocessor": ("random_trees_embedding",), ALGORITHM: ("lda", "qda")},
)
"""The embedding is sparse, and discriminant analysis needs dense matrices."""
