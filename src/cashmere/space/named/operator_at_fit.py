"""The preprocessors of ``autosklearn6``, built when they are fitted.

Import this module only where a pipeline is built: it loads scikit-learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning

from cashmere.base.arrays import AnyArray, FloatArray
from cashmere.data.task import TaskType
from cashmere.space.component import BuildContext


class OperatorAtFit(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A preprocessor built when it is fitted, because the width of the matrix depends on the steps before it.

    Parameters
    ----------
    name : str
        Name of the operator in `cashmere.space.named.autosklearn6_operators`.
    values : mapping
        The operator's hyper-parameters.
    n_classes, n_threads, seed : int
        As in `BuildContext`.
    """

    def __init__(self, name: str, values: Mapping[str, Any], n_classes: int, n_threads: int, seed: int) -> None:
        self.name = name
        self.values = values
        self.n_classes = n_classes
        self.n_threads = n_threads
        self.seed = seed

    def fit(self, X: FloatArray, y: AnyArray) -> Self:
        """Build and fit the operator."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: FloatArray, y: AnyArray) -> Any:
        """Build and fit the operator, and return the transformed training rows.

        Raises
        ------
        ValueError
            If the operator would exceed the size limits, or leaves no column.
        """
        from cashmere.space.named.autosklearn6_operators import build_preprocessor  # models predict without it

        context = BuildContext(
            task_type=TaskType.BINARY if self.n_classes == 2 else TaskType.MULTICLASS,
            n_classes=self.n_classes,
            n_rows=X.shape[0],
            n_features=X.shape[1],
            categorical=np.zeros(X.shape[1], dtype=np.bool_),
            n_threads=self.n_threads,
            seed=self.seed,
        )
        self.operator_ = build_preprocessor(self.name, self.values, context)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            # The iteration limits are those of the space, constant columns of a fold get the lowest scores, a
            # selection of nothing is an error below, and divergence shows in the result, which learners reject.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "No features were selected|Features .* are constant", UserWarning)
            result = self.operator_.fit_transform(X, y)
        if result.shape[1] == 0:
            raise ValueError(f"The preprocessor {self.name!r} leaves no column.")
        return result

    def transform(self, X: FloatArray) -> Any:
        """Apply the fitted operator."""
        return self.operator_.transform(X)
