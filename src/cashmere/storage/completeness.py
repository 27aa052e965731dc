"""Check that the database of a run still holds every trial that its other files show."""

from __future__ import annotations

import re
from pathlib import Path

from cashmere.exceptions import CorruptStoreError, ModelFileError
from cashmere.model.files import read_manifest
from cashmere.storage.store import RunStore


def check_complete(folder: Path, store: RunStore, *, lookahead: int) -> None:
    """Raise if the database of a run has lost trials: otherwise the search would silently begin again.

    A kill between the files of a trial and its row leaves files without a row, but only of trials that were open, so
    less than a lookahead after the committed ones.

    Parameters
    ----------
    folder : Path
        The run directory.
    store : RunStore
        Its open store.
    lookahead : int
        Maximum number of trials that are open at the same time.

    Raises
    ------
    CorruptStoreError
        If another file shows more trials than the database holds; the message names it.
    """
    held = store.n_stored
    counts = {"its own curve of the ensemble": max((point["trials"] for point in store.facts().curve or ()), default=0)}
    for name in ("predictions", "members"):
        found = [re.fullmatch(r"(\d{6,9})(?:e\d+)?\.\w+", path.name) for path in (folder / name).iterdir()]
        highest = max((int(match[1]) for match in found if match), default=-1)
        counts[f"{name}/{highest:06d}"] = highest + 1 - lookahead
    counts["model/manifest.json"] = _trials_of_model(folder / "model", lookahead=lookahead)
    witness, told = max(counts.items(), key=lambda item: item[1])
    if told > held:
        text = (
            f"holds {held} finished trials, but {witness} tells of {told} or more. Restore run.sqlite "
            "together with run.sqlite-wal from a copy, or start a new run in another directory."
        )
        raise CorruptStoreError(folder / "run.sqlite", text)


def _trials_of_model(folder: Path, *, lookahead: int) -> int:
    """Return how many trials the saved model shows; 0 if none can be read, as it will be rebuilt."""
    try:
        manifest = read_manifest(folder)
    except ModelFileError:
        return 0
    counted = manifest["information"].get("trials", 0)
    # Under a time budget, a member may have ended before trials with lower numbers.
    least = (int(number) + 1 - lookahead for number in manifest["members"])
    return max([counted if isinstance(counted, int) else 0, *least])
