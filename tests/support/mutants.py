"""Random changes of the archives of fitted models, and what comes of loading them.

Run as a program, it fits one pipeline of every algorithm, changes their archives at random, and loads and predicts
with each in a process of its own, forked and limited as the child process for first loads is:

    PYTHONPATH=tests python -m support.mutants --per-algorithm 40 --seed 0

It prints the outcomes by algorithm as JSON. Two rows are predicted first, as in the child process, then all of them, as
in the main process; what happens in the second part would happen to the user.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import resource
import signal
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cashmere.base.seeds import seed_of
from cashmere.data.task import TaskType
from cashmere.exceptions import ModelFileError
from cashmere.model.archives import dump, load
from support.real_archives import NAMES, choices, fitted, space_for, tasks_of

MEMORY_BYTES = 2**30
SECONDS = 20

REFUSED, REFUSED_BY_ROWS, USABLE, UNUSABLE_LATER, RAW = range(10, 15)
OUTCOMES = {
    REFUSED: "refused by the checks",
    REFUSED_BY_ROWS: "refused by two rows",
    USABLE: "predicts finite numbers",
    UNUSABLE_LATER: "fails or predicts NaN later",
    RAW: "another error than ours",
}
ABSORBED = {"crash": "crash in the child", "hang": "hang in the child", "memory": "memory in the child"}
HARM = {
    "crash": "CRASH of the main process",
    "hang": "HANG of the main process",
    "memory": "MEMORY of the main process",
}


def models(only: str = ""):
    """Yield a label, a small fitted pipeline, its rows and its method, for every algorithm whose label matches."""
    for name in NAMES:
        tasks = tasks_of(name)
        for task in tasks if name == "classic" else tasks[-1:]:
            if task is TaskType.BINARY:
                continue
            space = space_for(name, task)
            for algorithm in space.algorithms:
                label = f"{name} {algorithm.name} {task.value}"
                if re.search(only, label):
                    alone = space.restricted_to([algorithm.name])
                    pipeline, X = fitted(alone, next(choices(alone, algorithm.name)))
                    method = "predict_proba" if hasattr(pipeline, "predict_proba") else "predict"
                    yield label, pipeline, X, method


_NAME = re.compile(rb'(?<="__id__": )\d+|\d+(?=\.np[yz])|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?=\.bin)')


def repeatable(data: bytes) -> bytes:
    """Return an archive with objects and entries numbered in order: skops takes memory addresses and random names."""
    numbers: dict[bytes, int] = {}

    def numbered(match: re.Match[bytes]) -> bytes:
        number = numbers.setdefault(match[0], len(numbers))
        # Like addresses, numbers lie apart: a changed digit must not make one the number of another object.
        return b"%d" % (10**14 + 7919 * number) if match[0].isdigit() else b"%08x-0000-4000-8000-000000000000" % number

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {info.filename: archive.read(info) for info in archive.infolist()}
    entries["schema.json"] = _NAME.sub(numbered, entries["schema.json"])
    return _archive({_NAME.sub(numbered, name.encode()).decode(): content for name, content in entries.items()})


def _archive(entries: Mapping[str, bytes]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, content in sorted(entries.items()):
            archive.writestr(zipfile.ZipInfo(name), content)
    return written.getvalue()


def mutant(data: bytes, rng: np.random.Generator) -> bytes:
    """Return an archive with one to three changes in one of its entries, written as archives are."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {info.filename: archive.read(info) for info in archive.infolist()}
    names = sorted(entries)
    sizes = np.array([len(entries[name]) ** 0.5 for name in names])
    name = str(rng.choice(names, p=sizes / sizes.sum()))
    for _ in range(rng.integers(1, 4)):
        if name == "schema.json":
            entries[name] = _changed_schema(entries[name], rng)
        elif name.endswith(".npy"):
            entries[name] = _changed_array(entries[name], rng)
        else:
            entries[name] = _changed_bytes(entries[name], rng)
    return _archive(entries)


def _changed_schema(text: bytes, rng: np.random.Generator) -> bytes:
    """Change a number that a node holds; nodes of the same object change together, as they must be the same."""
    places = list(re.finditer(rb'"content": "(-?\d[\d.e+-]*)"(, "is_json": true, "__id__": \d+)', text))
    if not places:
        return _changed_bytes(text, rng)
    place = places[rng.integers(len(places))]
    value = rng.choice([b"0", b"-1", b"1", b"2", b"7", b"1000000", b"2147483648", b"1e300", b"NaN", b"true", b"null"])
    return text.replace(place[0], b'"content": "' + bytes(value) + b'"' + place[2])


def _changed_array(data: bytes, rng: np.random.Generator) -> bytes:
    array = np.load(io.BytesIO(data), allow_pickle=False).copy()
    kind = rng.integers(4)
    if not array.size or kind == 0:  # another shape
        array = (
            array[: array.shape[0] // 2] if array.ndim and array.shape[0] > 1 else np.concatenate([np.ravel(array)] * 2)
        )
    elif kind == 1:  # a bit
        raw = bytearray(array.tobytes())
        raw[rng.integers(len(raw))] ^= 1 << int(rng.integers(8))
        array = np.frombuffer(bytes(raw), dtype=array.dtype).reshape(array.shape)
    elif array.dtype == np.uint8 and array.ndim == 1 and array.size > 100:  # a text
        array = np.frombuffer(_changed_bytes(array.tobytes(), rng), dtype=np.uint8)
    else:  # a number
        field = array[str(rng.choice(array.dtype.names))] if array.dtype.names else array
        place = tuple(int(rng.integers(n)) for n in field.shape)
        field[place] = _number(field.dtype, rng)
    written = io.BytesIO()
    np.save(written, array)
    return written.getvalue()


def _number(dtype: np.dtype, rng: np.random.Generator):
    if dtype.kind == "f":
        return rng.choice([np.nan, np.inf, -np.inf, 1e30, -1.0, 0.0])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.array(rng.choice([0, 1, 2, limits.max, limits.min, limits.max // 2, 100])).astype(dtype)
    return rng.integers(2) if dtype.kind == "b" else np.zeros((), dtype)


def _changed_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """Flip a bit, change a digit, cut, repeat, or leave a piece out."""
    changed = bytearray(data)
    place, kind = int(rng.integers(max(1, len(changed)))), rng.integers(6)
    digits = [m.start() for m in re.finditer(rb"\d", data[place : place + 5000])] if kind <= 2 else []
    if digits:
        changed[place + digits[rng.integers(len(digits))]] = int(rng.choice(list(b"0123456789-.")))
    elif kind <= 3:
        changed[place] ^= 1 << int(rng.integers(8))
    elif kind == 4:
        del changed[place : place + int(rng.integers(1, 50))]
    else:
        changed[place:place] = changed[place : place + int(rng.integers(1, 50))]
    return bytes(changed)


def outcome(data: bytes, X: np.ndarray, method: str, folder: Path) -> str:
    """Load an archive and predict with it in a forked process; return what came of it."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _work(data, X, method, folder, writer)
    os.close(writer)
    reached = os.read(reader, 1)
    _, status = os.waitpid(child, 0)
    os.close(reader)
    kinds = HARM if reached else ABSORBED
    if os.WIFSIGNALED(status):
        return kinds["hang" if os.WTERMSIG(status) == signal.SIGALRM else "crash"]
    code = os.WEXITSTATUS(status)
    return OUTCOMES.get(code, kinds["crash"])


def _work(data: bytes, X: np.ndarray, method: str, folder: Path, writer: int) -> None:
    code, path = UNUSABLE_LATER, folder / "member.skops"
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(SECONDS)
        path.write_bytes(data)
        code = REFUSED
        loaded = load(path)
        code = REFUSED_BY_ROWS
        if not np.isfinite(getattr(loaded, method)(X[:2])).all():
            os._exit(code)
        os.write(writer, b"1")
        code = UNUSABLE_LATER
        if np.isfinite(getattr(loaded, method)(X)).all():
            code = USABLE
    except ModelFileError:
        pass
    except BaseException:
        code = RAW if code == REFUSED else code
    os._exit(code)


def sweep(per_algorithm: int, seed: int, only: str = "") -> dict[str, Counter]:
    """Return how often each outcome came, for every algorithm."""
    found: dict[str, Counter] = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for label, pipeline, X, method in models(only):
            data = repeatable(dump(pipeline))
            (Path(folder) / "whole.skops").write_bytes(data)
            load(Path(folder) / "whole.skops")
            rng = np.random.default_rng(seed_of(seed, label))
            count = found.setdefault(label, Counter())
            for _ in range(per_algorithm):
                changed = mutant(data, rng)
                count[outcome(changed, X, method, Path(folder))] += 1
    return found


def main() -> None:
    """Run a sweep and print it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--per-algorithm", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a regular expression for the labels of algorithms")
    asked = parser.parse_args()
    json.dump(sweep(asked.per_algorithm, asked.seed, asked.only), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
