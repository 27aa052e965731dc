"""Versions of Python, of this package and of the libraries it depends on."""

from __future__ import annotations

import contextlib
import functools
import platform
import warnings
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from cashmere.exceptions import VersionWarning

_OF_LEARNERS = ("scikit-learn", "lightgbm", "xgboost", "catboost")
"""Libraries whose fitted objects are in model files."""


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of Python, of this package and of the libraries that affect a model."""
    names = ("cashmere-automl", "numpy", "scipy", "pandas", "scikit-learn", "ConfigSpace", "lightgbm", "skops")
    found = {"python": platform.python_version()}
    for name in (*names, "xgboost-cpu", "xgboost", "catboost"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def version_in(stored: Mapping[str, str], module: str) -> str | None:
    """Return the version of the library that has a module, as stored by `versions`; None if it is not there."""
    name = {"sklearn": "scikit-learn"}.get(module, module)
    version = stored.get(name, stored.get(f"{name}-cpu"))
    return None if version is None else str(version)[:40]


def warn_of_versions(path: Path, stored: Mapping[str, str]) -> None:
    """Warn if fitted models were written with other versions of their libraries; the third number does not matter.

    Parameters
    ----------
    path : Path
        The file that holds the versions.
    stored : mapping
        What `versions` returned when it was written.
    """
    # xgboost-cpu is the same library as xgboost.
    then, now = ({name.removesuffix("-cpu"): each for name, each in of.items()} for of in (stored, versions()))
    pairs = [(name, str(then[name])[:40], now[name]) for name in _OF_LEARNERS if name in then and name in now]
    if differing := [(name, old, own) for name, old, own in pairs if old.split(".")[:2] != own.split(".")[:2]]:
        listed = ", ".join(f"{name} {old} (installed: {own})" for name, old, own in differing)
        text = f"{path}: was written with {listed}. Predictions may differ. To be sure, install the earlier versions."
        warnings.warn(VersionWarning(text), stacklevel=3)
