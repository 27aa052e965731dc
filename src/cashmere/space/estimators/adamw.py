"""AdamW: gradient descent with momentum, a scale for each weight, and weight decay apart from the gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cashmere.base.arrays import FloatArray

_EPSILON = 1e-8


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
    decay: float


class AdamW:
    """The optimiser of Loshchilov and Hutter (2019), Decoupled weight decay regularization, ICLR, algorithm 2.

    All weights lie in one vector: a step is a dozen operations on it, however many layers there are.

    Parameters
    ----------
    weights : (n,) float32 array
        Changed by every step.
    groups : sequence of WeightGroup
        In the order of the weights.
    decays : (float, float)
        Exponential decay of the means of gradients and of squared gradients.
    """

    def __init__(self, weights: FloatArray, groups: Sequence[WeightGroup], decays: tuple[float, float]) -> None:
        self._weights, self._groups, self._decays = weights, groups, decays
        self._mean, self._mean_square, self._scratch = (np.zeros_like(weights) for _ in range(3))
        self._n_steps = 0

    def step(self, gradient: FloatArray, height: float) -> None:
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
        steps /= math.sqrt(1 - second**self._n_steps)
        steps += _EPSILON
        np.divide(mean, steps, out=steps)
        begin = 0
        for group in self._groups:
            part, rate = slice(begin, begin + group.size), group.rate * height
            self._weights[part] *= 1 - rate * group.decay
            steps[part] *= rate / (1 - first**self._n_steps)
            begin += group.size
        self._weights -= steps
