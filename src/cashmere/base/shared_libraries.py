"""Shared libraries that Python packages expect from the system, such as that of OpenMP."""

from __future__ import annotations

import re
from pathlib import Path

from cashmere.exceptions import MissingLibraryError

_MISSING = (
    re.compile(r"(lib[^\s:/'\"]+\.so[.\d]*): cannot open shared object file"),
    re.compile(r"Library not loaded: \S*?(lib[^\s/'\"]+\.dylib)"),
)
"""What the loaders of Linux and macOS say, as quoted by Python, LightGBM and XGBoost."""

_INSTALLED_BY = {
    "libgomp.so.1": "`apt-get install libgomp1` on Debian and Ubuntu, `dnf install libgomp` on Fedora",
    "libomp.dylib": "`brew install libomp`",
}


def missing_shared_library(text: str) -> str | None:
    """Return the name of the shared library that an error message misses, or None.

    Examples
    --------
    >>> missing_shared_library("OSError: libgomp.so.1: cannot open shared object file: No such file or directory")
    'libgomp.so.1'
    >>> missing_shared_library("ValueError: Input contains NaN") is None
    True
    """
    found = (match for pattern in _MISSING if (match := pattern.search(text)) is not None)
    return next((match[1] for match in found), None)


def missing_library(path: str | Path, library: str, version: str | None = None) -> MissingLibraryError:
    """Return the error for a missing package or shared library, with advice for the latter."""
    return MissingLibraryError(path, library, version, advice=how_to_install(library))


def how_to_install(name: str) -> str | None:
    """Return a sentence on how to install a shared library; None for a name that is not that of one."""
    if ".so" not in name and not name.endswith(".dylib"):
        return None
    known = _INSTALLED_BY.get(name)
    return f"Install it with the package manager of the system{'.' if known is None else f': {known}.'}"
