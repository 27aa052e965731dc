"""The fitted models of a run's trials, on disk."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from cashmere.base.files import failures_as, is_regular, write_atomically
from cashmere.exceptions import CashmereError, ModelFileError
from cashmere.model.archives import dump_fold_models, load_fold_models
from cashmere.model.files import file_digest, members_signed_here
from cashmere.model.fold_model import FoldModel
from cashmere.model.member_signature import is_signed_here
from cashmere.records.trial import History, Observation
from cashmere.run.ensemble_builder import BASELINE
from cashmere.storage.store import RunStore

_LIMIT_MIB = 4096.0
"""Disk space for the models of trials; beyond it, those with the worst losses are deleted."""


class Members:
    """The models an ensemble of the run can consist of: a file of fold models per trial, and the constant predictor.

    Parameters
    ----------
    store : RunStore
        Knows where the files are.
    baseline : sequence of FoldModel
        The constant predictor; written at once.
    trusted : collection of str
        Types that model files may hold beside those of the package, see `Algorithm.trusted_types`.
    """

    def __init__(self, store: RunStore, baseline: Sequence[FoldModel], *, trusted: Collection[str] = ()) -> None:
        self._store = store
        self.trusted = list(trusted)
        self._loaded: dict[int, list[FoldModel]] = {BASELINE: list(baseline)}
        self._seconds_per_byte: dict[str, float] = {}
        self._known: dict[int, bool] = {BASELINE: True}
        self._in_own_model = members_signed_here(store.folder / "model")
        write_atomically(self.path(BASELINE), dump_fold_models(list(baseline)))

    def path(self, number: int) -> Path:
        """Return the path of the models of a trial, or of the constant predictor."""
        return self._store.baseline_path if number == BASELINE else self._store.member_path(number)

    def exists(self, number: int) -> bool:
        """Tell whether the models of a trial still exist."""
        return is_regular(self.path(number))

    def is_own(self, number: int) -> bool:
        """Tell whether this machine trained the models of a trial, and nobody has changed them since.

        Trials of early versions have no signatures of their own; those in a model that this machine has signed are its
        own.

        Raises
        ------
        ModelFileError
            If they were changed after they were signed.
        """
        if number in self._store.trained_now:
            return True
        if number not in self._known:
            path = self.path(number)
            with failures_as(ModelFileError, path, "Restore it from a copy, or delete it."):
                self._known[number] = is_signed_here(path, run=self._store.identity) or (
                    number in self._in_own_model and self._in_own_model[number] == file_digest(path)
                )
        return self._known[number]

    def load(self, number: int) -> list[FoldModel]:
        """Return the models of a trial, read at most once."""
        if number not in self._loaded:
            self._loaded[number] = load_fold_models(self.path(number), trusted=self.trusted)
        return self._loaded[number]

    def loading_seconds(self, algorithms: Mapping[int, str]) -> float:
        """Estimate the time of loading models, from one measured file of each algorithm.

        Parameters
        ----------
        algorithms : dict
            The algorithm of every trial whose models are to be loaded; those already in memory cost nothing.
        """
        total = 0.0
        for number, algorithm in algorithms.items():
            if number in self._loaded:
                continue
            try:
                size = self.path(number).stat().st_size
                if algorithm not in self._seconds_per_byte:
                    clock = time.perf_counter()
                    self.load(number)
                    self._seconds_per_byte[algorithm] = (time.perf_counter() - clock) / max(1, size)
            except (OSError, CashmereError):  # the final loading will say so
                continue
            total += self._seconds_per_byte[algorithm] * size
        return total

    def prune(self, keep: Collection[int], history: History) -> None:
        """Delete the worst models if all together take too much disk space; keep those of the trials in `keep`."""
        losses = {o.trial.number: float(o.loss) for o in history.successes if o.loss is not None}
        self._store.prune_members(keep, limit_mib=_LIMIT_MIB, losses=losses)


def algorithm_of(observation: Observation) -> str:
    """Return the name of the algorithm of a trial."""
    return str(observation.trial.configuration.get("algorithm", "?"))
