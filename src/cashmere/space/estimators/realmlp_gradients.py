"""The gradient of RealMLP's loss, for some rows and weights: a pure function on arrays.

======================  ==================  =======================================================================
symbol                  shape               meaning
======================  ==================  =======================================================================
x                       ``(n, d)``          scaled columns
c                       ``(e, 1, n)``       those that are embedded, transposed
z                       ``(e, 16, n)``      arguments of the cosines
h                       ``(n, width)``      inputs of a layer
a                       ``(n, width)``      h W + b, before the activation f
h'                      ``(n, width)``      (a + s (f(a) - a)) kept, the inputs of the next layer; s are the slopes
d_name                  that of name        derivative of the loss by name
======================  ==================  =======================================================================

Rows come last in the arrays of cosines, so that every product and sum runs along them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cashmere.base.arrays import FloatArray

Activation = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Returns values and derivatives."""

_SCALE, _ALPHA = 1.0507009873554805, 1.6732632423543772
_EXPONENTIAL_BOUND = 20.0
"""Beyond it, Mish is the identity in float32, and a square of the exponential might overflow."""


def selu(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the self-normalising function of Klambauer et al. (2017), https://arxiv.org/abs/1706.02515.

    Examples
    --------
    >>> values, derivatives = selu(np.array([-1.0, 2.0]))
    >>> values.round(3).tolist(), derivatives.round(3).tolist()
    ([-1.111, 2.101], [0.647, 1.051])
    """
    derivatives = np.minimum(a, 0)
    np.exp(derivatives, out=derivatives)
    derivatives *= _SCALE * _ALPHA
    values = np.maximum(a, 0)
    values *= _SCALE
    values += derivatives
    values -= _SCALE * _ALPHA
    derivatives -= (a > 0) * a.dtype.type(_SCALE * (_ALPHA - 1))
    return values, derivatives


def mish(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return x tanh(log(1 + exp(x))) of Misra (2019), https://arxiv.org/abs/1908.08681.

    Examples
    --------
    >>> values, derivatives = mish(np.array([-1.0, 2.0]))
    >>> values.round(3).tolist(), derivatives.round(3).tolist()
    ([-0.303, 1.944], [0.059, 1.069])
    """
    exponential = np.exp(np.minimum(a, _EXPONENTIAL_BOUND))
    both = exponential * (exponential + 2)
    tangent = both / (both + 2)
    derivatives = exponential / (exponential + 1)
    derivatives *= 1 - tangent * tangent
    derivatives *= a
    derivatives += tangent
    return a * tangent, derivatives


def write_gradient(
    weights: Mapping[str, Any],
    x: FloatArray,
    embedded: FloatArray,
    *,
    activation: Activation,
    kept: Sequence[FloatArray],
    output_derivatives: Callable[[FloatArray], FloatArray],
    out: Mapping[str, Any],
) -> None:
    """Compute the derivatives of a loss by all weights.

    Parameters
    ----------
    weights : mapping of str to array or list of arrays
        By the names of `cashmere.space.estimators.realmlp.WEIGHTS`.
    x : (n, d) array
        Scaled columns.
    embedded : (n, e) array
        Those that are embedded; there may be none.
    activation : callable
        `selu` or `mish`.
    kept : sequence of (n, width) arrays
        Factors of the outputs of each hidden layer: 0 for those that drop out. Empty without dropout.
    output_derivatives : callable
        Takes the outputs of the last layer ``(n, n_outputs)`` and returns the derivatives of the loss by them.
    out : mapping of str to array or list of arrays
        Where to write the derivatives; of the names and shapes of `weights`.
    """
    inputs, c, z = x, np.ascontiguousarray(embedded.T)[:, None], np.empty(0)
    if len(c):
        z = c * weights["frequencies_"][:, :, None]
        z += weights["phases_"][:, :, None]
        waves = np.cos(z)
        embeddings = weights["mixing_"].transpose(0, 2, 1) @ waves
        embeddings += weights["shifts_"][:, :, None]
        inputs = np.concatenate([x, embeddings.reshape(-1, len(x)).T], axis=1)
    h = inputs * weights["front_"]
    layers = []
    *hidden, last = zip(weights["coefs_"], weights["intercepts_"], strict=True)
    for k, ((W, b), s) in enumerate(zip(hidden, weights["slopes_"], strict=True)):
        a = h @ W
        a += b
        bend, derivatives = activation(a)
        bend -= a
        derivatives -= 1
        derivatives *= s
        derivatives += 1
        layers.append((h, bend, derivatives))
        h = bend * s
        h += a
        if kept:
            h *= kept[k]
    d_outputs = output_derivatives(h @ last[0] + last[1])
    np.matmul(h.T, d_outputs, out=out["coefs_"][-1])
    d_outputs.sum(axis=0, out=out["intercepts_"][-1])
    d_h = d_outputs @ last[0].T
    for k, (h, bend, derivatives) in reversed(list(enumerate(layers))):
        if kept:
            d_h *= kept[k]
        np.einsum("nw,nw->w", d_h, bend, out=out["slopes_"][k])
        d_h *= derivatives  # now by a
        np.matmul(h.T, d_h, out=out["coefs_"][k])
        d_h.sum(axis=0, out=out["intercepts_"][k])
        d_h = d_h @ weights["coefs_"][k].T
    np.einsum("nw,nw->w", d_h, inputs, out=out["front_"])
    if len(c):
        d_embeddings = np.ascontiguousarray((d_h[:, x.shape[1] :] * weights["front_"][x.shape[1] :]).T)
        d_embeddings = d_embeddings.reshape(len(c), -1, len(x))
        d_embeddings.sum(axis=2, out=out["shifts_"])
        np.matmul(waves, d_embeddings.transpose(0, 2, 1), out=out["mixing_"])
        d_z = weights["mixing_"] @ d_embeddings
        d_z *= np.sin(z, out=z)
        np.negative(d_z, out=d_z)
        d_z.sum(axis=2, out=out["phases_"])
        d_z *= c
        d_z.sum(axis=2, out=out["frequencies_"])
