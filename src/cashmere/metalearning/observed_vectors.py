"""The configurations of source observations as arrays."""

from __future__ import annotations

import numpy as np
from ConfigSpace import Configuration

from cashmere.base.arrays import Float64, IntArray
from cashmere.metalearning.observations import SourceObservations
from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks

FOREIGN = -1
"""Stands for the algorithm of a configuration outside the space, as from a run on a table with categories."""


def observed_vectors(observations: SourceObservations, blocks: AlgorithmBlocks) -> tuple[IntArray, Float64]:
    """Return algorithm ``(n,)`` and vector ``(n, width)`` of each listed configuration.

    Configurations that are not in the space have the algorithm `FOREIGN` and zeros.
    """
    tasks = np.full(len(observations.configurations), FOREIGN)
    vectors = np.zeros((len(tasks), blocks.width))
    for i, values in enumerate(observations.configurations):
        try:
            row = blocks.encoder.encode([Configuration(blocks.encoder.space, dict(values))])
        except (ValueError, KeyError, TypeError):  # raised by ConfigSpace for unknown names and wrong values
            continue
        tasks[i], vectors[i] = blocks.tasks(row)[0], blocks.vectors(row)[0]
    return tasks, vectors
