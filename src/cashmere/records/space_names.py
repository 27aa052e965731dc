"""Names of spaces in files of earlier versions."""

from __future__ import annotations

from typing import Any

_PRESENT_NAMES = {"default": "classic", "paths": "default"}
"""Present names, by the names in version 1 of every format that contains the name of a space."""


def present_space_name(name: Any, version: int) -> Any:
    """Return the present name of a space.

    Parameters
    ----------
    name : str
        Its name in a file; anything but a string is returned unchanged.
    version : int
        Version of the file's format: run directories, artefacts, source observations, recordings.

    Examples
    --------
    >>> present_space_name("default", 1), present_space_name("volcano", 1), present_space_name("default", 2)
    ('classic', 'volcano', 'default')
    """
    return _PRESENT_NAMES.get(name, name) if version < 2 and isinstance(name, str) else name
