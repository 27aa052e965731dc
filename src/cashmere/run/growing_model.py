"""The model of a run while trials arrive: repeatedly chosen, saved, and finally loaded."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Container, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cashmere.base.pace import Pace
from cashmere.data.row_structure import is_in_time
from cashmere.ensembles.build import Ensemble
from cashmere.ensembles.stopping import Stop, never
from cashmere.evaluation.metrics import is_built_in
from cashmere.model.files import Encoders, model_files, read_manifest, save_model
from cashmere.model.first_load import check_first_load
from cashmere.model.predictor import Predictor
from cashmere.records.trial import History
from cashmere.run.ensemble_builder import BASELINE, EnsembleBuilder
from cashmere.run.joined_losses import joined_losses
from cashmere.run.latency_limit import LatencyLimit
from cashmere.run.members import Members, algorithm_of
from cashmere.run.repeats import Repeats
from cashmere.run.run_directory import RunDirectory
from cashmere.storage.facts import CurvePoint, JoinedLossesFact
from cashmere.study import run_digest

_CHOOSING, _CROSS_FITTING, _SAVING = "choosing", "cross-fitting", "saving"

_CROSS_FIT_CHOICES = 5
"""Until it has been cross-fitted: it is chosen once for each part of the rows."""


class GrowingModel:
    """Keeps the model folder of a run up to date with its history, so that it can be loaded from the first trial on.

    Parameters
    ----------
    run : RunDirectory
        Where the model is saved; provides the information saved with it.
    members : Members
        The models that the ensemble consists of.
    builder : EnsembleBuilder
        Chooses the ensemble.
    repeats : Repeats
        Fits the members on further splits, if requested; provides the encoders.
    pace : Pace
        Measures how long it takes to choose and to save.
    folder : Path, optional
        The model folder; by default that of the run.
    latency_limit : LatencyLimit, optional
        Bounds the choice.

    Attributes
    ----------
    builder : EnsembleBuilder
        The current choice.
    folder : Path
        The model folder.
    repeats, latency_limit
        As given.
    seconds : float
        Time taken by choices of the ensemble, in all calls of the run.
    """

    def __init__(
        self,
        run: RunDirectory,
        *,
        members: Members,
        builder: EnsembleBuilder,
        repeats: Repeats,
        pace: Pace,
        folder: Path | None = None,
        latency_limit: LatencyLimit | None = None,
    ) -> None:
        facts = run.store.facts()
        self.builder = builder
        self.folder = folder or run.folder / "model"
        self.seconds = float(facts.ensemble_seconds or 0.0)
        self._run, self._members, self._pace = run, members, pace
        self.repeats, self.latency_limit = repeats, latency_limit
        self._newest_fold_only = is_in_time(run.rows.structure)
        self._curve: list[CurvePoint] = list(facts.curve or ())
        self._tried: set[int] = set()
        self._saved: Ensemble | None = None  # by this call

    def choose(self, history: History, *, among: Container[int] | None = None, stop: Stop = never) -> None:
        """Choose the ensemble from the current trials, without saving it; see `EnsembleBuilder.update`."""
        self._update(history, among=among, stop=stop)
        self.seconds += self.builder.seconds
        self._try_members(history)

    def choose_finally(self, history: History, *, among: Container[int] | None = None, stop: Stop = never) -> None:
        """Choose like `choose`, then again by averages, see `EnsembleBuilder.choose_by_averages`."""
        self.builder.choose_by({})
        self.choose(history, among=among, stop=stop)
        averages = self._members.averages
        if averages and not self.repeats.on_all_rows:  # models of all rows have no predictions for unseen rows
            self.builder.choose_by_averages(averages)
            self.choose(history, among=among, stop=stop)

    def _update(self, history: History, *, among: Container[int] | None = None, stop: Stop) -> None:
        self._members.look(history)
        if self.latency_limit is not None:
            self.latency_limit.apply(self.builder, history, stop=stop)
        self.builder.update(history, among=among, stop=stop)
        self._pace.note(_CHOOSING, self.builder.seconds)

    def cross_fit(self, history: History, *, among: Container[int] | None = None, stop: Stop = never) -> float | None:
        """Average selections, calibrate, and return the loss on other rows; see `EnsembleBuilder.cross_fit`."""
        clock = time.perf_counter()
        loss = self.builder.cross_fit(history, among=among, stop=stop)
        seconds = time.perf_counter() - clock
        self.seconds += seconds
        if loss is not None:
            self._pace.note(_CROSS_FITTING, seconds)
        self._try_members(history)
        return loss

    def refresh(self, history: History, *, at_seconds: float, stop: Stop = never) -> None:
        """Choose the ensemble from the current trials, save it if it is not, and add its loss to the curve.

        Parameters
        ----------
        history : History
            All that has been observed.
        at_seconds : float
            Age of the study.
        stop : Stop
            See `EnsembleBuilder.update`.
        """
        clock = time.perf_counter()
        self._update(history, stop=stop)
        if self.builder.ensemble != self._saved:
            self.save(self.information(history), history)
        self._try_members(history)
        if self.builder.loss is not None and (not self._curve or self._curve[-1]["trials"] < len(history)):
            self._curve.append({"trials": len(history), "seconds": at_seconds, "ensemble_loss": self.builder.loss})
            self._run.store.set_fact("curve", self._curve)
        self._members.prune(self.builder.ensemble.members, history)
        self._members.forget(self.builder.ensemble.members)
        self.seconds += time.perf_counter() - clock

    def _try_members(self, history: History) -> None:
        """Load members that another machine trained, first in a child process; see `check_first_load`.

        Raises
        ------
        ModelFileError
            If loading one of them there fails.
        """
        untried = {n for n in self.builder.ensemble.members if not self._members.is_own(n)} - self._tried
        # Another process cannot import classes of a script; whoever passes them vouches for the run.
        if untried and not any(name.startswith("__main__.") for name in self._members.trusted):
            self.save(self.information(history), history)
            check_first_load(self.folder, read_manifest(self.folder), trusted=self._members.trusted)
        self._tried |= untried

    def information(
        self, history: History, cross_fitted_loss: float | None = None, *, finished: bool = False
    ) -> dict[str, Any]:
        """Return the information saved with the model."""
        members = self.builder.ensemble.members
        return {
            "task": self._run.target.task_type.value,
            "target": self._run.settings.target_name,
            "metric": self.builder.metric.name,
            "custom_metric": not is_built_in(self.builder.metric),
            "monotone": list(self._run.settings.monotone),
            "class_weight": self._run.settings.class_weight,
            "weighted": self._run.rows.weight is not None,
            "lowest_target": self._lowest_target(),
            "log_intervals": self._run.profile.learns_logarithms,
            "least_prediction": self.builder.metric.least_prediction(self._run.rows.y, self._run.rows.weight),
            "ensemble_loss": self.builder.loss,
            "cross_fitted_loss": cross_fitted_loss,
            "trials": len(history),
            "finished": finished,
            "decision": self.decision(),
            "algorithms": {
                str(o.trial.number): algorithm_of(o) for o in history.successes if o.trial.number in members
            },
        }

    def _lowest_target(self) -> float | None:
        is_values = not self._run.target.task_type.is_classification
        return float(self._run.rows.y.min()) if is_values else None

    def decision(self) -> dict[str, Any] | None:
        """Return how classes are decided, and the gain of it; None if no thresholds were requested."""
        builder = self.builder
        if not builder.decides_by_threshold:
            return None
        return {
            "metric": builder.decision_metric.name,
            "greater_is_better": builder.decision_metric.greater_is_better,
            "thresholds": None if builder.thresholds is None else builder.thresholds.tolist(),
            "gain": builder.decision_gain,
            "tuned": builder.tunes_thresholds,
            "wanted": builder.wanted_rate,
        }

    def joined_losses(self, history: History) -> JoinedLossesFact | None:
        """Return the losses of the best trial and of the constant predictor; see `cashmere.run.joined_losses`."""
        if not np.isfinite(history.baseline_loss):  # the constants of several folds are not constant together
            return None
        return joined_losses(history.incumbent, self._members.load(BASELINE), self.builder)

    def digest(self, history: History) -> str:
        """Return the fingerprint of trials, losses and weights, see `run_digest`."""
        return run_digest(history, list(self.builder.weights.items()))

    def save(self, information: Mapping[str, Any], history: History) -> None:
        """Write the model folder."""
        self._run.store.check_lease()
        clock = time.perf_counter()
        save_model(
            self.folder,
            schema=self._run.schema,
            target=self._run.target,
            encoders=self._encoders_of_members(),
            n_folds=len(self._run.splits),
            refitted=self._is_refitted,
            refits_alone=self._run.refits_alone,
            newest_fold_only=self._newest_fold_only,
            ensemble=self.builder.ensemble,
            member_files={number: self._members.path(number) for number in self.builder.ensemble.members},
            information=information,
            thresholds=self.builder.thresholds,
            calibration=self.builder.calibration,
            conformal=self.builder.conformal_scores(history),
            # This machine must not sign members that another machine trained or that somebody has changed.
            sign=all(map(self._members.is_own, self.builder.ensemble.members)),
        )
        self._saved = self.builder.ensemble
        self._pace.note(_SAVING, time.perf_counter() - clock)

    def _encoders_of_members(self) -> Encoders:
        return self.repeats.encoders(max(map(self._members.splits, self.builder.ensemble.members)))

    def choosing_seconds(self) -> float:
        """Return a bound on the time to choose the ensemble again."""
        return self._pace.bound(_CHOOSING, expected=0.1)

    def cross_fitting_seconds(self) -> float:
        """Return a bound on the time to cross-fit it."""
        if self._pace.knows(_CROSS_FITTING):
            return self._pace.bound(_CROSS_FITTING, expected=0.0)
        return _CROSS_FIT_CHOICES * self.choosing_seconds()

    def saving_seconds(self) -> float:
        """Return a bound on the time to save it."""
        return self._pace.bound(_SAVING, expected=0.2)

    def load_members(self, fits: Callable[[float], bool], *, at_least: int = 0) -> bool:
        """Load the members of the ensemble, heaviest first, as long as there is time.

        Parameters
        ----------
        fits : callable
            Returns whether there is time for a step of this many seconds.
        at_least : int
            How many to load in any case.

        Returns
        -------
        bool
            Whether all of them are in memory.
        """
        weights = self.builder.weights
        for position, number in enumerate(sorted(weights, key=lambda n: -weights[n])):
            if position >= at_least and not fits(self._members.loading_seconds(number)):
                return False
            self._members.load(number)
        return True

    def learn_loading(self, fits: Callable[[float], bool]) -> None:
        """Measure how long the members of the ensemble take to load; see `Members.learn_loading`."""
        self._members.learn_loading(self.builder.ensemble.members, fits)

    def loading_seconds(self) -> float:
        """Return a bound on the time to load the members that are not in memory."""
        return sum(self._members.loading_seconds(number) for number in self.builder.ensemble.members)

    @property
    def loaded(self) -> Collection[int]:
        """The trials whose models are in memory."""
        return self._members.loaded

    def predictor(self, history: History) -> Predictor:
        """Return the ensemble as a predictor; load the members that are not in memory."""
        return Predictor(
            schema=self._run.schema,
            target=self._run.target,
            encoders=self._encoders_of_members(),
            ensemble=self.builder.ensemble,
            models={number: self._members.load(number) for number in self.builder.ensemble.members},
            information=self.information(history),
            thresholds=self.builder.thresholds,
            calibration=self.builder.calibration,
            conformal=self.builder.conformal_scores(history),
            newest_fold_only=self._newest_fold_only,
            first_refit=self._run.first_refit if self._is_refitted else None,
            refits_alone=self._run.refits_alone,
        )

    @property
    def _is_refitted(self) -> bool:
        """Whether members of the ensemble have models that have learned from all rows."""
        members = self.builder.ensemble.members
        return self.repeats.on_all_rows and any(self._members.splits(number) > 1 for number in members)

    @property
    def size_bytes(self) -> int:
        """Size of the model folder."""
        return sum(path.stat().st_size for path in model_files(self.folder))
