"""Check that workers of a cluster can run our trials: they need the packages of this process in the same versions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

from cashmere.base.versions import versions
from cashmere.exceptions import ClusterVersionError, VersionWarning

_SHOWN_WORKERS = 3


def version_probe() -> Callable[[], dict[str, str] | str]:
    """Return a function that reports a worker's versions, or why there are none.

    It travels by value, as the worker may not have cashmere.
    """

    def probe() -> dict[str, str] | str:
        try:
            from cashmere.base.versions import versions
        except ImportError as error:
            return f"cannot import cashmere ({error})"
        return versions()

    return probe


def check_versions(address: str, found: Mapping[str, dict[str, str] | str | Exception]) -> None:
    """Raise if a worker of the cluster could not run our trials; warn of libraries in other versions.

    Parameters
    ----------
    address : str
        Where the cluster is.
    found : mapping
        For each worker, what `version_probe` returned, or why it could not be asked.

    Raises
    ------
    ClusterVersionError
        If a worker lacks a package, or has another version of Python or cashmere.
    """
    refused = {worker: reason for worker, told in found.items() if (reason := why_refused(told)) is not None}
    if refused:
        shown = "; ".join(f"{worker} {reason}" for worker, reason in list(refused.items())[:_SHOWN_WORKERS])
        text = f"has {len(refused)} of {len(found)} workers that cannot run trials: {shown}. "
        raise ClusterVersionError(address, text + "Install the same packages on all machines.")
    usable = [told for told in found.values() if isinstance(told, dict)]
    if differing := sorted({line for theirs in usable for line in other_versions(theirs)}):
        text = f"On workers of the cluster: {', '.join(differing)}. Losses may differ from those of one machine."
        warnings.warn(VersionWarning(text), stacklevel=2)


def why_refused(told: dict[str, str] | str | Exception, ours: Mapping[str, str] | None = None) -> str | None:
    """Return why a worker cannot run trials; None if it can.

    Parameters
    ----------
    told : dict, str or Exception
        Its versions, or why there are none.
    ours : mapping, optional
        Versions of the coordinator, by default this process.
    """
    if not isinstance(told, dict):
        return str(told) if isinstance(told, str) else f"does not answer ({type(told).__name__}: {told})"
    ours = versions() if ours is None else ours
    for name, version in ours.items():
        if name not in told:
            return f"lacks {name} (here {version})"
    for name in ("cashmere-automl", "python"):
        if _compared(name, told[name]) != _compared(name, ours[name]):
            return f"has {name} {told[name]} (here {ours[name]})"
    return None


def other_versions(theirs: Mapping[str, str]) -> list[str]:
    """Describe the libraries that a worker has in other versions than this process."""
    return [
        f"{name} {theirs[name]} (here {version})" for name, version in versions().items() if theirs[name] != version
    ]


def _compared(name: str, version: str) -> str:
    """Return the part of a version that must be equal: major and minor of Python, all of cashmere."""
    return ".".join(version.split(".")[:2]) if name == "python" else version
