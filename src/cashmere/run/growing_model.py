"""The model of a run while trials arrive: chosen repeatedly, saved, and finally loaded."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from cashmere.model.files import Encoders, read_manifest, save_model
from cashmere.model.first_load import check_first_load
from cashmere.model.predictor import Predictor
from cashmere.records.trial import History
from cashmere.run.ensemble_builder import EnsembleBuilder
from cashmere.run.members import Members, algorithm_of
from cashmere.run.run_directory import RunDirectory
from cashmere.storage.facts import CurvePoint
from cashmere.study import run_digest


class GrowingModel:
    """Keeps the model folder of a run up to date with its history: from the first trial on its model can be loaded.

    Parameters
    ----------
    run : RunDirectory
        Where the model is saved, and the information saved with it.
    encoders : Encoders
        Those of the prepared folds.
    members : Members
        The models that the ensemble consists of.
    builder : EnsembleBuilder
        Chooses the ensemble.

    Attributes
    ----------
    builder : EnsembleBuilder
        The current choice.
    seconds : float
        Time taken by choices of the ensemble, in all calls of the run.
    """

    def __init__(self, run: RunDirectory, *, encoders: Encoders, members: Members, builder: EnsembleBuilder) -> None:
        facts = run.store.facts()
        self.builder = builder
        self.seconds = float(facts.ensemble_seconds or 0.0)
        self._run, self._encoders, self._members = run, encoders, members
        self._curve: list[CurvePoint] = list(facts.curve or ())
        self._tried: set[int] = set()

    def choose(self, history: History) -> None:
        """Choose the ensemble from the current trials, without saving it."""
        self.builder.update(history)
        self.seconds += self.builder.seconds
        self._try_members(history)

    def refresh(self, history: History, *, at_seconds: float) -> None:
        """Choose the ensemble from the current trials, save it if it has changed, and add its loss to the curve.

        Parameters
        ----------
        history : History
            All that has been observed.
        at_seconds : float
            Age of the study.
        """
        clock = time.perf_counter()
        before = self.builder.ensemble.members
        self.builder.update(history)
        if self.builder.ensemble.members != before or not (self._run.folder / "model" / "manifest.json").exists():
            self.save(self.information(history))
        self._try_members(history)
        if self.builder.loss is not None and (not self._curve or self._curve[-1]["trials"] < len(history)):
            self._curve.append({"trials": len(history), "seconds": at_seconds, "ensemble_loss": self.builder.loss})
            self._run.store.set_fact("curve", self._curve)
        self._members.prune(self.builder.ensemble.members, history)
        self.seconds += time.perf_counter() - clock

    def _try_members(self, history: History) -> None:
        """Load members that another machine trained in a child process first, see `check_first_load`.

        Raises
        ------
        ModelFileError
            If one of them does harm there.
        """
        untried = {n for n in self.builder.ensemble.members if not self._members.is_own(n)} - self._tried
        # Classes of a script cannot be imported by another process; whoever passes them vouches for the run.
        if untried and not any(name.startswith("__main__.") for name in self._members.trusted):
            self.save(self.information(history))
            folder = self._run.folder / "model"
            check_first_load(folder, read_manifest(folder), trusted=self._members.trusted)
        self._tried |= untried

    def information(self, history: History, cross_fitted_loss: float | None = None) -> dict[str, Any]:
        """Return the information saved with the model."""
        members = self.builder.ensemble.members
        return {
            "task": self._run.target.task_type.value,
            "target": self._run.settings.target_name,
            "metric": self._run.metric.name,
            "ensemble_loss": self.builder.loss,
            "cross_fitted_loss": cross_fitted_loss,
            "trials": len(history),
            "decision": self.decision(),
            "algorithms": {
                str(o.trial.number): algorithm_of(o) for o in history.successes if o.trial.number in members
            },
        }

    def decision(self) -> dict[str, Any] | None:
        """Return how to decide between classes and the gain of it; None if no thresholds were requested."""
        builder = self.builder
        if not builder.decides_by_threshold:
            return None
        return {
            "metric": builder.decision_metric.name,
            "greater_is_better": builder.decision_metric.greater_is_better,
            "thresholds": None if builder.thresholds is None else builder.thresholds.tolist(),
            "gain": builder.decision_gain,
            "tuned": isinstance(self._run.settings.decision_threshold, str),
        }

    def digest(self, history: History) -> str:
        """Return the fingerprint of trials, losses and weights, see `run_digest`."""
        return run_digest(history, list(self.builder.weights.items()))

    def save(self, information: Mapping[str, Any]) -> None:
        """Write the model folder."""
        save_model(
            self._run.folder / "model",
            schema=self._run.schema,
            target=self._run.target,
            encoders=self._encoders,
            ensemble=self.builder.ensemble,
            member_files={number: self._members.path(number) for number in self.builder.ensemble.members},
            information=information,
            thresholds=self.builder.thresholds,
            # Members that another machine trained, or somebody has changed, must not get this machine's signature.
            sign=all(map(self._members.is_own, self.builder.ensemble.members)),
        )

    def predictor(self, history: History) -> Predictor:
        """Load the members and return the ensemble as a predictor."""
        return Predictor(
            schema=self._run.schema,
            target=self._run.target,
            encoders=self._encoders,
            ensemble=self.builder.ensemble,
            models={number: self._members.load(number) for number in self.builder.ensemble.members},
            information=self.information(history),
            thresholds=self.builder.thresholds,
        )

    def loading_seconds(self, history: History) -> float:
        """Estimate how long `predictor` will take."""
        members = self.builder.ensemble.members
        return self._members.loading_seconds(
            {o.trial.number: algorithm_of(o) for o in history.successes if o.trial.number in members}
        )

    @property
    def size_bytes(self) -> int:
        """Size of the model folder."""
        return sum(path.stat().st_size for path in (self._run.folder / "model").iterdir())
