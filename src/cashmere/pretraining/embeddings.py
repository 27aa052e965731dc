"""Pre-training of the latent space on the recorded losses of one source table.

======================  =========================  ==================================================================
symbol                  shape                      meaning
======================  =========================  ==================================================================
M, P                    int                        algorithms, pairs of them
n, b                    int                        configurations of the algorithm with most, and drawn ones
X                       ``(M, n, width)``          configurations of each algorithm, filled up
weights                 ``(M, n)``                 1 / number of the algorithm's configurations; 0 for filled-up rows
regrets                 ``(M, n)``                 loss minus the table's lowest loss, over the losses' deviation
U                       ``(M, n, q)``              embeddings
======================  =========================  ==================================================================

References
----------
Ishikawa, Ozaki, Kanzaki, Takeuchi and Karasuyama (2025), Bayesian optimization for simultaneous selection of machine
learning algorithms and hyperparameters on shared latent space, arXiv:2502.09329, section 3.2,
equations 10-13; docs/papers/latent.md#pre-training.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from cashmere.base.arrays import Float64, FloatArray, IntArray
from cashmere.exceptions import ArrayError, InvalidParameterError, MissingDependencyError
from cashmere.strategies.shared.scaled_losses import loss_bound
from cashmere.surrogates.latent import ALL_LAYERS, MIN_LOSS_STD
from cashmere.surrogates.latent_space import Encoders, PretrainedEmbedding, rows_of_tasks

_N_CLASSIFIER_STEPS = 5
"""Steps of the classifiers per step of the embedding: docs/papers/latent.md#pre-training."""

_N_CLASSIFIER_UNITS = 16
_N_DRAWN = 32
"""Embeddings of each algorithm used in one step of the classifiers."""

_LEARNING_RATE = 0.01


def pretrain(
    tasks: IntArray,
    vectors: FloatArray,
    losses: FloatArray,
    *,
    n_algorithms: int,
    rng: np.random.Generator,
    source: str = "",
    q: int = 2,
    lambda_adv: float = 0.1,
    cap: bool = False,
    n_steps: int = 300,
    n_hidden: int = 32,
) -> PretrainedEmbedding:
    """Train encoders whose squared radius is the regret and which hide the algorithm (eq. 11, 13).

        min over W of  sum_m mean_i (r_i - ||phi_m(x_i)||^2)^2 - lambda_adv mean_{m<m'} min over theta CE_{m,m'}

    with regrets r = loss - lowest loss in units of the losses' standard deviation.

    Parameters
    ----------
    tasks : (n,) int array
        Algorithm of each configuration, 0 .. `n_algorithms` - 1.
    vectors : (n, width) array
        Hyper-parameters in [0, 1].
    losses : (n,) array
        NaN for failed configurations, which are left out.
    n_algorithms : int
        M.
    rng : numpy.random.Generator
        Draws the initial weights, and the embeddings that the classifiers see.
    source : str
        Name of the table.
    q : int
        Dimension of the latent space.
    lambda_adv : float
        Weight of the adversarial term, non-negative; 0 leaves it out.
    cap : bool
        Treat very bad losses as equally bad, as surrogates do (`cashmere.strategies.shared.scaled_losses.loss_bound`):
        they say nothing about good configurations, and leave the networks little room for these.
    n_steps : int
        Steps of Adam; its rate falls linearly to zero.
    n_hidden : int
        Units in each of the two hidden layers.

    Returns
    -------
    PretrainedEmbedding
        Encoders with ``||u||^2`` near the regret in units of the losses. An algorithm without a success maps all its
        configurations to one point, at the radius of the mean regret.

    Raises
    ------
    ArrayError
        If no loss is finite.
    InvalidParameterError
        If `lambda_adv` is negative.
    MissingDependencyError
        If PyTorch is not installed.

    Notes
    -----
    Deviations: regrets are divided by the losses' standard deviation while training, so that `lambda_adv` means the
    same for tables of any spread: on raw losses the target of a narrow table drowns in the adversarial term (0.1 there
    is 0.1 / variance here). Classifiers see a random part of the embeddings in each step and continue from the step
    before. They stay above chance where algorithms differ in quality, because the radii then reveal the algorithm.
    """
    torch = import_torch()
    if lambda_adv < 0:
        raise InvalidParameterError("lambda_adv", lambda_adv, "at least 0")
    known = np.isfinite(losses)
    if not known.any():
        raise ArrayError("losses", f"losses must hold at least one finite number; got {losses}.")
    tasks, vectors = tasks[known], vectors[known]
    losses = np.asarray(losses[known], dtype=np.float64)
    if cap:
        losses = np.minimum(losses, loss_bound(losses))
    loss_std = float(losses.std())
    unit = max(loss_std, MIN_LOSS_STD)
    regrets = (losses - losses.min()) / unit
    lists = _Lists(tasks, n_algorithms)
    drawn = Encoders.draw(n_algorithms=n_algorithms, width=vectors.shape[1], q=q, n_hidden=n_hidden, rng=rng)

    with one_torch_thread():
        X, r, weights = (torch.from_numpy(values).float() for values in (*lists.fill(vectors, regrets), lists.weights))
        w = [torch.from_numpy(getattr(drawn, name)).float().requires_grad_() for name in ALL_LAYERS]
        optimiser = torch.optim.Adam(w, lr=_LEARNING_RATE)
        adversary = _Classifiers(lists, q, rng) if lambda_adv > 0 and len(lists.pairs) else None
        for step in range(n_steps):
            optimiser.param_groups[0]["lr"] = _LEARNING_RATE * (1 - step / n_steps)
            optimiser.zero_grad()
            U = _embed(X, w)
            objective = (weights * (r - U.square().sum(dim=2)).square()).sum()
            if adversary is not None:
                adversary.learn(U.detach(), _N_CLASSIFIER_STEPS)
                objective = objective - lambda_adv * adversary.cross_entropies(U, weights).mean()
            objective.backward()
            optimiser.step()
        encoders = Encoders(*(values.detach().double().numpy() for values in w))

    w3, b3 = encoders.w3 * np.sqrt(unit), encoders.b3 * np.sqrt(unit)
    unseen = lists.sizes == 0
    w3[unseen], b3[unseen] = 0.0, np.sqrt(regrets.mean() * unit / q)
    return PretrainedEmbedding(dataclasses.replace(encoders, w3=w3, b3=b3), loss_std, source)


def rank_correlation(embedding: PretrainedEmbedding, tasks: IntArray, vectors: FloatArray, losses: FloatArray) -> float:
    """Return Spearman's correlation of ``||u||^2`` with true losses ``(n,)``; failures (NaN) are left out."""
    from scipy.stats import spearmanr

    known = np.isfinite(losses)
    points = embedding.encoders.embed(tasks[known], vectors[known])
    return float(spearmanr(np.square(points).sum(axis=1), losses[known]).statistic)


def pairwise_accuracy(
    points: FloatArray,
    tasks: IntArray,
    held_out_points: FloatArray,
    held_out_tasks: IntArray,
    *,
    rng: np.random.Generator,
    n_steps: int = 500,
) -> float:
    """Return how well new one-versus-one classifiers distinguish algorithms by their embeddings.

    Little more than one half if the adversarial term has worked: docs/papers/latent.md#pre-training.

    Parameters
    ----------
    points, tasks : (n, q), (n,) array
        Embeddings that the classifiers learn from, and their algorithms.
    held_out_points, held_out_tasks : (n', q), (n',) array
        Embeddings on which they are tested.
    rng : numpy.random.Generator
        Draws the initial weights and the embeddings of each step.
    n_steps : int
        Steps of Adam.

    Returns
    -------
    float
        Balanced accuracy, the mean over pairs of algorithms in both groups: 0.5 is chance, 1 is perfect separation.

    Raises
    ------
    ArrayError
        If fewer than two algorithms are in both groups.
    MissingDependencyError
        If PyTorch is not installed.
    """
    torch = import_torch()
    n_algorithms = int(max(np.max(tasks), np.max(held_out_tasks))) + 1
    shared = np.intersect1d(tasks, held_out_tasks)
    if len(shared) < 2:
        raise ArrayError(
            "held_out_tasks", f"tasks and held_out_tasks must share at least two algorithms; they share {len(shared)}."
        )
    centre, scale = points.mean(axis=0), points.std(axis=0) + 1e-12
    learned, asked = _Lists(tasks, n_algorithms, shared), _Lists(held_out_tasks, n_algorithms, shared)
    (U,), (V,) = learned.fill((points - centre) / scale), asked.fill((held_out_points - centre) / scale)
    with one_torch_thread():
        classifiers = _Classifiers(learned, U.shape[2], rng)
        classifiers.learn(torch.from_numpy(U).float(), n_steps)
        with torch.no_grad():
            first, second = (logits.numpy() > 0 for logits in classifiers.logits(torch.from_numpy(V).float()))
    weights = asked.weights[learned.pairs]
    correct = (weights[:, 0] * first).sum(axis=1) + (weights[:, 1] * ~second).sum(axis=1)
    return float(correct.mean() / 2)


def import_torch() -> Any:
    """Return PyTorch, which only pre-training needs.

    Raises
    ------
    MissingDependencyError
        If it is not installed.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError("torch", "Pre-training of latent spaces", "latent") from error
    return torch


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let PyTorch use one thread inside a ``with`` block: cores belong to workers, sums must not depend on threads."""
    torch = import_torch()
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


class _Lists:
    """The rows of each algorithm, filled up to equal length, to process all algorithms together."""

    def __init__(self, tasks: IntArray, n_algorithms: int, present: Sequence[int] | IntArray | None = None) -> None:
        rows = dict(rows_of_tasks(tasks))
        self.sizes = np.array([len(rows.get(m, ())) for m in range(n_algorithms)])
        self._positions = np.zeros((n_algorithms, self.sizes.max()), dtype=np.int64)
        for m, found in rows.items():
            self._positions[m, : len(found)] = found
        is_row = np.arange(self.sizes.max()) < self.sizes[:, None]
        self.weights: Float64 = is_row / np.maximum(self.sizes, 1)[:, None]
        names = np.flatnonzero(self.sizes) if present is None else np.asarray(present)
        self.pairs: IntArray = names[np.stack(np.triu_indices(len(names), 1), axis=1)]

    def fill(self, *arrays: FloatArray) -> list[FloatArray]:
        """Return arrays over the rows in the form ``(M, n, ...)``."""
        return [values[self._positions] for values in arrays]


class _Classifiers:
    """One small network per pair of algorithms, in the order of ``lists.pairs``, all trained together (eq. 12)."""

    def __init__(self, lists: _Lists, q: int, rng: np.random.Generator) -> None:
        torch = import_torch()
        n_pairs, units = len(lists.pairs), _N_CLASSIFIER_UNITS
        self._lists, self._rng = lists, rng
        self._first, self._second = (torch.from_numpy(np.ascontiguousarray(names)) for names in lists.pairs.T)
        drawn = (
            2 * rng.normal(size=(n_pairs, q, units)),  # embeddings have a radius of about 1
            rng.normal(size=(n_pairs, 1, units)),
            rng.normal(size=(n_pairs, units, 1)) / np.sqrt(units),
            np.zeros((n_pairs, 1, 1)),
        )
        self._parameters = [torch.from_numpy(values).float().requires_grad_() for values in drawn]
        self._optimiser = torch.optim.Adam(self._parameters, lr=_LEARNING_RATE)

    def logits(self, U: Any) -> tuple[Any, Any]:
        """Return log odds of the pair's first algorithm, ``(P, n)``, for the embeddings of the first and the second."""
        return self._logits(U[self._first]), self._logits(U[self._second])

    def cross_entropies(self, U: Any, weights: Any) -> Any:
        """Return CE of each pair, ``(P,)``, with equal weight of its two algorithms."""
        softplus = import_torch().nn.functional.softplus
        first, second = self.logits(U)
        return (weights[self._first] * softplus(-first) + weights[self._second] * softplus(second)).sum(dim=1)

    def learn(self, U: Any, n_steps: int) -> None:
        """Take training steps to distinguish embeddings ``(M, n, q)``, each on a random part of them."""
        torch = import_torch()
        sizes = np.maximum(self._lists.sizes, 1)[:, None]
        share = torch.full((len(sizes), _N_DRAWN), 1 / _N_DRAWN)
        for _ in range(n_steps):
            drawn = (self._rng.random((len(sizes), _N_DRAWN)) * sizes).astype(np.int64)
            part = torch.take_along_dim(U, torch.from_numpy(drawn)[:, :, None], dim=1)
            self._optimiser.zero_grad()
            self.cross_entropies(part, share).sum().backward()
            self._optimiser.step()

    def _logits(self, U: Any) -> Any:
        torch = import_torch()
        w1, b1, w2, b2 = self._parameters
        return torch.baddbmm(b2, torch.tanh(torch.baddbmm(b1, U, w1)), w2)[:, :, 0]


def _embed(X: Any, w: Sequence[Any]) -> Any:
    """Compute `Encoders.embed` in PyTorch: ``(M, n, q)`` for ``(M, n, width)``."""
    torch = import_torch()
    w1, b1, w2, b2, w3, b3 = w
    hidden = torch.tanh(torch.baddbmm(b1[:, None], X, w1))
    hidden = torch.tanh(torch.baddbmm(b2[:, None], hidden, w2))
    return torch.baddbmm(b3[:, None], hidden, w3)
