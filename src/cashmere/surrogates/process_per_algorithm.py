"""A Gaussian process for each algorithm, over its own hyper-parameters alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from cashmere.base.arrays import FloatArray, IntArray
from cashmere.surrogates.gaussian_process import GaussianProcess, GaussianProcessPrior


@dataclass(kw_only=True)
class ProcessPerAlgorithm:
    """Predict the loss of a configuration from the losses of its algorithm.

    Parameters
    ----------
    n_dims : (M,) int array
        Length of each algorithm's vector, see `cashmere.space.encoding.algorithm_blocks`.
    priors : sequence of M GaussianProcessPrior, optional
        One per algorithm; by default each is fitted to the losses.
    """

    n_dims: IntArray
    priors: Sequence[GaussianProcessPrior] | None = None
    _processes: list[GaussianProcess] = field(init=False, repr=False)

    def fit(self, tasks: IntArray, vectors: FloatArray, losses: FloatArray) -> Self:
        """Learn from configurations.

        Parameters
        ----------
        tasks : (n,) int array
            Algorithm of each.
        vectors : (n, width) array
            Their coordinates, padded with zeros.
        losses : (m,) array
            Losses of the first m; the others are pending and count with their predicted loss.
        """
        observed = np.arange(len(tasks)) < len(losses)
        self._processes = []
        priors: Sequence[GaussianProcessPrior | None] = self.priors or [None] * len(self.n_dims)
        for task, (n_dims, prior) in enumerate(zip(self.n_dims, priors, strict=True)):
            own, pending = (np.flatnonzero((tasks == task) & mask) for mask in (observed, ~observed))
            process = GaussianProcess(prior=prior).fit(vectors[own, :n_dims], losses[own])
            self._processes.append(process.imagine(vectors[pending, :n_dims]) if len(pending) else process)
        return self

    def predict(self, tasks: IntArray, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance, each ``(n,)``, of configurations given as in `fit`."""
        mean, variance = np.empty(len(tasks)), np.empty(len(tasks))
        for task in np.unique(tasks):
            mine = tasks == task
            mean[mine], variance[mine] = self._processes[task].predict(vectors[mine, : self.n_dims[task]])
        return mean, variance
