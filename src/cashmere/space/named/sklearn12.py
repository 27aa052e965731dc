"""Twelve classifiers of scikit-learn with few hyper-parameters each; their ranges: docs/spaces.md#sklearn12."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ConfigSpace import Categorical, Float, Integer

from cashmere.data.task import TaskProfile
from cashmere.space.component import CLASSIFICATION, Algorithm, BuildContext, Subspace
from cashmere.space.named.volcano import penalised_logistic_regression

Values = Mapping[str, Any]


def _adaboost_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Integer("n_estimators", (10, 500), default=50),
            Float("learning_rate", (0.01, 2.0), log=True, default=1.0),
        ]
    )


def _build_adaboost(values: Values, context: BuildContext) -> Any:
    from sklearn.ensemble import AdaBoostClassifier

    return AdaBoostClassifier(**values, random_state=context.seed)


def _bagging_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Integer("n_estimators", (5, 100), default=10),
            Float("max_samples", (0.1, 1.0), default=1.0),
            Float("max_features", (0.1, 1.0), default=1.0),
        ]
    )


def _build_bagging(values: Values, context: BuildContext) -> Any:
    from sklearn.ensemble import BaggingClassifier

    n_drawn = max(1, int(values["max_samples"] * context.n_rows))  # the same as the share, which may cause a warning
    return BaggingClassifier(**{**values, "max_samples": n_drawn}, random_state=context.seed)


def _tree_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Integer("max_depth", (1, 20), default=20),
            Integer("min_samples_split", (2, 20), default=2),
            Integer("min_samples_leaf", (1, 20), default=1),
        ]
    )


def _build_decision_tree(values: Values, context: BuildContext) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(**values, random_state=context.seed)


def _build_extra_tree(values: Values, context: BuildContext) -> Any:
    from sklearn.tree import ExtraTreeClassifier

    return ExtraTreeClassifier(**values, random_state=context.seed)


def _gaussian_nb_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(hyperparameters=[Float("var_smoothing", (1e-12, 1.0), log=True, default=1e-9)])


def _build_gaussian_nb(values: Values, context: BuildContext) -> Any:
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB(**values)


def _gradient_boosting_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Integer("n_estimators", (10, 300), default=100),
            Float("learning_rate", (0.01, 1.0), log=True, default=0.1),
            Integer("max_depth", (1, 8), default=3),
        ]
    )


def _build_gradient_boosting(values: Values, context: BuildContext) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(**values, random_state=context.seed)


def _knn_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Integer("n_neighbors", (1, 50), default=5),
            Categorical("weights", ["uniform", "distance"], default="uniform"),
        ]
    )


def _build_knn(values: Values, context: BuildContext) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    n_neighbors = min(values["n_neighbors"], context.n_rows)
    return KNeighborsClassifier(n_neighbors=n_neighbors, weights=values["weights"], n_jobs=context.n_threads)


def _logistic_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[Float("C", (1e-4, 1e4), log=True, default=1.0), Float("l1_ratio", (0.0, 1.0), default=0.0)]
    )


def _build_logistic(values: Values, context: BuildContext) -> Any:
    return penalised_logistic_regression(**values, solver="saga", max_iter=1000, random_state=context.seed)


def _mlp_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Integer("hidden_units", (8, 256), default=100),
            Float("alpha", (1e-6, 1.0), log=True, default=1e-4),
            Float("learning_rate_init", (1e-4, 1e-1), log=True, default=1e-3),
        ]
    )


def _build_mlp(values: Values, context: BuildContext) -> Any:
    from cashmere.space.estimators.networks import EarlyStoppedMLPClassifier

    return EarlyStoppedMLPClassifier(
        hidden_layer_sizes=(values["hidden_units"],),
        alpha=values["alpha"],
        learning_rate_init=values["learning_rate_init"],
        random_state=context.seed,
    )


def _qda_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(hyperparameters=[Float("reg_param", (0.0, 1.0), default=0.01)])


def _build_qda(values: Values, context: BuildContext) -> Any:
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

    return QuadraticDiscriminantAnalysis(**values)


def _random_forest_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Integer("n_estimators", (10, 300), default=100),
            Integer("max_depth", (2, 20), default=20),
            Float("max_features", (0.1, 1.0), default=0.3),
            Integer("min_samples_leaf", (1, 20), default=1),
        ]
    )


def _build_random_forest(values: Values, context: BuildContext) -> Any:
    from cashmere.space.estimators.forests import OrderedForestClassifier

    return OrderedForestClassifier(**values, n_jobs=context.n_threads, random_state=context.seed)


def _svc_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Float("C", (1e-3, 1e3), log=True, default=1.0),
            Float("gamma", (1e-4, 10.0), log=True, default=0.1),
        ]
    )


def _build_svc(values: Values, context: BuildContext) -> Any:
    from sklearn.svm import SVC

    from cashmere.space.estimators.margins import MarginProbabilities

    return MarginProbabilities(SVC(**values, random_state=context.seed))


def _classifier(name: str, build: Any, subspace: Any, *group: str, accepts_weights: bool = True) -> Algorithm:
    return Algorithm(
        name=name, build=build, subspace=subspace, group=group, tasks=CLASSIFICATION, accepts_weights=accepts_weights
    )


SKLEARN12_CLASSIFIERS: tuple[Algorithm, ...] = (
    _classifier("adaboost", _build_adaboost, _adaboost_subspace, "trees", "boosting"),
    _classifier("bagging", _build_bagging, _bagging_subspace, "trees", "forests"),
    _classifier("decision_tree", _build_decision_tree, _tree_subspace, "trees", "single_trees"),
    _classifier("extra_tree", _build_extra_tree, _tree_subspace, "trees", "single_trees"),
    _classifier("gaussian_nb", _build_gaussian_nb, _gaussian_nb_subspace, "discriminants"),
    _classifier("gradient_boosting", _build_gradient_boosting, _gradient_boosting_subspace, "trees", "boosting"),
    _classifier("knn", _build_knn, _knn_subspace, "neighbours", accepts_weights=False),
    _classifier("logistic_regression", _build_logistic, _logistic_subspace, "linear"),
    _classifier("mlp", _build_mlp, _mlp_subspace, "neural"),
    _classifier("qda", _build_qda, _qda_subspace, "discriminants", accepts_weights=False),
    _classifier("random_forest", _build_random_forest, _random_forest_subspace, "trees", "forests"),
    _classifier("svc", _build_svc, _svc_subspace, "kernels"),
)
"""The twelve, in the order of Ishikawa et al. (2025), table 1."""
