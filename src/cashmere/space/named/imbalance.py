"""The space ``imbalance``: a resampler, then one of five classifiers (DACOpt's first experiment).

The learners are in this module, the resamplers in `cashmere.space.named.resamplers`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

import numpy as np
from ConfigSpace import Categorical, Float, Integer
from ConfigSpace.hyperparameters import Hyperparameter

from cashmere.data.task import Encoding, TaskProfile
from cashmere.exceptions import IncompatibleParametersError, MissingDependencyError
from cashmere.space.component import CLASSIFICATION, Algorithm, BuildContext, Subspace
from cashmere.space.named.resamplers import RESAMPLERS
from cashmere.space.named.volcano import penalised_logistic_regression
from cashmere.space.space import Space

Values = Mapping[str, Any]

_MAX_ITERATIONS = 10_000
"""Of the support vector machine, some kernels of which never converge on some tables."""

_MAX_FEATURES = {"1": 1, "sqrt": "sqrt", "log2": "log2", "none": None}
_PENALTIES_OF_SOLVERS = {
    "liblinear": ("l1", "l2"),
    "saga": ("l1", "l2", "elasticnet", "none"),
    "sag": ("l2", "none"),
    "newton-cg": ("l2", "none"),
    "lbfgs": ("l2", "none"),
}
_METRICS = {0: "chebyshev", 1: "manhattan", 2: "euclidean"}


def imbalance_space(profile: TaskProfile) -> Space:
    """Return 21 resamplers in four groups and five classifiers: 64 hyper-parameters, both choices included.

    Parameters
    ----------
    profile : TaskProfile
        The facts about the task; a classification without row weights.

    Raises
    ------
    MissingDependencyError
        If imbalanced-learn is not installed. It is needed to fit, not to predict.
    IncompatibleParametersError
        For regression, and for weighted rows, because new rows have no weights.

    Notes
    -----
    As in the paper, every column is a number, texts by their codes. Gaps are filled and columns standardised as learned
    from the training rows of a fold; then these rows are resampled, and the learner is fitted on the result.
    Differences: the paper leaves codes unscaled; `probability` of the support vector machine has no effect here, since
    probabilities always come from its margins (in the paper it costs time and does not change the labels);
    ``categorical_features`` of SMOTENC means the nominal columns of the table; numbers of neighbours are limited by the
    available rows. Settings that the libraries refuse, such as SMOTENC without nominal columns, are failed trials. The
    logistic regression makes the library's 100 iterations.

    References
    ----------
    The first experiment of Nguyen et al. (2022), section IV-A; docs/spaces.md#imbalance.
    """
    if not profile.task_type.is_classification:
        raise IncompatibleParametersError(
            "The space 'imbalance' has classifiers only and cannot be used for regression. Use a space with "
            "regressors: 'default' or 'volcano'.",
            {"space": "imbalance", "task": profile.task_type},
        )
    if profile.has_weights:
        raise IncompatibleParametersError(
            "The space 'imbalance' cannot be used with weights of rows or classes, because resampled rows carry no "
            "weights. Use the space 'default', or leave out the weights.",
            {"space": "imbalance", "has_weights": True},
        )
    if importlib.util.find_spec("imblearn") is None:
        raise MissingDependencyError("imbalanced-learn", "The space 'imbalance'", "imbalance")
    return Space(
        name="imbalance",
        algorithms=IMBALANCE_CLASSIFIERS,
        operators={"resampler": RESAMPLERS},
        reads=Encoding.ORDINAL,
        profile=profile,
    )


def _standardised(learner: Any, context: BuildContext) -> Any:
    from sklearn.pipeline import Pipeline

    from cashmere.space.estimators.standardisation import StandardisedColumns

    return Pipeline([("standardise", StandardisedColumns(context.categorical)), ("learner", learner)])


def _boolean(name: str, *, default: bool) -> Hyperparameter[Any, Any]:
    return Categorical(name, [True, False], default=default)


def _svm_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Float("C", (0.03125, 200.0), default=1.0),
            Categorical("kernel", ["linear", "rbf", "poly", "sigmoid"], default="rbf"),
            Integer("degree", (2, 5), default=3),
            Categorical("gamma", ["auto", "scale", "value"], default="scale"),
            Float("gamma_value", (3.1e-5, 8.0), default=0.1),
            Float("coef0", (-1.0, 1.0), default=0.0),
            _boolean("shrinking", default=True),
            _boolean("probability", default=False),
            Float("tol", (1e-5, 1e-1), default=1e-3),
        ]
    )


def _build_svm(values: Values, context: BuildContext) -> Any:
    from sklearn.svm import SVC

    from cashmere.space.estimators.margins import MarginProbabilities

    # `probability` is not passed on: it would cross-validate on resampled rows, and scikit-learn is removing it.
    kept = {name: values[name] for name in ("C", "kernel", "degree", "coef0", "shrinking", "tol")}
    gamma = values["gamma_value"] if values["gamma"] == "value" else values["gamma"]
    learner = SVC(**kept, gamma=gamma, max_iter=_MAX_ITERATIONS, random_state=context.seed)
    return _standardised(MarginProbabilities(learner), context)


def _split_subspace() -> list[Hyperparameter[Any, Any]]:
    return [Integer("min_samples_split", (2, 20), default=2), Integer("min_samples_leaf", (1, 20), default=1)]


def _forest_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Integer("n_estimators", (1, 150), default=100),
            Categorical("criterion", ["gini", "entropy"], default="gini"),
            Categorical("max_features", list(_MAX_FEATURES), default="sqrt"),
            *_split_subspace(),
            _boolean("bootstrap", default=True),
            Categorical("class_weight", ["balanced", "balanced_subsample", "none"], default="none"),
        ]
    )


def _build_forest(values: Values, context: BuildContext) -> Any:
    from cashmere.space.estimators.forests import OrderedForestClassifier

    class_weight = None if values["class_weight"] == "none" else values["class_weight"]
    own = {"max_features": _MAX_FEATURES[values["max_features"]], "class_weight": class_weight}
    learner = OrderedForestClassifier(**{**values, **own}, n_jobs=context.n_threads, random_state=context.seed)
    return _standardised(learner, context)


def _knn_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Integer("n_neighbors", (1, 51), default=5),
            Categorical("weights", ["uniform", "distance"], default="uniform"),
            Categorical("algorithm", ["auto", "ball_tree", "kd_tree", "brute"], default="auto"),
            Integer("p", (0, 20), default=2),
        ]
    )


def _build_knn(values: Values, context: BuildContext) -> Any:
    from cashmere.space.estimators.neighbours import LimitedNeighboursClassifier

    p = values["p"]
    distance = {"metric": _METRICS[p]} if p in _METRICS else {"metric": "minkowski", "p": p}
    kept = {name: values[name] for name in ("n_neighbors", "weights", "algorithm")}
    return _standardised(LimitedNeighboursClassifier(**kept, **distance, n_jobs=context.n_threads), context)


def _tree_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Categorical("criterion", ["gini", "entropy"], default="gini"),
            Categorical("max_features", list(_MAX_FEATURES), default="none"),
            Integer("max_depth", (2, 20), default=20),
            *_split_subspace(),
        ]
    )


def _build_tree(values: Values, context: BuildContext) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    max_features = _MAX_FEATURES[values["max_features"]]
    learner = DecisionTreeClassifier(**{**values, "max_features": max_features}, random_state=context.seed)
    return _standardised(learner, context)


def _logistic_subspace(profile: TaskProfile) -> Subspace:
    pairs = [f"{penalty}+{solver}" for solver, penalties in _PENALTIES_OF_SOLVERS.items() for penalty in penalties]
    return Subspace(
        hyperparameters=[
            Float("C", (0.03125, 100.0), default=1.0),
            Categorical("penalty_solver", pairs, default="l2+lbfgs"),
            Float("tol", (1e-5, 1e-1), default=1e-4),
            Float("l1_ratio", (1e-9, 1.0), default=0.5),
        ]
    )


def _build_logistic(values: Values, context: BuildContext) -> Any:
    from sklearn.multiclass import OneVsRestClassifier

    penalty, solver = values["penalty_solver"].split("+")
    learner = penalised_logistic_regression(
        # No penalty is the limit of a large C, where the ratio has no meaning.
        C=np.inf if penalty == "none" else values["C"],
        l1_ratio={"l1": 1.0, "elasticnet": values["l1_ratio"]}.get(penalty, 0.0),
        solver=solver,
        tol=values["tol"],
        random_state=context.seed,
    )
    is_one_against_rest = solver == "liblinear" and context.n_classes > 2
    return _standardised(OneVsRestClassifier(learner) if is_one_against_rest else learner, context)


def _classifier(name: str, build: Any, subspace: Any, *group: str) -> Algorithm:
    return Algorithm(name=name, build=build, subspace=subspace, group=group, tasks=CLASSIFICATION)


IMBALANCE_CLASSIFIERS: tuple[Algorithm, ...] = (
    _classifier("svm", _build_svm, _svm_subspace),
    _classifier("random_forest", _build_forest, _forest_subspace),
    _classifier("knn", _build_knn, _knn_subspace),
    _classifier("decision_tree", _build_tree, _tree_subspace),
    _classifier("logistic_regression", _build_logistic, _logistic_subspace),
)
"""Five classifiers, in the order of Nguyen et al. (2022), section IV-A; no groups."""
