"""The members of an earlier run, as the opening of another."""

from __future__ import annotations

import math
from pathlib import Path

from cashmere.exceptions import RunDirectoryError
from cashmere.metalearning.opening import Opening, OpeningStep
from cashmere.storage.directory import read_run_json
from cashmere.storage.store import RunStore
from cashmere.storage.trial_tables import ensemble_weights

_LEAST = 1e-6
"""Least gain of a member, and gain of the defaults relative to it: seconds must not bring them before members."""


def opening_of_members(folder: str | Path, *, space: str) -> Opening:
    """Return the configurations of the members of a run's ensemble, heaviest first, and the defaults after them.

    Parameters
    ----------
    folder : path
        The earlier run; it may still be active.
    space : str
        Name of the space that the other run searches; taken for that of the earlier run if it had a custom space.

    Raises
    ------
    RunDirectoryError
        If the folder is not a run directory, or its run has no ensemble of trials.
    CorruptStoreError
        If a file is damaged.
    """
    path = Path(folder)
    settings = read_run_json(path).get("settings", {})
    with RunStore(path, read_only=True) as store:
        rows, weights = store.rows(), ensemble_weights(store.facts().ensemble)
    members = sorted((row for row in rows if row["number"] in weights), key=lambda row: -weights[row["number"]])
    if not members:
        text = "has no ensemble of trials yet. Continue it with `cashmere resume`, or name another run."
        raise RunDirectoryError(path, text)
    seconds = [max(row["fit_seconds"] or 0.0, 1e-3) for row in members]
    mean = math.exp(math.fsum(map(math.log, seconds)) / len(seconds))
    steps = tuple(
        OpeningStep(values=row["configuration"], gain=max(weights[row["number"]], _LEAST), seconds=taken / mean)
        for row, taken in zip(members, seconds, strict=True)
    )
    is_custom = "space" in (settings.get("own_objects") or ())
    return Opening(
        space=space if is_custom else str(settings.get("space")),
        first_gain=_LEAST * steps[-1].gain,
        steps=steps,
        steps_first=True,
    )
