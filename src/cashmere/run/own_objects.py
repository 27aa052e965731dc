"""Check the custom objects that a run is opened with: they must be those it was started with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cashmere.base.text import is_dotted_path
from cashmere.exceptions import RunDirectoryError
from cashmere.run.settings import scale_of

_STRATEGY = "strategy"


def checked_objects(
    folder: Path, stored: Mapping[str, Any], given: Mapping[str, Any], *, searches: bool
) -> dict[str, Any]:
    """Return the custom objects of a run, which take the place of their descriptions.

    Parameters
    ----------
    folder : Path
        The run directory.
    stored : mapping
        Its settings, from ``run.json``.
    given : mapping
        Objects by the name of their setting. A strategy may be the path from which it is imported.
    searches : bool
        Whether the strategy will be asked; if not, a custom one need not be given.

    Raises
    ------
    RunDirectoryError
        If an object is missing, or another one than at the start, as far as names tell.
    """
    given = {name: value for name, value in given.items() if value is not None}
    path = stored.get(_STRATEGY) if is_dotted_path(stored.get(_STRATEGY)) else None
    custom = set(stored.get("own_objects") or ()) | ({_STRATEGY} if path else set())
    missing = custom - given.keys()
    if _STRATEGY in missing and not searches:
        given = {**given, _STRATEGY: "random"}
        missing.remove(_STRATEGY)
    if missing:
        raise RunDirectoryError(
            folder,
            f"was started with a custom {' and '.join(sorted(missing))}. {_how(folder, missing, path, searches)}",
        )
    if isinstance(named := given.get(_STRATEGY), str) and searches and named != stored.get(_STRATEGY):
        raise RunDirectoryError(folder, f"was started with the strategy {stored.get(_STRATEGY)}, not {named}.")
    advice = "Use the value from before." if searches else "Use the value from before, or leave it out of own_objects."
    for name, value in given.items():
        is_named = isinstance(value, str)
        if name == _STRATEGY and is_named:
            continue
        if is_named if name in custom else not (is_named and value == stored.get(name)):
            text = f"was started with {name}={stored.get(name)!r} and cannot continue with {value!r}. {advice}"
            raise RunDirectoryError(folder, text)
    if "metric" in custom:
        _check_scale(folder, stored, given["metric"])
    return dict(given)


def _how(folder: Path, missing: set[str], path: str | None, searches: bool) -> str:
    """Return how to pass the objects that are missing."""
    if path and missing == {_STRATEGY}:
        return f"If you trust it, name it again: cashmere resume {folder} --strategy {path}"
    if searches:
        return (
            "Resume it from Python with the same object: AutoClassifier(..., run_directory=..., resume=True).fit(X, y)."
        )
    objects = ", ".join(f"{name!r}: ..." for name in sorted(missing))
    return f"Pass the same object in Python: own_objects={{{objects}}}."


def _check_scale(folder: Path, stored: Mapping[str, Any], metric: Any) -> None:
    """Raise if a custom metric has another name or direction than that of the run; early versions stored neither."""
    now = scale_of(metric)
    before = {name: stored[name] for name in now if name in stored}
    if any(now[name] != value for name, value in before.items()):
        raise RunDirectoryError(
            folder,
            f"was started with the custom metric {_described(before)} and cannot continue with {_described(now)}. Use "
            "the function from before, with the same name.",
        )


def _described(scale: Mapping[str, Any]) -> str:
    direction = "greater" if scale.get("metric_greater_is_better") else "smaller"
    return f"{scale.get('metric_name')!r} ({direction} is better)"
