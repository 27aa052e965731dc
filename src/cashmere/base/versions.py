"""Versions of Python, of this package and of the libraries it depends on."""

from __future__ import annotations

import contextlib
import functools
import platform
from importlib import metadata


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of Python, of this package and of the libraries that matter for a model."""
    names = ("cashmere-automl", "numpy", "scipy", "pandas", "scikit-learn", "ConfigSpace", "lightgbm", "skops")
    found = {"python": platform.python_version()}
    for name in (*names, "xgboost-cpu", "xgboost", "catboost"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
