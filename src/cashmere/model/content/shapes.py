"""Shapes of the arrays in estimators whose predictions are sums and products of arrays.

Wrong shapes cannot crash numpy, but they can make a prediction fail, or broadcast to something meaningless.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cashmere.model.content.fault import array, count, indices, require

SHAPES: dict[str, str] = {
    "StandardScaler": "mean_ F?, var_ F?, scale_ F?",
    "MinMaxScaler": "min_ F, scale_ F, data_min_ F~, data_max_ F~, data_range_ F~",
    "RobustScaler": "center_ F?~, scale_ F?~",
    "PowerTransformer": "lambdas_ F~",
    "QuantileTransformer": "quantiles_ q F~, references_ q",
    "PiecewiseLinearColumns": "edges_ e F~",
    "OutlierClipper": "least_ F, most_ F",
    "StandardisedColumns": "filling_ F, mean_ F, scale_ F",
    "SimpleImputer": "statistics_ F~",
    "VarianceThreshold": "variances_ F~",
    "GenericUnivariateSelect": "scores_ F~, pvalues_ F?~",
    "SelectPercentile": "scores_ F~, pvalues_ F?~",
    "PCA": "components_ c F, mean_ F, explained_variance_ c",
    "TruncatedSVD": "components_ c F",
    "FastICA": "components_ c F, mean_ F?",
    "KernelPCA": "X_fit_ n F, eigenvectors_ n c, eigenvalues_ c",
    "KernelCenterer": "K_fit_rows_ F",
    "Nystroem": "components_ c F, normalization_ c c",
    "RBFSampler": "random_weights_ F c, random_offset_ c",
    "LinearDiscriminantAnalysis": "coef_ D F, intercept_ D, xbar_ F?, scalings_ F c?, priors_ K",
    "QuadraticDiscriminantAnalysis": "means_ K F, priors_ K",
    "GaussianNB": "theta_ K F, var_ K F, class_prior_ K",
    "BernoulliNB": "feature_log_prob_ K F, class_log_prior_ K",
    "MultinomialNB": "feature_log_prob_ K F, class_log_prior_ K",
    "LogisticRegression": "coef_ D F, intercept_ D",
    "SGDClassifier": "coef_ D F, intercept_ D",
    "LinearSVC": "coef_ D F, intercept_ D",
    "LinearSVR": "coef_ F, intercept_ 1",
    "Ridge": "coef_ F",
    "Lasso": "coef_ F",
    "DummyClassifier": "class_prior_ K",
    "DummyRegressor": "constant_ 1 1",
}
"""Arrays of each type, with their shapes. F: columns that it reads; K: classes; D: columns of a decision, 1 for two
classes; a lower-case letter: any length, the same in all arrays of an object; ``?``: may be absent; ``~``: may hold NaN
and infinities."""


def check_shapes(where: str, estimator: Any) -> None:
    """Check the arrays of an estimator in `SHAPES`."""
    lengths: dict[str, int] = {"1": 1}
    if hasattr(estimator, "n_features_in_"):
        lengths["F"] = count(f"{where}.n_features_in_", estimator.n_features_in_)
    if hasattr(estimator, "classes_"):
        lengths["K"] = len(array(f"{where}.classes_", estimator.classes_, (-1,), kinds="iuf"))
        lengths["D"] = lengths["K"] if lengths["K"] > 2 else 1
    kind = next(base.__name__ for base in type(estimator).__mro__ if base.__name__ in SHAPES)
    for described in SHAPES[kind].split(", "):
        name, *letters = described.rstrip("?~").split()
        place, value = f"{where}.{name}", getattr(estimator, name, None)
        if value is None and "?" in described:
            continue
        found = array(place, value, [lengths.get(letter, -1) for letter in letters], finite=not described.endswith("~"))
        for letter, length in zip(letters, found.shape, strict=True):
            same = lengths.setdefault(letter, length) == length
            require(same, place, f"has the shape {found.shape}, which does not fit the other arrays.")
    intercept = getattr(estimator, "intercept_", 0.0)
    require(np.isfinite(intercept).all(), f"{where}.intercept_", "is not finite.")


def check_clusters(where: str, model: Any) -> None:
    """Check `FeatureAgglomeration`: every column belongs to one of the clusters."""
    n_clusters = count(f"{where}.n_clusters_", model.n_clusters_)
    n_features = count(f"{where}.n_features_in_", model.n_features_in_)
    require(n_clusters <= n_features, where, f"has {n_clusters} clusters of {n_features} columns.")
    indices(f"{where}.labels_", model.labels_, n_clusters, (n_features,))


def check_polynomial(where: str, model: Any) -> None:
    """Check `PolynomialFeatures`: the number of products fits its degree."""
    n_features = count(f"{where}.n_features_in_", model.n_features_in_)
    least, most = model._min_degree, model._max_degree
    require(0 <= count(where, least, 0) <= count(where, most) <= _MOST_DEGREE, where, f"has the degree {most}.")
    expected = model._num_combinations(
        n_features=n_features,
        min_degree=least,
        max_degree=most,
        interaction_only=bool(model.interaction_only),
        include_bias=bool(model.include_bias),
    )
    require(model.n_output_features_ == expected, where, f"makes {model.n_output_features_} columns, not {expected}.")
    require(model._n_out_full >= expected, where, "makes more columns than it has room for.")


_MOST_DEGREE = 5
