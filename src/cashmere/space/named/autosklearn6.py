"""The six-operator space of the second experiment of DACOpt, that of auto-sklearn 0.13.

Pipelines read the prepared form `Encoding.ORDINAL`, which keeps categories as codes and missing values as missing, so
that the operators before the rescaling have an effect: nothing is encoded or imputed before them.

=============  =====================================================================================================
step           choices
=============  =====================================================================================================
coalescence    minority_coalescer, no_coalescence; only for tables with categories
encoding       one_hot, ordinal, no_encoding; only for tables with categories
imputation     mean, median, most_frequent of the numbers
rescaling      six and none, of the numbers only, as in auto-sklearn
balancing      none, weighting of the classes in the learner
preprocessor   twelve and none
algorithm      sixteen classifiers
=============  =====================================================================================================

Fixed, because auto-sklearn offers no choice, or the preparation has already decided: missing categories become a
separate level (its "constant" imputation of categories); columns with two levels, booleans and dates are already
numbers, and are imputed and rescaled as such; texts arrive as components; no column is dropped for lack of variance.

Differences from auto-sklearn:

- Sparse tables do not occur, so the densifier and the truncated SVD are not offered.
- Parameters without effect are left out: ``algorithm`` of AdaBoost (scikit-learn now has only SAMME) and ``bootstrap``
  of the random trees embedding (no such argument).
- ``epsilon`` of the stochastic gradient descent is kept, although the loss for which it is active does not use it.
- A linear SVM with hinge loss is solved in the dual, the only possible way; l1 with hinge loss remains forbidden.
- ``alpha`` of select_rates is a share of the columns if the score is the mutual information, which has no p-values
  (auto-sklearn reads it as a percentage there, and keeps next to nothing).
- Random features and samples of kernels are cut to `cashmere.space.component.MAX_COLUMNS`; a polynomial that would make
  more columns takes random ones only.
- Weighting is forbidden for learners that cannot use it (neighbours, discriminants); naive Bayes and the network take
  row weights, whereas auto-sklearn ignores the choice.
- Also forbidden: a random trees embedding, which is sparse, before learners of dense matrices. auto-sklearn derives
  the same from its lists of properties.
"""

from __future__ import annotations

import dataclasses
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
)
from ConfigSpace.hyperparameters import Hyperparameter

from cashmere.data.task import Encoding, TaskProfile
from cashmere.exceptions import IncompatibleParametersError
from cashmere.space.component import CLASSIFICATION, Algorithm, BuildContext, Operator, Subspace
from cashmere.space.named.autosklearn6_operators import (
    BALANCING,
    COALESCENCE,
    ENCODINGS,
    IMPUTERS,
    RESCALERS_OF_NUMBERS,
)
from cashmere.space.named.autosklearn6_preprocessors import PREPROCESSORS_AT_FIT
from cashmere.space.named.operators import C_RANGE
from cashmere.space.named.volcano import ADABOOST, EXTRA_TREES, KNN, LDA, LIBLINEAR_SVC, LIBSVM_SVC, QDA, RANDOM_FOREST
from cashmere.space.space import ALGORITHM, Space

Values = Mapping[str, Any]

MAX_ITERATIONS = 1024
"""Passes of linear learners that see the rows one by one: where auto-sklearn's doubling ends."""

MAX_ROUNDS = 512
"""Rounds of boosting and epochs of networks: where auto-sklearn's doubling ends."""


def _boolean(name: str, *, default: bool) -> Hyperparameter[Any, Any]:
    return Categorical(name, [True, False], default=default)


def _tolerance() -> Hyperparameter[Any, Any]:
    return Float("tol", (1e-5, 1e-1), log=True, default=1e-4)


# Trees ---------------------------------------------------------------------------------------------------------------


def _adaboost_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Integer("n_estimators", (50, 500), default=50),
            Float("learning_rate", (0.01, 2.0), log=True, default=0.1),
            Integer("max_depth", (1, 10), default=1),
        ]
    )


def _decision_tree_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Categorical("criterion", ["gini", "entropy"], default="gini"),
            Float("max_depth_factor", (0.0, 2.0), default=0.5),
            Integer("min_samples_split", (2, 20), default=2),
            Integer("min_samples_leaf", (1, 20), default=1),
        ]
    )


def _build_decision_tree(values: Values, context: BuildContext) -> Any:
    from cashmere.space.estimators.autosklearn6 import RelativeDepthTree

    settings = {**values, "max_depth": values["max_depth_factor"]}
    del settings["max_depth_factor"]
    return RelativeDepthTree(**settings, random_state=context.seed)


def _gradient_boosting_subspace(profile: TaskProfile) -> Subspace:
    early_stop = Categorical("early_stop", ["off", "valid", "train"], default="off")
    n_iter_no_change = Integer("n_iter_no_change", (1, 20), default=10)
    validation_fraction = Float("validation_fraction", (0.01, 0.4), default=0.1)
    return Subspace(
        hyperparameters=[
            Float("learning_rate", (0.01, 1.0), log=True, default=0.1),
            Integer("min_samples_leaf", (1, 200), log=True, default=20),
            Integer("max_leaf_nodes", (3, 2047), log=True, default=31),
            Float("l2_regularization", (1e-10, 1.0), log=True, default=1e-10),
            early_stop,
            n_iter_no_change,
            validation_fraction,
        ],
        conditions=[
            InCondition(n_iter_no_change, early_stop, ["valid", "train"]),
            EqualsCondition(validation_fraction, early_stop, "valid"),
        ],
    )


def _build_gradient_boosting(values: Values, context: BuildContext) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # None makes early stopping watch the training loss; if it is off, neither number has an effect.
    settings = {"n_iter_no_change": 10, "validation_fraction": None, **values}
    stops = settings.pop("early_stop") != "off"
    return HistGradientBoostingClassifier(
        **settings, early_stopping=stops, max_iter=MAX_ROUNDS, random_state=context.seed
    )


# Linear models -------------------------------------------------------------------------------------------------------


def _liblinear_subspace(profile: TaskProfile) -> Subspace:
    penalty = Categorical("penalty", ["l2", "l1"], default="l2")
    loss = Categorical("loss", ["squared_hinge", "hinge"], default="squared_hinge")
    return Subspace(
        hyperparameters=[penalty, loss, _tolerance(), Float("C", C_RANGE, log=True, default=1.0)],
        forbidden=[ForbiddenAndConjunction(ForbiddenEqualsClause(penalty, "l1"), ForbiddenEqualsClause(loss, "hinge"))],
    )


def _build_liblinear(values: Values, context: BuildContext) -> Any:
    return LIBLINEAR_SVC.build({**values, "dual": values["loss"] == "hinge"}, context)


def _sgd_subspace(profile: TaskProfile) -> Subspace:
    loss = Categorical(
        "loss", ["log_loss", "hinge", "modified_huber", "squared_hinge", "perceptron"], default="log_loss"
    )
    penalty = Categorical("penalty", ["l2", "l1", "elasticnet"], default="l2")
    learning_rate = Categorical("learning_rate", ["invscaling", "optimal", "constant"], default="invscaling")
    l1_ratio = Float("l1_ratio", (1e-9, 1.0), log=True, default=0.15)
    epsilon = Float("epsilon", (1e-5, 1e-1), log=True, default=1e-4)
    eta0 = Float("eta0", (1e-7, 1e-1), log=True, default=0.01)
    power_t = Float("power_t", (1e-5, 1.0), default=0.5)
    return Subspace(
        hyperparameters=[
            loss,
            penalty,
            learning_rate,
            Float("alpha", (1e-7, 1e-1), log=True, default=1e-4),
            l1_ratio,
            _tolerance(),
            epsilon,
            eta0,
            power_t,
            _boolean("average", default=False),
        ],
        conditions=[
            EqualsCondition(l1_ratio, penalty, "elasticnet"),
            EqualsCondition(epsilon, loss, "modified_huber"),
            InCondition(eta0, learning_rate, ["invscaling", "constant"]),
            EqualsCondition(power_t, learning_rate, "invscaling"),
        ],
    )


def _build_sgd(values: Values, context: BuildContext) -> Any:
    from sklearn.linear_model import SGDClassifier

    from cashmere.space.estimators.margins import MarginProbabilities

    learner = SGDClassifier(**values, max_iter=MAX_ITERATIONS, random_state=context.seed)
    return learner if values["loss"] in ("log_loss", "modified_huber") else MarginProbabilities(learner)


def _passive_aggressive_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Float("C", (1e-5, 10.0), log=True, default=1.0),
            Categorical("loss", ["hinge", "squared_hinge"], default="hinge"),
            _tolerance(),
            _boolean("average", default=False),
        ]
    )


def _build_passive_aggressive(values: Values, context: BuildContext) -> Any:
    from cashmere.space.estimators.margins import MarginProbabilities

    return MarginProbabilities(_passive_aggressive(values, max_iter=MAX_ITERATIONS, random_state=context.seed))


def _passive_aggressive(values: Values, **settings: Any) -> Any:
    """Return the learner for every supported scikit-learn: from 1.8 on, it is a learning rate of another class."""
    import sklearn
    from sklearn.linear_model import SGDClassifier

    if tuple(int(part) for part in sklearn.__version__.split(".")[:2]) < (1, 8):
        from sklearn.linear_model import PassiveAggressiveClassifier

        return PassiveAggressiveClassifier(**values, **settings)
    rate = "pa1" if values["loss"] == "hinge" else "pa2"
    others = {"tol": values["tol"], "average": values["average"], **settings}
    return SGDClassifier(loss="hinge", penalty=None, learning_rate=rate, eta0=values["C"], **others)


# Neighbours, networks ------------------------------------------------------------------------------------------------


def _knn_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Integer("n_neighbors", (1, 100), log=True, default=1),
            Categorical("weights", ["uniform", "distance"], default="uniform"),
            Integer("p", (1, 2), default=2),
        ]
    )


def _mlp_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[
            Integer("hidden_layer_depth", (1, 3), default=1),
            Integer("num_nodes_per_layer", (16, 264), log=True, default=32),
            Categorical("activation", ["relu", "tanh"], default="relu"),
            Float("alpha", (1e-7, 1e-1), log=True, default=1e-4),
            Float("learning_rate_init", (1e-4, 0.5), log=True, default=1e-3),
            Categorical("early_stopping", ["valid", "train"], default="valid"),
        ]
    )


def _build_mlp(values: Values, context: BuildContext) -> Any:
    from cashmere.space.estimators.networks import EarlyStoppedMLPClassifier

    return EarlyStoppedMLPClassifier(
        hidden_layer_sizes=(values["num_nodes_per_layer"],) * values["hidden_layer_depth"],
        activation=values["activation"],
        alpha=values["alpha"],
        learning_rate_init=values["learning_rate_init"],
        early_stopping=values["early_stopping"] == "valid",
        n_iter_no_change=32,
        max_iter=MAX_ROUNDS,
        random_state=context.seed,
    )


# Densities -----------------------------------------------------------------------------------------------------------


def _lda_subspace(profile: TaskProfile) -> Subspace:
    shrinkage = Categorical("shrinkage", ["none", "auto", "manual"], default="none")
    factor = Float("shrinkage_factor", (0.0, 1.0), default=0.5)
    return Subspace(
        hyperparameters=[shrinkage, factor, _tolerance()],
        conditions=[EqualsCondition(factor, shrinkage, "manual")],
    )


def _counts_subspace(profile: TaskProfile) -> Subspace:
    return Subspace(
        hyperparameters=[Float("alpha", (1e-2, 100.0), log=True, default=1.0), _boolean("fit_prior", default=True)]
    )


def _build_gaussian_nb(values: Values, context: BuildContext) -> Any:
    from sklearn.naive_bayes import GaussianNB

    return _in_double_precision(GaussianNB())


def _build_bernoulli_nb(values: Values, context: BuildContext) -> Any:
    from sklearn.naive_bayes import BernoulliNB

    return _in_double_precision(BernoulliNB(**values))


def _build_multinomial_nb(values: Values, context: BuildContext) -> Any:
    from sklearn.naive_bayes import MultinomialNB

    from cashmere.space.estimators.autosklearn6 import NegativeClipper

    return _in_double_precision(MultinomialNB(**values), ("clipper", NegativeClipper()))


def _in_double_precision(model: Any, *steps: tuple[str, Any]) -> Any:
    from sklearn.pipeline import Pipeline

    from cashmere.space.estimators.autosklearn6 import DoublePrecision

    return Pipeline([*steps, ("precision", DoublePrecision()), ("model", model)])


# The space -----------------------------------------------------------------------------------------------------------


def _of_volcano(algorithm: Algorithm, *group: str, **changes: Any) -> Algorithm:
    return dataclasses.replace(algorithm, group=group, tasks=CLASSIFICATION, **changes)


def _classifier(name: str, build: Any, subspace: Any, *group: str, accepts_weights: bool = True) -> Algorithm:
    return Algorithm(
        name=name, build=build, subspace=subspace, group=group, tasks=CLASSIFICATION, accepts_weights=accepts_weights
    )


AUTOSKLEARN6_CLASSIFIERS: tuple[Algorithm, ...] = (
    _of_volcano(RANDOM_FOREST, "trees", "forest"),
    _of_volcano(EXTRA_TREES, "trees", "others"),
    _classifier("decision_tree", _build_decision_tree, _decision_tree_subspace, "trees", "others"),
    _classifier("gradient_boosting", _build_gradient_boosting, _gradient_boosting_subspace, "boosting"),
    _of_volcano(ADABOOST, "boosting", subspace=_adaboost_subspace),
    _of_volcano(LIBSVM_SVC, "kernels, neighbours, networks"),
    _of_volcano(KNN, "kernels, neighbours, networks", name="k_nearest_neighbors", subspace=_knn_subspace),
    _classifier("mlp", _build_mlp, _mlp_subspace, "kernels, neighbours, networks"),
    _of_volcano(LIBLINEAR_SVC, "linear", subspace=_liblinear_subspace, build=_build_liblinear),
    _classifier("sgd", _build_sgd, _sgd_subspace, "linear"),
    _classifier(
        "passive_aggressive",
        _build_passive_aggressive,
        _passive_aggressive_subspace,
        "linear",
        "passive-aggressive",
        accepts_weights=False,
    ),
    _of_volcano(LDA, "densities", "discriminants", subspace=_lda_subspace),
    _of_volcano(QDA, "densities", "discriminants"),
    Algorithm(name="gaussian_nb", build=_build_gaussian_nb, group=("densities", "naive Bayes"), tasks=CLASSIFICATION),
    _classifier("bernoulli_nb", _build_bernoulli_nb, _counts_subspace, "densities", "naive Bayes"),
    _classifier("multinomial_nb", _build_multinomial_nb, _counts_subspace, "densities", "naive Bayes"),
)
"""Sixteen classifiers, strong and cheap ones first; group paths: docs/papers/dacopt.md#group-trees."""

NON_LINEAR = (
    "adaboost",
    "decision_tree",
    "extra_trees",
    "gaussian_nb",
    "gradient_boosting",
    "k_nearest_neighbors",
    "libsvm_svc",
    "mlp",
    "random_forest",
)
"""Classifiers that do not need a map into the feature space of a kernel."""

FORBIDDEN: tuple[Mapping[str, tuple[str, ...]], ...] = (
    {"preprocessor": ("kernel_pca", "random_kitchen_sinks", "nystroem"), ALGORITHM: NON_LINEAR},
    {
        "preprocessor": ("random_kitchen_sinks", "pca", "fast_ica", "kernel_pca", "nystroem"),
        ALGORITHM: ("multinomial_nb",),
    },
    {"preprocessor": ("random_trees_embedding",), ALGORITHM: ("gaussian_nb", "gradient_boosting", "lda", "qda")},
    {"balancing": ("weighting",), ALGORITHM: ("k_nearest_neighbors", "lda", "qda")},
)
"""Two clauses of auto-sklearn and two added here."""


def autosklearn6_space(profile: TaskProfile) -> Space:
    """Return the space of six operators and sixteen classifiers of auto-sklearn 0.13.

    Raises
    ------
    IncompatibleParametersError
        For regression, which the space does not cover.

    References
    ----------
    Feurer et al. (2015), Efficient and Robust Automated Machine Learning, NeurIPS; the second experiment of Nguyen et
    al. (2022), section IV-B; docs/spaces.md#autosklearn6.
    """
    if not profile.task_type.is_classification:
        raise IncompatibleParametersError(
            "The space 'autosklearn6' has classifiers only and cannot be used for regression. Use a space with "
            "regressors: 'default' or 'volcano'.",
            {"space": "autosklearn6", "task": profile.task_type},
        )
    of_categories: dict[str, tuple[Operator, ...]] = {"coalescence": COALESCENCE, "encoding": ENCODINGS}
    operators: dict[str, tuple[Operator, ...]] = {
        **(of_categories if profile.has_categories else {}),
        "imputation": IMPUTERS,
        "rescaling": RESCALERS_OF_NUMBERS,
        "balancing": BALANCING,
        "preprocessor": PREPROCESSORS_AT_FIT,
    }
    return Space(
        name="autosklearn6",
        algorithms=AUTOSKLEARN6_CLASSIFIERS,
        operators=operators,
        profile=profile,
        reads=Encoding.ORDINAL,
        forbidden=FORBIDDEN,
    )
