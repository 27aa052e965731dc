"""Support vector machines: arrays that libsvm reads by the given numbers of rows and classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from cashmere.model.content.fault import array, count, require

_KERNELS = ("linear", "poly", "rbf", "sigmoid")


def check_support_vectors(where: str, model: Any) -> None:
    """Check an `SVC` or `SVR`."""
    require(model.kernel in _KERNELS, where, f"has the kernel {str(model.kernel)[:40]!r}.")
    n_features = count(f"{where}.n_features_in_", model.n_features_in_)
    n = _dense(f"{where}.support_vectors_", model, model.support_vectors_, (-1, n_features)).shape[0]
    n_classes = len(array(f"{where}.classes_", model.classes_, (-1,), kinds="iuf")) if hasattr(model, "classes_") else 2
    pairs = n_classes * (n_classes - 1) // 2
    array(f"{where}.support_", model.support_, (n,), kinds="i")
    per_class = array(f"{where}._n_support", model._n_support, (n_classes,), kinds="i")
    if hasattr(model, "classes_"):  # regression leaves the counts undefined and does not read them
        same = bool((per_class >= 0).all()) and int(per_class.astype(np.int64).sum()) == n
        require(same, where, f"counts other support vectors than the {n} it holds.")
    for name in ("_dual_coef_", "dual_coef_"):
        _dense(f"{where}.{name}", model, getattr(model, name), (n_classes - 1, n))
    for name in ("_intercept_", "intercept_"):
        array(f"{where}.{name}", getattr(model, name), (pairs,))
    # In scikit-learn 1.7, there is only the parameter.
    gives_probabilities = (
        model._effective_probability if hasattr(model, "_effective_probability") else model.probability
    )
    for name in ("_probA", "_probB"):
        found = array(f"{where}.{name}", getattr(model, name), (-1,))
        expected = (0, pairs) if not gives_probabilities else (pairs, 1)
        require(len(found) in expected, where, f"has {len(found)} numbers in {name}. Expected {pairs}.")
    require(tuple(model.shape_fit_)[1:] == (n_features,), where, f"was fitted to the shape {model.shape_fit_}.")


def check_coupled_margins(where: str, model: Any) -> None:
    """Check `CoupledMargins`."""
    sharpness, shape = model.sharpness, model.estimator_.decision_function_shape
    require(
        isinstance(sharpness, float) and 0.0 < sharpness < np.inf, where, f"has the sharpness {str(sharpness)[:40]}."
    )
    require(shape == "ovo", where, f"couples margins of the shape {str(shape)[:40]!r}.")


def _dense(where: str, model: Any, value: Any, shape: tuple[int, int]) -> Any:
    """Check an array that is sparse if the model was fitted to sparse rows."""
    if not model._sparse:
        return array(where, value, shape)
    require(isinstance(value, csr_matrix | csr_array), where, "is not sparse, as its model says.")
    same = all(n in (-1, m) for n, m in zip(shape, value.shape, strict=True))
    require(same and value.data.dtype == np.float64, where, f"has the shape {value.shape}.")
    array(where, value.data, (-1,))
    if -1 not in shape:  # coefficients: libsvm reads one for each position
        require(len(value.data) == shape[0] * shape[1], where, "leaves coefficients out.")
    return value
