"""Short searches on recorded losses that judge the value of a pre-trained embedding for another table.

Algorithm 2 of the paper searches every source table with the embedding of every other one. Losses are looked up in the
sources' observations, so a search costs only its model fits.

References
----------
Ishikawa, Ozaki, Kanzaki, Takeuchi and Karasuyama (2025), arXiv:2502.09329, section 3.3, as read in
docs/papers/latent.md#labels-of-the-ranker.
"""

from __future__ import annotations

import numpy as np

from cashmere.acquisition.improvement import log_expected_improvement
from cashmere.base.arrays import Float64, FloatArray, IntArray
from cashmere.exceptions import ArrayError
from cashmere.surrogates.latent import LatentSurrogate
from cashmere.surrogates.latent_space import PretrainedEmbedding


def search_recorded(
    losses: FloatArray,
    tasks: IntArray,
    vectors: FloatArray,
    pretrained: PretrainedEmbedding | None,
    rng: np.random.Generator,
    *,
    n_iterations: int,
    n_initial: int = 2,
) -> Float64:
    """Search recorded configurations by expected improvement under the latent surrogate.

    Parameters
    ----------
    losses : (C,) array
        Losses of the recorded configurations; NaN where one failed, which counts as the worst.
    tasks, vectors : (C,) int array, (C, width) array
        The configurations, see `cashmere.space.encoding.algorithm_blocks`.
    pretrained : PretrainedEmbedding or None
        Networks the surrogate starts from.
    rng : numpy.random.Generator
        Draws the initial configurations; equal states compare embeddings on equal terms.
    n_iterations : int
        Decisions after the initial configurations.
    n_initial : int
        Random configurations of each algorithm, fewer if it has fewer.

    Returns
    -------
    (n_iterations + 1,) array
        Best loss after the initial configurations and after each decision; constant once the lowest recorded loss is
        found.

    Raises
    ------
    ArrayError
        If no configuration succeeded.
    """
    known = np.isfinite(losses)
    if not known.any():
        raise ArrayError("losses", "losses must hold at least one finite number; every configuration has failed.")
    losses = np.where(known, losses, losses[known].max())
    n_algorithms = int(tasks.max()) + 1 if pretrained is None else len(pretrained.encoders.b3)
    chosen = [
        position
        for task in np.unique(tasks)
        for position in rng.permutation(np.flatnonzero(tasks == task))[:n_initial].tolist()
    ]
    best = [losses[chosen].min()]
    least = losses.min()
    while len(best) <= n_iterations and best[-1] > least:  # once the lowest loss is found, nothing changes
        rest = np.setdiff1d(np.arange(len(losses)), chosen)
        surrogate = LatentSurrogate(n_algorithms=n_algorithms, pretrained=pretrained)
        surrogate.fit(tasks[chosen], vectors[chosen], losses[chosen], rng)
        mean, variance = surrogate.predict(tasks[rest], vectors[rest])
        improvement = log_expected_improvement(mean, np.sqrt(variance), best[-1])
        chosen.append(int(rest[np.argmax(improvement)]))
        best.append(min(best[-1], losses[chosen[-1]]))
    best += [best[-1]] * (n_iterations + 1 - len(best))
    return np.array(best)
