"""The fitted models of a run's trials, on disk."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cashmere.base.files import failures_as, is_regular, write_atomically
from cashmere.base.pace import Pace
from cashmere.exceptions import ModelFileError
from cashmere.model.archives import dump_fold_models, load_fold_models, read_archive
from cashmere.model.files import file_digest, members_signed_here
from cashmere.model.fold_model import FoldModel
from cashmere.model.joined_archives import joined_archives
from cashmere.model.member_signature import checksum_signed_here
from cashmere.records.trial import History, Observation
from cashmere.run.ensemble_builder import BASELINE
from cashmere.storage.store import RunStore

_LIMIT_MIB = 4096.0
"""Disk space for the models of trials; beyond it, those with the worst losses are deleted."""

_LOADING, _ADDING = "loading", "adding a split"

_CONSTANT_MIB = 4.0
"""Added to the size of each file: even the smallest takes about as long to load as this many MiB."""

_EXPECTED_SECONDS = {"xgboost": 0.06, "random_forest": 0.005, "extra_trees": 0.005}
_EXPECTED_SECONDS_OF_OTHERS = 0.025
"""Per MiB, by algorithm, until the first is loaded: text must be parsed, arrays need not. At the rate of XGBoost, the
400 MiB of a forest would take the last quarter of a minute."""


class Members:
    """The models that can be in an ensemble of the run: a file of fold models per trial, and the constant predictor.

    Parameters
    ----------
    store : RunStore
        Knows where the files are.
    baseline : sequence of FoldModel or None
        The constant predictor; written at once. None if no ensemble will need it.
    pace : Pace
        Measures how long loading takes.
    trusted : collection of str
        Types that model files may hold beside those of the package, see `Space.trusted_types`.
    """

    def __init__(
        self, store: RunStore, baseline: Sequence[FoldModel] | None, *, pace: Pace, trusted: Collection[str] = ()
    ) -> None:
        self._store = store
        self.trusted = list(trusted)
        self._loaded: dict[int, list[FoldModel]] = {}
        self._pace = pace
        self._algorithms: dict[int, str] = {}
        self._splits = store.splits()
        self._known: dict[int, bool] = {}
        self._in_own_model = members_signed_here(store.folder / "model")
        if baseline is not None:
            self._loaded[BASELINE], self._known[BASELINE] = list(baseline), True
            write_atomically(self.path(BASELINE), dump_fold_models(list(baseline)))

    def path(self, number: int) -> Path:
        """Return the path of the models of a trial, or of the constant predictor."""
        if number == BASELINE:
            return self._store.baseline_path
        return self._store.member_path(number, self.splits(number))

    def splits(self, number: int) -> int:
        """Return the number of splits of the rows for which a trial has models."""
        return self._splits[number][0] if number in self._splits else 1

    @property
    def averages(self) -> dict[int, NDArray[np.float32]]:
        """The mean predictions of the trials that have models on several splits."""
        return {number: mean for number, (_, mean) in self._splits.items()}

    def add_split(
        self, observation: Observation, archive: bytes, predictions: NDArray[np.float32], *, on_all_rows: bool = False
    ) -> None:
        """Add the models of one more split to a trial.

        Parameters
        ----------
        observation : Observation
            The trial, and what it predicts on the first split.
        archive : bytes
            The models on that split.
        predictions : array
            What they predict.
        on_all_rows : bool
            Whether it is a fit on all rows, whose `predictions` are those of the first split.
        """
        number = observation.trial.number
        with self._timed(_ADDING, number):
            before, joined = self.splits(number), self._joined(number, archive)
            added = self._models_of(archive) if number in self._loaded else []
            mean = self.averages.get(number, observation.predictions)
            assert mean is not None  # it has succeeded
            mean = ((before * mean + predictions) / (before + 1)).astype(np.float32)
            self._store.add_split(number, before + 1, models=joined, predictions=mean, on_all_rows=on_all_rows)
            self._splits[number] = (before + 1, mean)
            if number in self._loaded:
                self._loaded[number] = [*self._loaded[number], *added]

    def _joined(self, number: int, archive: bytes) -> bytes:
        """Return the archive of a trial with that of one more split, if possible without loading them."""
        checksum = self._checksum(number)
        joined = None if checksum is None else joined_archives(read_archive(self.path(number), checksum), archive)
        return joined or dump_fold_models([*self.load(number), *self._models_of(archive)])

    def _models_of(self, archive: bytes) -> list[FoldModel]:
        """Return the models of an archive that a worker has returned."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "split.skops"
            path.write_bytes(archive)
            return load_fold_models(path, trusted=self.trusted, vouched=True)

    def adding_seconds(self, number: int) -> float:
        """Return a bound on the time to add the models of one more split to a trial."""
        expected = self._expected_rate(number)  # it copies the archive, and loads what is added
        return self._pace.bound(self._step(_ADDING, number), self._size_mib(number), expected=expected)

    def exists(self, number: int) -> bool:
        """Return whether the models of a trial still exist."""
        return is_regular(self.path(number))

    def usable(self, history: History) -> list[Observation]:
        """Return the trials that can be members: those with predictions whose models still exist."""
        return [o for o in history.successes if o.predictions is not None and self.exists(o.trial.number)]

    def is_own(self, number: int) -> bool:
        """Return whether this machine trained the models of a trial, and nobody has changed them since.

        Trials of early versions have no signatures; they count as trained here if they are in a model that this machine
        has signed.

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
                self._known[number] = self._checksum(number) is not None or (
                    number in self._in_own_model and self._in_own_model[number] == file_digest(path)
                )
        return self._known[number]

    def _checksum(self, number: int) -> str | None:
        """Return the checksum of the file of a trial if this machine has signed it."""
        path = self.path(number)
        with failures_as(ModelFileError, path, "Restore it from a copy, or delete it."):
            return checksum_signed_here(path, run=self._store.identity)

    def load(self, number: int) -> list[FoldModel]:
        """Return the models of a trial, read at most once."""
        if number not in self._loaded:
            with self._timed(_LOADING, number):
                checksum = self._checksum(number)
                self._loaded[number] = load_fold_models(
                    self.path(number), trusted=self.trusted, sha256=checksum, vouched=checksum is not None
                )
        return self._loaded[number]

    def loading_seconds(self, number: int) -> float:
        """Return a bound on the time to load the models of a trial; 0 for models in memory."""
        if number in self._loaded:
            return 0.0
        expected = self._expected_rate(number)
        return self._pace.bound(self._step(_LOADING, number), self._size_mib(number), expected=expected)

    def learn_loading(self, numbers: Sequence[int], fits: Callable[[float], bool]) -> None:
        """Load one trial of each algorithm whose loading time is unknown, and forget it.

        Parameters
        ----------
        numbers : sequence of int
            Trials to choose from.
        fits : callable
            Returns whether there is time for a step of this many seconds.
        """
        for number in 2 * tuple(numbers):  # again, as loading that imports libraries does not count, see `load`
            is_new = number not in self._loaded and not self._pace.knows(self._step(_LOADING, number))
            if is_new and fits(self.loading_seconds(number)):
                self.load(number)
                del self._loaded[number]

    @contextlib.contextmanager
    def _timed(self, what: str, number: int) -> Iterator[None]:
        """Note how long a step with the models of a trial takes, unless it imports libraries, which happens once."""
        clock, n_modules, size = time.perf_counter(), len(sys.modules), self._size_mib(number)
        yield
        if len(sys.modules) == n_modules:
            self._pace.note(self._step(what, number), time.perf_counter() - clock, size)

    def _expected_rate(self, number: int) -> float:
        """Return the expected seconds per MiB of `_size_mib`; of the constant, none takes longer than others."""
        rate = _EXPECTED_SECONDS.get(self._algorithms.get(number, ""), _EXPECTED_SECONDS_OF_OTHERS)
        size = self._size_mib(number)
        return (min(rate, _EXPECTED_SECONDS_OF_OTHERS) * _CONSTANT_MIB + rate * (size - _CONSTANT_MIB)) / size

    def _step(self, what: str, number: int) -> str:
        return f"{what} {self._algorithms.get(number, '')}"

    def look(self, history: History) -> None:
        """Note the algorithms of the trials, on which the time to load models depends."""
        self._algorithms = {o.trial.number: algorithm_of(o) for o in history.successes}

    @property
    def loaded(self) -> Collection[int]:
        """The trials whose models are in memory."""
        return self._loaded.keys()

    def forget(self, keep: Collection[int]) -> None:
        """Drop all models but these from memory; they can be loaded again."""
        for number in self._loaded.keys() - {BASELINE, *keep}:
            del self._loaded[number]

    def _size_mib(self, number: int) -> float:
        """Return the size of a file, plus a constant for what takes equally long for small ones."""
        try:
            return _CONSTANT_MIB + self.path(number).stat().st_size / 2**20
        except OSError:  # loading it will raise
            return _CONSTANT_MIB

    def prune(self, keep: Collection[int], history: History) -> None:
        """Delete the worst models if all together take too much disk space, but none of the trials in `keep`."""
        losses = {o.trial.number: float(o.loss) for o in history.successes if o.loss is not None}
        self._store.prune_members(keep, limit_mib=_LIMIT_MIB, losses=losses)


def algorithm_of(observation: Observation) -> str:
    """Return the name of the algorithm of a trial."""
    return str(observation.trial.configuration.get("algorithm", "?"))
