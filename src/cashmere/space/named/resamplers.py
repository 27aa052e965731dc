"""The 21 resamplers of the space ``imbalance``, which change the training rows before a learner is fitted.

They are those of imbalanced-learn, with ranges and groups as in docs/spaces.md#imbalance; all other parameters keep the
library's defaults. imbalanced-learn is imported when rows are resampled, never before.

Small classes: numbers of neighbours are limited by the rows, because the ranges of the paper do not depend on the
table. If the fold has n training rows, m of them in the smallest class:

====================================================================== ===============================
neighbours among                                                       at most
====================================================================== ===============================
rows of the same class (SMOTE and its variants, ADASYN)                m - 1
rows of the smallest class (NearMiss)                                  m
rows of another class (NearMiss, version 3)                            rows of the second smallest class
the smallest class and the seeds (CondensedNearestNeighbour,           m + seeds
OneSidedSelection)
all rows (the ``m_neighbors`` of SMOTE variants, edited neighbours)    n - 1
folds of InstanceHardnessThreshold                                     m
====================================================================== ===============================

Other problems make the trial fail: interpolation in a class with a single row, a result that has lost a class, and
errors of the library, such as SMOTENC without nominal columns, k-means SMOTE without a cluster of enough rows, or
repeated editing that leaves fewer rows than neighbours.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from ConfigSpace import Categorical, Float, Integer
from ConfigSpace.hyperparameters import Hyperparameter

from cashmere.base.arrays import BoolArray, FloatArray, IntArray
from cashmere.data.task import TaskProfile
from cashmere.exceptions import DataError
from cashmere.space.component import CLASSIFICATION, BuildContext, Resample, Resampler, Subspace

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Facts about the rows that a sampler will change.

    Attributes
    ----------
    n_rows : int
        All rows.
    class_counts : (n_classes,) int array
        Rows of each class, ascending and positive.
    nominal : (n_features,) bool array
        Columns whose values must not be mixed.
    seed : int
        Seed for the sampler's randomness.
    """

    n_rows: int
    class_counts: IntArray
    nominal: BoolArray
    seed: int

    @property
    def smallest(self) -> int:
        """Rows of the smallest class."""
        return int(self.class_counts[0])

    def among_all(self, n_neighbors: int) -> int:
        """Return the number of neighbours, at most all other rows."""
        return min(n_neighbors, self.n_rows - 1)

    def in_class(self, n_neighbors: int) -> int:
        """Return the number of neighbours, at most all other rows of the smallest class.

        Raises
        ------
        DataError
            If the smallest class has a single row.
        """
        if self.smallest < 2:
            raise DataError(
                "Resampling by neighbours within a class, or by folds, needs two training rows of every class; the "
                "smallest class has one. Use a resampler that copies or leaves out rows, or give more rows."
            )
        return min(n_neighbors, self.smallest - 1)


SamplerFactory = Callable[[Values, Rows], Any]
"""Makes an unfitted sampler of imbalanced-learn for the rows at hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledRows:
    """A `Resample` function that makes the sampler when it sees the rows, applies it and checks the result.

    Attributes
    ----------
    name : str
        Name of the resampler, for error messages.
    make : callable
        `SamplerFactory`.
    values : mapping
        The resampler's hyper-parameters.
    categorical : (n_features,) bool array
        Columns of category codes.
    seed : int
        Seed for the sampler's randomness.
    """

    name: str
    make: SamplerFactory
    values: Values
    categorical: BoolArray
    seed: int

    def __call__(self, X: FloatArray, y: IntArray) -> tuple[FloatArray, IntArray]:
        """Return the changed rows.

        Parameters
        ----------
        X : (n_rows, n_features) array
            Training rows, without gaps.
        y : (n_rows,) int array
            Their classes, 0 .. n_classes - 1, all of which occur.

        Returns
        -------
        X, y : (n_resampled, n_features) and (n_resampled,) arrays
            Rows of every class.

        Raises
        ------
        DataError
            If a class is too small for the method, or the method removes a whole class.
        """
        from cashmere.space.estimators.standardisation import nominal_columns

        counts = np.bincount(y)
        rows = Rows(
            n_rows=len(y),
            class_counts=np.sort(counts),
            nominal=nominal_columns(X, self.categorical),
            seed=self.seed,
        )
        X_new, y_new = self.make(self.values, rows).fit_resample(X, y)
        lost = np.flatnonzero(np.bincount(y_new, minlength=len(counts)) == 0)
        if len(lost):
            raise DataError(
                f"{self.name} left no training row of {len(lost)} of {len(counts)} classes (the largest of them had "
                f"{counts[lost].max()} rows). Use fewer neighbours, or a resampler that keeps every class."
            )
        return X_new, y_new


# Making samplers ----------------------------------------------------------------------------------------------------


def _smote(values: Values, rows: Rows) -> Any:
    from imblearn.over_sampling import SMOTE

    return SMOTE(k_neighbors=rows.in_class(values.get("k_neighbors", 5)), random_state=rows.seed)


def _smote_enn(values: Values, rows: Rows) -> Any:
    from imblearn.combine import SMOTEENN

    return SMOTEENN(smote=_smote({}, rows), random_state=rows.seed)


def _smote_tomek(values: Values, rows: Rows) -> Any:
    from imblearn.combine import SMOTETomek

    return SMOTETomek(smote=_smote({}, rows), random_state=rows.seed)


def _smotenc(values: Values, rows: Rows) -> Any:
    from imblearn.over_sampling import SMOTENC

    # The paper passes True for tables of numbers, which fails. Here, it stands for the nominal columns; if there are
    # none, or no others, the library raises an error, and the trial fails.
    k_neighbors = rows.in_class(values["k_neighbors"])
    return SMOTENC(np.flatnonzero(rows.nominal).tolist(), k_neighbors=k_neighbors, random_state=rows.seed)


def _borderline_smote(values: Values, rows: Rows) -> Any:
    from imblearn.over_sampling import BorderlineSMOTE

    return BorderlineSMOTE(
        k_neighbors=rows.in_class(values["k_neighbors"]),
        m_neighbors=rows.among_all(values["m_neighbors"]),
        kind=values["kind"],
        random_state=rows.seed,
    )


def _kmeans_smote(values: Values, rows: Rows) -> Any:
    from imblearn.over_sampling import KMeansSMOTE

    return KMeansSMOTE(
        k_neighbors=rows.in_class(values["k_neighbors"]),
        cluster_balance_threshold=values["cluster_balance_threshold"],
        random_state=rows.seed,
    )


def _svm_smote(values: Values, rows: Rows) -> Any:
    from imblearn.over_sampling import SVMSMOTE

    return SVMSMOTE(
        k_neighbors=rows.in_class(values["k_neighbors"]),
        m_neighbors=rows.among_all(values["m_neighbors"]),
        out_step=values["out_step"],
        random_state=rows.seed,
    )


def _random_over_sampler(values: Values, rows: Rows) -> Any:
    from imblearn.over_sampling import RandomOverSampler

    return RandomOverSampler(random_state=rows.seed)


def _adasyn(values: Values, rows: Rows) -> Any:
    from imblearn.over_sampling import ADASYN

    return ADASYN(n_neighbors=rows.in_class(values["n_neighbors"]), random_state=rows.seed)


def _cluster_centroids(values: Values, rows: Rows) -> Any:
    from imblearn.under_sampling import ClusterCentroids
    from sklearn.cluster import KMeans, MiniBatchKMeans

    clustering = {"KMeans": KMeans, "MiniBatchKMeans": MiniBatchKMeans}[values["estimator"]]
    return ClusterCentroids(estimator=clustering(random_state=rows.seed), voting=values["voting"])


def _near_miss(values: Values, rows: Rows) -> Any:
    from imblearn.under_sampling import NearMiss

    return NearMiss(
        version=values["version"],
        n_neighbors=min(values["n_neighbors"], rows.smallest),
        n_neighbors_ver3=min(values["n_neighbors_ver3"], int(rows.class_counts[1])),
    )


def _random_under_sampler(values: Values, rows: Rows) -> Any:
    from imblearn.under_sampling import RandomUnderSampler

    return RandomUnderSampler(replacement=values["replacement"], random_state=rows.seed)


def _tomek_links(values: Values, rows: Rows) -> Any:
    from imblearn.under_sampling import TomekLinks

    return TomekLinks()


def _one_sided_selection(values: Values, rows: Rows) -> Any:
    from imblearn.under_sampling import OneSidedSelection

    return OneSidedSelection(**_condensing(values, rows))


def _condensed_nearest_neighbour(values: Values, rows: Rows) -> Any:
    from imblearn.under_sampling import CondensedNearestNeighbour

    return CondensedNearestNeighbour(**_condensing(values, rows))


def _condensing(values: Values, rows: Rows) -> dict[str, Any]:
    n_seeds = values["n_seeds_S"]
    n_neighbors = min(values["n_neighbors"], rows.smallest + n_seeds)
    return {"n_neighbors": n_neighbors, "n_seeds_S": n_seeds, "random_state": rows.seed}


def _instance_hardness_threshold(values: Values, rows: Rows) -> Any:
    from imblearn.under_sampling import InstanceHardnessThreshold

    rows.in_class(1)  # folds, too, need two rows of every class
    return InstanceHardnessThreshold(
        estimator=_hardness_judge(values["estimator"]), cv=min(values["cv"], rows.smallest), random_state=rows.seed
    )


def _hardness_judge(name: str) -> Any:
    """Return the classifier whose probabilities measure how hard a row is; None is the library's random forest."""
    from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    from cashmere.space.estimators.margins import MarginProbabilities

    if name == "linear-svm":
        return MarginProbabilities(SVC(kernel="linear"))
    judges = {
        "knn": KNeighborsClassifier,
        "decision-tree": DecisionTreeClassifier,
        "adaboost": AdaBoostClassifier,
        "gradient-boosting": GradientBoostingClassifier,
    }
    return None if name == "none" else judges[name]()


def _edited_nearest_neighbours(values: Values, rows: Rows) -> Any:
    from imblearn.under_sampling import EditedNearestNeighbours

    return EditedNearestNeighbours(**_editing(values, rows))


def _repeated_edited_nearest_neighbours(values: Values, rows: Rows) -> Any:
    from imblearn.under_sampling import RepeatedEditedNearestNeighbours

    return RepeatedEditedNearestNeighbours(**_editing(values, rows))


def _all_knn(values: Values, rows: Rows) -> Any:
    from imblearn.under_sampling import AllKNN

    return AllKNN(**_editing(values, rows))


def _neighbourhood_cleaning_rule(values: Values, rows: Rows) -> Any:
    from imblearn.under_sampling import NeighbourhoodCleaningRule

    return NeighbourhoodCleaningRule(**_editing(values, rows))


def _editing(values: Values, rows: Rows) -> dict[str, Any]:
    return {**values, "n_neighbors": rows.among_all(values["n_neighbors"])}


# Hyper-parameters ---------------------------------------------------------------------------------------------------


def _integer(name: str, highest: int, default: int) -> Hyperparameter[Any, Any]:
    return Integer(name, (1, highest), default=default)


def _smote_neighbours() -> Hyperparameter[Any, Any]:
    return _integer("k_neighbors", 10, 5)


def _edited_neighbours() -> list[Hyperparameter[Any, Any]]:
    return [_integer("n_neighbors", 20, 3), Categorical("kind_sel", ["all", "mode"], default="all")]


_HARDNESS_JUDGES = ["knn", "decision-tree", "adaboost", "gradient-boosting", "linear-svm", "none"]

_HYPERPARAMETERS: Mapping[str, list[Hyperparameter[Any, Any]]] = {
    "smote": [_smote_neighbours()],
    "smotenc": [Categorical("categorical_features", [True]), _smote_neighbours()],
    "borderline_smote": [
        _smote_neighbours(),
        _integer("m_neighbors", 10, 10),
        Categorical("kind", ["borderline-1", "borderline-2"], default="borderline-1"),
    ],
    "kmeans_smote": [_integer("k_neighbors", 10, 2), Float("cluster_balance_threshold", (0.01, 1.0), default=0.1)],
    "svm_smote": [_smote_neighbours(), _integer("m_neighbors", 10, 10), Float("out_step", (0.0, 1.0), default=0.5)],
    "adasyn": [_integer("n_neighbors", 10, 5)],
    "cluster_centroids": [
        Categorical("estimator", ["KMeans", "MiniBatchKMeans"], default="KMeans"),
        Categorical("voting", ["hard", "soft"], default="soft"),
    ],
    "near_miss": [
        Categorical("version", [1, 2, 3], default=1),
        _integer("n_neighbors", 20, 3),
        _integer("n_neighbors_ver3", 20, 3),
    ],
    "random_under_sampler": [Categorical("replacement", [True, False], default=False)],
    "one_sided_selection": [_integer("n_neighbors", 20, 1), _integer("n_seeds_S", 20, 1)],
    "instance_hardness_threshold": [
        Categorical("estimator", _HARDNESS_JUDGES, default="none"),
        Integer("cv", (2, 20), default=5),
    ],
    "edited_nearest_neighbours": _edited_neighbours(),
    "repeated_edited_nearest_neighbours": _edited_neighbours(),
    "all_knn": [*_edited_neighbours(), Categorical("allow_minority", [True, False], default=False)],
    "condensed_nearest_neighbour": [_integer("n_neighbors", 50, 1), _integer("n_seeds_S", 50, 1)],
    "neighbourhood_cleaning_rule": [
        _integer("n_neighbors", 20, 3),
        Float("threshold_cleaning", (0.0, 1.0), default=0.5),
    ],
}
"""Ranges of the paper; defaults of the library, except for the threshold of k-means SMOTE, which is "auto" there."""


# The table ----------------------------------------------------------------------------------------------------------


def _pass_through(values: Values, context: BuildContext) -> str:
    return "passthrough"


def _subspace(name: str, profile: TaskProfile) -> Subspace:
    return Subspace(hyperparameters=_HYPERPARAMETERS.get(name, ()))


def _build(name: str, make: SamplerFactory, values: Values, context: BuildContext) -> Resample:
    return SampledRows(name=name, make=make, values=values, categorical=context.categorical, seed=context.seed)


def _resampler(name: str, make: SamplerFactory, *group: str) -> Resampler:
    return Resampler(
        name=name,
        build=functools.partial(_build, name, make),
        subspace=functools.partial(_subspace, name),
        group=group,
        tasks=CLASSIFICATION,
        requires=("imblearn",),
    )


RESAMPLERS: tuple[Resampler, ...] = (
    Resampler(name="none", build=_pass_through, group=("none",), tasks=CLASSIFICATION),
    _resampler("smoteenn", _smote_enn, "combine"),
    _resampler("smotetomek", _smote_tomek, "combine"),
    _resampler("smote", _smote, "over", "smote"),
    _resampler("smotenc", _smotenc, "over", "smote", "mixed"),
    _resampler("borderline_smote", _borderline_smote, "over", "smote", "focused"),
    _resampler("kmeans_smote", _kmeans_smote, "over", "smote", "focused"),
    _resampler("svm_smote", _svm_smote, "over", "smote", "focused"),
    _resampler("random_over_sampler", _random_over_sampler, "over"),
    _resampler("adasyn", _adasyn, "over"),
    _resampler("cluster_centroids", _cluster_centroids, "under", "generated"),
    _resampler("near_miss", _near_miss, "under", "controlled"),
    _resampler("random_under_sampler", _random_under_sampler, "under", "controlled"),
    _resampler("tomek_links", _tomek_links, "under", "cleaning", "links"),
    _resampler("one_sided_selection", _one_sided_selection, "under", "cleaning", "links"),
    _resampler("instance_hardness_threshold", _instance_hardness_threshold, "under", "cleaning"),
    _resampler("edited_nearest_neighbours", _edited_nearest_neighbours, "under", "cleaning", "edited"),
    _resampler(
        "repeated_edited_nearest_neighbours", _repeated_edited_nearest_neighbours, "under", "cleaning", "edited"
    ),
    _resampler("all_knn", _all_knn, "under", "cleaning", "edited"),
    _resampler("condensed_nearest_neighbour", _condensed_nearest_neighbour, "under", "cleaning", "condensed"),
    _resampler("neighbourhood_cleaning_rule", _neighbourhood_cleaning_rule, "under", "cleaning", "condensed"),
)
"""None and twenty resamplers in four branches, in the order of the tree."""
