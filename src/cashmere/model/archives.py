"""Model files without pickle: skops archives, checked against a closed list before skops reads them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cashmere.base.files import failures_as, open_regular, read_file
from cashmere.base.shared_libraries import missing_library, missing_shared_library
from cashmere.data.task import Encoding
from cashmere.exceptions import ModelFileError
from cashmere.model.audit import AuditedArchive, audit
from cashmere.model.content import ContentError, check_entries, check_objects
from cashmere.model.fold_model import FoldModel
from cashmere.model.skops_library import skops_io
from cashmere.model.zip_entries import SCHEMA, packed

_MOST_BYTES = 2**32
"""Largest archive, 4 GiB: the limit for the models of all trials of a run."""


def dump_fold_models(models: Sequence[FoldModel]) -> bytes:
    """Serialise the fold models of one configuration."""
    content = [
        {
            "pipeline": model.pipeline if model.classes is None or len(model.classes) > 1 else None,
            "encoding": model.encoding.value,
            "classes": model.classes,
            "n_classes": model.n_classes,
            **({} if model.log_limit is None else {"log_limit": model.log_limit}),
        }
        for model in models
    ]
    return dump(content)


def load_fold_models(
    path: Path, *, trusted: Iterable[str] = (), sha256: str | None = None, vouched: bool = False
) -> list[FoldModel]:
    """Read the fold models written by `dump_fold_models`.

    Parameters
    ----------
    path, trusted, sha256, vouched
        See `load`.

    Raises
    ------
    ModelFileError
        If the file is missing, damaged, or holds anything that is not on the list.
    """
    content = load(path, trusted=trusted, sha256=sha256, vouched=vouched)
    try:
        return [
            FoldModel(
                pipeline=entry["pipeline"],
                encoding=Encoding(entry["encoding"]),
                classes=None if entry["classes"] is None else np.asarray(entry["classes"], dtype=np.int64),
                n_classes=int(entry["n_classes"]),
                log_limit=None if entry.get("log_limit") is None else float(entry["log_limit"]),
            )
            for entry in content
        ]
    except (TypeError, KeyError, ValueError) as error:
        raise ModelFileError(path, f"does not hold fold models ({type(error).__name__}: {error}).") from error


def dump(content: Any) -> bytes:
    """Serialise plain containers, arrays and scikit-learn objects, in the format of ``skops.io.dumps``.

    skops describes the objects; the file is written here. skops would list the entries of its zip file before it adds
    one, which takes quadratic time, and write the schema with indents, for which Python has no encoder in C.
    """
    library = skops_io()._persist
    entries = _Entries()
    context = library.SaveContext(zip_file=entries)
    schema = library.get_state(content, context)
    context.clear_memo()  # of what the objects were described by
    schema |= {"protocol": context.protocol, "_skops_version": library.skops.__version__}
    entries[SCHEMA] = json.dumps(schema).encode()
    del schema
    return packed(entries)


class _Entries(dict[str, bytes | memoryview]):
    """The entries of an archive by name; for skops, the zip file that it writes them to."""

    def namelist(self) -> Collection[str]:
        return self

    def writestr(self, name: str, data: bytes | memoryview) -> None:
        self[name] = data


def read_archive(path: Path, sha256: str | None = None) -> bytes:
    """Return the content of an archive.

    Parameters
    ----------
    path : Path
        The file.
    sha256 : str, optional
        The checksum that the content must have.

    Raises
    ------
    ModelFileError
        If the file is missing, a link, too large, or has another checksum.
    """
    with failures_as(ModelFileError, path, "Is the model folder complete?"):
        data = read_file(path, limit=_MOST_BYTES)
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise _changed(path)
    return data


def check_archive_file(path: Path, sha256: str) -> None:
    """Raise if `read_archive` would, without loading the archive into memory."""
    with failures_as(ModelFileError, path, "Is the model folder complete?"):
        with open_regular(path, limit=_MOST_BYTES) as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != sha256:
            raise _changed(path)


def _changed(path: Path) -> ModelFileError:
    return ModelFileError(
        path, "does not have the checksum in the manifest: it is damaged or was tampered with. Restore it from a copy."
    )


def check(path: Path, *, trusted: Iterable[str] = (), sha256: str | None = None) -> AuditedArchive:
    """Read an archive and check what can be checked before loading it.

    Parameters
    ----------
    path : Path
        The file.
    trusted : iterable of str
        What the *reader* trusts in addition, for example the class of a custom algorithm; see `cashmere.model.trusted`.
        The list is never taken from the file itself.
    sha256 : str, optional
        The checksum that the file must have.

    Raises
    ------
    ModelFileError
        If the file is missing, damaged, or holds anything that is not on the list, or a model of a boosting library
        that is not as the library would have written it.
    """
    archive = _audited(path, trusted, sha256)
    with failures_as(ModelFileError, path, "Restore it from a copy."), _faults_of(path):
        check_entries(archive.nodes(), archive.entries)
    return archive


def _audited(path: Path, trusted: Iterable[str], sha256: str | None) -> AuditedArchive:
    return audit(read_archive(path, sha256), str(path), trusted=trusted)


def load(path: Path, *, trusted: Iterable[str] = (), sha256: str | None = None, vouched: bool = False) -> Any:
    """Read a skops archive that holds only what the closed list allows, and whose content is consistent.

    Parameters
    ----------
    path, trusted, sha256
        See `check`.
    vouched : bool
        Whether this machine or somebody trusted has written what has this checksum. The content is then consistent, and
        not checked: this would take longer than loading it.

    Raises
    ------
    MissingLibraryError
        If a library that it needs is not installed.
    ModelFileError
        As `check`; also if the content of the archive is inconsistent.
    """
    archive = _audited(path, trusted, sha256) if vouched else check(path, trusted=trusted, sha256=sha256)
    data, types = archive.data, sorted(archive.types)
    del archive  # the parsed schema takes more memory than its text, which skops parses again
    try:
        content = skops_io().loads(data, trusted=types)
    except Exception as error:  # libraries raise all kinds of errors for damaged content
        if (library := _missing_library(error)) is not None:
            raise missing_library(path, library) from error
        raise ModelFileError(path, f"is damaged or not a model file ({type(error).__name__}: {error}).") from error
    if not vouched:
        with failures_as(ModelFileError, path, "Restore it from a copy."), _faults_of(path):
            check_objects(content)
    return content


def _missing_library(error: Exception) -> str | None:
    """Return the library that was to be imported and is not installed; None after any other error."""
    if (shared := missing_shared_library(str(error))) is not None:
        return shared
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    library = error.name.partition(".")[0]
    return None if library in sys.modules else library  # an installed one of another version may lack a module


@contextlib.contextmanager
def _faults_of(path: Path) -> Iterator[None]:
    try:
        yield
    except ContentError as error:
        raise ModelFileError(path, f"is damaged or was tampered with: {error}") from error
