"""Files of a run directory that are written once, at the start."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import AnyArray
from cashmere.base.files import write_atomically
from cashmere.exceptions import CorruptStoreError, RunDirectoryError

RUN_VERSION = 1
_RESTORE = "Restore it from a copy, or start a new run in another directory."


def check_new(folder: Path) -> None:
    """Refuse a folder that holds anything other than a new run.

    Files of a run that was killed before it wrote ``run.json`` are overwritten.

    Raises
    ------
    RunDirectoryError
        If the folder holds another run, is a file, or holds anything foreign.
    """
    if (folder / "run.json").exists():
        raise RunDirectoryError(
            folder,
            f"holds a run already. Continue it with `cashmere resume {folder}` or resume=True, or choose another "
            "directory.",
        )
    ours = {"run.sqlite", "run.sqlite-wal", "run.sqlite-shm", "predictions", "members", "logs", "lock", "table.npz"}
    ours |= {"sample.parquet", "schema.json"}
    if folder.is_file():
        raise RunDirectoryError(folder, "is a file; expected a directory that is new or empty.")
    if folder.exists() and (foreign := sorted(p.name for p in folder.iterdir() if p.name not in ours)):
        raise RunDirectoryError(
            folder, f"is not empty (it holds {', '.join(foreign[:3])}). Choose a new directory for the run."
        )


def read_run_json(folder: Path) -> dict[str, Any]:
    """Read ``run.json`` of a run directory.

    Raises
    ------
    RunDirectoryError
        If the directory does not exist or is not a run directory.
    """
    if not folder.is_dir():
        raise RunDirectoryError(folder, "does not exist. Expected the directory given to `cashmere fit --out`.")
    if not (folder / "run.json").exists():
        raise RunDirectoryError(
            folder,
            "holds no run.json: it is not the directory of a cashmere run, or the run was killed before it began.",
        )
    content = read_json(folder / "run.json")
    if content.get("format") != "cashmere run":
        raise RunDirectoryError(
            folder, "holds the run.json of another program. Expected the directory given to `cashmere fit --out`."
        )
    if content.get("version", 0) > RUN_VERSION:
        raise RunDirectoryError(
            folder, f"was written by a newer cashmere (version {content['version']}). Upgrade cashmere."
        )
    return content


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; a damaged file raises `CorruptStoreError`."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise CorruptStoreError(path, f"cannot be read ({error}). {_RESTORE}") from error
    if not isinstance(content, dict):
        raise CorruptStoreError(path, f"does not hold a JSON object. {_RESTORE}")
    return content


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object atomically."""
    write_atomically(path, json.dumps(content, indent=1, default=str).encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRows:
    """The coded training rows as kept in ``table.npz``: everything a resume needs, without pickle."""

    values: NDArray[np.float64]
    texts: tuple[AnyArray, ...]
    y: AnyArray
    weight: NDArray[np.float64] | None

    def save(self, path: Path) -> None:
        """Write the rows atomically."""
        buffer = io.BytesIO()
        texts = {f"text{i}": np.asarray(text, dtype=str) for i, text in enumerate(self.texts)}
        weight = {} if self.weight is None else {"weight": self.weight}
        np.savez(buffer, allow_pickle=False, values=self.values, y=self.y, **texts, **weight)
        write_atomically(path, buffer.getvalue())

    @classmethod
    def read(cls, path: Path) -> TrainingRows:
        """Read the rows; a damaged file raises `CorruptStoreError`."""
        try:
            with np.load(path, allow_pickle=False) as arrays:
                texts = sorted((n for n in arrays if n.startswith("text")), key=lambda n: int(n[4:]))
                return cls(
                    values=arrays["values"],
                    texts=tuple(arrays[name].astype(object) for name in texts),
                    y=arrays["y"],
                    weight=arrays.get("weight"),
                )
        except Exception as error:
            raise CorruptStoreError(path, f"cannot be read ({error}). {_RESTORE}") from error
