"""Networks: each layer reads what the one before it writes."""

from __future__ import annotations

from typing import Any

from cashmere.model.content.fault import array, count, require

_ACTIVATIONS = ("identity", "tanh", "logistic", "relu", "softmax")


def check_network(where: str, model: Any) -> None:
    """Check an `MLPClassifier` or `MLPRegressor`."""
    layers, offsets = model.coefs_, model.intercepts_
    require(isinstance(layers, list) and layers, where, "has no layers.")
    same = len(offsets) == len(layers) == model.n_layers_ - 1
    require(same, where, f"has {len(layers)} layers but announces others.")
    width = count(f"{where}.n_features_in_", model.n_features_in_)
    for k, (weights, offset) in enumerate(zip(layers, offsets, strict=True)):
        width = array(f"{where}.coefs_[{k}]", weights, (width, -1)).shape[1]
        array(f"{where}.intercepts_[{k}]", offset, (width,))
    require(width == model.n_outputs_, where, f"has {width} outputs but announces {model.n_outputs_}.")
    if hasattr(model, "classes_"):
        n_classes = len(array(f"{where}.classes_", model.classes_, (-1,), kinds="iuf"))
        require(width == (n_classes if n_classes > 2 else 1), where, f"has {width} outputs for {n_classes} classes.")
    known = model.activation in _ACTIVATIONS and model.out_activation_ in _ACTIVATIONS
    require(known, where, "has an unknown activation.")
