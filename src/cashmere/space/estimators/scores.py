"""Scores of single columns, independent of global randomness."""

from __future__ import annotations

from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

from cashmere.base.arrays import AnyArray, FloatArray


def class_information(X: FloatArray, y: AnyArray) -> FloatArray:
    """Return the mutual information of each column with the class; its jitter has a fixed seed."""
    scores: FloatArray = mutual_info_classif(X, y, random_state=0)
    return scores


def value_information(X: FloatArray, y: AnyArray) -> FloatArray:
    """Return the mutual information of each column with the target value; its jitter has a fixed seed."""
    scores: FloatArray = mutual_info_regression(X, y, random_state=0)
    return scores
