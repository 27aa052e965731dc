"""Check that the stored trials of a run are complete, including those cut short: rows, predictions and models."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

from cashmere.exceptions import CashmereError
from cashmere.model.archives import load_fold_models
from cashmere.run.run_directory import RunDirectory
from cashmere.storage.database import read
from cashmere.storage.store import RunStore


def damaged_files(folder: Path) -> list[str]:
    """Return the files of stored trials that are missing or not what was stored, read from outside at any instant.

    Raises
    ------
    CashmereError
        If the database is damaged or cannot be read.
    """
    if not (folder / "run.json").exists():
        return []
    rows = read(folder, _sizes)
    store = RunStore(folder, read_only=True)  # after the rows: it must know where each of them was stored
    found = []
    for number, crc, n_bytes in rows:
        predictions, model = store.predictions_path(number), store.member_path(number)
        if crc is not None and not (predictions.exists() and zlib.crc32(predictions.read_bytes()) == crc):
            found.append(str(predictions.relative_to(folder)))
        if n_bytes is not None and not (model.exists() and model.stat().st_size == n_bytes):
            found.append(str(model.relative_to(folder)))
    return found


def _sizes(database: sqlite3.Connection) -> list[tuple[int, int | None, int | None]]:
    return database.execute("SELECT number, predictions_crc, member_bytes FROM trials").fetchall()


def count_cut_short(folder: Path) -> tuple[int, int, list[str]]:
    """Open a run as a resume does, load the models of all trials, and count those that were cut short.

    Returns
    -------
    tuple of (int, int, list of str)
        Successful trials, those of them that were cut short, and what is not as it should be.
    """
    found = []
    try:
        with RunDirectory.open(folder) as run:
            observations = run.store.load(run.space.configuration_space).values()
            successes = [o for o in observations if o.succeeded]
            for o in successes:
                n_models = len(load_fold_models(run.store.member_path(o.trial.number)))
                if o.predictions is None or n_models != len(run.splits) or len(o.fold_losses) != n_models:
                    found.append(f"trial {o.trial.number} lacks predictions, models or losses of folds")
                if o.outcome.cut_short is not None and o.outcome.path is None:
                    found.append(f"trial {o.trial.number} was cut short, but followed no path")
    except CashmereError as error:
        return 0, 0, [f"{type(error).__name__}: {error}"]
    return len(successes), sum(o.outcome.cut_short is not None for o in successes), found
