"""Prepared folds on disk: written once by the run, mapped into memory by every worker."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import AnyArray, BoolArray, IntArray
from cashmere.data.preparation import FoldEncoder
from cashmere.data.resampling import Fold
from cashmere.data.schema import CodedTable
from cashmere.data.task import Encoding, TaskType
from cashmere.exceptions import CorruptStoreError, RunDirectoryError

_INDEX = "prepared.json"


class PreparedFolds:
    """Read a folder written by `prepare_folds`; small, picklable, made from the path alone.

    Parameters
    ----------
    folder : path
        The ``prepared/`` folder of a run.

    Attributes
    ----------
    n_folds : int
        Number of folds.
    task_type : TaskType
        Kind of target.
    encodings : tuple of Encoding
        The forms that can be loaded.

    Raises
    ------
    RunDirectoryError
        If the folder is missing or incomplete.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            index = json.loads((self.folder / _INDEX).read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise RunDirectoryError(
                folder, "holds no prepared folds, or not all of them. Prepare them again."
            ) from error
        except ValueError as error:
            raise CorruptStoreError(folder, f"holds a damaged {_INDEX}. Prepare the folds again.") from error
        self.n_folds: int = index["n_folds"]
        self.n_classes: int = index["n_classes"]
        self.task_type = TaskType(index["task_type"])
        self.encodings = tuple(Encoding(name) for name in index["stored_as"])
        self._stored_as: dict[str, str] = index["stored_as"]
        self._categorical: dict[str, list[list[bool]]] = index["categorical"]
        self._has_weight: bool = index["has_weight"]

    def __reduce__(self) -> tuple[type[PreparedFolds], tuple[Path]]:
        return type(self), (self.folder,)

    def load(self, fold: int, encoding: Encoding) -> tuple[NDArray[np.float32], NDArray[np.float32], BoolArray]:
        """Return training and validation matrices (memory-mapped, copy-on-write) and the mask of category columns."""
        stored = self._stored_as[encoding]
        # Copy-on-write: learners see writable arrays (some refuse others), the files never change.
        parts = [self._read(f"fold{fold}-{stored}-{part}.npy", mmap_mode="c") for part in ("train", "valid")]
        return parts[0], parts[1], np.array(self._categorical[stored][fold], dtype=bool)

    @functools.cached_property
    def folds(self) -> tuple[Fold, ...]:
        """Row numbers of all folds."""
        names = [f"fold{number}-rows" for number in range(self.n_folds)]
        return tuple(Fold(self._read(f"{name}-train.npy"), self._read(f"{name}-valid.npy")) for name in names)

    @functools.cached_property
    def y(self) -> AnyArray:
        """Target of all training rows, codes or values."""
        return self._read("y.npy")

    @functools.cached_property
    def weight(self) -> NDArray[np.float64] | None:
        """Row weights, or None."""
        return self._read("weight.npy") if self._has_weight else None

    @functools.cached_property
    def validation_rows(self) -> IntArray:
        """Numbers of the validation rows, ascending: the order of out-of-fold predictions."""
        return np.unique(np.concatenate([fold.validation for fold in self.folds]))

    def _read(self, name: str, *, mmap_mode: Literal["c"] | None = None) -> AnyArray:
        try:
            array: AnyArray = np.load(self.folder / name, mmap_mode=mmap_mode, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise CorruptStoreError(
                self.folder / name, f"cannot be read ({error}). Prepare the folds again."
            ) from error
        return array


def is_complete(folder: str | Path) -> bool:
    """Return whether a folder holds everything `prepare_folds` writes."""
    try:
        index = json.loads((Path(folder) / _INDEX).read_text(encoding="utf-8"))
        return all((Path(folder) / name).is_file() for name in index["files"])
    except (OSError, ValueError, KeyError):
        return False


def prepare_folds(
    folder: str | Path,
    coded: CodedTable,
    y: AnyArray,
    folds: Sequence[Fold],
    encodings: Sequence[Encoding],
    *,
    task_type: TaskType,
    seed: int,
    weight: NDArray[np.float64] | None = None,
) -> tuple[PreparedFolds, list[dict[Encoding, FoldEncoder]]]:
    """Encode every fold in every form and write the matrices.

    Each file is replaced whole and the index is written last, so an incomplete folder is recognised.

    Parameters
    ----------
    folder : path
        Where to write; created if missing.
    coded : CodedTable
        All training rows.
    y : (n_rows,) array
        Class codes or values.
    folds : sequence of Fold
        From `make_folds`.
    encodings : sequence of Encoding
        The forms to write. Without a category of more than two levels ``target`` equals ``onehot`` and shares its
        files.
    task_type : TaskType
        Kind of target.
    seed : int
        Each fold derives its own seed from it.
    weight : (n_rows,) array, optional
        Row weights, stored next to the target.

    Returns
    -------
    PreparedFolds
        The folder, opened.
    list of dict
        Per fold, the fitted encoder of each form; forms that share files share the encoder.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _INDEX).unlink(missing_ok=True)
    wanted = list(dict.fromkeys(Encoding(encoding) for encoding in encodings))
    stored_as = {encoding: encoding for encoding in wanted}
    if not coded.schema.has_categories and Encoding.TARGET in stored_as:
        stored_as[Encoding.TARGET] = Encoding.ONEHOT
    files: list[str] = []

    def write(name: str, array: AnyArray) -> None:
        temporary = folder / f"{name}.tmp"
        with temporary.open("wb") as file:
            np.save(file, np.ascontiguousarray(array), allow_pickle=False)
        temporary.replace(folder / name)
        files.append(name)

    write("y.npy", y)
    if weight is not None:
        write("weight.npy", weight)
    encoders: list[dict[Encoding, FoldEncoder]] = []
    categorical: dict[str, list[list[bool]]] = {stored.value: [] for stored in stored_as.values()}
    for number, fold in enumerate(folds):
        write(f"fold{number}-rows-train.npy", fold.train)
        write(f"fold{number}-rows-valid.npy", fold.validation)
        train, validation = coded.take(fold.train), coded.take(fold.validation)
        fold_seed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
        fitted: dict[Encoding, FoldEncoder] = {}
        for encoding in dict.fromkeys(stored_as.values()):
            encoder = FoldEncoder.for_schema(encoding, coded.schema)
            matrix = encoder.fit_transform(train, y[fold.train], task_type, fold_seed)
            write(f"fold{number}-{encoding}-train.npy", matrix)
            write(f"fold{number}-{encoding}-valid.npy", encoder.transform(validation))
            categorical[encoding.value].append(encoder.categorical.tolist())
            fitted[encoding] = encoder
        encoders.append({encoding: fitted[stored] for encoding, stored in stored_as.items()})
    index: dict[str, Any] = {
        "n_folds": len(folds),
        "task_type": task_type.value,
        "n_classes": int(y.max()) + 1 if task_type.is_classification else 1,
        "stored_as": {encoding.value: stored.value for encoding, stored in stored_as.items()},
        "categorical": categorical,
        "has_weight": weight is not None,
        "files": files,
    }
    temporary = folder / f"{_INDEX}.tmp"
    temporary.write_text(json.dumps(index), encoding="utf-8")
    temporary.replace(folder / _INDEX)
    return PreparedFolds(folder), encoders
