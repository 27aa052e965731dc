"""The probabilistic random forest of SMAC and OpenBox.

======================  ==========================  =============================================================
symbol                  shape                       meaning
======================  ==========================  =============================================================
X                       ``(n, d)``                  encoded configurations, see `cashmere.space.encoding`
y                       ``(n,)``                    losses
m, v                    ``(n_trees, n)``            mean and variance of the leaf a point falls into
mean, variance          ``(n,)``                    moments of the forest
======================  ==========================  =============================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np

from cashmere.base.arrays import FloatArray, IntArray
from cashmere.exceptions import InvalidParameterError

MIN_VARIANCE = 1e-10
"""Variances are clipped from below, so that dividing by a standard deviation is safe."""

Variance = Literal["total", "between"]


def forest_moments(
    leaf_means: FloatArray, leaf_vars: FloatArray, *, variance: Variance = "total"
) -> tuple[FloatArray, FloatArray]:
    """Combine the leaves of all trees into a mean and a variance.

    Parameters
    ----------
    leaf_means, leaf_vars : (n_trees, n) array
        Mean and variance of the training losses in the leaf of each tree.
    variance : {"total", "between"}
        ``"between"``: variance of the tree means, mean(m^2) - mean(m)^2; ``"total"`` adds the mean variance inside
        the leaves (law of total variance); docs/papers/surrogates.md#variance-of-the-forest lists which is used where.

    Returns
    -------
    mean : (n,) array
        Mean of the tree means.
    variance : (n,) array
        At least `MIN_VARIANCE`.

    References
    ----------
    Hutter, Xu, Hoos and Leyton-Brown (2014), Algorithm runtime prediction: methods and evaluation, Artificial
    Intelligence 206, section 4.3.2.
    """
    mean = leaf_means.mean(axis=0)
    # Around the mean rather than mean(m^2) - mean^2, which loses all digits where the trees agree.
    joined = np.square(leaf_means - mean).mean(axis=0)
    if variance == "total":
        joined = joined + leaf_vars.mean(axis=0)
    return mean, np.maximum(joined, MIN_VARIANCE)


@dataclass(kw_only=True)
class ProbabilisticForest:
    """Predict mean and variance of the loss of a configuration with regression trees on bootstrap samples.

    Parameters
    ----------
    n_trees : int
        Number of trees.
    feature_fraction : float
        Share of the columns examined at each split, in (0, 1]; the number is rounded down, at least 1.
    min_samples_split, min_samples_leaf : int
        Smallest number of distinct points in a node that is split, and in a leaf.
    variance : {"total", "between"}
        See `forest_moments`; OpenBox uses ``"between"``.
    log_y : bool
        Whether `y` holds logarithms of losses: a leaf then predicts log(mean(exp(y))), as in SMAC.

    Notes
    -----
    The trees are scikit-learn's: splits lie in the middle of the gap, whereas random-forest-run draws a point from the
    gap. A bootstrap sample enters as weights, so the minimal sizes count distinct points (as in scikit-learn's
    forests). With `log_y` and ``variance="total"`` the variance inside a leaf is that of the logarithms; SMAC leaves it
    out.

    References
    ----------
    Hutter, Hoos and Leyton-Brown (2011), Sequential model-based optimization for general algorithm configuration,
    LION 5. Defaults: OpenBox (Li et al., 2021, KDD).
    """

    n_trees: int = 10
    feature_fraction: float = 5 / 6
    min_samples_split: int = 3
    min_samples_leaf: int = 3
    variance: Variance = "total"
    log_y: bool = False
    _trees: list[Any] = field(default_factory=list, init=False, repr=False)
    _leaf_means: list[FloatArray] = field(default_factory=list, init=False, repr=False)
    _leaf_vars: list[FloatArray] = field(default_factory=list, init=False, repr=False)
    _leaf_weights: list[FloatArray] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.variance not in ("total", "between"):
            raise InvalidParameterError("variance", self.variance, "'total' or 'between'")

    def fit(self, X: FloatArray, y: FloatArray, rng: np.random.Generator) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : (n, d) array
            Encoded configurations.
        y : (n,) array
            Finite losses.
        rng : numpy.random.Generator
            Draws the bootstrap samples and the columns of each split.
        """
        from sklearn import config_context
        from sklearn.tree import DecisionTreeRegressor

        X = np.ascontiguousarray(X, dtype=np.float32)
        y = np.ascontiguousarray(y, dtype=np.float64)
        n, d = X.shape
        # 1e-9: 5/6 of 6 columns are 5, not floor(4.999...).
        n_examined = max(1, int(self.feature_fraction * d + 1e-9))
        self._trees, self._leaf_means, self._leaf_vars, self._leaf_weights = [], [], [], []
        for _ in range(self.n_trees):
            counts = np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
            tree = DecisionTreeRegressor(
                max_features=n_examined,
                min_samples_split=self.min_samples_split,
                min_samples_leaf=self.min_samples_leaf,
                random_state=int(rng.integers(2**31 - 1)),
            )
            # Arrays are contiguous floats and parameters are valid: checking them would take a fifth of the time.
            with config_context(skip_parameter_validation=True, assume_finite=True):
                grown = tree.fit(X, y, sample_weight=counts, check_input=False).tree_
            means = np.array(grown.value[:, 0, 0])
            if self.log_y:
                means = _log_of_mean(grown.apply(X), y, counts, fallback=means)
            self._trees.append(grown)
            self._leaf_means.append(means)
            self._leaf_vars.append(np.array(grown.impurity))
            self._leaf_weights.append(np.array(grown.weighted_n_node_samples))
        return self

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance, each ``(n,)``, of encoded configurations ``(n, d)``."""
        return self.moments(self.leaves(X))

    def leaves(self, X: FloatArray) -> IntArray:
        """Return the leaf of each tree that encoded configurations ``(n, d)`` fall into, shape ``(n_trees, n)``."""
        X = np.ascontiguousarray(X, dtype=np.float32)
        return np.stack([tree.apply(X) for tree in self._trees])

    def moments(self, leaves: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance, each ``(n,)``, of configurations in these leaves ``(n_trees, n)``."""
        means = np.stack([values[leaf] for values, leaf in zip(self._leaf_means, leaves, strict=True)])
        variances = np.stack([values[leaf] for values, leaf in zip(self._leaf_vars, leaves, strict=True)])
        return forest_moments(means, variances, variance=self.variance)

    def count(self, leaves: IntArray, loss: float) -> None:
        """Count one more configuration in its leaves, without growing the trees again.

        Parameters
        ----------
        leaves : (n_trees,) int array
            Those of the configuration, from `leaves`.
        loss : float
            Its loss.
        """
        for k, leaf in enumerate(leaves.tolist()):
            weight = self._leaf_weights[k][leaf]
            difference = loss - self._leaf_means[k][leaf]
            self._leaf_means[k][leaf] += difference / (weight + 1)
            scatter = weight * self._leaf_vars[k][leaf] + difference**2 * weight / (weight + 1)
            self._leaf_vars[k][leaf] = scatter / (weight + 1)
            self._leaf_weights[k][leaf] = weight + 1


def _log_of_mean(leaves: FloatArray, y: FloatArray, counts: FloatArray, fallback: FloatArray) -> FloatArray:
    """Return log(mean(exp(y))) of each node's points; inner nodes keep their fallback."""
    top = y.max()  # exp cannot overflow
    total = np.bincount(leaves, weights=counts, minlength=len(fallback))
    summed = np.bincount(leaves, weights=counts * np.exp(y - top), minlength=len(fallback))
    filled = summed > 0
    means = fallback.copy()
    means[filled] = top + np.log(summed[filled] / total[filled])
    return means
