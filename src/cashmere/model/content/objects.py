"""Visit everything in a loaded archive, and check objects of each type that has a check."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from cashmere.model.content.added_columns import check_arithmetic_features
from cashmere.model.content.boosters import check_lightgbm_estimator
from cashmere.model.content.fault import ContentError
from cashmere.model.content.histograms import check_histogram_boosting
from cashmere.model.content.layers import check_network, check_realmlp
from cashmere.model.content.neighbours import check_neighbours, check_search_tree
from cashmere.model.content.shapes import SHAPES, check_clusters, check_polynomial, check_shapes
from cashmere.model.content.support_vectors import check_coupled_margins, check_support_vectors
from cashmere.model.content.trees import check_forest, check_gradient_boosting, check_tree_estimator, check_trees

Check = Callable[[str, Any], None]

CHECKS: dict[str, Check] = {
    "BaseDecisionTree": check_tree_estimator,
    "BaseForest": check_forest,
    "BaseWeightBoosting": check_forest,
    "BaggingClassifier": check_forest,
    "BaseGradientBoosting": check_gradient_boosting,
    "BaseHistGradientBoosting": check_histogram_boosting,
    "BinaryTree64": check_search_tree,
    "NeighborsBase": check_neighbours,
    "BaseLibSVM": check_support_vectors,
    "CoupledMargins": check_coupled_margins,
    "BaseMultilayerPerceptron": check_network,
    "RealMLP": check_realmlp,
    "FeatureAgglomeration": check_clusters,
    "PolynomialFeatures": check_polynomial,
    "LGBMModel": check_lightgbm_estimator,
    "ArithmeticFeatures": check_arithmetic_features,
    **dict.fromkeys(SHAPES, check_shapes),
}
"""Checks of fitted objects, by the name of their type or of one of its bases."""

_FITTED = {
    "BaseDecisionTree": "tree_",
    "BaseLibSVM": "support_vectors_",
    "CoupledMargins": "estimator_",
    "NeighborsBase": "_fit_X",
    "LGBMModel": "_Booster",
    "BaseHistGradientBoosting": "_predictors",
    "BaseMultilayerPerceptron": "coefs_",
    "RealMLP": "coefs_",
    "ArithmeticFeatures": "combinations_",
    "BaseForest": "estimators_",
    "BaseWeightBoosting": "estimators_",
    "BaggingClassifier": "estimators_",
    "BaseGradientBoosting": "estimators_",
}
"""Attributes without which an object is not fitted, like the parameters that pipelines were made from."""

_LIBRARIES = ("cashmere", "lightgbm", "sklearn")

_LEAVES = (str, bytes, bytearray, int, float, complex, bool, type(None), np.generic, type, ModuleType, FunctionType)


def check_objects(content: Any, where: str = "content") -> None:
    """Visit and check everything that an object holds.

    Parameters
    ----------
    content : object
        As loaded from an archive.
    where : str
        Its name in messages.

    Raises
    ------
    ContentError
        If something is inconsistent; the message names the place.
    """
    waiting: list[tuple[str, Any]] = [(where, content)]
    seen: set[int] = set()
    trees: list[tuple[str, Any]] = []
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, _LEAVES) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            if value.dtype == object:
                waiting.extend((f"{place}[{k}]", each) for k, each in enumerate(value.ravel()))
        elif isinstance(value, dict):
            waiting.extend((f"{place}[{key!r}]", each) for key, each in value.items())
        elif isinstance(value, (list, tuple, set, frozenset)):
            waiting.extend((f"{place}[{k}]", each) for k, each in enumerate(value))
        elif type(value).__name__ == "Tree":
            trees.append((place, value))
        else:
            _check(place, value)
            waiting.extend((f"{place}.{name}", each) for name, each in getattr(value, "__dict__", {}).items())
    check_trees(trees)


def _check(where: str, value: Any) -> None:
    for base in type(value).__mro__:
        check = CHECKS.get(base.__name__)
        if check is None or base.__module__.partition(".")[0] not in _LIBRARIES:
            continue
        needed = "n_features_in_" if check is check_shapes else _FITTED.get(base.__name__)
        fitted = needed is None or getattr(value, needed, None) is not None
        if not fitted:
            return
        name = f"{where} ({type(value).__name__})"
        try:
            check(name, value)
        except ContentError:
            raise
        except Exception as error:  # such as an attribute that is missing or has an unexpected type
            raise ContentError(f"{name} is incomplete ({type(error).__name__}: {str(error)[:200]}).") from error
        return
