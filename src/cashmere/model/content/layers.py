"""Networks: each layer must read what the previous one writes."""

from __future__ import annotations

import math
from typing import Any

from cashmere.model.content.fault import array, count, indices, require

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


def check_realmlp(where: str, model: Any) -> None:
    """Check a `RealMLP`."""
    n_features = count(f"{where}.n_features_in_", model.n_features_in_)
    for name in ("center_", "scale_"):
        array(f"{where}.{name}", getattr(model, name), (n_features,))
    n_embedded = len(indices(f"{where}.embedded_", model.embedded_, n_features, (-1,)))
    n_waves = array(f"{where}.frequencies_", model.frequencies_, (n_embedded, -1)).shape[1]
    array(f"{where}.phases_", model.phases_, (n_embedded, n_waves))
    size = array(f"{where}.mixing_", model.mixing_, (n_embedded, n_waves, -1)).shape[2]
    array(f"{where}.shifts_", model.shifts_, (n_embedded, size))
    width = n_features + n_embedded * size
    array(f"{where}.front_", model.front_, (width,))
    layers, offsets, slopes = model.coefs_, model.intercepts_, model.slopes_
    require(isinstance(layers, list) and layers, where, "has no layers.")
    same = len(offsets) == len(layers) == len(slopes) + 1
    require(same, where, f"has {len(layers)} layers, {len(offsets)} offsets and {len(slopes)} slopes.")
    for k, (weights, offset) in enumerate(zip(layers, offsets, strict=True)):
        width = array(f"{where}.coefs_[{k}]", weights, (width, -1)).shape[1]
        array(f"{where}.intercepts_[{k}]", offset, (width,))
        if k < len(slopes):
            array(f"{where}.slopes_[{k}]", slopes[k], (width,))
    n_classes = len(array(f"{where}.classes_", model.classes_, (-1,), kinds="iuf")) if hasattr(model, "classes_") else 1
    require(width == (n_classes if n_classes > 2 else 1), where, f"has {width} outputs for {n_classes} classes.")
    if not hasattr(model, "classes_"):
        bounds = (model.lowest_, model.highest_)
        fits = all(isinstance(bound, float) and math.isfinite(bound) for bound in bounds) and bounds[0] <= bounds[1]
        require(fits, where, f"predicts values from {bounds[0]} to {bounds[1]}.")
