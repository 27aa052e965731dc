"""Choose an opening: the order of configurations that lowers the loss of the ensemble fastest on other tables.

It begins with given configurations, such as the defaults. Each next one is the one that, added to those before, lowers
the logarithm of the ensemble's loss most per second, on average over the sources. As long as gains diminish, the area
under the curve of loss over time is then at most four times that of the best order (Streeter and Golovin 2008).

References
----------
Streeter, Golovin (2008), An online algorithm for maximizing submodular functions, NeurIPS.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cashmere.base.arrays import AnyArray, FloatArray, IntArray
from cashmere.costs.predicted import OVERHEAD_SECONDS
from cashmere.ensembles import select_ensemble
from cashmere.records.loss import Loss

_MOST_ROWS = 2000
"""Most rows used of each source: differences between ensembles on the same rows scatter little."""

_SHARES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
"""Shares with which a candidate may join the ensemble."""

_LEAST_GAIN = 1e-4
"""Candidates that gain less, a hundredth of a per cent, are left out: the strategy may find better ones."""

_LEAST_RATIO = 1e-3
"""Losses count as at least this share of the constant predictor's: some metrics reach zero, which has no logarithm."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OpeningSource:
    """What candidates did on one table.

    Attributes
    ----------
    name, origin : str
        Name and origin of the table; tables of one origin count as one.
    y : (n_rows,) array
        Class codes or values of the validation rows.
    metric : Loss
        The loss of the ensemble.
    predictions : mapping of int to array
        Validation predictions by candidate; those without have failed.
    seconds : mapping of int to float
        Seconds of the candidates that were tried, including the failed ones.
    same_as : mapping of int to int
        For each candidate that the table's space offers the one with the same configuration there, often itself. Those
        missing are not offered; those whose counterpart was not tried count as without gain.
    weight : (n_rows,) array, optional
        Weights of the rows.
    """

    name: str
    origin: str
    y: AnyArray
    metric: Loss
    predictions: Mapping[int, FloatArray]
    seconds: Mapping[int, float]
    same_as: Mapping[int, int]
    weight: FloatArray | None = None
    _known: dict[frozenset[int], tuple[_Mixed, ...]] = field(default_factory=dict, init=False, repr=False)

    def relative_seconds(self, candidate: int) -> float:
        """Return the seconds of a tried candidate, divided by their geometric mean over all tried candidates."""
        return (self.seconds[candidate] + OVERHEAD_SECONDS) / self._scale

    def gain(self, chosen: frozenset[int], candidate: int) -> float:
        """Return by how much a candidate lowers the logarithm of the loss of an ensemble of others.

        Ensemble and share of the candidate are chosen on one half of the rows, and the loss is measured on the other;
        the losses are averaged over both assignments of the halves.
        """
        after = float(np.mean([part.loss_with(self.predictions[candidate]) for part in self._mixed(chosen)]))
        least = _LEAST_RATIO * self._mean_loss(frozenset())
        return float(np.log(max(least, self._mean_loss(chosen)) / max(least, after)))

    def gain_of(self, chosen: frozenset[int]) -> float:
        """Return by how much an ensemble lowers the logarithm of the constant predictor's loss; 0 without members."""
        if not chosen:
            return 0.0
        return float(-np.log(max(_LEAST_RATIO, self._mean_loss(chosen) / self._mean_loss(frozenset()))))

    def _mean_loss(self, chosen: frozenset[int]) -> float:
        return float(np.mean([part.loss for part in self._mixed(chosen)]))

    def _mixed(self, chosen: frozenset[int]) -> tuple[_Mixed, ...]:
        if chosen not in self._known:
            predictions = [self.predictions[k] for k in sorted(chosen)]
            self._known[chosen] = tuple(
                _Mixed.choose(predictions or [self._constant], self.y, self.metric, self.weight, *halves)
                for halves in _halves(len(self.y))
            )
        return self._known[chosen]

    @functools.cached_property
    def _constant(self) -> FloatArray:
        """Predictions of the constant predictor."""
        first: FloatArray = next(iter(self.predictions.values()))
        if first.ndim == 1:
            return np.full(len(self.y), np.average(self.y, weights=self.weight))
        shares = np.bincount(self.y.astype(np.int64), weights=self.weight, minlength=first.shape[1])
        return np.tile(shares / shares.sum(), (len(self.y), 1))

    @functools.cached_property
    def _scale(self) -> float:
        return float(np.exp(np.mean([np.log(each + OVERHEAD_SECONDS) for each in self.seconds.values()])))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Mixed:
    """The predictions of an ensemble on the half of the rows that chose it, and on the other half."""

    metric: Loss
    rows: tuple[IntArray, IntArray]
    y: tuple[AnyArray, AnyArray]
    weight: tuple[FloatArray, FloatArray] | tuple[None, None]
    predicted: tuple[FloatArray, FloatArray]
    losses: tuple[float, float]

    @classmethod
    def choose(
        cls,
        predictions: Sequence[FloatArray],
        y: AnyArray,
        metric: Loss,
        weight: FloatArray | None,
        half: IntArray,
        other: IntArray,
    ) -> _Mixed:
        """Choose the ensemble on one half."""
        weights = (None, None) if weight is None else (weight[half], weight[other])
        shares = np.ones(1)
        if len(predictions) > 1:
            seen = [each[half] for each in predictions]
            shares = select_ensemble(seen, y[half], metric, weight=weights[0], tie="secondary").weights
        mixed = [
            np.sum([s * p[rows].astype(np.float64) for s, p in zip(shares, predictions, strict=True) if s], axis=0)
            for rows in (half, other)
        ]
        losses = [float(metric.loss(y[rows], p, w)) for rows, p, w in zip((half, other), mixed, weights, strict=True)]
        return cls(
            metric=metric,
            rows=(half, other),
            y=(y[half], y[other]),
            weight=weights,
            predicted=(mixed[0], mixed[1]),
            losses=(losses[0], losses[1]),
        )

    @property
    def loss(self) -> float:
        """Loss on the rows that did not choose the ensemble."""
        return self.losses[1]

    def loss_with(self, predictions: FloatArray) -> float:
        """Return the loss with a candidate added, with the share that is best on the rows that choose."""
        best, best_loss = 0.0, self.losses[0]
        joining = [predictions[rows].astype(np.float64) for rows in self.rows]
        for share in _SHARES:
            mixed = (1 - share) * self.predicted[0] + share * joining[0]
            loss = self.metric.loss(self.y[0], mixed, self.weight[0])
            if loss < best_loss:
                best, best_loss = share, loss
        if best == 0:
            return self.loss
        mixed = (1 - best) * self.predicted[1] + best * joining[1]
        return float(self.metric.loss(self.y[1], mixed, self.weight[1]))


def _halves(n_rows: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield two random halves of the rows, in both orders."""
    rows = np.random.default_rng(0).permutation(n_rows)[:_MOST_ROWS].astype(np.int64)
    first, second = np.sort(rows[::2]), np.sort(rows[1::2])
    yield from ((first, second), (second, first))


@dataclass(frozen=True, slots=True)
class ChosenCandidate:
    """A step of the choice: the candidate, its gain and its relative seconds, see `OpeningStep`."""

    candidate: int
    gain: float
    seconds: float

    @property
    def rate(self) -> float:
        """Gain per second."""
        return self.gain / self.seconds


def choose_opening(
    sources: Sequence[OpeningSource], candidates: Iterable[int], *, first: Sequence[int] = (), most_steps: int
) -> list[ChosenCandidate]:
    """Order candidates by what they add per second; end when none adds anything.

    Parameters
    ----------
    sources : sequence of OpeningSource
        The tables.
    candidates : iterable of int
        What to choose from.
    first : sequence of int
        Candidates that come first in any case; each counts with an equal share of what all of them gain together.
    most_steps : int
        Largest number of steps after these.

    Notes
    -----
    Gains mostly diminish as the ensemble grows. So a candidate is judged again only if what it was worth earlier
    exceeds the best so far, and one without gain is out.
    """
    chosen: list[frozenset[int]] = [frozenset() for _ in sources]
    steps = [step for candidate in first if (step := _judged(candidate, sources, chosen)) is not None]
    for step in steps:
        _join(step.candidate, sources, chosen)
    gains = [source.gain_of(members) for source, members in zip(sources, chosen, strict=True)] if steps else []
    together = np.average(gains, weights=_weights(sources)) if steps else 0.0
    steps = [replace(step, gain=max(_LEAST_GAIN, float(together) / len(steps))) for step in steps]
    rates = {candidate: np.inf for candidate in candidates if candidate not in first}  # when last judged
    for _ in range(most_steps):
        best: ChosenCandidate | None = None
        for candidate in sorted(rates, key=rates.__getitem__, reverse=True):
            if best is not None and rates[candidate] <= best.rate:
                break
            judged = _judged(candidate, sources, chosen)
            if judged is None or judged.gain < _LEAST_GAIN:
                del rates[candidate]
                continue
            rates[candidate] = judged.rate
            if best is None or judged.rate > best.rate:
                best = judged
        if best is None:
            break
        del rates[best.candidate]
        steps.append(best)
        _join(best.candidate, sources, chosen)
    return steps


def _join(candidate: int, sources: Sequence[OpeningSource], chosen: list[frozenset[int]]) -> None:
    for i, source in enumerate(sources):
        counterpart = source.same_as.get(candidate)
        if counterpart is not None and counterpart in source.predictions:
            chosen[i] |= {counterpart}


def _weights(sources: Sequence[OpeningSource]) -> list[float]:
    """Return the weight of each source; sources of the same origin share a weight of 1."""
    counts = Counter(source.origin for source in sources)
    return [1 / counts[source.origin] for source in sources]


def _judged(
    candidate: int, sources: Sequence[OpeningSource], chosen: Sequence[frozenset[int]]
) -> ChosenCandidate | None:
    """Return what a candidate adds, or None if nothing is known about it."""
    gains, seconds, weights, untried = [], [], [], 0.0
    for source, members, weight in zip(sources, chosen, _weights(sources), strict=True):
        counterpart = source.same_as.get(candidate)
        if counterpart is None or counterpart in members:
            continue  # takes no time there
        if counterpart not in source.seconds:
            untried += weight
            continue
        has_failed = counterpart not in source.predictions
        gains.append(0.0 if has_failed else source.gain(members, counterpart))
        seconds.append(source.relative_seconds(counterpart))
        weights.append(weight)
    if not weights:
        return None
    known = float(np.sum(weights))
    return ChosenCandidate(
        candidate=candidate,
        gain=float(np.dot(weights, gains)) / (known + untried),
        seconds=float(np.dot(weights, seconds)) / known,
    )
