"""Draw the candidates for an acquisition function: from the prior, and neighbours of the best configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import Float64, FloatArray

if TYPE_CHECKING:
    from cashmere.space.encoding.encoder import SpaceEncoder


def draw_candidates(
    encoder: SpaceEncoder,
    history_rows: FloatArray,
    history_losses: FloatArray,
    rng: np.random.Generator,
    *,
    n_global: int = 4950,
    n_local: int = 50,
    n_incumbents: int = 10,
    n_retries: int = 5,
    excluded: FloatArray | None = None,
) -> Float64:
    """Draw distinct configurations that are not in the history.

    Parameters
    ----------
    encoder : SpaceEncoder
        The space.
    history_rows : (n_observations, d) array
        Encoded observed configurations.
    history_losses : (n_observations,) array
        Their losses.
    rng : numpy.random.Generator
        Source of randomness.
    n_global : int
        Draws from the prior.
    n_local : int
        One-exchange neighbours, dealt evenly to the best observed configurations.
    n_incumbents : int
        How many of the best distinct observed configurations to draw neighbours of.
    n_retries : int
        Rounds of prior draws that replace duplicates; after that, fewer candidates are accepted.
    excluded : (m, d) array, optional
        Further rows that must not be drawn, such as pending trials.

    Returns
    -------
    (n_candidates, d) array
        At most ``n_local + n_global`` rows, neighbours first; without duplicates of the history or of each other.

    References
    ----------
    Shen et al. (2022), DivBO: Diversity-aware CASH for ensemble learning, NeurIPS, appendix A.4 (the numbers); for
    the rest docs/papers/surrogates.md#candidates.
    """
    history_keys = encoder.keys(history_rows)
    seen = history_keys if excluded is None else np.concatenate([history_keys, encoder.keys(excluded)])
    incumbents = history_rows[best_distinct(history_keys, history_losses, n_incumbents)]
    candidates = encoder.sample(n_global, rng)
    if len(incumbents):
        counts = [n_local // len(incumbents) + (i < n_local % len(incumbents)) for i in range(len(incumbents))]
        candidates = np.concatenate([encoder.draw_neighbours(incumbents, counts, rng), candidates])
    wanted = n_global + (n_local if len(incumbents) else 0)
    candidates, keys = _drop_repeated(encoder, candidates, seen)
    for _ in range(n_retries):
        missing = wanted - len(candidates)
        if missing <= 0:
            break
        drawn = encoder.sample(missing, rng)
        fresh, fresh_keys = _drop_repeated(encoder, drawn, np.concatenate([seen, keys]))
        candidates, keys = np.concatenate([candidates, fresh]), np.concatenate([keys, fresh_keys])
        if len(drawn) < missing:  # the whole catalogue was drawn
            break
    return candidates


def best_distinct(keys: NDArray[np.uint64], losses: FloatArray, n: int) -> NDArray[np.int64]:
    """Return positions of the n best distinct rows by ascending loss, ties in order of position.

    Parameters
    ----------
    keys : (n_rows,) array
        From `SpaceEncoder.keys`.
    losses : (n_rows,) array
        Losses of the rows.
    n : int
        How many; there may be fewer.
    """
    order = np.argsort(losses, kind="stable")
    _, first = np.unique(keys[order], return_index=True)
    return order[np.sort(first)[:n]].astype(np.int64)


def _drop_repeated(
    encoder: SpaceEncoder, rows: Float64, seen: NDArray[np.uint64]
) -> tuple[Float64, NDArray[np.uint64]]:
    """Return the rows that are neither seen nor repeated, in order, and their keys."""
    keys = encoder.keys(rows)
    _, first = np.unique(keys, return_index=True)
    kept = np.sort(first)
    kept = kept[~np.isin(keys[kept], seen)]
    return (rows, keys) if len(kept) == len(rows) else (rows[kept], keys[kept])
