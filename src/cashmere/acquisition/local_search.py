"""Maximise an acquisition function for each algorithm: coordinate by coordinate, or exhaustively if it is small.

Scores are computed for all algorithms and all starting points together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import numpy as np

from cashmere.base.arrays import Float64, FloatArray, IntArray

if TYPE_CHECKING:
    from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks
    from cashmere.space.encoding.encoder import SpaceEncoder

Score = Callable[[Float64], FloatArray]
"""Values of encoded rows ``(n, d)``, shape ``(n,)``; larger is better, such as the logarithm of an improvement."""

EXHAUSTIVE = 200
"""Algorithms with at most this many configurations are searched completely."""

_SAME = 1e-9
"""Scores that differ by less count as equal, so that decisions do not depend on the last bits of the arithmetic."""

_MAX_ROWS = 20_000
"""Number of tried values after which ascents stop: in many dimensions, Gaussian draws keep finding a little more."""

_ROWS_PER_STEP = 40
"""Approximate number of values tried per step of an ascent in `maximise_per_algorithm`: 10 each in four dimensions."""


def ascend(
    encoder: SpaceEncoder,
    starts: FloatArray,
    score: Score,
    rng: np.random.Generator,
    *,
    n_draws: int = 10,
    fixed: Collection[str] = (),
    excluded: FloatArray | None = None,
) -> tuple[Float64, Float64]:
    """Climb from every start by the best change of a single parameter, until no change is better.

    Parameters
    ----------
    encoder : SpaceEncoder
        The space; in a catalogue only the starts are reached.
    starts : (k, d) array
        Encoded configurations.
    score : callable
        The function to maximise.
    rng : numpy.random.Generator
        Source of randomness.
    n_draws, fixed
        Values tried per number, and the parameters kept fixed; see `SpaceEncoder.coordinate_moves`.
    excluded : (m, d) array, optional
        Rows that cannot be a result or a step, such as observed ones; starts may be among them.

    Returns
    -------
    rows : (k, d) array
        The best row of each ascent; its start if nothing was better.
    values : (k,) array
        Their scores; -inf for an excluded start without a better neighbour.

    Notes
    -----
    The tried values of all coordinates are pooled (steepest ascent); all ascents advance together.

    References
    ----------
    Ishikawa et al. (2025), appendix A, as read in docs/papers/latent.md#local-search; one-exchange steps as in Hutter,
    Hoos and Leyton-Brown (2011), Sequential model-based optimization for general algorithm configuration, LION 5.
    """
    rows = np.array(starts, dtype=np.float64)
    if not len(rows):
        return rows, np.empty(0)
    seen = np.empty(0, dtype=np.uint64) if excluded is None else encoder.keys(excluded)
    values = np.where(np.isin(encoder.keys(rows), seen), -np.inf, score(rows))
    climbing, n_scored = np.arange(len(rows)), 0
    while len(climbing) and n_scored < _MAX_ROWS:
        moved, owner = encoder.coordinate_moves(rows[climbing], rng, n_draws=n_draws, fixed=fixed)
        fresh = ~np.isin(encoder.keys(moved), seen)
        moved, owner = moved[fresh], owner[fresh]
        if not len(moved):
            break
        scores, n_scored = np.asarray(score(moved), dtype=np.float64), n_scored + len(moved)
        best = _best_of_each(owner, scores)
        better = best[scores[best] > values[climbing[owner[best]]] + _SAME]
        climbing = climbing[owner[better]]
        rows[climbing], values[climbing] = moved[better], scores[better]
    return rows, values


def maximise_per_algorithm(
    blocks: AlgorithmBlocks,
    score: Score,
    decided: FloatArray,
    rng: np.random.Generator,
    *,
    n_starts: int = 10,
    algorithms: IntArray | None = None,
) -> tuple[Float64, Float64]:
    """Return the best new configuration of every algorithm.

    Parameters
    ----------
    blocks : AlgorithmBlocks
        The space and its algorithms.
    score : callable
        The function to maximise.
    decided : (m, d) array
        Encoded configurations that must not be returned.
    rng : numpy.random.Generator
        Draws starting points and the values to try, and breaks ties.
    n_starts : int
        Starting points per algorithm, drawn from the prior.
    algorithms : (k,) int array, optional
        Positions in `AlgorithmBlocks.names` of the algorithms to search; by default all that the prior draws.

    Returns
    -------
    rows : (n, d) array
        One row per algorithm that has a configuration left, best score first.
    values : (n,) array
        Their scores.

    Notes
    -----
    Algorithms with at most `EXHAUSTIVE` configurations are searched completely, as are the listed configurations of a
    catalogue (`CatalogueEncoder`). In more than four dimensions, fewer than 10 values are tried per number.
    """
    encoder = blocks.encoder
    starts, complete = [np.empty((0, encoder.n_dims))], [np.empty((0, encoder.n_dims))]
    limit = EXHAUSTIVE if encoder.n_listed is None else encoder.n_listed
    for task in blocks.drawable if algorithms is None else algorithms:
        everything = encoder.enumerate(limit, fixed=blocks.fixed(task))
        if everything is not None:
            complete.append(everything)
        else:
            starts.append(encoder.sample(n_starts, rng, fixed=blocks.fixed(task), max_tries=20))
    listed = np.concatenate(complete)
    listed = rng.permutation(listed[~np.isin(encoder.keys(listed), encoder.keys(decided))])
    drawn = np.concatenate(starts)
    n_active = encoder.activity(drawn).sum(axis=1)
    n_draws = int(np.clip(_ROWS_PER_STEP // max(np.median(n_active) - 1, 1), 1, 10)) if len(drawn) else 1
    climbed, values = ascend(
        encoder, drawn, score, rng, n_draws=n_draws, fixed=blocks.fixed(0).keys(), excluded=decided
    )
    reached = values > -np.inf
    rows = np.concatenate([listed, climbed[reached]])
    values = np.concatenate([score(listed) if len(listed) else np.empty(0), values[reached]])
    best = _best_of_each(blocks.tasks(rows), values)
    best = best[np.lexsort([rng.random(len(best)), -_rounded(values[best])])]
    return rows[best], values[best]


def _best_of_each(owner: IntArray, values: FloatArray) -> IntArray:
    """Return the position of each owner's largest value, the first in a tie, by ascending owner."""
    order = np.lexsort([np.arange(len(values)), -_rounded(values), owner])
    _, first = np.unique(owner[order], return_index=True)
    best: IntArray = order[first]
    return best


def _rounded(values: FloatArray) -> Float64:
    with np.errstate(over="ignore"):
        return np.rint(np.asarray(values, dtype=np.float64) / _SAME)
