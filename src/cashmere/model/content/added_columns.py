"""Columns that a model adds to its table: they must be made from existing columns, and not be too many."""

from __future__ import annotations

from typing import Any

from cashmere.model.content.fault import array, count, indices, require
from cashmere.space.estimators.combinations import OPERATIONS, n_arithmetic_features


def check_arithmetic_features(where: str, made: Any) -> None:
    """Check `ArithmeticFeatures`."""
    n_features = count(f"{where}.n_features_in_", made.n_features_in_)
    categorical = array(f"{where}.categorical", made.categorical, (n_features,), kinds="b")
    chosen = array(f"{where}.combinations_", made.combinations_, (-1, 3), kinds="i")
    indices(f"{where}.combinations_", chosen[:, :2], n_features, (-1, 2))
    indices(f"{where}.combinations_", chosen[:, 2], len(OPERATIONS))
    require(len(chosen) <= n_arithmetic_features(categorical), where, f"makes {len(chosen)} columns: too many.")
