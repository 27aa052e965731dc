from __future__ import annotations

import numpy as np
import pytest

from cashmere.surrogates.gaussian_process import GaussianProcess, GaussianProcessPrior
from cashmere.surrogates.process_per_algorithm import ProcessPerAlgorithm

TASKS = np.array([0, 1, 0, 1, 0, 0])
VECTORS = np.array([[0.1, 0.2], [0.5, 0.0], [0.4, 0.9], [0.8, 0.0], [0.7, 0.3], [0.2, 0.6]])
LOSSES = np.array([0.3, 0.9, 0.1, 0.7, 0.5])
N_DIMS = np.array([2, 1])


def test_each_algorithm_learns_from_its_own_losses():
    mean, variance = ProcessPerAlgorithm(n_dims=N_DIMS).fit(TASKS[:5], VECTORS[:5], LOSSES).predict(TASKS, VECTORS)
    for task, n in enumerate(N_DIMS):
        own, mine = TASKS[:5] == task, task == TASKS
        alone = GaussianProcess().fit(VECTORS[:5][own, :n], LOSSES[own])
        np.testing.assert_allclose((mean[mine], variance[mine]), alone.predict(VECTORS[mine, :n]))


def test_pending_configurations_keep_their_mean_and_lose_their_variance():
    priors = [
        GaussianProcessPrior(mean=0.5, signal_variance=1.0, noise_variance=1e-4, length_scales=np.full(n, 0.3))
        for n in N_DIMS
    ]
    known = ProcessPerAlgorithm(n_dims=N_DIMS, priors=priors).fit(TASKS[:5], VECTORS[:5], LOSSES)
    with_pending = ProcessPerAlgorithm(n_dims=N_DIMS, priors=priors).fit(TASKS, VECTORS, LOSSES)
    before, after = (found.predict(TASKS[5:], VECTORS[5:]) for found in (known, with_pending))
    assert after[0][0] == pytest.approx(before[0][0], abs=1e-3)
    assert after[1][0] < 0.1 * before[1][0]


def test_an_algorithm_without_losses_is_predicted_from_the_prior():
    mean, variance = ProcessPerAlgorithm(n_dims=N_DIMS).fit(TASKS[:1], VECTORS[:1], LOSSES[:1]).predict(TASKS, VECTORS)
    assert np.isfinite(mean).all() and (variance > 0).all()
