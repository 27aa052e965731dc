"""The papers' diversity surrogate: boosted trees on pairs of configurations.

======================  ==========================  =============================================================
symbol                  shape                       meaning
======================  ==========================  =============================================================
X                       ``(n, d)``                  encoded configurations of the observations
T                       ``(n, n)``                  measure between their predictions, the target
M^s                     ``(m, p)``                  prediction of booster s for m candidates and p others
======================  ==========================  =============================================================

A pair is a row ``[x_i, x_j]`` of 2d columns, and a fork of a tree tests one column, that is one half of the pair. So a
pair falls into the only leaf that both of its halves can reach, and the values of all pairs of m candidates with p
others are one product of matrices per tree, ``(m, n_leaves) (n_leaves, p)``. The ``m p`` rows are never built, which
makes prediction several times as fast as in LightGBM.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cashmere.acquisition.diversity import Measure, cross_measure
from cashmere.base.arrays import AnyArray, BoolArray, Float64, FloatArray, IntArray
from cashmere.base.threads import one_blas_thread
from cashmere.ensembles.selection import as_targets
from cashmere.exceptions import ArrayError, InvalidParameterError
from cashmere.surrogates.compression import MAX_ROWS, MAX_VALUES, cut_values, stack_rows

CACHE_SIZE = 2
"""Number of ensembles kept with `PairwiseSurrogate.refit_growth`, about 5 MiB each; a study needs one per measure."""

_EXTRA_LEARNING_RATE = 0.1
"""Learning rate of `PairwiseSurrogate.n_extra_trees`: at 0.03 ten trees would cover only a quarter of the way."""

_LEAF_UNIT = 2.0**-32
"""Leaf values are rounded to multiples of this: sums are exact, whatever the order, blocks and number of threads."""


def scheduled_size(n: int, growth: float) -> int:
    """Return the largest number of observations, up to n, at which a surrogate is refitted.

    From 2 on, each size s is followed by ``s + max(1, floor(growth s))``.

    Parameters
    ----------
    n : int
        Number of observations, at least 2.
    growth : float
        Relative growth between two refits, non-negative.

    Examples
    --------
    >>> [scheduled_size(n, 0.05) for n in (2, 39, 40, 41, 42, 250)]
    [2, 39, 40, 40, 42, 242]
    """
    size = 2
    # 1e-9: 0.05 of 60 are 3, not floor(2.999...).
    while (following := size + max(1, int(growth * size + 1e-9))) <= n:
        size = following
    return size


def min_pairs_in_leaf(n: int) -> int:
    """Return the smallest number of pairs in a leaf for n observations (docs/papers/divbo.md#pairwise-surrogate)."""
    return 3 if n <= 50 else 20


def choose_pairs(n: int, *, n_old: int = 0, include_self: bool = False) -> BoolArray:
    """Mark the ordered pairs to learn from.

    Parameters
    ----------
    n : int
        Number of configurations.
    n_old : int
        The first `n_old` are not paired with each other.
    include_self : bool
        Also pair each one with itself.

    Returns
    -------
    (n, n) array
        With ``n_old=0``, n (n - 1) marked pairs, or n^2 including selves.

    Examples
    --------
    >>> choose_pairs(3, n_old=2).astype(int)
    array([[0, 0, 1],
           [0, 0, 1],
           [1, 1, 0]])
    """
    chosen = np.ones((n, n), dtype=bool)
    np.fill_diagonal(chosen, include_self)
    chosen[:n_old, :n_old] = False
    return chosen


@dataclass(kw_only=True)
class PairwiseSurrogate:
    """Predict the measure between two configurations' predictions from both configurations, with LightGBM.

    Parameters
    ----------
    measure : Measure
        Measure between two predictions, see `cashmere.acquisition.diversity`.
    n_boosters : int
        Members of the ensemble; each is one coherent sample of all pairs.
    n_trees : int
        Trees of each booster.
    learning_rate : float
        Shrinkage of a tree, in (0, 1].
    n_leaves : int
        Largest number of leaves of a tree, at least 2.
    max_depth : int
        Largest depth of a tree; -1 for none.
    feature_fraction, row_fraction : float
        Share of the columns, and of the pairs, drawn for each tree, in (0, 1].
    include_self : bool
        Also learn each configuration's measure with itself (n more rows).
    symmetrise : bool
        Average the predictions for both orders of a pair: exactly symmetric at twice the cost.
    refit_growth : float, optional
        Refit only when the observations have grown by this share since the last fit, see `scheduled_size`; 0.05 is
        the schedule of docs/papers/divbo.md#refits-of-the-pairwise-surrogate. In between, the ensemble fitted to the
        *first* observations, as many as scheduled, is continued on the pairs with the later ones. It is a function of
        the observations and of `seed`: the generator given to `fit` is neither used nor advanced, so it does not
        matter in which call the fit happens. The last `CACHE_SIZE` ensembles are kept in the process, identified by
        their training data, and recomputed with the same result if missing.
    n_extra_trees : int
        Trees by which each booster is continued; 0 for none.
    seed : int
        Source of randomness with `refit_growth`; otherwise unused.
    max_rows, max_values : int
        Limits on the validation rows, and numbers (rows times classes), used from each prediction, see
        `cashmere.surrogates.compression.stack_rows`.
    n_threads : int
        Threads of LightGBM; the result does not depend on it.

    Notes
    -----
    The boosters share one `lightgbm.Dataset` and differ in the rows and columns they draw. Targets are standardised,
    after predicted values (not probabilities) have been cut at 10 standard deviations of `y` from its mean. Codes of
    categories are used as plain numbers, as in OpenBox. The rule of `min_pairs_in_leaf` counts observations, not
    pairs.

    References
    ----------
    Shen et al. (2022), DivBO: Diversity-aware CASH for ensemble learning, NeurIPS, section 3.1. Defaults: OpenBox (Li
    et al., 2021, KDD), where the paper is silent, but for the leaves and the draw of pairs:
    docs/papers/divbo.md#pairwise-surrogate.
    """

    measure: Measure = "div"
    n_boosters: int = 10
    n_trees: int = 100
    learning_rate: float = 0.03
    n_leaves: int = 31
    max_depth: int = -1
    feature_fraction: float = 5 / 6
    row_fraction: float = 0.8
    include_self: bool = False
    symmetrise: bool = True
    refit_growth: float | None = None
    n_extra_trees: int = 10
    seed: int = 0
    max_rows: int = MAX_ROWS
    max_values: int = MAX_VALUES
    n_threads: int = 1
    _X: NDArray[np.float32] = field(init=False, repr=False, compare=False)
    _ensemble: _Ensemble = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        least = {"n_boosters": 1, "n_trees": 1, "n_leaves": 2, "n_extra_trees": 0, "max_rows": 1, "n_threads": 1}
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise InvalidParameterError(name, getattr(self, name), f"at least {bound}")
        for name in ("learning_rate", "feature_fraction", "row_fraction"):
            if not 0 < getattr(self, name) <= 1:
                raise InvalidParameterError(name, getattr(self, name), "in (0, 1]")
        if self.refit_growth is not None and self.refit_growth < 0:
            raise InvalidParameterError("refit_growth", self.refit_growth, "None or at least 0")

    @classmethod
    def fast(cls, measure: Measure = "div") -> Self:
        """Return the fast preset: 5 boosters, learning rate 0.1, one order of each pair."""
        return cls(measure=measure, n_boosters=5, learning_rate=0.1, symmetrise=False)

    @classmethod
    def openbox(cls, measure: Measure = "div") -> Self:
        """Return OpenBox's trees: at most 22 leaves and a depth of 10, from all pairs.

        Since pairs are not drawn, the boosters differ only in the columns they draw.
        """
        return cls(measure=measure, n_leaves=22, max_depth=10, row_fraction=1.0)

    def fit(
        self,
        X: FloatArray,
        predictions: Sequence[FloatArray],
        y: AnyArray,
        rng: np.random.Generator,
        *,
        row_weights: FloatArray | None = None,
    ) -> Self:
        """Grow the trees on the measure between all pairs of observations.

        Parameters
        ----------
        X : (n, d) array
            Encoded configurations of successful observations.
        predictions : sequence of n arrays (n_rows, n_classes) or (n_rows,)
            Their finite predictions for the same validation rows; read only.
        y : (n_rows,) array
            Class codes or values.
        rng : numpy.random.Generator
            Draws the seeds of the boosters; unused with `refit_growth`.
        row_weights : (n_rows,) array, optional
            Weights of the validation rows.

        Raises
        ------
        ArrayError
            If there are fewer than two observations, or not one prediction for each.
        """
        if len(predictions) != len(X):
            raise ArrayError(
                "predictions",
                f"predictions must hold one array for each of the {len(X)} rows of X; got {len(predictions)}.",
            )
        if len(X) < 2:
            raise ArrayError(
                "X", f"X must hold the configurations of at least two successful observations; got {len(X)}."
            )
        stack, rows = stack_rows(predictions, y, max_rows=self.max_rows, max_values=self.max_values)
        targets, weights = as_targets(y, stack.ndim - 1)[rows], None if row_weights is None else row_weights[rows]
        cut_values(stack, y)

        def measured(first: slice, second: slice) -> FloatArray:
            return cross_measure(self.measure, stack[first], stack[second], targets, row_weights=weights)

        self._X = np.array(X, dtype=np.float32)
        if self.refit_growth is None:
            self._ensemble = self._train(len(X), measured, rng)
            return self
        n = scheduled_size(len(X), self.refit_growth)
        origin = [stack[:n], targets] if weights is None else [stack[:n], targets, weights]
        self._ensemble = self._train_once(n, measured, _digest(repr(self), self._X[:n], *origin))
        if n < len(X) and self.n_extra_trees > 0:
            self._ensemble = self._continue(self._ensemble, n, measured, np.random.default_rng([self.seed, n, len(X)]))
        return self

    def sample_pairs(self, candidates: FloatArray, members: IntArray) -> Float64:
        """Predict the measure between candidates and observations.

        Parameters
        ----------
        candidates : (n_candidates, d) array
            Encoded configurations.
        members : (n_members,) int array
            Positions among all observations given to `fit`.

        Returns
        -------
        (n_boosters, n_candidates, n_members) array
            One slice per booster: a coherent sample of all pairs. ``16 n_leaves n_candidates`` further bytes are
            needed at a time (2.5 MB for 5000 candidates).
        """
        return self._sample(candidates, self._X[np.asarray(members, dtype=np.int64)])

    def predict_pairs(self, candidates: FloatArray, others: FloatArray) -> tuple[Float64, Float64]:
        """Predict mean and variance for all pairs of two groups of configurations.

        Parameters
        ----------
        candidates : (m, d) array
            Encoded configurations, the first of each pair.
        others : (p, d) array
            Encoded configurations, the second.

        Returns
        -------
        mean, variance : (m, p) array
            Moments over the boosters; the variance is that of a population and may be 0.
        """
        samples = self._sample(candidates, others)
        return samples.mean(axis=0), samples.var(axis=0)

    def _train_once(self, n: int, targets: _Targets, key: bytes) -> _Ensemble:
        """Fit to the first n observations, or return the cached ensemble of the same settings and training data."""
        if key not in _ENSEMBLES:
            _ENSEMBLES[key] = self._train(n, targets, np.random.default_rng([self.seed, n]))
        _ENSEMBLES.move_to_end(key)
        while len(_ENSEMBLES) > CACHE_SIZE:
            _ENSEMBLES.popitem(last=False)
        return _ENSEMBLES[key]

    def _train(self, n: int, targets: _Targets, rng: np.random.Generator) -> _Ensemble:
        """Fit to the first n observations."""
        chosen = choose_pairs(n, include_self=self.include_self)
        t = _finite(targets(slice(n), slice(n))[chosen])
        centre, scale = float(t.mean()), float(t.std())
        if scale <= 1e-12 * np.abs(t).max():
            scale = 1.0  # a target that is constant up to rounding must stay constant
        start = np.zeros((self.n_boosters, len(t)))
        boosters = self._boost(chosen, (t - centre) / scale, start, self.n_trees, self.learning_rate, rng)
        return _Ensemble(boosters, centre, scale)

    def _continue(self, old: _Ensemble, n_old: int, targets: _Targets, rng: np.random.Generator) -> _Ensemble:
        """Add trees that correct the ensemble for pairs with an observation after the first n_old."""
        chosen = choose_pairs(len(self._X), n_old=n_old, include_self=self.include_self)
        everything, before, after = slice(None), slice(n_old), slice(n_old, None)
        columns = _columns(self._X)
        t, start = np.zeros(chosen.shape), np.zeros((self.n_boosters, *chosen.shape))
        for first, second in ((after, everything), (before, after)):
            t[first, second] = targets(first, second)
            with one_blas_thread():
                for values, trees in zip(start, old.boosters, strict=True):
                    values[first, second] = _summed_values(trees, columns[:, first], columns[:, second])
        standardised = (_finite(t[chosen]) - old.centre) / old.scale
        added = self._boost(chosen, standardised, start[:, chosen], self.n_extra_trees, _EXTRA_LEARNING_RATE, rng)
        return old._replace(boosters=[trees + more for trees, more in zip(old.boosters, added, strict=True)])

    def _boost(
        self,
        chosen: BoolArray,
        targets: Float64,
        start: Float64,
        n_trees: int,
        learning_rate: float,
        rng: np.random.Generator,
    ) -> list[list[_Tree]]:
        """Return new trees of each booster, which starts from predictions ``(n_boosters, n_pairs)``."""
        import lightgbm

        first, second = np.nonzero(chosen)
        rows = np.concatenate([self._X[first], self._X[second]], axis=1)
        settings = self._settings(len(chosen)) | {"learning_rate": learning_rate}
        data = lightgbm.Dataset(rows, targets, params=settings).construct()
        boosters = []
        for scores, (row_seed, column_seed) in zip(start, rng.integers(2**31 - 1, size=(len(start), 2)), strict=True):
            data.set_init_score(scores.copy())  # LightGBM warns about views
            seeds = {"bagging_seed": int(row_seed), "feature_fraction_seed": int(column_seed)}
            # A booster for training only: it is read once, never saved and loaded.
            booster = lightgbm.train(settings | seeds, data, n_trees, keep_training_booster=True)
            boosters.append([_read_tree(tree["tree_structure"]) for tree in booster.dump_model()["tree_info"]])
        return boosters

    def _settings(self, n: int) -> dict[str, Any]:
        return {
            "objective": "regression",
            "num_leaves": self.n_leaves,
            "max_depth": self.max_depth,
            "min_data_in_leaf": min_pairs_in_leaf(n),
            "feature_fraction": self.feature_fraction,
            "bagging_fraction": self.row_fraction,
            "bagging_freq": 1,
            "feature_pre_filter": False,
            "num_threads": self.n_threads,
            "deterministic": True,
            # Column-wise histograms are summed in the order of the rows, row-wise ones in one part per thread.
            "force_col_wise": True,
            "verbosity": -1,
        }

    def _sample(self, candidates: FloatArray, others: FloatArray) -> Float64:
        one, other = _columns(candidates), _columns(others)
        samples = np.zeros((self.n_boosters, one.shape[1], other.shape[1]))
        with one_blas_thread():
            for sample, trees in zip(samples, self._ensemble.boosters, strict=True):
                sample += _summed_values(trees, one, other)
                if self.symmetrise:
                    sample += _summed_values(trees, other, one).T
        samples *= self._ensemble.scale / (2 if self.symmetrise else 1)
        samples += self._ensemble.centre
        return samples


class _Fork(NamedTuple):
    """Send a pair left if its column is at most the threshold; a child below 0 is the leaf with number ``~child``."""

    column: int
    threshold: float
    left: int
    right: int


class _Tree(NamedTuple):
    """Forks, each after its parent, and the values of the leaves."""

    forks: list[_Fork]
    leaf_values: Float64


class _Ensemble(NamedTuple):
    """Trees of each booster, and the moments of the target they were fitted to."""

    boosters: list[list[_Tree]]
    centre: float
    scale: float


_Targets = Callable[[slice, slice], FloatArray]
"""Returns a block of the targets ``(n, n)``."""

_ENSEMBLES: OrderedDict[bytes, _Ensemble] = OrderedDict()
"""The last ensembles with `PairwiseSurrogate.refit_growth`, by digest of settings and training data; a cache."""


def _finite(targets: FloatArray) -> Float64:
    if not np.isfinite(targets).all():
        n_bad = np.count_nonzero(~np.isfinite(targets))
        raise ArrayError("targets", f"targets must be finite for all pairs; {n_bad} of {np.size(targets)} are not.")
    return np.asarray(targets, dtype=np.float64)


def _digest(settings: str, *arrays: AnyArray) -> bytes:
    digest = hashlib.blake2b(settings.encode(), digest_size=16)
    for array in map(np.ascontiguousarray, arrays):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes() if array.dtype.hasobject else array.data)
    return digest.digest()


def _read_tree(structure: Mapping[str, Any]) -> _Tree:
    """Translate a tree of `lightgbm.Booster.dump_model`."""
    forks: list[_Fork] = []
    values: list[float] = []

    def read(node: Mapping[str, Any]) -> int:
        if "leaf_value" in node:
            values.append(node["leaf_value"])
            return ~(len(values) - 1)
        number = len(forks)
        forks.append(_Fork(node["split_feature"], node["threshold"], 0, 0))
        left, right = read(node["left_child"]), read(node["right_child"])
        forks[number] = forks[number]._replace(left=left, right=right)
        return number

    read(structure)
    return _Tree(forks, np.rint(np.array(values) / _LEAF_UNIT) * _LEAF_UNIT)


def _columns(X: FloatArray) -> Float64:
    """Return columns rounded to float32, as LightGBM saw them, to compare with its float64 thresholds."""
    return np.ascontiguousarray(np.asarray(X, dtype=np.float32).T, dtype=np.float64)


def _summed_values(trees: Iterable[_Tree], first: Float64, second: Float64) -> Float64:
    """Return the sum of the trees' values ``(m, p)`` for all pairs of columns ``(d, m)`` and ``(d, p)``."""
    d = len(first)
    total = np.zeros((first.shape[1], second.shape[1]))
    for tree in trees:
        reach_first, reach_second = _reach(tree, first, range(d)), _reach(tree, second, range(d, 2 * d))
        total += reach_first.T @ (tree.leaf_values[:, None] * reach_second)
    return total


def _reach(tree: _Tree, half: Float64, own: range) -> Float64:
    """Return 1 for each leaf ``(n_leaves, m)`` that one half of a pair can reach, whatever the other half."""
    reach = np.ones((len(tree.leaf_values), half.shape[1]))
    masks = [np.ones(half.shape[1], dtype=bool)] * len(tree.forks)
    for number, fork in enumerate(tree.forks):
        to_left = to_right = masks[number]
        if fork.column in own:
            goes_left = half[fork.column - own.start] <= fork.threshold
            to_left, to_right = to_left & goes_left, to_right & ~goes_left
        for child, sent in ((fork.left, to_left), (fork.right, to_right)):
            if child < 0:
                reach[~child] = sent
            else:
                masks[child] = sent
    return reach
