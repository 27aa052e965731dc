"""The growing ensemble of a run: eligible observations, selection, decision thresholds, cross-fitted loss."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cashmere.base.arrays import AnyArray, Float64, FloatArray, IntArray
from cashmere.data.row_structure import is_in_time
from cashmere.ensembles import (
    Ensemble,
    IncrementalSelection,
    TieRule,
    WeightedEnsemble,
    build_ensemble,
    ensemble_of_selection,
    mean_ensemble,
)
from cashmere.ensembles.calibration import Calibration, can_calibrate, choose_calibration
from cashmere.ensembles.conformal import ConformalScores, scores_of
from cashmere.ensembles.limits import Allowed, Limit, allowed_within
from cashmere.ensembles.operating_point import OperatingPoint
from cashmere.ensembles.pool import ValidationPool, cross_fitted_predictions
from cashmere.ensembles.stopping import Stop, StoppedError, go_on_unless, never
from cashmere.ensembles.threshold import as_certain, count_decisions, decide, tune_thresholds
from cashmere.evaluation.metrics import METRICS, Metric
from cashmere.exceptions import CashmereError
from cashmere.records.trial import History, Observation

_TIE: TieRule = "secondary"
"""Error rates tie often, and taking the first of equals would favour early trials."""

_LEAST_TRIALS = 20
"""With fewer, the mean of selections is not always better: docs/benchmarks.md#the-last-step."""

_ENOUGH_REPEATED = 0.75
"""Share of the ensemble that must have been repeated to choose among repeated trials only. Members with the largest
weights are repeated first."""

BASELINE = -1
"""Member number of the constant predictor, which is no trial."""


class EnsembleBuilder:
    """Decides the ensemble from the history: a function of the observations whose models are still on disk.

    Parameters
    ----------
    method, size
        See `RunSettings.ensemble` and `RunSettings.ensemble_size`.
    metric : Metric
        Metric to choose the ensemble by.
    pool : ValidationPool
        Rows to choose it on.
    seed : int
        Seed of random parts of the method.
    has_model : callable
        Returns whether the fitted models of a trial still exist.
    decision_threshold
        See `RunSettings.decision_threshold`.
    positive : int
        Code of the class that a given threshold is of.
    n_fold_models : int
        Number of models of a member: one of them predicts each row of the pool, and their mean predicts new rows,
        unless rows are ordered in time. See `choose_calibration`.
    log_scores : bool
        Whether conformal scores are differences of log(1 + value), because learners learn these.

    Attributes
    ----------
    metric, pool
        As given.
    ensemble : Ensemble
        The constant predictor until the first success.
    loss : float or None
        Loss of the ensemble, with its calibration and its decision thresholds, on the rows that chose them; None for
        the constant predictor.
    calibration : Calibration or None
        How its probabilities are corrected, see `cashmere.ensembles.calibration`; None if they are not.
    thresholds : (n_classes,) array or None
        See `cashmere.ensembles.threshold.decide`.
    decision_gain : float or None
        How much thresholds lower the loss of `decision_metric` on rows that did not choose them; None if none were
        tried or the gain cannot be measured.
    decision_metric : Metric
        The metric, or balanced accuracy if it is not computed from labels.
    cross_fitted_rows : int array or None
        Rows of the pool that the latest `cross_fit` has judged; None for all.
    seconds : float
        Time of the latest choice.
    """

    def __init__(
        self,
        *,
        method: str,
        size: int,
        metric: Metric,
        pool: ValidationPool,
        seed: int,
        has_model: Callable[[int], bool],
        decision_threshold: str | float,
        positive: int = 1,
        n_fold_models: int = 1,
        log_scores: bool = False,
    ) -> None:
        self._method, self._size, self.metric, self.pool, self._seed = method, size, metric, pool, seed
        self._has_model, self._log_scores = has_model, log_scores
        self._limits: tuple[Limit, ...] = ()
        self._instead: Mapping[int, AnyArray] = {}
        self._only_instead = False
        self.ensemble: Ensemble = WeightedEnsemble(members=(BASELINE,), weights=(1.0,))
        self.loss: float | None = None
        self.cross_fitted_rows: IntArray | None = None
        self.seconds = 0.0
        # A custom metric may have a known name.
        self._calibrates = can_calibrate(metric.name) and metric.function is METRICS[metric.name].function
        self.calibration: Calibration | None = None
        self._decision_threshold = decision_threshold
        self.decision_metric = metric if metric.needs == "labels" else METRICS["balanced_accuracy"]
        self.thresholds: Float64 | None = None
        self._positive = positive
        self._wanted = OperatingPoint.parse(decision_threshold) if isinstance(decision_threshold, str) else None
        if not isinstance(decision_threshold, str):
            self.thresholds = self._of_positive(decision_threshold)
        self.decision_gain: float | None = None
        # Without thresholds, only the metric itself looks for a rare class.
        is_decided = self.decides_by_threshold or metric == METRICS["accuracy"]
        self._selects_by = metric.smooth if is_decided else metric
        # Other metrics, which compare rows or count labels, do not clearly improve.
        self._averages = method == "selection" and (self._calibrates or metric.needs == "values")
        # In time, only the newest of the models predicts new rows; elsewhere, their mean does.
        self._is_mean_elsewhere = n_fold_models > 1 and not is_in_time(pool.structure)
        if is_in_time(pool.structure):
            self._averages = False  # no selection has seen the newest rows
        # Caches what it has computed for earlier observations; the result is that of a fresh selection.
        self._selection = None
        if method == "selection":
            self._selection = self._new_selection(pool)

    @property
    def weights(self) -> dict[int, float]:
        """Weight of each member by trial number; equal shares if members are not combined by weights."""
        members = self.ensemble.members
        weights = getattr(self.ensemble, "weights", (1 / len(members),) * len(members))
        return dict(zip(members, weights, strict=True))

    @property
    def keeps_limits(self) -> bool:
        """Whether `limit` counts: only selection can keep limits."""
        return self._selection is not None

    def limit(self, limits: Sequence[Limit]) -> None:
        """Select only ensembles that keep these limits from now on; methods other than selection ignore them.

        Trials of unknown cost are not chosen, nor those that break a limit by themselves.
        """
        self._limits = tuple(limits)

    def choose_by(self, predictions: Mapping[int, AnyArray], *, only: bool = False) -> None:
        """Choose by these predictions instead of the trials' own from now on.

        Parameters
        ----------
        predictions : mapping
            By trial number; empty to go back to the trials' own.
        only : bool
            Whether to choose only among these trials.
        """
        if not predictions and not self._instead:
            return
        self._instead, self._only_instead = predictions, only
        if self._selection is not None:
            self._selection.clear()  # it assumes that predictions do not change

    def choose_by_averages(self, averages: Mapping[int, AnyArray]) -> None:
        """Choose by the mean predictions of trials fitted on several splits from now on.

        These are less noisy, and more like what their models predict for other rows. If such trials make up most of the
        ensemble, only they can be chosen: it is as good, with fewer members (docs/benchmarks.md#spare-time).
        """
        repeated = sum(weight for number, weight in self.weights.items() if number in averages)
        self.choose_by(averages, only=repeated >= _ENOUGH_REPEATED)

    def _new_selection(self, pool: ValidationPool) -> IncrementalSelection:
        return IncrementalSelection(pool.y, self._selects_by, size=self._size, weight=pool.weight, tie=_TIE)

    def update(self, history: History, *, among: Container[int] | None = None, stop: Stop = never) -> None:
        """Choose again from everything observed.

        Parameters
        ----------
        history : History
            All that has been observed.
        among : container of int, optional
            The trials to choose from; by default all of them.
        stop : Stop
            Whether to give up, which leaves the earlier choice in place. Selection, calibration and thresholds check it
            at every step.
        """
        clock = time.perf_counter()
        observations = self._candidates(history, among)
        with contextlib.suppress(StoppedError):
            if observations:
                self._choose(observations, stop)
        self.seconds = time.perf_counter() - clock

    def _candidates(self, history: History, among: Container[int] | None) -> list[Observation]:
        return [o for o in self._eligible(history) if among is None or o.trial.number in among]

    def _choose(self, observations: Sequence[Observation], stop: Stop) -> None:
        numbers, stacks = [o.trial.number for o in observations], self._stacks(observations)
        losses = [float(o.loss) for o in observations if o.loss is not None]
        allowed = allowed_within(self._limits, numbers)
        ensemble, loss = self._build(
            numbers, stacks, losses, self.pool, stop, allowed=allowed, selection=self._selection
        )
        thresholds, gain = self.thresholds, self.decision_gain
        if loss is None or self.decides_by_threshold:
            stack = dict(zip(numbers, stacks, strict=True))
            combined = ensemble.combine([stack[number] for number in ensemble.members])
            if loss is None:
                loss = self.metric.loss(self.pool.y, combined, self.pool.weight)
            loss, thresholds, gain = self._decide(combined, loss, stop)
        self.ensemble, self.loss, self.calibration = ensemble, loss, None
        self.thresholds, self.decision_gain = thresholds, gain

    def cross_fit(self, history: History, *, among: Container[int] | None = None, stop: Stop = never) -> float | None:
        """Choose five times, each without a fifth of the rows; average, calibrate and estimate the loss on new rows.

        Each row is predicted by the ensemble that was chosen without it. The calibration is fitted to these
        predictions, as an ensemble looks too good on the rows that chose it. For metrics of probabilities or values,
        the mean of five selections replaces the selection on all rows, if there are enough rows and trials: it is
        better on other rows. Groups and time are respected, see `cross_fitted_predictions`; in time, nothing is
        averaged.

        Parameters
        ----------
        history, among
            As in the preceding `update`.
        stop : Stop
            Whether to give up.

        Returns
        -------
        float or None
            The loss on rows that chose neither ensemble, calibration nor thresholds. None if it cannot be estimated, or
            if `stop` became true, which leaves the ensemble unchanged.
        """
        observations = self._candidates(history, among)
        if not observations:
            return None
        numbers, stacks = [o.trial.number for o in observations], self._stacks(observations)
        losses = [float(o.loss) for o in observations if o.loss is not None]
        parts: list[Ensemble] = []
        allowed = allowed_within(self._limits, numbers)

        def build(stacks: Sequence[AnyArray], pool: ValidationPool) -> Ensemble:
            ensemble, _ = self._build(range(len(stacks)), stacks, losses, pool, stop, allowed=allowed)
            parts.append(ensemble)
            if not self.decides_by_threshold or self.metric.needs != "labels":
                return ensemble
            combined = ensemble.combine([stacks[i] for i in ensemble.members])
            return _DecidedEnsemble(ensemble, self._thresholds(combined, pool, stop)[0])

        try:
            rng = np.random.default_rng(self._seed)
            unseen = cross_fitted_predictions(build, stacks, self.pool, rng=rng)
            if unseen is None:
                return None
            judged = self.pool.part(unseen.rows)
            loss = self.metric.loss(judged.y, unseen.predictions, judged.weight)
            calibration = None
            if self._calibrates:
                calibration = choose_calibration(
                    unseen.predictions,
                    judged.y,
                    self.metric.name,
                    weight=judged.weight,
                    structure=judged.structure,
                    rng=rng,
                    is_mean_elsewhere=self._is_mean_elsewhere,
                    stop=stop,
                )
            ensemble = self.ensemble
            if self._averages and len(numbers) >= _LEAST_TRIALS:
                ensemble = self._mean(parts, numbers)
            if calibration is not None or ensemble is not self.ensemble:
                self._take(ensemble, calibration, dict(zip(numbers, stacks, strict=True)), stop)
            self.cross_fitted_rows = unseen.rows
        except (CashmereError, ValueError, StoppedError):  # a part may miss a class
            return None
        return loss if calibration is None else loss - calibration.gain

    def _mean(self, parts: Sequence[Ensemble], numbers: Sequence[int]) -> WeightedEnsemble:
        """Average selections by positions; leave out members picked only once in all, which may be wild on other rows.

        The mean of several selections may break limits that each of them keeps. Then only members of the ensemble
        chosen on all rows stay.
        """
        selected = [part for part in parts if isinstance(part, WeightedEnsemble)]
        mean = mean_ensemble(selected, 1.5 / (len(selected) * self._size))
        members = tuple(numbers[i] for i in mean.members)
        if all(limit.holds(members) for limit in self._limits):
            return WeightedEnsemble(members, mean.weights)
        kept = {n: weight for n, weight in zip(members, mean.weights, strict=True) if n in self.ensemble.members}
        kept = kept or self.weights
        mass = sum(kept.values())
        return WeightedEnsemble(tuple(kept), tuple(weight / mass for weight in kept.values()))

    def _take(
        self, ensemble: Ensemble, calibration: Calibration | None, predictions: Mapping[int, AnyArray], stop: Stop
    ) -> None:
        """Take another ensemble: choose its decision thresholds, and compute its loss."""
        combined = ensemble.combine([predictions[number] for number in ensemble.members])
        if calibration is not None:
            combined = calibration.apply(combined)
        loss, thresholds, gain = self._decide(combined, self.metric.loss(self.pool.y, combined, self.pool.weight), stop)
        self.ensemble, self.loss, self.calibration = ensemble, loss, calibration
        self.thresholds, self.decision_gain = thresholds, gain

    def _decide(self, combined: Float64, loss: float, stop: Stop) -> tuple[float, Float64 | None, float | None]:
        """Return the loss of predictions for the pool, given that without thresholds; their thresholds; their gain."""
        if not self.decides_by_threshold:
            return loss, self.thresholds, self.decision_gain
        thresholds, gain = self._thresholds(combined, self.pool, stop)
        if thresholds is not None and self.metric.needs == "labels":
            loss = self._decided_loss(combined, self.pool, thresholds)
        return loss, thresholds, gain

    def count_decisions(self, history: History) -> dict[str, float | None]:
        """Return how many rows of the pool the ensemble decides rightly and wrongly, for two classes.

        Its members predict rows that their models have not seen; see `cashmere.ensembles.threshold.count_decisions`.
        """
        found = {o.trial.number: o for o in history.successes}
        combined = self._calibrated(self._stacks([found[number] for number in self.ensemble.members]))
        return count_decisions(self.pool.y, _decided_codes(combined, self.thresholds), self._positive)

    def _calibrated(self, stacks: Sequence[AnyArray]) -> Float64:
        """Return the predictions of the ensemble, from those of its members in their order."""
        combined = self.ensemble.combine(stacks)
        return combined if self.calibration is None else self.calibration.apply(combined)

    def loss_alone(self, predictions: AnyArray) -> float:
        """Return the loss of a trial's predictions as an ensemble of one, with the decision thresholds it would get.

        Raises
        ------
        MetricError
            If the metric cannot be computed.
        """
        own = np.asarray(self.pool.take(predictions), dtype=np.float64)
        return self._decide(own, self.metric.loss(self.pool.y, own, self.pool.weight), never)[0]

    def conformal_scores(self, history: History) -> ConformalScores | None:
        """Return the conformal scores of the ensemble's out-of-fold predictions; None for the constant predictor.

        The predictions are those of the first split, fold by fold. All rows count as one fold if some validate several
        folds, or if members predict with the newest fold only.
        """
        known = {o.trial.number: o.predictions for o in history.successes if o.predictions is not None}
        if not set(self.ensemble.members) <= known.keys():
            return None
        combined = self._calibrated([self.pool.take(known[number]) for number in self.ensemble.members])
        y, fold = self.pool.y, self.pool.fold
        if self._log_scores:
            y, combined = np.log1p(y), np.log1p(np.maximum(combined, 0.0))
        if fold is None or is_in_time(self.pool.structure):
            fold = np.zeros(len(y), dtype=np.int64)
        n_classes = combined.shape[1] if combined.ndim == 2 else 0
        return ConformalScores.of_folds(scores_of(y, combined), fold, int(fold.max()) + 1, codes=y, n_classes=n_classes)

    @property
    def decides_by_threshold(self) -> bool:
        """Whether classes are decided by thresholds: given ones, or tuned ones if they help."""
        if self._decision_threshold == "auto":
            return self.metric.needs == "labels" and self.metric != METRICS["accuracy"]
        return self._decision_threshold != "none"

    @property
    def tunes_thresholds(self) -> bool:
        """Whether thresholds, if there are any, are tuned for a metric, rather than given or chosen for a rate."""
        return isinstance(self._decision_threshold, str) and self._wanted is None

    @property
    def wanted_rate(self) -> str | None:
        """The rate that the threshold should reach, such as ``"recall>=0.95"``, if one was given."""
        return None if self._wanted is None else str(self._wanted)

    def _of_positive(self, threshold: float) -> Float64:
        """Return the thresholds of two classes from that of the positive one."""
        if self._positive == 0:  # `decide` gives a tie to the second class, and it belongs to the first
            return np.array([threshold, np.nextafter(1 - threshold, 1)])
        return np.array([1 - threshold, threshold])

    def _thresholds(
        self,
        combined: Float64,
        pool: ValidationPool,
        stop: Stop,
    ) -> tuple[Float64 | None, float | None]:
        """Return the thresholds for predictions of an ensemble, and their gain."""
        if not self.tunes_thresholds:
            thresholds = self.thresholds
            if self._wanted is not None:
                p, is_positive = combined[:, self._positive], pool.y == self._positive
                if is_positive.all() or not is_positive.any():
                    return None, None
                thresholds = self._of_positive(self._wanted.threshold(p, is_positive, pool.weight))
            before, after = (self._decided_loss(combined, pool, t) for t in (None, thresholds))
            return thresholds, before - after
        found = tune_thresholds(
            combined,
            pool.y,
            self.decision_metric,
            weight=pool.weight,
            structure=pool.structure,
            rng=np.random.default_rng(self._seed),
            stop=stop,
        )
        return found.thresholds, found.gain

    def _decided_loss(self, combined: Float64, pool: ValidationPool, thresholds: Float64 | None) -> float:
        return self.decision_metric.loss(pool.y, _decided(combined, thresholds), pool.weight)

    def _eligible(self, history: History) -> list[Observation]:
        found = [o for o in history.successes if o.predictions is not None and self._has_model(o.trial.number)]
        for limit in self._limits:
            found = [o for o in found if (n := o.trial.number) in limit.cost.own and limit.holds([n])]
        return [o for o in found if o.trial.number in self._instead] if self._only_instead else found

    def _stacks(self, observations: Sequence[Observation]) -> list[AnyArray]:
        predictions = [self._instead.get(o.trial.number, o.predictions) for o in observations]
        return [self.pool.take(each) for each in predictions if each is not None]

    def _build(
        self,
        numbers: Sequence[int],
        predictions: Sequence[AnyArray],
        losses: Sequence[float],
        pool: ValidationPool,
        stop: Stop,
        *,
        allowed: Allowed | None,
        selection: IncrementalSelection | None = None,
    ) -> tuple[Ensemble, float | None]:
        """Return an ensemble and its loss without thresholds; None if another metric has selected it."""
        go_on_unless(stop)
        rng = np.random.default_rng(self._seed)
        if self._method == "selection":
            if selection is None:
                selection = self._new_selection(pool)
            result = selection.select(numbers, predictions, rng=rng, allowed=allowed, stop=stop)
            ensemble, loss = ensemble_of_selection(numbers, result)
            return ensemble, loss if self._selects_by is self.metric else None
        return build_ensemble(
            self._method,
            numbers,
            predictions,
            pool.y,
            self.metric,
            losses=losses,
            weight=pool.weight,
            structure=pool.structure,
            rng=rng,
        )


@dataclass(frozen=True, slots=True)
class _DecidedEnsemble:
    """An ensemble whose predictions are its decisions: probability 1 for the decided class."""

    ensemble: Ensemble
    thresholds: Float64 | None

    @property
    def members(self) -> tuple[int, ...]:
        return self.ensemble.members

    def combine(self, stack: Sequence[FloatArray] | FloatArray) -> Float64:
        return _decided(self.ensemble.combine(stack), self.thresholds)

    def to_json(self) -> dict[str, Any]:
        return self.ensemble.to_json()


def _decided(combined: Float64, thresholds: Float64 | None) -> Float64:
    return as_certain(_decided_codes(combined, thresholds), combined.shape[1])


def _decided_codes(combined: Float64, thresholds: Float64 | None) -> IntArray:
    return decide(combined / combined.sum(axis=1, keepdims=True), thresholds)
