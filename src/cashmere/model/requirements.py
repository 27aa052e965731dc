"""List what must be installed where a model predicts, which is much less than what a search needs.

The list is complete, so nothing else needs to be installed: ``pip install --no-deps -r requirements.txt``. An extra of
the package cannot do this, because extras can only add to the base dependencies.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions, version
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from cashmere.base.remote import is_url
from cashmere.exceptions import ModelFileError
from cashmere.model.archives import check
from cashmere.model.files import entry_path, find_model, read_model
from cashmere.model.remote_model import local_copy
from cashmere.model.signature import signature_path

_OF_EVERY_MODEL = ("msgspec", "numpy", "pandas", "scipy", "sklearn", "skops", "threadpoolctl")
"""Modules that loading and predicting import with any model."""

_OF_SIGNED_MODELS = "cryptography"


def model_requirements(folder: str | Path, *, trusted: Iterable[str] = ()) -> list[str]:
    """List what must be installed where a model is loaded and predicts, with the versions installed here.

    Those are this package, the libraries that loading and predicting import, the boosting libraries of the members, and
    all that these need. Modules of custom algorithms are listed if they come from an installed distribution.

    Parameters
    ----------
    folder : path or URL
        ``RUN/model`` or ``RUN``.
    trusted : iterable of str
        Types of custom algorithms, see `Predictor.load`.

    Returns
    -------
    list of str
        Lines of a requirements file, such as ``"numpy==2.3.1"``, in order of the names.

    Raises
    ------
    ModelFileError
        If there is no model, it is damaged, holds types that are not trusted, or needs a library that is not installed
        here.
    """
    path = find_model(local_copy(str(folder)) if is_url(folder) else folder)
    trusted = tuple(trusted)
    modules = read_model(path, lambda manifest: _modules_of(path, manifest, trusted))
    homes = packages_distributions()
    versions = _with_all_they_need(home for module in modules for home in homes.get(module, ()))
    versions["cashmere-automl"] = version("cashmere-automl")
    return [f"{name}=={number}" for name, number in sorted(versions.items())]


def _modules_of(path: Path, manifest: Mapping[str, Any], trusted: Sequence[str]) -> set[str]:
    """Return the modules that loading a model and predicting with it import."""
    modules = set(_OF_EVERY_MODEL)
    if signature_path(path, manifest["checksum"]).exists():
        modules.add(_OF_SIGNED_MODELS)
    for entry in (manifest["encoders"], *manifest["members"].values()):
        file = entry_path(path, entry)
        for name in check(file, trusted=trusted, sha256=entry["sha256"]).types:
            try:
                modules |= _modules_behind(name)
            except ImportError as error:
                text = f"needs a library that is not installed here ({error}). Ask where the model was made."
                raise ModelFileError(file, text) from error
    return modules


def _modules_behind(name: str) -> set[str]:
    """Return the packages that define a function, or a type and its bases."""
    module, _, attribute = name.rpartition(".")
    found = getattr(importlib.import_module(module), attribute, None)
    bases = [base.__module__ for base in found.__mro__] if isinstance(found, type) else [module]
    return {each.partition(".")[0] for each in bases} - {"cashmere", "builtins"}


def _with_all_they_need(names: Iterable[str]) -> dict[str, str]:
    """Return the installed versions of distributions and of all that they require, by name."""
    versions: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    ahead = [(name, "") for name in names]
    while ahead:
        name, extra = ahead.pop()
        name = canonicalize_name(name)
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        with contextlib.suppress(PackageNotFoundError):  # here, the model predicts without it
            installed = distribution(name)
            versions[name] = Version(installed.version).public  # without a part such as +cpu, which no index has
            for required in map(Requirement, installed.requires or ()):
                if required.marker is None or required.marker.evaluate({"extra": extra}):
                    ahead += [(required.name, asked) for asked in ("", *required.extras)]
    return versions
