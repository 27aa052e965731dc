"""Model files without pickle: skops archives, read against an allow-list of types."""

from __future__ import annotations

import functools
import io
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cashmere.data.task import Encoding
from cashmere.exceptions import ModelFileError
from cashmere.model.fold_model import FoldModel
from cashmere.model.moved_types import with_present_names
from cashmere.model.trusted import TRUSTED_TYPES

MAX_UNPACKED_BYTES = 8 * 2**30
"""An archive that would unpack to more is refused before anything is read (zip bombs)."""

OWN_TYPES = ("cashmere.data.preparation.FoldEncoder",)
"""Types of this package that appear in model files."""


def dump_fold_models(models: Sequence[FoldModel]) -> bytes:
    """Serialise the fold models of one configuration."""
    content = [
        {
            "pipeline": model.pipeline if model.classes is None or len(model.classes) > 1 else None,
            "encoding": model.encoding.value,
            "classes": model.classes,
            "n_classes": model.n_classes,
        }
        for model in models
    ]
    return dump(content)


def load_fold_models(path: Path, *, trusted: Iterable[str] = ()) -> list[FoldModel]:
    """Read the fold models written by `dump_fold_models`.

    Raises
    ------
    ModelFileError
        If the file is missing, damaged, or holds a type that is not on the allow-list.
    """
    content = load(path, trusted=trusted)
    try:
        return [
            FoldModel(
                pipeline=entry["pipeline"],
                encoding=Encoding(entry["encoding"]),
                classes=None if entry["classes"] is None else np.asarray(entry["classes"], dtype=np.int64),
                n_classes=int(entry["n_classes"]),
            )
            for entry in content
        ]
    except (TypeError, KeyError, ValueError) as error:
        raise ModelFileError(path, f"does not hold fold models ({type(error).__name__}: {error}).") from error


def dump(content: Any) -> bytes:
    """Serialise plain containers, arrays and scikit-learn objects."""
    import skops.io

    data: bytes = skops.io.dumps(content)
    return data


def check_types(data: bytes, name: str, *, trusted: Iterable[str] = ()) -> None:
    """Refuse an archive with types that are neither on the allow-list nor in `trusted`.

    Parameters
    ----------
    data : bytes
        The archive.
    name : str
        Name of the archive, for the error message.
    trusted : iterable of str
        Names of further types the reader trusts.

    Raises
    ------
    ModelFileError
        Naming the types.
    """
    import skops.io

    unknown = set(skops.io.get_untrusted_types(data=data)) - allowed_types() - set(trusted)
    if unknown:
        raise ModelFileError(
            name,
            f"holds types that are not trusted: {', '.join(sorted(unknown))}. If they belong to an algorithm "
            "of yours, name them in its `trusted_types`, and pass them as `trusted` when you load a model whose origin "
            "you know.",
        )


def load(path: Path, *, trusted: Iterable[str] = ()) -> Any:
    """Read a skops archive whose types are all known to be harmless.

    Parameters
    ----------
    path : Path
        The file.
    trusted : iterable of str
        Names of further types the *reader* trusts, for example the class of a custom algorithm. The list is never
        taken from the file itself.

    Raises
    ------
    ModelFileError
        If the file is missing, damaged, or holds a type that is not on the allow-list.
    """
    import skops.io

    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelFileError(path, f"cannot be read ({error.strerror}). Is the model folder complete?") from error
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(info.file_size for info in archive.infolist()) > MAX_UNPACKED_BYTES:
                raise ModelFileError(path, "would unpack to more than 8 GiB and is not read. Was it made by cashmere?")
        data = with_present_names(data)
        check_types(data, str(path), trusted=trusted)
        return skops.io.loads(data, trusted=sorted(allowed_types() | set(trusted)))
    except ModelFileError:
        raise
    except Exception as error:  # a damaged archive fails in many ways, all of them here
        raise ModelFileError(path, f"is damaged or not a model file ({type(error).__name__}: {error}).") from error


@functools.cache
def allowed_types() -> frozenset[str]:
    """Return the fixed allow-list: the types in built-in algorithms, operators and encoders."""
    return frozenset(TRUSTED_TYPES) | frozenset(OWN_TYPES)
