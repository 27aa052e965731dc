"""Predict many rows with hundreds of trees of a booster: some at a time, and with XGBoost without categorical splits.

LightGBM takes one row at a time through all its trees, XGBoost 64 rows. Hundreds of trees do not fit into the cache of
a core, and are read from memory again and again. Some trees at a time, with all rows, do fit
(docs/benchmarks.md#predicting-many-rows).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cashmere.base.arrays import FloatArray
from cashmere.model.category_indicators import CategoryIndicators, without_categories
from cashmere.space.paths.boosted import predictions_of

_TREES_AT_ONCE = {"lightgbm": 25, "xgboost": 100}
"""Many more would not stay in the cache; with fewer, the rows would be read too often."""

_OBJECTIVES = ("binary", "multiclass", "regression", "binary:logistic", "multi:softprob", "reg:squarederror")
"""Objectives of both libraries whose predictions are known to be values or probabilities."""

_ROWS_TO_REWRITE = 100_000
"""From this many rows on, rewriting a booster of hundreds of trees takes less time than it saves."""


@dataclass(frozen=True, slots=True)
class TreesInTurns:
    """Predict like a fitted pipeline whose learner is a booster.

    Attributes
    ----------
    pipeline : scikit-learn Pipeline
        Fitted; classifiers on the codes 0, 1, ...
    booster : lightgbm.Booster or xgboost.Booster
        Booster of the learner, or one without its categorical splits.
    turns : list of (int, int)
        First round and end of each turn.
    n_threads : int
        Threads over which the library distributes the rows.
    indicators : CategoryIndicators or None
        Columns that a booster without categorical splits needs.
    """

    pipeline: Any
    booster: Any
    turns: list[tuple[int, int]]
    n_threads: int
    indicators: CategoryIndicators | None = None

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Return probabilities ``(n_rows, n_classes)``."""
        predicted: Any = self.predict(X)
        if predicted.ndim == 1:
            predicted = np.stack([1 - predicted, predicted], axis=1)
        probabilities: FloatArray = predicted
        return probabilities

    def predict(self, X: FloatArray) -> FloatArray:
        """Return values ``(n_rows,)``, probabilities of the second of two classes, or those of more classes."""
        for _, step in self.pipeline.steps[:-1]:
            X = step.transform(X)
        return self._lightgbm(X) if _library(self.booster) == "lightgbm" else self._xgboost(X)

    def _lightgbm(self, X: FloatArray) -> FloatArray:
        raw: Any = 0.0
        for start, end in self.turns:
            raw = raw + self.booster.predict(
                X, raw_score=True, start_iteration=start, num_iteration=end - start, num_threads=self.n_threads
            )
        n_classes = getattr(self.pipeline[-1], "n_classes_", 1)
        predicted = predictions_of(raw, n_classes)
        return predicted[:, 1] if n_classes == 2 else predicted

    def _xgboost(self, X: FloatArray) -> FloatArray:
        if self.indicators is not None:
            X = self.indicators.added_to(X)
        predicted: Any = None
        for turn in self.turns:
            predicted = self.booster.inplace_predict(
                X,
                base_margin=predicted,
                iteration_range=turn,
                predict_type="value" if turn is self.turns[-1] else "margin",
                validate_features=False,
            )
        values: FloatArray = predicted
        return values


def in_turns(pipeline: Any, *, n_rows: int, n_threads: int) -> TreesInTurns | None:
    """Return what predicts like a fitted pipeline, but many rows faster.

    Parameters
    ----------
    pipeline : scikit-learn Pipeline
        Fitted; classifiers on the codes 0, 1, ...
    n_rows : int
        Total number of rows to predict, as some work only pays off for many.
    n_threads : int
        Threads to use.

    Returns
    -------
    TreesInTurns or None
        None if the learner is not a booster of LightGBM or XGBoost, or is a small one.

    Notes
    -----
    XGBoost adds up the same 32-bit numbers in the same order, so predictions are equal bit for bit. LightGBM adds up
    doubles, in another order: probabilities in 32 bits hardly ever differ, and then in the last bit.
    """
    learner = pipeline[-1]
    booster: Any = getattr(learner, "_Booster", None)
    library = _library(booster)
    if library == "lightgbm" and learner.boosting_type == "gbdt" and learner.objective_ in _OBJECTIVES:
        n_rounds, n_outputs = booster.current_iteration(), booster.num_model_per_iteration()
    elif library == "xgboost" and learner.booster in (None, "gbtree") and learner.objective in _OBJECTIVES:
        n_rounds, n_outputs = booster.num_boosted_rounds(), getattr(learner, "n_classes_", 1)
    else:
        return None
    at_once = max(1, _TREES_AT_ONCE[library] // n_outputs)
    if n_rounds <= 2 * at_once:
        return None
    turns = [(start, min(start + at_once, n_rounds)) for start in range(0, n_rounds, at_once)]
    indicators: CategoryIndicators | None = None
    if library == "xgboost" and n_rows >= _ROWS_TO_REWRITE:
        booster, indicators = without_categories(booster, n_threads=n_threads)
    return TreesInTurns(pipeline, booster, turns, n_threads, indicators)


def _library(booster: Any) -> str:
    return type(booster).__module__.partition(".")[0]
