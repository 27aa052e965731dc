"""Fits of `RealMLP` by gradient descent; the only part of it that needs PyTorch."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from cashmere.base.arrays import AnyArray, FloatArray
from cashmere.exceptions import MissingDependencyError

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

    PyTorch works on the arrays of the network, so that it can predict at any time, and uses one thread: sums depend on
    the number of threads, but results must not.

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

    Raises
    ------
    MissingDependencyError
        If PyTorch is not installed.
    """

    def __init__(self, network: Any, X: FloatArray, y: AnyArray, weight: FloatArray | None = None) -> None:
        self._torch: Any = _torch()
        self._network = network
        coded = network.begin(X, y)
        as_tensor = self._torch.from_numpy
        self._X, self._y = as_tensor(network.scaled(X)), as_tensor(coded)
        self._weight: Any = None
        if weight is not None:
            weight = np.asarray(weight, dtype=np.float64)
            self._weight = as_tensor((weight / weight.mean()).astype(np.float32))
        self._embedded = as_tensor(network.embedded_)
        self._random = self._torch.Generator().manual_seed(network.random_state)
        self._n_epochs = 0
        self._tensors: dict[str, Any] = {}
        self._rates: list[float] = []
        groups = []
        for tensors, factor, decay in self._groups():
            groups.append({"params": tensors, "weight_decay": decay})
            self._rates.append(network.learning_rate * factor)
        self._optimizer = self._torch.optim.AdamW(groups, lr=0.0, betas=_DECAYS, foreach=True)

    def _groups(self) -> Iterator[tuple[list[Any], float, float]]:
        """Yield tensors, the factor of their learning rate, and their decay."""
        decay = self._network.weight_decay
        yield self._shared("front_"), _FRONT, decay
        yield [*self._shared("frequencies_"), *self._shared("mixing_"), *self._shared("slopes_")], _SLOW, decay
        yield [*self._shared("phases_"), *self._shared("shifts_"), *self._shared("intercepts_")], _SLOW, 0.0
        for layer in self._shared("coefs_"):
            # Weights of n inputs have a standard deviation of n^(-1/2): their steps are smaller by the same factor, and
            # the decay per step is that of the others.
            yield [layer], len(layer) ** -0.5, decay * len(layer) ** 0.5

    def _shared(self, name: str) -> list[Any]:
        """Return tensors that share their memory with weights of the network."""
        value = getattr(self._network, name)
        tensors = [
            self._torch.from_numpy(each).requires_grad_() for each in (value if isinstance(value, list) else [value])
        ]
        self._tensors[name] = tensors if isinstance(value, list) else tensors[0]
        return tensors

    def learn(self, n_epochs: float) -> None:
        """Continue until the network has seen all rows `n_epochs` times.

        Raises
        ------
        FloatingPointError
            If a weight becomes NaN or infinite.
        """
        with self._one_thread():
            while self._n_epochs < n_epochs:
                self._learn_for_an_epoch()
        tensors = (each for group in self._optimizer.param_groups for each in group["params"])
        if not all(bool(self._torch.isfinite(each).all()) for each in tensors):
            raise FloatingPointError("a network has diverged")

    def _learn_for_an_epoch(self) -> None:
        n_rows = len(self._X)
        size = min(_BATCH, n_rows)
        order = self._torch.randperm(n_rows, generator=self._random)
        n_batches = n_rows // size  # the last rows of the order wait for another epoch
        for k in range(n_batches):
            cycle = math.log2(1 + (self._n_epochs + k / n_batches) / FIRST_CYCLE)
            height = 0.5 * (1 - math.cos(2 * math.pi * cycle))
            for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
                group["lr"] = rate * height
            rows = order[k * size : (k + 1) * size]
            self._optimizer.zero_grad()
            self._loss(rows).backward()
            self._optimizer.step()
        self._n_epochs += 1

    def _loss(self, rows: Any) -> Any:
        functional = self._torch.nn.functional
        outputs, y = self._outputs(self._X[rows]), self._y[rows]
        if outputs.shape[1] > 1:
            losses = functional.cross_entropy(outputs, y, reduction="none")
        elif hasattr(self._network, "classes_"):
            losses = functional.binary_cross_entropy_with_logits(outputs[:, 0], y, reduction="none")
        else:
            losses = (outputs[:, 0] - y) ** 2 / 2
        return losses.mean() if self._weight is None else (losses * self._weight[rows]).mean()

    def _outputs(self, x: Any) -> Any:
        """Return the same as `RealMLP.outputs`, but with dropout."""
        torch, weights, keep = self._torch, self._tensors, 1 - self._network.dropout
        activated = torch.nn.functional.selu if hasattr(self._network, "classes_") else torch.nn.functional.mish
        if len(self._embedded):
            columns = x[:, self._embedded].T[:, :, None]
            waves = torch.cos(torch.addcmul(weights["phases_"][:, None], columns, weights["frequencies_"][:, None]))
            embedded = torch.baddbmm(weights["shifts_"][:, None], waves, weights["mixing_"])
            x = torch.cat([x, embedded.transpose(0, 1).flatten(1)], dim=1)
        values = x * weights["front_"]
        *hidden, last = zip(weights["coefs_"], weights["intercepts_"], strict=True)
        for (coefs, offset), slope in zip(hidden, weights["slopes_"], strict=True):
            values = torch.addmm(offset, values, coefs)
            values = torch.lerp(values, activated(values), slope)
            if keep < 1:
                values = values * torch.empty_like(values).bernoulli_(keep, generator=self._random).div_(keep)
        return torch.addmm(last[1], values, last[0])

    @contextlib.contextmanager
    def _one_thread(self) -> Iterator[None]:
        before = self._torch.get_num_threads()
        self._torch.set_num_threads(1)
        try:
            yield
        finally:
            self._torch.set_num_threads(before)


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError("torch", "The algorithm 'realmlp'", "torch") from error
    return torch
