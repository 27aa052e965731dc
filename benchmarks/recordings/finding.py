"""Which recordings a command takes: files, folders, or names."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.recordings.recorded_history import RECORDED, RECORDED_LARGE
from benchmarks.recordings.replay_runs import Recording


def add_recordings_argument(parser: argparse.ArgumentParser, default: Sequence[str] = ()) -> None:
    """Let a command take recordings for `find_recordings`."""
    parser.add_argument(
        "--recordings",
        nargs="+",
        default=list(default),
        help="files, folders, or names in benchmarks/recorded, else in benchmarks/recorded_large; of two recordings of "
        f"a table, the first is used (default: {' '.join(default) or 'benchmarks/recorded'})",
    )


def find_recordings(wanted: Sequence[str], folders: Sequence[Path] = (RECORDED, RECORDED_LARGE)) -> list[Recording]:
    """Return the recordings that a command takes.

    Parameters
    ----------
    wanted : sequence of str
        Paths of files or folders, or names of tables or files; by default the first folder.
    folders : sequence of Path
        Where names are looked up; the first that has one is taken.

    Returns
    -------
    list of Recording
        In this order. A table counts once in each space, with the first of its recordings.

    Raises
    ------
    SystemExit
        If there is no such recording, or a file is named whose table has come before.
    """
    found: dict[tuple[str, str], Recording] = {}
    for text in wanted or [str(folders[0])]:
        for path in _paths(text, folders):
            recording = Recording.of(path.resolve())
            first = found.setdefault((recording.table, recording.space), recording)
            if Path(text).is_file() and first.path != recording.path:
                raise SystemExit(f"--recordings {text}: {first.path} comes before and holds the same table. Name one.")
    return list(found.values())


def _paths(text: str, folders: Sequence[Path]) -> list[Path]:
    """Return the files that a path or a name stands for."""
    if Path(text).is_file():
        return [Path(text)]
    if Path(text).is_dir():
        if not (found := sorted(Path(text).glob("*.zip"))):
            raise SystemExit(
                f"--recordings {text}: the folder holds no recordings (*.zip). Make some with `python -m benchmarks "
                "record`; see its --help."
            )
        return found
    for folder in folders:
        there = sorted(folder.glob("*.zip"))
        if found := [path for path in there if text in (path.stem, path.stem.rpartition("-")[0])]:
            return found
    known = ", ".join(path.stem for folder in folders for path in sorted(folder.glob("*.zip"))) or "none"
    places = " or ".join(map(str, folders))
    raise SystemExit(f"No recording {text!r}: neither a file nor one of {places} ({known}).")
