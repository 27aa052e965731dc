"""Models at a URL: copied once to a folder of this user, and opened there like any other model."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

from cashmere.base.files import MOST_BYTES, failures_as, is_regular, own_folder, read_file, reason, write_atomically
from cashmere.base.json_files import JSON_BYTES
from cashmere.base.remote import below, fetch
from cashmere.exceptions import ModelFileError
from cashmere.model.files import entry_path, file_digest, read_manifest, read_of_present_model
from cashmere.model.signature import signature_path

CACHE_VARIABLE = "CASHMERE_CACHE_FOLDER"
"""Environment variable with the folder for copies."""

_PART_OF = "It is part of the model at {}."
_AGAIN = "Check the address, and that you may read there."


def local_copy(url: str) -> Path:
    """Return a local folder with the model at a URL, copied unless an earlier call has done so.

    Only the manifest is read each time, and its checksum names the copy. So a copy is never outdated, and only files
    that the manifest names are copied; if the model is replaced meanwhile, the new one is copied. As with any folder,
    the reader must check whether the model may be loaded.

    Parameters
    ----------
    url : str
        URL of a model folder, or of the run directory that holds one.

    Raises
    ------
    ModelFileError
        If there is no model, or a file cannot be read or is not what the manifest says.
    MissingDependencyError
        If fsspec is needed and not installed.
    """
    with tempfile.TemporaryDirectory(prefix="cashmere-") as temporary:
        found = Path(temporary) / "manifest.json"

        def fetched_manifest() -> tuple[str, bytes]:
            return _fetch_manifest(url, found), read_file(found, limit=JSON_BYTES)

        return read_of_present_model(fetched_manifest, _copied)


def _copied(manifest_at_url: tuple[str, bytes]) -> Path:
    """Return a local folder with the model at a URL that has this manifest."""
    url, content = manifest_at_url
    folder = _cache() / hashlib.sha256(content).hexdigest()[:32]
    with failures_as(ModelFileError, folder, f"Set {CACHE_VARIABLE} to a folder that you may write."):
        own_folder(folder)
        if not is_regular(folder / "manifest.json"):
            write_atomically(folder / "manifest.json", content)
    manifest = read_manifest(folder)
    signature = signature_path(folder, manifest["checksum"])
    with failures_as(ModelFileError, Path(signature.name), _PART_OF.format(url)):
        try:
            _fetch(url, signature)  # always, because the model may have been signed again since
        except FileNotFoundError:
            signature.unlink(missing_ok=True)
    for entry in (manifest["encoders"], *manifest["members"].values()):
        path = entry_path(folder, entry)
        with failures_as(ModelFileError, Path(path.name), _PART_OF.format(url)):
            # A copy may be damaged: its source was, or power was lost, as copies are not synchronised.
            if not is_regular(path) or file_digest(path) != entry["sha256"]:
                _fetch(url, path)
    return folder


def _fetch_manifest(url: str, destination: Path) -> str:
    """Copy the manifest; return the URL of the model folder."""
    try:
        for folder in (url, below(url, "model")):
            with contextlib.suppress(FileNotFoundError):
                fetch(below(folder, destination.name), destination, limit=JSON_BYTES)
                return folder
    except OSError as error:
        raise ModelFileError(url, f"cannot be read ({reason(error)}). {_AGAIN}") from error
    raise ModelFileError(url, f"holds no model. Expected a run directory, or the folder 'model' inside one. {_AGAIN}")


def _fetch(url: str, path: Path) -> None:
    fetch(below(url, path.name), path, limit=MOST_BYTES)


def _cache() -> Path:
    """Return the folder for copies of models."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named) / "models"
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "cashmere" / "models"
    try:
        return Path.home() / ".cache" / "cashmere" / "models"
    except RuntimeError as error:
        text = f"cannot be found: this user has no home folder. Set {CACHE_VARIABLE} to a folder that you may write."
        raise ModelFileError("~/.cache", text) from error
