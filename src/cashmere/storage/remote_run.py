"""Run directories at a URL: what a reader needs is copied to a temporary folder and read there."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cashmere.base.files import MOST_BYTES, reason
from cashmere.base.json_files import JSON_BYTES
from cashmere.base.remote import below, fetch, is_url
from cashmere.base.text import clean_text
from cashmere.exceptions import RunDirectoryError
from cashmere.storage.database import MOST_BYTES as DATABASE_BYTES
from cashmere.storage.directory import EXPLANATION
from cashmere.storage.epochs import FIRST, database_path
from cashmere.storage.store import RunStore

_MOST_EPOCHS = 20
"""How many epochs to try for the database, as a remote store may not list its files."""


@contextlib.contextmanager
def local_run(place: str | Path, *, with_predictions: bool = False) -> Iterator[Path]:
    """Give a reader a local run directory for the block.

    Parameters
    ----------
    place : path or URL
        A directory is used as it is. From a URL, description and database are copied.
    with_predictions : bool
        Whether to copy the training rows, the predictions of the trials and the explanation, too.

    Raises
    ------
    RunDirectoryError
        If there is no run at the URL, or it cannot be read.
    MissingDependencyError
        If fsspec is needed and not installed.
    """
    if not is_url(place):
        yield Path(place)
        return
    url = str(place).rstrip("/")
    with tempfile.TemporaryDirectory(prefix="cashmere-") as temporary:
        folder = Path(temporary) / (clean_text(url.rpartition("/")[2], 80) or "run")
        folder.mkdir()
        try:
            _copy(url, folder, with_predictions=with_predictions)
        except OSError as error:
            text = f"cannot be read ({reason(error)}). Check the address, and that you may read there."
            raise RunDirectoryError(url, text) from error
        yield folder


def refuse_url(folder: str | Path) -> None:
    """Raise if the directory of a run to be written is a URL.

    Raises
    ------
    RunDirectoryError
        If it is one.
    """
    if is_url(folder):
        text = (
            "is a URL. A run is written on a file system: give a directory, and copy it to the store when the run has "
            "ended. Models, leaderboards and reports are then read from there."
        )
        raise RunDirectoryError(folder, text)


def _copy(url: str, folder: Path, *, with_predictions: bool) -> None:
    fetch(below(url, "run.json"), folder / "run.json", limit=JSON_BYTES)
    with contextlib.suppress(FileNotFoundError):
        fetch(below(url, "schema.json"), folder / "schema.json", limit=JSON_BYTES)
    has_database = False
    for epoch in range(FIRST, FIRST + _MOST_EPOCHS):
        path = database_path(folder, epoch)
        try:
            fetch(below(url, path.name), path, limit=DATABASE_BYTES)
        except FileNotFoundError:
            if has_database:
                break  # a copy that was updated may still hold the databases of earlier epochs
            continue
        has_database = True
        log = path.with_name(f"{path.name}-wal")
        with contextlib.suppress(FileNotFoundError):
            fetch(below(url, log.name), log, limit=DATABASE_BYTES)
    if not with_predictions:
        return
    with contextlib.suppress(FileNotFoundError):
        fetch(below(url, "table.npz"), folder / "table.npz", limit=MOST_BYTES)
    with contextlib.suppress(FileNotFoundError):
        fetch(below(url, EXPLANATION), folder / EXPLANATION, limit=JSON_BYTES)
    (folder / "predictions").mkdir()
    with RunStore(folder, read_only=True) as store:
        paths = [store.predictions_path(row["number"]) for row in store.rows() if row["predictions_crc"] is not None]
        paths += [store.predictions_path(int(n), fact["count"]) for n, fact in (store.facts().splits or {}).items()]
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            fetch(below(url, f"predictions/{path.name}"), path, limit=MOST_BYTES)
