"""The tables that benchmarks run on: Parquet files in a folder that a ``manifest.json`` describes."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from cashmere.data.task import TaskType

DOCUMENTED = "docs/benchmarks.md, section Tables, says what such a folder holds"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkTable:
    """A table as its manifest describes it.

    Attributes
    ----------
    name : str
        Name on the command line and in results.
    path : Path
        The Parquet file; its column ``target`` is to be predicted.
    task_type : TaskType
        Kind of target.
    openml_id : int or None
        Number of the data set on OpenML.
    origin : str
        Tables of the same origin come from the same data.
    """

    name: str
    path: Path
    task_type: TaskType
    openml_id: int | None = None
    origin: str = ""

    @property
    def is_classification(self) -> bool:
        """Whether the target holds classes."""
        return self.task_type.is_classification

    def read(self) -> tuple[pd.DataFrame, pd.Series]:
        """Return features and target."""
        try:
            frame = pd.read_parquet(self.path)
        except (OSError, ValueError) as error:
            raise SystemExit(f"{self.path}, named by the manifest, cannot be read ({error}).") from error
        if "target" not in frame:
            raise SystemExit(f"{self.path} has no column 'target'. {DOCUMENTED}.")
        return frame.drop(columns="target"), frame["target"]


def add_data_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--data``, which `find_tables` reads."""
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("CASHMERE_DATA") or None,
        help="folder with tables and their manifest.json (default: the environment variable CASHMERE_DATA)",
    )


def find_tables(folder: Path | None, names: list[str]) -> list[BenchmarkTable]:
    """Return tables by name; a wrong folder, manifest or name ends the program with one line."""
    entries = read_manifest(folder)
    for name in names:
        if name not in entries:
            raise SystemExit(f"{folder} holds no table {name!r}. It holds {', '.join(sorted(entries))}.")
    return [entries[name] for name in names]


def read_manifest(folder: Path | None) -> dict[str, BenchmarkTable]:
    """Return all tables of a folder by name; an invalid folder ends the program with one line."""
    if folder is None:
        raise SystemExit(
            "No folder of tables. Pass one with --data FOLDER, or set the environment variable CASHMERE_DATA; "
            f"{DOCUMENTED}."
        )
    path = folder / "manifest.json"
    if not path.exists():
        raise SystemExit(
            f"--data {folder}: there is no manifest.json. Pass a folder that has one with --data, or set the "
            f"environment variable CASHMERE_DATA; {DOCUMENTED}."
        )
    try:
        return {
            entry["name"]: BenchmarkTable(
                name=entry["name"],
                path=folder / entry["file"],
                task_type=TaskType(entry["task"]),
                openml_id=entry.get("openml_id"),
                origin=entry.get("origin", entry["name"]),
            )
            for entry in json.loads(path.read_text())
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise SystemExit(
            f"{path} is not a list of entries with name, file and task ({problem}). {DOCUMENTED}."
        ) from error
