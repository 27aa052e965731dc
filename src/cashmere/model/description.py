"""Describe a model by its manifest alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cashmere.base.files import failures_as
from cashmere.data.schema import TableSchema
from cashmere.data.target import TargetCoding
from cashmere.ensembles import WeightedEnsemble, ensemble_from_json
from cashmere.ensembles.calibration import Calibration
from cashmere.exceptions import ModelFileError
from cashmere.model.files import find_model, read_manifest, read_model
from cashmere.model.signature import read_signature

_MOST_CLASSES_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedMember:
    """A member of a model's ensemble.

    Attributes
    ----------
    number : int
        Its trial number.
    algorithm : str
        What the run called it.
    weight : float or None
        Its share of a weighted ensemble.
    n_bytes : int
        Size of its archive.
    """

    number: int
    algorithm: str
    weight: float | None
    n_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDescription:
    """What the manifest of a model says, and who signed it.

    Attributes
    ----------
    facts : dict of str to str
        Facts to show, in order.
    members : tuple of DescribedMember
        The ensemble.
    """

    facts: Mapping[str, str]
    members: tuple[DescribedMember, ...]


def describe_model(folder: str | Path) -> ModelDescription:
    """Describe a model without loading it.

    Parameters
    ----------
    folder : path
        ``RUN/model`` or ``RUN``.

    Raises
    ------
    ModelFileError
        If there is no model, or its manifest or its signature is damaged.
    """
    path = find_model(folder)
    try:
        return read_model(path, lambda manifest: _described(path, manifest))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        text = f"does not describe a model ({type(error).__name__}: {error})."
        raise ModelFileError(path / "manifest.json", text) from error


def read_schema(folder: str | Path) -> TableSchema:
    """Return the columns of a model without loading it.

    Parameters
    ----------
    folder : path
        ``RUN/model`` or ``RUN``.

    Raises
    ------
    ModelFileError
        If there is no model, or its manifest is damaged.
    """
    path = find_model(folder)
    with failures_as(ModelFileError, path / "manifest.json", "Restore it from a copy, or run `cashmere resume`."):
        return TableSchema.from_json(read_manifest(path)["schema"])


def _described(path: Path, manifest: Mapping[str, Any]) -> ModelDescription:
    schema, target = TableSchema.from_json(manifest["schema"]), TargetCoding.from_json(manifest["target"])
    ensemble, information = ensemble_from_json(manifest["ensemble"]), manifest["information"]
    calibration = manifest.get("calibration")
    weights: dict[int, float] = {}
    if isinstance(ensemble, WeightedEnsemble):
        weights = dict(zip(ensemble.members, ensemble.weights, strict=True))
    labels = ", ".join(map(str, target.classes[:_MOST_CLASSES_SHOWN]))
    facts = {
        "model": str(path),
        "signature": str(read_signature(path, manifest["checksum"])),
        "task": target.task_type.value,
        "target": str(information.get("target")),
        "classes": f"{len(target.classes)}: {labels}" + (", ..." if len(target.classes) > _MOST_CLASSES_SHOWN else ""),
        "columns": f"{len(schema.used)} used of {len(schema.columns)}",
        "metric": str(information.get("metric")),
        "loss": _number(information.get("ensemble_loss")),
        "cross-fitted loss": _number(information.get("cross_fitted_loss")),
        "ensemble": manifest["ensemble"]["kind"],
        "folds": _folds(manifest),
        "calibration": "-" if calibration is None else str(Calibration.from_json(calibration)),
        "made with": ", ".join(f"{name} {version}" for name, version in manifest["versions"].items()),
        "checksum": manifest["checksum"],
    }
    if not target.classes:
        del facts["classes"]
    members = tuple(
        DescribedMember(
            number=int(number),
            algorithm=str(information.get("algorithms", {}).get(number, "constant")),
            weight=weights.get(int(number)),
            n_bytes=_size(path / entry["file"]),
        )
        for number, entry in manifest["members"].items()
    )
    return ModelDescription(facts=facts, members=members)


def _folds(manifest: Mapping[str, Any]) -> str:
    """Return which fold models predict; "-" for files of versions that did not store their number."""
    n_folds = manifest.get("folds")
    if n_folds is None:
        return "-"
    text = f"the newest of {n_folds}" if manifest.get("newest_fold_only") else f"{n_folds}"
    return f"{text}, and fits on all rows" if manifest.get("refitted") else text


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, (int, float)) else "-"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise ModelFileError(path, "is missing. Is the model folder complete?") from error
