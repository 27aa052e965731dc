"""Find algorithms with too few trials."""

from __future__ import annotations

import numpy as np

from cashmere.base.arrays import FloatArray, IntArray
from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks


def has_unvisited(blocks: AlgorithmBlocks, decided: FloatArray, n_initial: int) -> bool:
    """Return whether an algorithm has fewer than `n_initial` trials and new configurations left.

    Parameters
    ----------
    blocks : AlgorithmBlocks
        The space and its algorithms.
    decided : (n, d) array
        Encoded configurations of all trials so far.
    n_initial : int
        Trials that each algorithm should have.

    Notes
    -----
    After twice the trials this would take, the answer is False: forbidden clauses may make an algorithm hard to draw.
    """
    if len(decided) >= 2 * n_initial * len(blocks.drawable):
        return False
    counts = np.bincount(blocks.tasks(decided), minlength=len(blocks.names))
    few: IntArray = blocks.drawable[counts[blocks.drawable] < n_initial]
    for task in few:
        everything = blocks.encoder.enumerate(n_initial, fixed=blocks.fixed(task))
        if everything is None or counts[task] < len(everything):
            return True
    return False
