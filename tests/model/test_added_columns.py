"""Columns that a model adds: an archive that makes them from missing columns, or makes too many, is refused."""

from __future__ import annotations

import numpy as np
import pytest

from cashmere.model.content import check_objects
from cashmere.model.content.fault import ContentError
from cashmere.space.estimators.arithmetic_features import ArithmeticFeatures

MASK = np.array([False, False, False, True])


def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4)).astype(np.float32)
    X[:, 3] = rng.integers(0, 4, 500)
    return ArithmeticFeatures(MASK).fit(X, X[:, 0] * X[:, 1])


CHANGES = [
    ("combinations_", np.array([[0, 4, 1]])),
    ("combinations_", np.array([[-1, 2, 1]])),
    ("combinations_", np.array([[0, 1, 5]])),
    ("combinations_", np.array([0, 1, 2])),
    ("combinations_", np.array([[0.0, 1.0, 2.0]])),
    ("combinations_", np.tile([0, 1, 2], (21, 1))),
    ("categorical", MASK[:3]),
    ("n_features_in_", 3),
]


def test_what_was_fitted_is_accepted():
    check_objects(fitted())


@pytest.mark.parametrize(("attribute", "value"), CHANGES)
def test_what_does_not_fit_together_is_refused(attribute, value):
    made = fitted()
    setattr(made, attribute, value)
    with pytest.raises(ContentError):
        check_objects(made)
