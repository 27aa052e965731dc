"""A forest that predicts the predictions of a configuration from those of the observations near it.

The validation predictions of all observations are compressed to a few coordinates, and every tree cuts the space of
configurations so that observations in one leaf predict alike. A tree then expects a candidate to predict like the
observations in its leaf. So any property of an observation (its distance to a member of the pool, the loss of the
ensemble with it added) can be predicted for a candidate by looking up leaves, and each tree is one coherent sample of
all of them.

======================  ==========================  =============================================================
symbol                  shape                       meaning
======================  ==========================  =============================================================
X                       ``(n, d)``                  encoded configurations of the observations
Z                       ``(n, r)``                  coordinates of their predictions, see `compression`
D                       ``(n, n_members)``          measure between observations and members of the pool
======================  ==========================  =============================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cashmere.acquisition.diversity import Measure, cross_measure
from cashmere.base.arrays import AnyArray, Float64, FloatArray, IntArray
from cashmere.ensembles.selection import as_targets
from cashmere.exceptions import ArrayError
from cashmere.surrogates.compression import MAX_ROWS, MAX_VALUES, compress, cut_values, distances_to_truth, stack_rows


@dataclass(kw_only=True)
class PredictionSurrogate:
    """Predict how much a configuration's predictions will differ from the pool's, from those of its neighbours.

    Parameters
    ----------
    measure : Measure
        Measure between two predictions, see `cashmere.acquisition.diversity`.
    n_coordinates : int
        Largest number of coordinates to grow the trees on.
    n_trees : int
        Number of trees, each one sample of the prediction.
    min_samples_leaf : int
        Smallest number of observations in a leaf. With 1 a tree reproduces the observations exactly, and the nearest
        pool member of a candidate is often at distance 0: the observation in its leaf.
    feature_fraction : float
        Share of the columns of X examined at each split, in (0, 1].
    loss_weight : float
        Spread of the distances to the targets as a further coordinate; 1 is the spread of all others together.
    max_rows, max_values : int
        Limits on the validation rows, and numbers (rows times classes), used from each prediction; beyond, a fixed
        choice spread evenly over the targets. Copies take up to ``4 n max_values`` bytes (100 MB for 250
        observations), intermediate results about 50 MB.

    Notes
    -----
    A leaf averages the quantity in question, not the predictions: the two agree in leaves with one observation, and
    where a measure is linear in the candidate's prediction (``"mse"``, ``"bs"``). For ``"ce"`` the measure of the
    average prediction ranks unseen configurations slightly better (Kendall's tau 0.33 against 0.29 at 120 observations,
    mean of four recorded histories) at more than twice the cost; for the others tau differs by at most 0.01 either way.
    On the same histories twice as many trees gain at most 0.01; a third of the columns loses up to 0.03, all columns
    gain up to 0.02 on the largest history and nothing on the smallest.

    Predicted values are cut at 10 standard deviations of the target, see `compression.cut_values`: otherwise one
    diverged model would differ by far the most and attract candidates. `sample_pairs` and `predict_pairs` use the cut
    predictions.

    References
    ----------
    Geurts, Ernst and Wehenkel (2006), Extremely randomized trees, Machine Learning 63. The measures are those of Shen
    et al. (2022), DivBO, NeurIPS, and of Poduval et al. (2024), OptDivBO, KDD, which learn pairs of configurations.
    """

    measure: Measure = "div"
    n_coordinates: int = 20
    n_trees: int = 20
    min_samples_leaf: int = 2
    feature_fraction: float = 0.6
    loss_weight: float = 1.0
    max_rows: int = MAX_ROWS
    max_values: int = MAX_VALUES
    _trees: list[Any] = field(default_factory=list, init=False, repr=False)

    def fit(
        self,
        X: FloatArray,
        predictions: Sequence[FloatArray],
        y: AnyArray,
        rng: np.random.Generator,
        *,
        row_weights: FloatArray | None = None,
    ) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : (n, d) array
            Encoded configurations.
        predictions : sequence of n arrays (n_rows, n_classes) or (n_rows,)
            Their finite predictions for the same validation rows; read only.
        y : (n_rows,) array
            Class codes or values.
        rng : numpy.random.Generator
            Draws the columns and thresholds of the splits.
        row_weights : (n_rows,) array, optional
            Weights of the validation rows.

        Raises
        ------
        ArrayError
            If there is no observation, or not one prediction for each.
        """
        if len(X) < 1 or len(predictions) != len(X):
            raise ArrayError(
                "predictions",
                "X and predictions must be equally long and hold at least one configuration; "
                f"got {len(X)} configurations and {len(predictions)} predictions.",
            )
        self._stack, rows = stack_rows(predictions, y, max_rows=self.max_rows, max_values=self.max_values)
        cut_values(self._stack, y)
        self._y = as_targets(y, predictions[0].ndim)[rows]
        self._row_weights = None if row_weights is None else np.asarray(row_weights, dtype=np.float64)[rows]
        coordinates = compress(self._stack, self._y, self.n_coordinates, row_weights=self._row_weights)
        distances = distances_to_truth(self._stack, self._y, row_weights=self._row_weights)
        spread = np.sqrt(np.square(coordinates).sum(axis=1).mean()) or 1.0
        targets = np.column_stack([coordinates, self._scaled(distances, spread)])
        X = np.ascontiguousarray(X, dtype=np.float32)
        self._grow(X, targets, rng)
        self._note_leaves(X)
        return self

    def _scaled(self, distances: FloatArray, spread: float) -> Float64:
        """Return distances with `loss_weight` times the spread of the coordinates, rounded like them."""
        centred = np.asarray(distances, dtype=np.float64) - np.mean(distances)
        # Those that differ only by rounding count as equal.
        own = centred.std() if centred.std() > 1e-9 * np.abs(distances).max() else np.inf
        scaled: Float64 = self.loss_weight * spread / own * centred
        return scaled.astype(np.float32).astype(np.float64)

    def _grow(self, X: NDArray[np.float32], targets: Float64, rng: np.random.Generator) -> None:
        from sklearn import config_context
        from sklearn.tree import ExtraTreeRegressor

        # 1e-9: 0.7 of 10 columns are 7, whatever the rounding.
        n_examined = max(1, int(self.feature_fraction * X.shape[1] + 1e-9))
        self._trees = []
        for seed in rng.integers(2**31 - 1, size=self.n_trees):
            tree = ExtraTreeRegressor(
                max_features=n_examined, min_samples_leaf=self.min_samples_leaf, random_state=int(seed)
            )
            # Arrays are contiguous floats and parameters are valid: checking them would take a fifth of the time.
            with config_context(skip_parameter_validation=True, assume_finite=True):
                self._trees.append(tree.fit(X, targets, check_input=False).tree_)

    def _note_leaves(self, X: NDArray[np.float32]) -> None:
        """Sort the observations of each tree by leaf, so that sums over leaves are sums over ranges."""
        self._n_nodes = 2 * len(X)  # a tree has at most n leaves and n - 1 forks
        nodes = self._nodes(X)
        leaves, self._sizes = np.unique(nodes, return_counts=True)
        self._sorted = np.argsort(nodes, axis=None, kind="stable") % len(X)
        self._leaf_numbers = np.zeros(self._n_nodes * self.n_trees, dtype=np.int64)
        self._leaf_numbers[leaves] = np.arange(len(leaves))

    def _nodes(self, X: NDArray[np.float32]) -> IntArray:
        """Return the leaves ``(n_trees, len(X))`` that configurations fall into, as numbers of nodes of all trees."""
        nodes = np.stack([tree.apply(X) for tree in self._trees])
        return nodes + self._n_nodes * np.arange(len(nodes))[:, None]

    def sample(self, values: FloatArray, candidates: FloatArray, *, further: FloatArray | None = None) -> Float64:
        """Predict any quantity that is known for each observation.

        Parameters
        ----------
        values : (n,) or (n, k) array
            Its values for the observations given to `fit`, in their order, and for the further configurations.
        candidates : (n_candidates, d) array
            Encoded configurations.
        further : (m, d) array, optional
            Configurations that no tree was grown on, but whose values are known: ``values`` has n + m rows then.

        Returns
        -------
        (n_trees, n_candidates) or (n_trees, n_candidates, k) array
            For each tree, the average over the observations in the candidate's leaf.
        """
        values, sizes = np.asarray(values, dtype=np.float64), self._sizes
        sums = np.add.reduceat(values[self._sorted], np.cumsum(sizes) - sizes, axis=0)
        if further is not None and len(further):
            added = self._leaves(further).ravel()
            np.add.at(sums, added, np.concatenate([values[-len(further) :]] * self.n_trees))
            sizes = sizes + np.bincount(added, minlength=len(sizes))
        averages: Float64 = (sums.T / sizes).T
        return averages[self._leaves(candidates)]

    def _leaves(self, X: FloatArray) -> IntArray:
        """Return the leaves ``(n_trees, len(X))`` that configurations fall into, as numbers of leaves of all trees."""
        return self._leaf_numbers[self._nodes(np.ascontiguousarray(X, dtype=np.float32))]

    def sample_pairs(self, candidates: FloatArray, members: IntArray) -> Float64:
        """Predict the measure between candidates and observations.

        Parameters
        ----------
        candidates : (n_candidates, d) array
            Encoded configurations.
        members : (n_members,) int array
            Positions of observations given to `fit`.

        Returns
        -------
        (n_trees, n_candidates, n_members) array
        """
        return self.sample(self._measured(np.asarray(members)), candidates)

    def predict_pairs(self, candidates: FloatArray, others: FloatArray) -> tuple[Float64, Float64]:
        """Predict mean and variance of the measure for all pairs of two groups of unseen configurations.

        Parameters
        ----------
        candidates : (m, d) array
            Encoded configurations, the first of each pair.
        others : (p, d) array
            Encoded configurations, the second.

        Returns
        -------
        mean, variance : (m, p) array
            Moments over the trees; the variance is that of a population and may be 0.

        Notes
        -----
        A tree expects the pair to differ as the observations of one leaf differ from those of the other. Within a leaf
        no observation is paired with itself, because the pair consists of two different configurations: that would
        pull the prediction towards the measure of an observation with itself (0 for ``"div"``). A leaf with a single
        observation, which occurs only with ``min_samples_leaf=1`` or one observation in all, has no other pair and
        predicts that measure.

        Observations are treated as unseen, too; `sample_pairs` looks them up. Besides the result, ``20 n^2`` bytes are
        needed for n observations, ``24 m p`` for the pairs.
        """
        measured = self._measured(np.arange(len(self._stack)))
        first, second = (self._nodes(np.ascontiguousarray(X, dtype=np.float32)) for X in (candidates, others))
        starts = np.cumsum(self._sizes) - self._sizes
        of_tree = np.searchsorted(starts, len(measured) * np.arange(self.n_trees + 1))
        mean, scatter = np.zeros((2, len(candidates), len(others)))
        for tree in range(self.n_trees):
            leaves = slice(of_tree[tree], of_tree[tree + 1])
            inside = self._sorted[len(measured) * tree : len(measured) * (tree + 1)]
            between = _between_leaves(measured[np.ix_(inside, inside)], self._sizes[leaves])
            rows, columns = (self._leaf_numbers[nodes[tree]] - leaves.start for nodes in (first, second))
            # Welford's update: nothing of size (n_trees, m, p) is kept.
            values = between[rows][:, columns]
            deviation = values - mean
            mean += deviation / (tree + 1)
            values -= mean
            values *= deviation
            scatter += values
        return mean, scatter / self.n_trees

    def _measured(self, members: IntArray) -> Float64:
        """Return the measure between all observations and some of them, ``(n, n_members)``."""
        return cross_measure(self.measure, self._stack, self._stack[members], self._y, row_weights=self._row_weights)


def _between_leaves(measured: Float64, sizes: IntArray) -> Float64:
    """Return averages over the pairs of different observations of two leaves, from the measure sorted by leaves."""
    starts = np.cumsum(sizes) - sizes
    sums: Float64 = np.add.reduceat(np.add.reduceat(measured, starts, axis=0), starts, axis=1)
    n_pairs = np.outer(sizes, sizes)
    several, own = sizes > 1, np.arange(len(sizes))
    sums[own, own] -= np.where(several, np.add.reduceat(np.diag(measured), starts), 0.0)
    n_pairs[own, own] -= np.where(several, sizes, 0)
    return sums / n_pairs
