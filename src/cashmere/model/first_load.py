"""Load a model from elsewhere first in a child process, and predict two rows there.

Archives are checked before and after reading, but libraries parse parts of them in native code, which can crash, and a
model can be crafted to take much memory or time. So the harm is done in a child process with limited memory and time,
one thread and a bare environment, which may not write files. See `cashmere.model.first_load_child`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

from cashmere.base.files import is_regular
from cashmere.base.json_files import checked, parse_json
from cashmere.base.shared_libraries import missing_library
from cashmere.base.versions import version_in
from cashmere.exceptions import ModelFileError
from cashmere.model.zip_entries import unpacked_size

LIMIT_SECONDS = 180.0
"""Time for the child to start, load and predict even on a busy machine, apart from the size of the model."""

LIMIT_CPU_SECONDS = 45.0
"""CPU time for the same, as a child that hangs usually computes."""

SECONDS_PER_GIB = 120.0
"""Additional time, of both kinds, for each GiB of unpacked archives."""

LIMIT_MIB = 1536.0
"""Memory for the child beyond what its libraries take before it opens a file, apart from the size of the model."""

MEMORY_PER_BYTE = 6.0
"""Additional memory for each byte of the unpacked archives: the bytes, the arrays, and parsed texts."""

_ENDED_BY_TIME = {getattr(signal, name) for name in ("SIGXCPU", "SIGALRM") if hasattr(signal, name)}
_MOST_ANSWER_BYTES = 100_000
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")


class _Answer(TypedDict):
    """What the child says of a model: what is wrong or which library it lacks, and in which file; null if nothing."""

    path: str | None
    problem: str | None
    library: str | None


def check_first_load(folder: Path, manifest: dict[str, Any], *, trusted: Sequence[str] = ()) -> None:
    """Load a model in a child process and let it predict two rows there.

    Parameters
    ----------
    folder : Path
        The model folder.
    manifest : dict
        As read and checked; the child refuses to load another one.
    trusted : sequence of str
        Names of other types that the reader trusts; the child must be able to import them.

    Raises
    ------
    MissingLibraryError
        If a library that the model needs is not installed.
    ModelFileError
        If the child refuses the model, crashes, takes too much memory or time, or if the predictions are not finite
        numbers, one for every row or class.
    """
    if local := [name for name in trusted if name.startswith("__main__.")]:
        raise ModelFileError(
            folder,
            f"holds types that a child process cannot import: {', '.join(local)}. Define them in a module, or load the "
            "model with verify=False if you know its origin.",
        )
    n_bytes = sum(unpacked_size(path) for path in folder.glob("*.skops") if is_regular(path))
    more = SECONDS_PER_GIB * n_bytes / 2**30
    seconds, cpu_seconds = LIMIT_SECONDS + more, LIMIT_CPU_SECONDS + more
    task = {
        "folder": str(folder.absolute()),
        "checksum": manifest["checksum"],
        "trusted": list(trusted),
        "memory_bytes": int(LIMIT_MIB * 2**20 + MEMORY_PER_BYTE * n_bytes),
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
    }
    answer, status = _run_child(json.dumps(task).encode(), seconds)
    if status is None or -status in _ENDED_BY_TIME:
        limit = f"{cpu_seconds:.0f} s of the processor" if status is not None else f"{seconds:.0f} s"
        raise ModelFileError(
            folder, f"took more than {limit} to load and to predict two rows in a child process. {_REFUSED}"
        )
    try:
        found = checked(parse_json(answer), _Answer)
    except ValueError:
        raise ModelFileError(
            folder, f"ended the child process that first loaded it ({_described(status)}). {_REFUSED}"
        ) from None
    if found["library"] is not None:
        version = version_in(manifest.get("versions", {}), found["library"])
        raise missing_library(found["path"] or folder, found["library"], version)
    if found["problem"] is not None:
        raise ModelFileError(found["path"] or folder, found["problem"])


_REFUSED = "It is not loaded here. Get the model again from its source."


def _run_child(task: bytes, seconds: float) -> tuple[bytes, int | None]:
    """Return the child's answer and its exit status, which is None if it took too long."""
    variables = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    variables |= dict.fromkeys(_THREAD_VARIABLES, "1")
    variables["PYTHONPATH"] = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
    child = subprocess.Popen(
        [sys.executable, "-P", "-B", "-m", "cashmere.model.first_load_child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=variables,
        start_new_session=True,
    )
    try:
        answer, _ = child.communicate(task, timeout=seconds)
        return answer[:_MOST_ANSWER_BYTES], child.returncode
    except subprocess.TimeoutExpired:
        return b"", None
    finally:
        _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill the child and everything that it has started, unless it has already ended."""
    if child.poll() is None:
        with contextlib.suppress(OSError):
            if os.name == "posix":
                os.killpg(child.pid, signal.SIGKILL)
            else:
                child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()


def _described(status: int) -> str:
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"signal {signal.Signals(-status).name}"
    return f"exit status {status}"
