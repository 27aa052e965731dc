"""How configurations rank on source tables, and which of the tables agree with the one at hand.

======================  ==========================  =============================================================
symbol                  shape                       meaning
======================  ==========================  =============================================================
R                       ``(S, n)``                  rank of configuration i among all of source s, from 0 to 1
X                       ``(n, d)``                  vectors of one algorithm's configurations
K                       ``(n, n)``                  Matern kernel of X
C                       ``(n, S)``                  (K + noise I)^-1 (R - mean)^T
======================  ==========================  =============================================================
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from cashmere.base.arrays import Float64, FloatArray, IntArray
from cashmere.exceptions import ObservationsError
from cashmere.metalearning.observations import SourceObservations, SourceTable
from cashmere.metalearning.observed_vectors import FOREIGN, observed_vectors
from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks
from cashmere.surrogates.gaussian_process import GaussianProcessPrior, matern52

_SMOOTHING = 0.01
"""Noise of recorded ranks as a share of that of losses: the mean over several sources averages it out already."""

_MIDDLE = 0.5
"""Rank of an algorithm that was never tried on a source."""


def rank_shares(losses: FloatArray) -> Float64:
    """Return ranks from 0, the lowest loss, to 1; ties share the mean of theirs.

    Parameters
    ----------
    losses : (n,) array
        NaN, for failures, is worse than every loss.

    Examples
    --------
    >>> rank_shares(np.array([0.3, np.nan, 0.1]))
    array([0.5, 1. , 0. ])
    """
    from scipy.stats import rankdata

    ranks = rankdata(np.where(np.isnan(losses), np.inf, losses)) - 1
    shares: Float64 = ranks / max(len(losses) - 1, 1)
    return shares


def agreement(ranks: FloatArray, losses: FloatArray) -> Float64:
    """Return how well the order on each source agrees with that of some losses: Spearman's correlation.

    Parameters
    ----------
    ranks : (S, n) array
        Ranks of n configurations on the sources.
    losses : (n,) array
        Finite losses of the same configurations on the table at hand.

    Returns
    -------
    (S,) array
        From -1 to 1; 0 where one side is constant, and no order can be told.
    """
    from scipy.stats import rankdata

    if not len(losses):
        return np.zeros(len(ranks))
    ours, theirs = rankdata(losses), rankdata(ranks, axis=1)
    ours, theirs = ours - ours.mean(), theirs - theirs.mean(axis=1, keepdims=True)
    scale = np.sqrt(np.square(ours).sum() * np.square(theirs).sum(axis=1))
    correlation: Float64 = theirs @ ours / np.where(scale > 0, scale, 1.0)
    return correlation


def best_agreeing(ranks: FloatArray, losses: FloatArray, n: int) -> IntArray:
    """Return the positions of the n sources that agree best, see `agreement`; the first in a tie."""
    found: IntArray = np.argsort(-agreement(ranks, losses), kind="stable")[:n]
    return found


def fit_line(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Return intercept and slope of the line that comes nearest to y by squares, with a slope of at least 0.

    Parameters
    ----------
    x, y : (n,) array
        At least one point; where all of x are equal, the slope is 0.

    Examples
    --------
    >>> fit_line(np.array([0.0, 1.0]), np.array([1.0, 3.0]))
    (1.0, 2.0)
    """
    centred = x - x.mean()
    spread = float(centred @ centred)
    slope = max(float(centred @ y) / spread, 0.0) if spread > 0 else 0.0
    return float(y.mean() - slope * x.mean()), slope


@dataclass(frozen=True, kw_only=True, eq=False)
class SourceRanks:
    """Predict the rank of any configuration on each source: a kernel smoother of the recorded ranks per algorithm.

    Attributes
    ----------
    points : tuple of M (n_m, d_m) arrays
        Vectors of the recorded configurations of each algorithm.
    length_scales : tuple of M (d_m,) arrays
        Length scales of the kernels.
    means : (S, M) array
        Mean rank of each algorithm on each source.
    coefficients : tuple of M (n_m, S) arrays
        C; 0 where a source has no observation.
    """

    points: tuple[FloatArray, ...]
    length_scales: tuple[FloatArray, ...]
    means: FloatArray
    coefficients: tuple[FloatArray, ...]

    @classmethod
    def learn(
        cls,
        observations: SourceObservations,
        sources: Collection[str],
        blocks: AlgorithmBlocks,
        priors: Sequence[GaussianProcessPrior],
    ) -> Self:
        """Learn from the observations of some sources.

        Parameters
        ----------
        observations : SourceObservations
            Losses of configurations on tables.
        sources : collection of str
            Names of the tables to learn from.
        blocks : AlgorithmBlocks
            The space; configurations outside it are left out.
        priors : sequence of M GaussianProcessPrior
            One per algorithm: its length scales and, in part, the ratio of noise and signal say how far to smooth.

        Raises
        ------
        ObservationsError
            If there is no observation of these tables in the space.
        """
        tasks, vectors = observed_vectors(observations, blocks)
        tables = [table for table in observations.tables if table.name in sources]
        ranks = np.full((len(tables), len(tasks)), np.nan)
        for row, table in zip(ranks, tables, strict=True):
            _enter_ranks(row, table, tasks)
        if not np.isfinite(ranks).any():
            raise ObservationsError(
                "The artefact holds no observations of its sources for the algorithms of this space. Build it again "
                "with `cashmere pretrain`."
            )
        points, coefficients = [], []
        means = np.full((len(tables), len(blocks.names)), _MIDDLE)
        for task, prior in enumerate(priors):
            own = np.flatnonzero(tasks == task)
            X = vectors[own, : blocks.n_dims[task]]
            kernel = matern52(X, X, prior.length_scales)
            noise = _SMOOTHING * prior.noise_variance / prior.signal_variance
            found = np.zeros((len(own), len(tables)))
            for source, row in enumerate(ranks[:, own]):
                tried = np.flatnonzero(np.isfinite(row))
                if not len(tried):
                    continue
                means[source, task] = row[tried].mean()
                inside = kernel[np.ix_(tried, tried)] + noise * np.eye(len(tried))
                found[tried, source] = np.linalg.solve(inside, row[tried] - means[source, task])
            points.append(X)
            coefficients.append(found)
        return cls(
            points=tuple(points),
            length_scales=tuple(prior.length_scales for prior in priors),
            means=means,
            coefficients=tuple(coefficients),
        )

    def predict(self, tasks: IntArray, vectors: FloatArray, sources: IntArray | None = None) -> Float64:
        """Return the ranks of configurations on all or some of the sources.

        Parameters
        ----------
        tasks : (n,) int array
            Algorithm of each.
        vectors : (n, width) array
            Their coordinates, see `AlgorithmBlocks`.
        sources : (k,) int array, optional
            Positions of sources.

        Returns
        -------
        (S, n) or (k, n) array
        """
        chosen = np.arange(len(self.means)) if sources is None else sources
        ranks = np.empty((len(chosen), len(tasks)))
        for task in np.unique(tasks):
            mine = np.flatnonzero(tasks == task)
            X, lengths = self.points[task], self.length_scales[task]
            kernel = matern52(vectors[mine, : len(lengths)], X, lengths)
            ranks[:, mine] = self.means[chosen, task][:, None] + (kernel @ self.coefficients[task][:, chosen]).T
        return ranks


def _enter_ranks(row: Float64, table: SourceTable, tasks: IntArray) -> None:
    """Fill in the ranks on one source; configurations not tried there, or outside the space, stay NaN."""
    kept = tasks[table.configurations] != FOREIGN
    if np.isfinite(table.losses[kept]).any():
        row[table.configurations[kept]] = rank_shares(table.losses[kept])
