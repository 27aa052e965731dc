"""The model folder, which is complete at every instant, and checked before anything in it is used."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict, TypeVar

from msgspec import Meta

from cashmere.base.arrays import Float64
from cashmere.base.files import (
    check_folder,
    failures_as,
    is_regular,
    open_regular,
    own_folder,
    read_file,
    remove_leftovers,
    write_atomically,
    writing,
    written_name,
)
from cashmere.base.json_files import JSON_BYTES, Count, Finite, Positive, ShortText, checked, parse_json
from cashmere.base.versions import versions, warn_of_versions
from cashmere.data.preparation import FoldEncoder
from cashmere.data.schema import TableSchema
from cashmere.data.target import TargetCoding
from cashmere.data.task import Encoding
from cashmere.ensembles import Ensemble
from cashmere.ensembles.calibration import Calibration
from cashmere.ensembles.conformal import MOST_SCORES, ConformalScores
from cashmere.exceptions import ModelFileError, SigningKeyError
from cashmere.model.archives import check_archive_file, dump
from cashmere.model.signature import Signer, read_signature, sign_manifest, signature_path

_logger = logging.getLogger(__name__)

MODEL_VERSION = 7
"""Version 2 added thresholds, version 3 calibration, which earlier programs would silently ignore. Version 4 added
forests in narrow types, version 5 compressed archives, which earlier programs would call damaged. In version 6, models
may predict with the newest fold only, in version 7 from logarithms, which earlier programs would ignore."""

_ATTEMPTS = 10
"""How often to try to read a model that is replaced meanwhile; a run at work does so once a second at most."""

Result = TypeVar("Result")
Manifest = TypeVar("Manifest")

Encoders = list[dict[Encoding, FoldEncoder]]
"""Fitted encoders, per fold and encoding."""


_Scores = Annotated[list[Positive], Meta(max_length=MOST_SCORES + 1)]


class _Entry(TypedDict):
    file: Annotated[str, Meta(max_length=200)]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class _StoredEnsemble(TypedDict):
    kind: ShortText
    members: Annotated[list[Annotated[int, Meta(ge=-1, lt=10**9)]], Meta(min_length=1, max_length=10_000)]
    weights: NotRequired[list[Positive]]
    coefficients: NotRequired[list[list[Finite]]]
    intercepts: NotRequired[list[Finite]]
    classes: NotRequired[list[Count]]
    n_classes: NotRequired[Count]


class _StoredCalibration(TypedDict):
    scales: list[Positive]
    offsets: list[Finite]
    gain: Finite


class _Manifest(TypedDict):
    """What a manifest holds; `TableSchema.from_json` and `TargetCoding.from_json` check their parts."""

    version: Count
    schema: dict[str, Any]
    target: dict[str, Any]
    ensemble: _StoredEnsemble
    encoders: _Entry
    members: dict[Annotated[str, Meta(pattern="^(-1|[0-9]{1,9})$")], _Entry]
    information: dict[str, Any]
    thresholds: NotRequired[list[Positive] | None]
    calibration: NotRequired[_StoredCalibration | None]
    conformal_scores: NotRequired[list[_Scores] | None]
    conformal_scores_of_classes: NotRequired[list[list[_Scores]]]
    folds: NotRequired[Annotated[int, Meta(ge=1)]]
    newest_fold_only: NotRequired[bool]
    refitted: NotRequired[bool]
    refits_alone: NotRequired[bool]
    versions: NotRequired[dict[str, str]]
    checksum: ShortText


def save_model(
    folder: Path,
    *,
    schema: TableSchema,
    target: TargetCoding,
    encoders: Encoders,
    ensemble: Ensemble,
    member_files: Mapping[int, Path],
    information: Mapping[str, Any],
    thresholds: Float64 | None = None,
    calibration: Calibration | None = None,
    conformal: ConformalScores | None = None,
    n_folds: int | None = None,
    newest_fold_only: bool = False,
    refitted: bool = False,
    refits_alone: bool = False,
    sign: bool = True,
) -> None:
    """Write a model folder, which at every instant holds a complete model, the old or the new one.

    Members are linked (or copied) from the run directory under names that carry their checksum, as the signature does;
    the manifest is replaced last, then files that do not belong to it are removed.

    Parameters
    ----------
    encoders : list
        Encoders of each fold; split after split if members have models of several splits.
    n_folds : int, optional
        Folds of a split; by default, there is one split.
    newest_fold_only : bool
        See `cashmere.model.predictor.Predictor`.
    refitted : bool
        Whether encoders and models after those of the folds have learned from all rows.
    refits_alone : bool
        See `cashmere.model.predictor.Predictor`.
    sign : bool
        Whether this machine vouches for the members. If there is no key and none can be made, the model stays unsigned.
    """
    remove_leftovers(own_folder(folder))
    data = dump([{encoding.value: encoder for encoding, encoder in fold.items()} for fold in encoders])
    encoder_digest = hashlib.sha256(data).hexdigest()
    encoder_entry = {"file": f"encoders-{encoder_digest[:12]}.skops", "sha256": encoder_digest}
    if not is_regular(folder / encoder_entry["file"]):
        write_atomically(folder / encoder_entry["file"], data)
    entries = {}
    for number in ensemble.members:
        digest = file_digest(member_files[number])
        entries[str(number)] = {"file": f"member-{number:06d}-{digest[:12]}.skops", "sha256": digest}
        _link_or_copy(member_files[number], folder / entries[str(number)]["file"], digest)
    content = {
        "format": "cashmere model",
        "version": MODEL_VERSION,
        "schema": schema.to_json(),
        "target": target.to_json(),
        "ensemble": ensemble.to_json(),
        "encoders": encoder_entry,
        "members": entries,
        "information": dict(information),
        "thresholds": None if thresholds is None else thresholds.tolist(),
        "calibration": None if calibration is None else calibration.to_json(),
        "conformal_scores": None if conformal is None else [fold.tolist() for fold in conformal.folds],
        "conformal_scores_of_classes": [
            [fold.tolist() for fold in of_class.folds] for of_class in (() if conformal is None else conformal.classes)
        ],
        "newest_fold_only": newest_fold_only,
        "refitted": refitted,
        "refits_alone": refits_alone,
        "versions": versions(),
    }
    if n_folds is not None:
        content["folds"] = n_folds
    content["checksum"] = checksum = _checksum(content)
    if sign:
        try:
            sign_manifest(folder, checksum)
        except SigningKeyError as error:
            _logger.info("The model is not signed: %s", error)
    write_atomically(folder / "manifest.json", json.dumps(content, indent=1).encode())
    named = {encoder_entry["file"], *(entry["file"] for entry in entries.values())}
    named.add(signature_path(folder, checksum).name)
    for path in [*folder.glob("*.skops"), *folder.glob("signature-*.json")]:
        if path.name not in named:
            path.unlink()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a regular file in hexadecimal digits."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _link_or_copy(source: Path, destination: Path, digest: str) -> None:
    if is_regular(destination) and (destination.samefile(source) or file_digest(destination) == digest):
        return
    destination.unlink(missing_ok=True)  # damaged, or somebody else's link
    try:
        os.link(source, destination, follow_symlinks=False)
    except (OSError, NotImplementedError):  # another file system, or one without links
        with open_regular(source) as old, writing(destination) as new:
            shutil.copyfileobj(old, new)


def _checksum(content: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in content.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def find_model(folder: str | Path) -> Path:
    """Return the model folder: the folder itself, or ``model`` in a run directory."""
    path = Path(folder)
    if (path / "manifest.json").exists() or not (path / "model" / "manifest.json").exists():
        return path
    with failures_as(ModelFileError, path / "model", "Give the folder of the model itself."):
        check_folder(path / "model")
    return path / "model"


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a model folder after checking its format, version and checksum."""
    path = folder / "manifest.json"
    if folder.is_file():
        raise ModelFileError(folder, "is a file. Expected a run directory or the folder 'model' inside one.")
    if not path.exists() and not path.is_symlink():
        raise ModelFileError(path, "does not exist. Expected a run directory or the folder 'model' inside one.")
    again = "Restore it from a copy, or run `cashmere resume`."
    with failures_as(ModelFileError, path, again):
        content = parse_json(read_file(path, limit=JSON_BYTES))
    if not isinstance(content, dict) or content.get("format") != "cashmere model":
        raise ModelFileError(
            path, "is not the manifest of a cashmere model. Expected a run directory, or the folder 'model' inside one."
        )
    with failures_as(ModelFileError, path, again):
        manifest = checked(content, _Manifest)
        if {int(number) for number in manifest["members"]} != set(manifest["ensemble"]["members"]):
            raise ValueError("its ensemble has other members than its files")
    if content["version"] > MODEL_VERSION:
        raise ModelFileError(
            path, f"was written by a newer cashmere (model version {content['version']}). Upgrade cashmere."
        )
    if content.get("checksum") != _checksum(content):
        raise ModelFileError(path, "has been changed since it was written and is not read. Restore it from a copy.")
    warn_of_versions(path, content.get("versions", {}))
    return dict(content)


def read_model(folder: Path, read: Callable[[dict[str, Any]], Result]) -> Result:
    """Return what `read` makes of the model in a folder, given its manifest; see `read_of_present_model`.

    Raises
    ------
    ModelFileError
        As `read_manifest` and `read`; also if the model is replaced again and again.
    """
    return read_of_present_model(lambda: read_manifest(folder), read)


def read_of_present_model(find_manifest: Callable[[], Manifest], read: Callable[[Manifest], Result]) -> Result:
    """Return what `read` makes of a model, given its manifest as `find_manifest` returns it.

    A run at work replaces its model from time to time, and removes files that belong to the old one only. If they are
    missed, the new model is read instead.
    """
    manifest = find_manifest()
    for _ in range(_ATTEMPTS - 1):
        try:
            return read(manifest)
        except ModelFileError:
            before, manifest = manifest, find_manifest()
            if manifest == before:
                raise
    return read(manifest)


def model_files(folder: Path) -> list[Path]:
    """Return the files of a model folder, without those that a process, such as `cashmere sign`, is just writing."""
    return [path for path in folder.iterdir() if written_name(path.name) is None]


def entry_path(folder: Path, entry: Mapping[str, str]) -> Path:
    """Return the path of a manifest entry; raise if it is outside the folder."""
    name = entry["file"]
    if Path(name).name != name or not name.endswith(".skops"):
        raise ModelFileError(
            folder / "manifest.json", f"names a file outside the model folder: {name!r}. It is not read."
        )
    return folder / name


def check_files(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Raise if archives of a model folder do not have the checksums in its manifest."""
    for entry in [manifest["encoders"], *manifest["members"].values()]:
        check_archive_file(entry_path(folder, entry), entry["sha256"])


def members_signed_here(folder: Path) -> dict[int, str]:
    """Return the checksums of a model's members by number; none unless this machine has signed the model."""
    try:
        manifest = read_manifest(folder)
        if read_signature(folder, manifest["checksum"]).signer is not Signer.THIS_MACHINE:
            return {}
    except ModelFileError:
        return {}
    return {int(number): entry["sha256"] for number, entry in manifest["members"].items()}
