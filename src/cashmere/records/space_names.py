"""Names that spaces had in files of earlier versions."""

from __future__ import annotations

from typing import Any

_PRESENT_NAMES = {"default": "classic", "paths": "default"}
"""What version 1 of every format that names a space called them."""


def present_space_name(name: Any, version: int) -> Any:
    """Return what a space is called today.

    Parameters
    ----------
    name : str
        What a file calls it; anything else is returned as it is.
    version : int
        Version of the file's format: run directories, artefacts, source observations, recordings.

    Examples
    --------
    >>> present_space_name("default", 1), present_space_name("volcano", 1), present_space_name("default", 2)
    ('classic', 'volcano', 'default')
    """
    return _PRESENT_NAMES.get(name, name) if version < 2 and isinstance(name, str) else name
