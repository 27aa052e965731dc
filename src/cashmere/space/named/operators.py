"""Feature operators of the space ``volcano``: rescalers and preprocessors.

Ranges are those of MindWare: docs/spaces.md#volcano.

Numbers of components are limited by the fold's rows and columns. Products and kernel maps are limited to `MAX_COLUMNS`
columns and `MAX_BYTES` bytes: kernel maps get fewer components, and products are those of as many random columns as the
limits allow. The operators know the width of the prepared table, which the steps before them (rescalers) do not change.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from ConfigSpace import (
    Categorical,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenInClause,
    InCondition,
    Integer,
    OrdinalHyperparameter,
)
from ConfigSpace.hyperparameters import Hyperparameter

from cashmere.data.task import TaskProfile
from cashmere.space.component import CLASSIFICATION, MAX_BYTES, MAX_COLUMNS, BuildContext, Operator, Subspace
from cashmere.space.space import NO_OPERATOR

Values = Mapping[str, Any]

GAMMA_RANGE = (3.0517578125e-05, 8.0)
C_RANGE = (0.03125, 32768.0)


def _boolean(name: str, *, default: bool) -> Hyperparameter[Any, Any]:
    return Categorical(name, [True, False], default=default)


def _most_components(context: BuildContext) -> int:
    return max(1, min(context.n_rows, context.n_features))


def _most_columns(context: BuildContext) -> int:
    """Return the number of columns that an operator may make from the fold's rows, at least 1."""
    return max(1, min(MAX_COLUMNS, MAX_BYTES // (8 * context.n_rows)))


def _shifted(operator: Any) -> Any:
    """Scale columns to [0, 1] before an operator that accepts only non-negative numbers."""
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MinMaxScaler

    return Pipeline([("shift", MinMaxScaler(clip=True)), ("operator", operator)])


# Rescalers -----------------------------------------------------------------------------------------------------------


def _build_minmax(values: Values, context: BuildContext) -> Any:
    from sklearn.preprocessing import MinMaxScaler

    return MinMaxScaler()


def _build_normalizer(values: Values, context: BuildContext) -> Any:
    from sklearn.preprocessing import Normalizer

    return Normalizer()


def _build_standard(values: Values, context: BuildContext) -> Any:
    from sklearn.preprocessing import StandardScaler

    return StandardScaler()


def _quantile_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Integer("n_quantiles", (10, 2000), default=1000),
            Categorical("output_distribution", ["uniform", "normal"], default="uniform"),
        ]
    )


def _build_quantile(values: Values, context: BuildContext) -> Any:
    from sklearn.preprocessing import QuantileTransformer

    return QuantileTransformer(
        n_quantiles=min(values["n_quantiles"], context.n_rows),
        output_distribution=values["output_distribution"],
        random_state=context.seed,
    )


def _robust_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[Float("q_min", (0.001, 0.3), default=0.25), Float("q_max", (0.7, 0.999), default=0.75)]
    )


def _build_robust(values: Values, context: BuildContext) -> Any:
    from sklearn.preprocessing import RobustScaler

    return RobustScaler(quantile_range=(100 * values["q_min"], 100 * values["q_max"]))


RESCALERS: tuple[Operator, ...] = (
    Operator(name="standard", build=_build_standard, group=("affine",)),
    Operator(name="minmax", build=_build_minmax, group=("affine",)),
    Operator(name="normalizer", build=_build_normalizer, group=("rows",)),
    Operator(name="quantile", build=_build_quantile, subspace=_quantile_subspace, group=("shape",)),
    Operator(name="robust", build=_build_robust, subspace=_robust_subspace, group=("affine",)),
    NO_OPERATOR,
)
"""Five rescalers and none; standard is the default because half of the learners need it."""


# Products of columns -------------------------------------------------------------------------------------------------


def _cross_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(hyperparameters=[Integer("seed", (1, 100_000), default=1)])


def _build_cross(values: Values, context: BuildContext) -> Any:
    from sklearn.feature_selection import VarianceThreshold
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import PolynomialFeatures

    products = PolynomialFeatures(degree=2, interaction_only=True, include_bias=False)
    return Pipeline([*_product_steps(products, values["seed"], context), ("varying", VarianceThreshold())])


def _polynomial_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(hyperparameters=[Integer("degree", (2, 3), default=2), _boolean("interaction_only", default=False)])


def _build_polynomial(values: Values, context: BuildContext) -> Any:
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import PolynomialFeatures

    products = PolynomialFeatures(**{"include_bias": False, **values})
    return Pipeline(_product_steps(products, context.seed, context))


def _product_steps(products: Any, seed: int, context: BuildContext) -> list[tuple[str, Any]]:
    """Return the steps that make products of all columns, or of as many random ones as stay within the limits."""
    from sklearn.compose import ColumnTransformer

    def n_products(d: int) -> int:  # with the constant
        if products.interaction_only:
            return sum(math.comb(d, k) for k in range(products.degree + 1))
        return math.comb(d + products.degree, products.degree)

    d, most = context.n_features, _most_columns(context)
    n_chosen = max(1, sum(1 for _ in itertools.takewhile(lambda k: n_products(k) <= most, range(1, d + 1))))
    chosen = np.sort(np.random.default_rng(seed).permutation(d)[:n_chosen]).tolist()
    return [("columns", ColumnTransformer([("chosen", "passthrough", chosen)])), ("products", products)]


# Decompositions ------------------------------------------------------------------------------------------------------


def _ica_subspace(profile: TaskProfile) -> Subspace:
    n_components = Integer("n_components", (10, 2000), default=100)
    whiten = _boolean("whiten", default=True)
    return Subspace(
        hyperparameters=[
            Categorical("algorithm", ["parallel", "deflation"], default="parallel"),
            whiten,
            Categorical("fun", ["logcosh", "exp", "cube"], default="logcosh"),
            n_components,
        ],
        conditions=[EqualsCondition(n_components, whiten, True)],
    )


def _build_ica(values: Values, context: BuildContext) -> Any:
    from sklearn.decomposition import FastICA

    n_components = min(values["n_components"], _most_components(context)) if values["whiten"] else None
    return FastICA(
        n_components=n_components,
        algorithm=values["algorithm"],
        whiten="unit-variance" if values["whiten"] else False,
        fun=values["fun"],
        random_state=context.seed,
    )


def _agglomeration_subspace(profile: TaskProfile) -> Subspace:
    metric = Categorical("metric", ["euclidean", "manhattan", "cosine"], default="euclidean")
    linkage = Categorical("linkage", ["ward", "complete", "average"], default="ward")
    return Subspace(
        hyperparameters=[
            Integer("n_clusters", (2, 400), default=25),
            metric,
            linkage,
            Categorical("pooling", ["mean", "median", "max"], default="mean"),
        ],
        forbidden=[
            ForbiddenAndConjunction(
                ForbiddenEqualsClause(linkage, "ward"), ForbiddenInClause(metric, ["manhattan", "cosine"])
            )
        ],
    )


def _build_agglomeration(values: Values, context: BuildContext) -> Any:
    from sklearn.cluster import FeatureAgglomeration

    pooling = {"mean": np.mean, "median": np.median, "max": np.max}[values["pooling"]]
    return FeatureAgglomeration(
        n_clusters=min(values["n_clusters"], _most_components(context)),
        metric=values["metric"],
        linkage=values["linkage"],
        pooling_func=pooling,
    )


def _kernel_parts(kernels: list[str], gamma_kernels: list[str]) -> tuple[list[Any], list[Any]]:
    """Return kernel, gamma, degree and coef0 with their conditions."""
    kernel = Categorical("kernel", kernels, default="rbf")
    gamma = Float("gamma", GAMMA_RANGE, log=True, default=0.01)
    degree = Integer("degree", (2, 5), default=3)
    coef0 = Float("coef0", (-1.0, 1.0), default=0.0)
    conditions = [
        InCondition(gamma, kernel, gamma_kernels),
        EqualsCondition(degree, kernel, "poly"),
        InCondition(coef0, kernel, ["poly", "sigmoid"]),
    ]
    return [kernel, gamma, degree, coef0], conditions


def _kernel_pca_subspace(profile: TaskProfile) -> Subspace:
    kernel_parts, conditions = _kernel_parts(["rbf", "poly", "sigmoid", "cosine"], ["rbf", "poly"])
    n_components = Integer("n_components", (10, 2000), default=100)
    return Subspace(hyperparameters=[n_components, *kernel_parts], conditions=conditions)


def _build_kernel_pca(values: Values, context: BuildContext) -> Any:
    from sklearn.decomposition import KernelPCA

    n_components = min(values["n_components"], _most_components(context))
    if context.n_rows**2 * 8 > MAX_BYTES:
        raise ValueError(f"Kernel PCA of {context.n_rows} rows needs a kernel matrix above {MAX_BYTES // 2**20} MiB.")
    kernel = {key: values[key] for key in ("kernel", "gamma", "degree", "coef0") if key in values}
    return KernelPCA(n_components=n_components, **kernel, random_state=context.seed)


def _kitchen_sinks_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Float("gamma", GAMMA_RANGE, log=True, default=0.01),
            Integer("n_components", (50, 5000), log=True, default=100),
        ]
    )


def _build_kitchen_sinks(values: Values, context: BuildContext) -> Any:
    from sklearn.kernel_approximation import RBFSampler

    n_components = min(values["n_components"], _most_columns(context))
    return RBFSampler(gamma=values["gamma"], n_components=n_components, random_state=context.seed)


def _nystroem_subspace(profile: TaskProfile) -> Subspace:
    kernels = ["rbf", "poly", "sigmoid", "cosine", "chi2"]
    kernel_parts, conditions = _kernel_parts(kernels, ["rbf", "poly", "sigmoid", "chi2"])
    n_components = Integer("n_components", (50, 5000), log=True, default=100)
    return Subspace(hyperparameters=[n_components, *kernel_parts], conditions=conditions)


def _build_nystroem(values: Values, context: BuildContext) -> Any:
    from sklearn.kernel_approximation import Nystroem

    n_components = min(values["n_components"], context.n_rows, _most_columns(context))
    kernel = {key: values[key] for key in ("kernel", "gamma", "degree", "coef0") if key in values}
    nystroem = Nystroem(n_components=n_components, **kernel, random_state=context.seed)
    return _shifted(nystroem) if values["kernel"] == "chi2" else nystroem


def _lda_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(hyperparameters=[Categorical("shrinkage", ["none", "auto"], default="none")])


def _build_lda(values: Values, context: BuildContext) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    if values["shrinkage"] == "auto":
        return LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto")
    return LinearDiscriminantAnalysis(solver="svd")


def _pca_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[Float("keep_variance", (0.5, 0.9999), default=0.9999), _boolean("whiten", default=False)]
    )


def _build_pca(values: Values, context: BuildContext) -> Any:
    from sklearn.decomposition import PCA

    return PCA(
        n_components=values["keep_variance"], whiten=values["whiten"], svd_solver="full", random_state=context.seed
    )


def _svd_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(hyperparameters=[Integer("target_dim", (10, 256), default=128)])


def _build_svd(values: Values, context: BuildContext) -> Any:
    from sklearn.decomposition import TruncatedSVD

    n_components = min(values["target_dim"], _most_components(context))
    return TruncatedSVD(n_components=n_components, random_state=context.seed)


def _embedding_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Integer("n_estimators", (10, 100), default=10),
            Integer("max_depth", (2, 10), default=5),
            Integer("min_samples_split", (2, 20), default=2),
            Integer("min_samples_leaf", (1, 20), default=1),
        ]
    )


def _build_embedding(values: Values, context: BuildContext) -> Any:
    from sklearn.ensemble import RandomTreesEmbedding

    # One column per leaf: unless sparse, 100 trees of depth 10 would not fit into memory.
    return RandomTreesEmbedding(
        **values, sparse_output=True, n_jobs=context.n_threads, random_state=context.seed, max_leaf_nodes=None
    )


# Selection of columns ------------------------------------------------------------------------------------------------


def _percentile_subspace(profile: TaskProfile) -> Subspace:
    scores = ["f", "chi2", "mutual_info"] if profile.task_type.is_classification else ["f", "mutual_info"]
    return Subspace(
        hyperparameters=[Float("percentile", (5.0, 99.0), default=50.0), Categorical("score", scores, default="f")]
    )


def _score_function(name: str, context: BuildContext) -> Any:
    from sklearn.feature_selection import chi2, f_classif, f_regression

    from cashmere.space.estimators.scores import class_information, value_information

    is_classification = context.task_type.is_classification
    if name == "chi2":
        return chi2
    if name == "f":
        return f_classif if is_classification else f_regression
    return class_information if is_classification else value_information


def _build_percentile(values: Values, context: BuildContext) -> Any:
    from sklearn.feature_selection import SelectPercentile

    selector = SelectPercentile(_score_function(values["score"], context), percentile=values["percentile"])
    return _shifted(selector) if values["score"] == "chi2" else selector


def _univariate_subspace(profile: TaskProfile) -> Subspace:
    score = [Categorical("score", ["f", "chi2"], default="f")] if profile.task_type.is_classification else []
    return Subspace(
        hyperparameters=[
            Float("alpha", (0.01, 0.5), default=0.1),
            *score,
            Categorical("mode", ["fpr", "fdr", "fwe"], default="fpr"),
        ]
    )


def _build_univariate(values: Values, context: BuildContext) -> Any:
    from sklearn.feature_selection import GenericUnivariateSelect

    score = values.get("score", "f")
    selector = GenericUnivariateSelect(_score_function(score, context), mode=values["mode"], param=values["alpha"])
    return _shifted(selector) if score == "chi2" else selector


def _tree_selection_subspace(profile: TaskProfile) -> Subspace:
    is_classification = profile.task_type.is_classification
    criteria = ["gini", "entropy"] if is_classification else ["squared_error", "absolute_error"]
    return Subspace(
        hyperparameters=[
            Categorical("criterion", criteria, default=criteria[0]),
            OrdinalHyperparameter("max_features", [k / 20 for k in range(21)], default_value=0.5),
            Integer("min_samples_split", (2, 20), default=2),
            Integer("min_samples_leaf", (1, 20), default=1),
            _boolean("bootstrap", default=False),
        ]
    )


def _build_tree_selection(values: Values, context: BuildContext) -> Any:
    from sklearn.feature_selection import SelectFromModel

    from cashmere.space.estimators.forests import ExponentExtraTreesClassifier, ExponentExtraTreesRegressor

    is_classification = context.task_type.is_classification
    forest = ExponentExtraTreesClassifier if is_classification else ExponentExtraTreesRegressor
    judge = forest(**values, n_estimators=100, n_jobs=context.n_threads, random_state=context.seed)
    return SelectFromModel(judge, threshold="mean")


def _svm_selection_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Float("tol", (1e-5, 1e-1), log=True, default=1e-4),
            Float("C", C_RANGE, log=True, default=1.0),
        ]
    )


def _build_svm_selection(values: Values, context: BuildContext) -> Any:
    from sklearn.feature_selection import SelectFromModel
    from sklearn.svm import LinearSVC

    judge = LinearSVC(**values, penalty="l1", loss="squared_hinge", dual=False, random_state=context.seed)
    return SelectFromModel(judge, threshold=1e-5)


PREPROCESSORS: tuple[Operator, ...] = (
    NO_OPERATOR,
    Operator(name="cross_features", build=_build_cross, subspace=_cross_subspace, group=("products",)),
    Operator(name="fast_ica", build=_build_ica, subspace=_ica_subspace, group=("decompositions",)),
    Operator(
        name="feature_agglomeration",
        build=_build_agglomeration,
        subspace=_agglomeration_subspace,
        group=("decompositions",),
    ),
    Operator(name="kernel_pca", build=_build_kernel_pca, subspace=_kernel_pca_subspace, group=("kernels",)),
    Operator(
        name="random_kitchen_sinks", build=_build_kitchen_sinks, subspace=_kitchen_sinks_subspace, group=("kernels",)
    ),
    Operator(
        name="lda_decomposer",
        build=_build_lda,
        subspace=_lda_subspace,
        group=("decompositions",),
        tasks=CLASSIFICATION,
    ),
    Operator(name="nystroem", build=_build_nystroem, subspace=_nystroem_subspace, group=("kernels",)),
    Operator(name="pca", build=_build_pca, subspace=_pca_subspace, group=("decompositions",)),
    Operator(name="polynomial", build=_build_polynomial, subspace=_polynomial_subspace, group=("products",)),
    Operator(
        name="random_trees_embedding", build=_build_embedding, subspace=_embedding_subspace, group=("decompositions",)
    ),
    Operator(name="svd", build=_build_svd, subspace=_svd_subspace, group=("decompositions",)),
    Operator(name="select_percentile", build=_build_percentile, subspace=_percentile_subspace, group=("selection",)),
    Operator(name="select_univariate", build=_build_univariate, subspace=_univariate_subspace, group=("selection",)),
    Operator(
        name="select_by_extra_trees",
        build=_build_tree_selection,
        subspace=_tree_selection_subspace,
        group=("selection",),
    ),
    Operator(
        name="select_by_linear_svm",
        build=_build_svm_selection,
        subspace=_svm_selection_subspace,
        group=("selection",),
        tasks=CLASSIFICATION,
    ),
)
"""None and fifteen preprocessors."""
