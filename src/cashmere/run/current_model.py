"""The model that a finished run has: what refining begins with, and compares with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pandas as pd

from cashmere.data.task import Encoding
from cashmere.evaluation.metrics import Metric
from cashmere.exceptions import CorruptStoreError, RunDirectoryError
from cashmere.model.archives import load
from cashmere.model.consistency import check_encoders
from cashmere.model.files import Encoders, entry_path, model_files, read_manifest
from cashmere.model.first_load import check_first_load
from cashmere.model.predictor import Predictor
from cashmere.model.signature import read_signature
from cashmere.run.run_directory import RunDirectory
from cashmere.storage.directory import RESTORE

_SECONDS = 0.3
"""Time for predicting single rows with a whole model; the batch is predicted once in addition."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CurrentModel:
    """The model of a finished run, on disk.

    Attributes
    ----------
    run : RunDirectory
        The open run.
    manifest : mapping
        Manifest of the model folder.
    sample : DataFrame or None
        Rows of the run to measure on; None if it keeps none.
    latency : mapping
        See `latency_of_model`, measured now.
    """

    run: RunDirectory
    manifest: Mapping[str, Any]
    sample: pd.DataFrame | None
    latency: Mapping[str, float]

    @classmethod
    def read(cls, run: RunDirectory) -> Self:
        """Read and measure the model; if somebody else has made it, first load it in a child process.

        Raises
        ------
        RunDirectoryError
            If the run is not finished.
        """
        folder, trusted = run.folder / "model", run.space.trusted_types
        if run.store.facts().ensemble is None or not (folder / "manifest.json").exists():
            text = "is not finished: it has no final ensemble. Continue it with `cashmere resume`, then refine it."
            raise RunDirectoryError(run.folder, text)
        manifest = read_manifest(folder)
        if not read_signature(folder, manifest["checksum"]).signer.is_trusted:
            check_first_load(folder, manifest, trusted=trusted)
        sample = run.read_sample()
        latency = latency_of_model(folder, sample, trusted=trusted)
        return cls(run=run, manifest=manifest, sample=sample, latency=latency)

    @property
    def members(self) -> list[int]:
        """Trial numbers of the members of its ensemble."""
        return list(self.manifest["ensemble"]["members"])

    @property
    def fixed_bytes(self) -> float:
        """The bytes that do not depend on the members: encoders, manifest and signature."""
        of_members = {entry["file"] for entry in self.manifest["members"].values()}
        return float(sum(path.stat().st_size for path in model_files(self._folder) if path.name not in of_members))

    def encoders(self) -> Encoders:
        """Return the encoders of the first split.

        Raises
        ------
        CorruptStoreError
            If they are not those of the run.
        """
        entry, run = self.manifest["encoders"], self.run
        path = entry_path(self._folder, entry)
        try:
            stored = load(path, trusted=run.space.trusted_types, sha256=entry["sha256"])
            encoders = [{Encoding(name): encoder for name, encoder in fold.items()} for fold in stored]
            if len(encoders) < len(run.splits):
                raise ValueError(f"it holds encoders of {len(encoders)} folds; the run has {len(run.splits)}")
        except (TypeError, AttributeError, ValueError) as error:
            raise CorruptStoreError(path, f"holds other encoders than those of the run ({error}). {RESTORE}") from error
        check_encoders(path, encoders, run.schema)
        return encoders[: len(run.splits)]

    def describe(self, metric: Metric) -> dict[str, Any]:
        """Return facts about the model, see `RefinedRun.before`; without scores if they would be of another metric."""
        facts = self.run.store.facts()
        losses = {"score": facts.ensemble_loss, "cross_fitted_score": facts.cross_fitted_loss}
        return {
            "n_members": len(self.members),
            **{
                name: None if loss is None or metric is not self.run.metric else metric.score(loss)
                for name, loss in losses.items()
            },
            "single_row_ms": self.latency.get("single_row_ms"),
            "batch_rows_per_second": self.latency.get("batch_rows_per_second"),
            "bytes": sum(path.stat().st_size for path in model_files(self._folder)),
        }

    @property
    def _folder(self) -> Path:
        return self.run.folder / "model"


def latency_of_model(folder: Path, sample: pd.DataFrame | None, *, trusted: Sequence[str]) -> dict[str, float]:
    """Return the latency of a model as a user would load it, see `Predictor.measure_latency`; empty without a sample.

    Parameters
    ----------
    folder : Path
        The model folder.
    sample : DataFrame or None
        Rows to predict.
    trusted : sequence of str
        Types that the model may hold beside those of the package.
    """
    if sample is None:
        return {}
    return Predictor.load(folder, trusted=trusted).measure_latency(sample, seconds=_SECONDS)
