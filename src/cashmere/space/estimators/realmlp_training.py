"""Fits of `RealMLP` by gradient descent, with gradients written by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from cashmere.base.arrays import AnyArray, FloatArray, IntArray
from cashmere.base.threads import one_blas_thread
from cashmere.space.estimators.adamw import AdamW, WeightGroup, views_of
from cashmere.space.estimators.realmlp_gradients import mish, selu, write_gradient

FIRST_CYCLE = 4
"""Epochs of the first cycle of the learning rate; each takes twice as long as the one before."""

_BATCH = 256
_DECAYS = (0.9, 0.95)
_FRONT, _SLOW = 6.0, 0.1
"""Factors of the learning rate: for the scales of inputs; for offsets, slopes and embeddings."""


class RealMLPTraining:
    """A fit of one network, which can be continued.

    The learning rate rises from zero and falls back in cycles that double their length. At the end of each, the network
    is as good as after a fit of just that length.

    The weights of the network become views of one vector, which every step changes, so that it can predict at any time.
    Products use one thread: sums depend on the number of threads, but results must not.

    Parameters
    ----------
    network : RealMLP
        Unfitted.
    X : (n_rows, n_features) array
        Without gaps.
    y : (n_rows,) array
        Classes or values.
    weight : (n_rows,) array, optional
        Row weights.

    Attributes
    ----------
    n_epochs : int
        How often the network has seen all rows.
    """

    def __init__(self, network: Any, X: FloatArray, y: AnyArray, weight: FloatArray | None = None) -> None:
        self._network = network
        self._y = network.begin(X, y)
        self._X = network.scaled(X)
        self._weight: Any = None
        if weight is not None:
            weight = np.asarray(weight, dtype=np.float64)
            self._weight = (weight / weight.mean()).astype(np.float32)
        self._random = np.random.default_rng((network.random_state, 1))  # the weights were drawn from (random_state, 0)
        self.n_epochs = 0
        groups = list(self._groups())
        self._vector = np.empty(sum(group.size for _, group in groups), dtype=np.float32)
        self._gradient = np.zeros_like(self._vector)
        self._weights, self._derivatives = (self._views(vector) for vector in (self._vector, self._gradient))
        for name, values in self._weights.items():
            for view, drawn in zip(_listed(values), _listed(getattr(network, name)), strict=True):
                view[...] = drawn
            setattr(network, name, values)
        self._optimiser = AdamW(self._vector, [group for _, group in groups], _DECAYS)

    def _groups(self) -> Iterator[tuple[str, WeightGroup]]:
        """Yield the names of weights, in the order of the vector, with their rates and decays."""
        network, decay = self._network, self._network.weight_decay
        rates = {"front_": (_FRONT, decay)}
        rates |= dict.fromkeys(("frequencies_", "mixing_", "slopes_"), (_SLOW, decay))
        rates |= dict.fromkeys(("phases_", "shifts_", "intercepts_"), (_SLOW, 0.0))
        for name, (factor, share) in rates.items():
            size = sum(each.size for each in _listed(getattr(network, name)))
            yield name, WeightGroup(size=size, rate=factor * network.learning_rate, decay=share)
        for layer in network.coefs_:
            # Weights of n inputs have a standard deviation of n^(-1/2): their steps are smaller by the same factor, and
            # the decay per step is that of the others.
            rate, share = len(layer) ** -0.5 * network.learning_rate, len(layer) ** 0.5 * decay
            yield "coefs_", WeightGroup(size=layer.size, rate=rate, decay=share)

    def _views(self, vector: FloatArray) -> dict[str, Any]:
        """Return the parts of a vector by name, in the shapes of the weights."""
        names = list(dict.fromkeys(name for name, _ in self._groups()))
        values = [getattr(self._network, name) for name in names]
        parts = iter(views_of(vector, [each for value in values for each in _listed(value)]))
        return {
            name: [next(parts) for _ in value] if isinstance(value, list) else next(parts)
            for name, value in zip(names, values, strict=True)
        }

    def learn(self, n_epochs: float) -> None:
        """Continue until the network has seen all rows `n_epochs` times.

        Raises
        ------
        FloatingPointError
            If a weight becomes NaN or infinite.
        """
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            while self.n_epochs < n_epochs:
                self._learn_for_an_epoch()
        if not np.isfinite(self._vector).all():
            raise FloatingPointError("a network has diverged")

    def _learn_for_an_epoch(self) -> None:
        n_rows = len(self._X)
        size = min(_BATCH, n_rows)
        order = self._random.permutation(n_rows)
        n_batches = n_rows // size  # the last rows of the order wait for another epoch
        for k in range(n_batches):
            cycle = math.log2(1 + (self.n_epochs + k / n_batches) / FIRST_CYCLE)
            self._write_gradient(order[k * size : (k + 1) * size])
            self._optimiser.step(self._gradient, height=0.5 * (1 - math.cos(2 * math.pi * cycle)))
        self.n_epochs += 1

    def _write_gradient(self, rows: IntArray) -> None:
        x = self._X[rows]
        write_gradient(
            self._weights,
            x,
            x[:, self._network.embedded_],
            activation=selu if hasattr(self._network, "classes_") else mish,
            kept=self._kept(len(rows)),
            output_derivatives=lambda outputs: self._output_derivatives(outputs, rows),
            out=self._derivatives,
        )

    def _kept(self, n_rows: int) -> list[FloatArray]:
        """Draw which neurons stay in a step; those that do make up for those that do not."""
        keep = 1 - self._network.dropout
        if keep == 1:
            return []
        shape = (n_rows, self._network.width)
        drawn = (self._random.random(shape, dtype=np.float32) < keep for _ in range(self._network.n_layers))
        return [each * np.float32(1 / keep) for each in drawn]

    def _output_derivatives(self, outputs: FloatArray, rows: IntArray) -> FloatArray:
        """Return the derivatives of the mean loss by the outputs: log loss of classes, half the squared error."""
        y = self._y[rows]
        if outputs.shape[1] > 1:
            derivatives = softmax(outputs, axis=1)
            derivatives[np.arange(len(rows)), y] -= 1
        else:
            predicted = expit(outputs) if hasattr(self._network, "classes_") else outputs
            derivatives = predicted - y[:, None]
        if self._weight is not None:
            derivatives *= self._weight[rows, None]
        derivatives /= np.float32(len(rows))
        return derivatives


def _listed(value: Any) -> list[FloatArray]:
    return value if isinstance(value, list) else [value]
