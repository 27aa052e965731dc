"""The child process of `cashmere.model.first_load`: ``python -m cashmere.model.first_load_child``.

It reads a task from its standard input, loads a model, predicts two rows and writes one line of JSON: the problem, or
null. It first limits itself, so that nobody needs to end it: the alarm works even in native code, and if the process
that started it is gone.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

from cashmere.base.files import is_regular
from cashmere.exceptions import CashmereError, MissingLibraryError, ModelFileError
from cashmere.model.archive_places import closed_list
from cashmere.model.files import read_manifest
from cashmere.model.predictor import Predictor
from cashmere.model.probe import probe
from cashmere.model.skops_library import skops_io
from cashmere.model.zip_entries import unpacked


def main() -> None:
    """Load a model under limits, and report what is wrong with it."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # libraries may print their opinion of a model
    task = json.load(sys.stdin)
    _import_libraries(Path(task["folder"]))
    _limit(memory_bytes=task["memory_bytes"], cpu_seconds=task["cpu_seconds"], seconds=task["seconds"])
    json.dump(_problem(task), answer)
    answer.flush()
    os._exit(0)  # skip the destructors of what was loaded


def _problem(task: dict[str, Any]) -> dict[str, str | None]:
    path: Path | None = None
    problem: str | None = None
    library: str | None = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            folder = Path(task["folder"])
            manifest = read_manifest(folder)
            if manifest["checksum"] != task["checksum"]:
                raise ModelFileError(folder, "was changed while it was being checked. Load it again.")
            predictor = Predictor.from_manifest(folder, manifest, trusted=tuple(task["trusted"]))
            probe(predictor, {int(number): folder / entry["file"] for number, entry in manifest["members"].items()})
    except MissingLibraryError as error:
        path, library = error.path, error.library
    except ModelFileError as error:
        path, problem = error.path, str(error).removeprefix(f"{error.path}: ")
    except MemoryError:
        mib = task["memory_bytes"] / 2**20
        problem = f"needs more than {mib:.0f} MiB of memory to load and to predict two rows. It is not loaded here."
    except CashmereError as error:
        problem = f"cannot predict two rows: {error}"
    except Exception as error:  # whatever libraries raise for content that they did not write
        problem = f"cannot be loaded and predict two rows ({type(error).__name__}: {error})."
    return {"path": None if path is None else str(path), "problem": problem, "library": library}


def _import_libraries(folder: Path) -> None:
    """Import the libraries of the model while files may still be written and memory is unlimited."""
    skops_io()
    archives = [path for path in folder.glob("*.skops") if is_regular(path)]
    for name in sorted({name for path in archives for name in _modules(path)}):
        with contextlib.suppress(Exception):  # loading the model says what is missing
            library = importlib.import_module(name)
            if name == "catboost":
                # When it makes its first pool, it reserves a GiB and starts its threads. Under a limit that leaves room
                # for the GiB but not for the threads, it would wait for them forever.
                library.Pool([[0.0]])


def _modules(path: Path) -> list[str]:
    """Return the modules on the closed list that an archive mentions: others are slow to import or may be missing."""
    try:
        archive = unpacked(path.read_bytes())
    except ValueError:  # loading it will raise
        return []
    modules = {"lightgbm", "xgboost", "catboost", *(module for _, module, _ in closed_list())}
    return [name for name in modules if name.encode() in archive]


def _limit(*, memory_bytes: int, cpu_seconds: float, seconds: float) -> None:
    """Limit memory, time and files; on systems without such limits, the parent only watches the time."""
    try:
        import resource
    except ImportError:  # Windows
        return
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if _HAS_PROC else 4 * 2**30
    for kind, limit, last in (
        (resource.RLIMIT_AS, used + memory_bytes, 0),
        (resource.RLIMIT_CPU, int(cpu_seconds) + 1, 1),  # the hard limit, a second later, kills without a reason
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        _, most = resource.getrlimit(kind)
        if most != resource.RLIM_INFINITY:
            limit = min(limit, most - last)
        with contextlib.suppress(ValueError, OSError):  # macOS refuses some limits
            resource.setrlimit(kind, (limit, limit + last))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(seconds) + 1)


_HAS_PROC = Path("/proc/self/statm").exists()

if __name__ == "__main__":
    main()
