"""Seconds and memory of the latent surrogate's fits and predictions; its steps against PyTorch and GPyTorch.

    python -m benchmarks.timings.latent_time [--observations 25 60 100 250 300] [--repeats 5] --out FILE

12 algorithms with up to 4 hyper-parameters, synthetic losses, one thread. The first table has the median CPU seconds of
a fit, with and without pre-training, and of the prediction of 2000 configurations, and the most memory that a fit and
a prediction hold beyond their arguments. The second has milliseconds of one value and gradient: of the objective
written out in numpy, of the same objective by PyTorch's autograd, and of GPyTorch's likelihood alone (without networks,
penalty and priors), which needs the extra `latent` and GPyTorch. Rows of the first table are added to the file; what it
holds is not measured again.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.runs.code_version import commit
from benchmarks.runs.row_file import RowFile
from cashmere.surrogates.latent import LatentObjective, LatentSurrogate
from cashmere.surrogates.latent_space import Encoders, PretrainedEmbedding

N_ALGORITHMS, WIDTH, N_CANDIDATES = 12, 4, 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentTime:
    """What a fit and a prediction cost.

    Attributes
    ----------
    observations : int
        Configurations that are learned from.
    pretrained : bool
        Whether the networks are given.
    repeats : int
        How often it was timed.
    fit_seconds, predict_seconds : float
        Median CPU time.
    fit_mib, predict_mib : float
        Most memory beyond the arguments.
    commit : str
        Version of the code.
    """

    observations: int
    pretrained: bool
    repeats: int
    fit_seconds: float
    predict_seconds: float
    fit_mib: float
    predict_mib: float
    commit: str


def made_up_embedding() -> PretrainedEmbedding:
    """Return randomly initialised encoders; the measurements do not depend on their weights."""
    drawn = Encoders.draw(n_algorithms=N_ALGORITHMS, width=WIDTH, q=2, rng=np.random.default_rng(0))
    return PretrainedEmbedding(drawn, 0.1, "made up")


def made_up_observations(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return algorithms, vectors and losses of n configurations."""
    rng = np.random.default_rng(seed)
    tasks, vectors = rng.integers(N_ALGORITHMS, size=n), rng.random((n, WIDTH))
    losses = 0.2 + 0.3 * np.square(vectors[:, 0] - tasks / 12) + 0.05 * np.sin(9 * vectors[:, 1])
    return tasks, vectors, losses + 0.01 * rng.normal(size=n)


def processor_seconds(call: Callable[[], Any], repeats: int) -> float:
    """Return the median over repeats, after one call that is not counted."""
    call()
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return float(np.median(seconds))


def peak_mib(call: Callable[[], Any]) -> float:
    """Return the most memory that numpy holds during a call."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def time_fits(n: int, repeats: int) -> list[LatentTime]:
    """Time the fits and predictions of a number of observations, with pre-trained networks and without."""
    observations = made_up_observations(n, seed=0)
    tasks, vectors, _ = made_up_observations(N_CANDIDATES, seed=1)
    found = []
    for pretrained in (made_up_embedding(), None):
        surrogate = LatentSurrogate(n_algorithms=N_ALGORITHMS, pretrained=pretrained)

        def fit(surrogate: LatentSurrogate = surrogate) -> None:
            surrogate.fit(*observations, np.random.default_rng(0))

        def predict(surrogate: LatentSurrogate = surrogate) -> None:
            surrogate.predict(tasks, vectors)

        found.append(
            LatentTime(
                observations=n,
                pretrained=pretrained is not None,
                repeats=repeats,
                fit_seconds=round(processor_seconds(fit, repeats), 4),
                predict_seconds=round(processor_seconds(predict, repeats), 5),
                fit_mib=round(peak_mib(fit), 2),
                predict_mib=round(peak_mib(predict), 2),
                commit=commit(),
            )
        )
    return found


def torch_objective(objective: LatentObjective) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Return what a pre-trained objective computes, with a gradient by autograd."""
    import torch

    tasks, targets = torch.from_numpy(objective.tasks), torch.from_numpy(objective.targets)
    hidden = torch.from_numpy(objective.start.hidden(objective.tasks, objective.vectors))[:, None]
    centre, spread = torch.from_numpy(objective.centre), torch.from_numpy(objective.spread)
    w3, b3 = torch.from_numpy(objective.start.w3), torch.from_numpy(objective.start.b3)
    m, k, n, step = len(b3), len(centre), len(tasks), (2 * objective.penalty) ** -0.5
    identity = torch.eye(n, dtype=torch.float64)

    def value_and_gradient(offsets: np.ndarray) -> tuple[float, np.ndarray]:
        x = torch.from_numpy(offsets).requires_grad_()
        theta = centre + spread * x[:k]
        weights = w3 + step * x[k : k + w3.numel()].reshape(w3.shape)
        biases = b3 + step * x[k + w3.numel() :].reshape(b3.shape)
        u = torch.bmm(hidden, weights[tasks])[:, 0] + biases[tasks]
        scaled = u / torch.exp(theta[0])
        base = torch.exp(-0.5 * (scaled[:, None] - scaled).square().sum(dim=2))
        covariances = torch.outer(theta[4 : 4 + m], theta[4 : 4 + m]) + torch.diag(torch.exp(theta[4 + m :]))
        noisy = base * covariances[tasks[:, None], tasks] + torch.exp(theta[1]) * identity
        factor = torch.linalg.cholesky(noisy)
        residuals = targets - theta[2] - torch.exp(theta[3]) * u.square().sum(dim=1)
        whitened = torch.linalg.solve_triangular(factor, residuals[:, None], upper=False)
        likelihood = 0.5 * whitened.square().sum() + torch.log(torch.diagonal(factor)).sum()
        total = likelihood + 0.5 * n * np.log(2 * np.pi) + 0.5 * x.square().sum()
        total.backward()
        return float(total), x.grad.numpy()

    return value_and_gradient


def gpytorch_likelihood(objective: LatentObjective) -> Callable[[], None]:
    """Return one value and gradient of GPyTorch's likelihood at fixed embeddings."""
    import gpytorch
    import torch

    class Model(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(inputs, targets, likelihood)
            self.mean, self.base = gpytorch.means.ConstantMean(), gpytorch.kernels.RBFKernel()
            self.task = gpytorch.kernels.IndexKernel(num_tasks=N_ALGORITHMS, rank=1)

        def forward(self, u: Any, m: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(u), self.base(u) * self.task(m))

    points = objective.start.embed(objective.tasks, objective.vectors)
    inputs = (torch.from_numpy(points), torch.from_numpy(objective.tasks)[:, None])
    targets = torch.from_numpy(objective.targets)
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    model = Model().double()
    model.train()
    marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)

    def step() -> None:
        model.zero_grad()
        (-marginal(model(*inputs), targets)).backward()

    return step


def time_steps(n: int, repeats: int) -> None:
    """Print one row of the second table."""
    tasks, vectors, losses = made_up_observations(n, seed=0)
    surrogate = LatentSurrogate(n_algorithms=N_ALGORITHMS, pretrained=made_up_embedding())
    standardised = (losses - losses.mean()) / losses.std()
    objective = surrogate.objective(tasks, vectors, standardised, np.random.default_rng(0))
    offsets = np.zeros(objective.n_parameters)
    by_torch, by_gpytorch = torch_objective(objective), gpytorch_likelihood(objective)
    np.testing.assert_allclose(by_torch(offsets)[1], objective(offsets)[1], atol=1e-6)
    calls = (lambda: objective(offsets), lambda: by_torch(offsets), by_gpytorch)
    own, autograd, library = (1e3 * processor_seconds(call, 10 * repeats) for call in calls)
    print(f"{n:>12} {own:>8.2f} {autograd:>10.2f} {library:>10.2f}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--observations", nargs="+", type=int, default=[25, 60, 100, 250, 300])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(".timings/latent_time.csv"), help="rows; grows")
    parser.add_argument("--only-fits", action="store_true", help="leave out the steps of PyTorch and GPyTorch")
    arguments = parser.parse_args()

    file = RowFile(arguments.out, LatentTime)
    done = file.keys("observations", repeats=arguments.repeats)
    for n in arguments.observations:
        if (n,) not in done:
            file.add(time_fits(n, arguments.repeats))
    kept = file.frame(observations=arguments.observations, repeats=arguments.repeats)
    print(kept.drop(columns=["repeats", "commit"]).to_string(index=False))
    if arguments.only_fits:
        return

    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # of GPyTorch
    print(f"\n{'observations':>12} {'numpy ms':>8} {'PyTorch ms':>10} {'GPyTorch ms':>11}")
    for n in arguments.observations:
        time_steps(n, arguments.repeats)


if __name__ == "__main__":
    main()
