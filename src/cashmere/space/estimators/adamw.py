"""Adam and AdamW: gradient descent with momentum, a scale for each weight, and decay apart from the gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cashmere.base.arrays import FloatArray

_EPSILON = 1e-8
"""Beside the root of the mean square before its correction, as in scikit-learn; PyTorch corrects it first."""


@dataclass(frozen=True, kw_only=True)
class WeightGroup:
    """Neighbouring weights that are treated alike.

    Attributes
    ----------
    size : int
        Their number.
    rate : float
        Their learning rate.
    decay : float
        Share by which a step with learning rate one shrinks them.
    """

    size: int
    rate: float
    decay: float = 0.0


class AdamW:
    """The optimiser of Loshchilov and Hutter (2019); without decay, that of Kingma and Ba (2015).

    All weights lie in one vector: a step is a dozen operations on it, however many layers there are.

    Parameters
    ----------
    weights : (n,) array
        Changed by every step.
    groups : sequence of WeightGroup
        In the order of the weights.
    decays : (float, float)
        Exponential decay of the means of gradients and of squared gradients.

    References
    ----------
    Loshchilov and Hutter (2019), Decoupled weight decay regularization, ICLR, algorithm 2,
    https://arxiv.org/abs/1711.05101. Kingma and Ba (2015), Adam: A method for stochastic optimization, ICLR, algorithm
    1, https://arxiv.org/abs/1412.6980.
    """

    def __init__(self, weights: FloatArray, groups: Sequence[WeightGroup], decays: tuple[float, float]) -> None:
        self._weights, self._groups, self._decays = weights, groups, decays
        self._mean, self._mean_square, self._scratch = (np.zeros_like(weights) for _ in range(3))
        self._n_steps = 0

    def step(self, gradient: FloatArray, height: float = 1.0) -> None:
        """Change the weights.

        Parameters
        ----------
        gradient : (n,) array
            Of the loss; overwritten.
        height : float
            Factor of all learning rates in this step.
        """
        self._n_steps += 1
        first, second = self._decays
        mean, square, steps = self._mean, self._mean_square, self._scratch
        np.subtract(gradient, mean, out=steps)
        steps *= 1 - first
        mean += steps
        np.multiply(gradient, gradient, out=gradient)
        gradient *= 1 - second
        square *= second
        square += gradient
        np.sqrt(square, out=steps)
        steps += _EPSILON
        np.divide(mean, steps, out=steps)
        correction = math.sqrt(1 - second**self._n_steps) / (1 - first**self._n_steps)
        begin = 0
        for group in self._groups:
            part, rate = slice(begin, begin + group.size), group.rate * height
            if group.decay:
                self._weights[part] *= 1 - rate * group.decay
            steps[part] *= rate * correction
            begin += group.size
        self._weights -= steps


def views_of(vector: FloatArray, like: Sequence[FloatArray]) -> list[FloatArray]:
    """Return parts of a vector in the shapes of other arrays, without copies.

    Examples
    --------
    >>> [view.tolist() for view in views_of(np.arange(5.0), [np.zeros((2, 2)), np.zeros(1)])]
    [[[0.0, 1.0], [2.0, 3.0]], [4.0]]
    """
    ends = np.cumsum([each.size for each in like])
    return [vector[end - each.size : end].reshape(each.shape) for end, each in zip(ends, like, strict=True)]
