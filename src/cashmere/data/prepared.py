"""Prepared folds on disk: written once by the run, mapped into memory by every worker."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from cashmere.base.array_files import map_array, read_array
from cashmere.base.arrays import AnyArray, BoolArray, IntArray
from cashmere.base.files import (
    check_folder,
    check_regular,
    failures_as,
    is_regular,
    open_regular,
    own_folder,
    reason,
    remove_leftovers,
    writing,
)
from cashmere.base.json_files import ShortText, read_json
from cashmere.data.preparation import FoldEncoder
from cashmere.data.resampling import Fold
from cashmere.data.rungs import rows_at, rung_order
from cashmere.data.schema import CodedTable
from cashmere.data.task import Encoding, TaskType
from cashmere.exceptions import CorruptStoreError, RunDirectoryError

_INDEX = "prepared.json"

_AGAIN = "Prepare the folds again: `cashmere resume` does so."


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
    rungs : tuple of float
        Shares of the training rows that `load` is made for, ascending; the last is 1.0.

    Raises
    ------
    RunDirectoryError
        If the folder is missing or incomplete.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        index = _read_index(self.folder)
        self.n_folds = index["n_folds"]
        self.n_classes = index["n_classes"]
        self.task_type = index["task_type"]
        self.encodings = tuple(index["stored_as"])
        self.rungs = tuple(index.get("rungs", (1.0,)))  # earlier versions wrote none
        self._stored_as = index["stored_as"]
        self._categorical = index["categorical"]
        self._has_weight = index["has_weight"]

    def __reduce__(self) -> tuple[type[PreparedFolds], tuple[Path]]:
        return type(self), (self.folder,)

    def load(
        self, fold: int, encoding: Encoding, share: float = 1.0
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], BoolArray]:
        """Return the matrices of a fold, memory-mapped and copy-on-write.

        Parameters
        ----------
        fold : int
            Number of the fold.
        encoding : Encoding
            One of `encodings`.
        share : float
            Share of the training rows, one of `rungs`.

        Returns
        -------
        training rows : (n_rows, n_features) array of float32
            The rows `train_rows(fold, share)`, in this order.
        validation rows : (n_validation_rows, n_features) array of float32
            All of them, whatever the share.
        categorical : (n_features,) array of bool
            Columns of category codes.
        """
        stored = self._stored_as[encoding]
        train, validation = (self._read(f"fold{fold}-{stored}-{part}.npy", mapped=True) for part in ("train", "valid"))
        return train[: rows_at(share, len(train))], validation, np.array(self._categorical[stored][fold], dtype=bool)

    def train_rows(self, fold: int, share: float = 1.0) -> IntArray:
        """Return the numbers of the training rows of a fold at a rung; smaller rungs are the beginning of larger ones.

        Row numbers ascend where a table has a single rung, else they are in the order of `rung_order`.
        """
        train = self.folds[fold].train
        return train[: rows_at(share, len(train))]

    @functools.cached_property
    def folds(self) -> tuple[Fold, ...]:
        """Row numbers of all folds; those of training rows as in `train_rows`."""
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

    def _read(self, name: str, *, mapped: bool = False) -> AnyArray:
        path = self.folder / name
        with failures_as(CorruptStoreError, path, _AGAIN):
            if not mapped:
                return read_array(path).copy()
            # Copy-on-write: learners see writable arrays (some refuse others), the files never change.
            with open_regular(path) as file:
                return map_array(file, "c")


class _Index(TypedDict):
    n_folds: Annotated[int, Meta(ge=1, le=10_000)]
    n_classes: Annotated[int, Meta(ge=1, le=1_000_000)]
    task_type: TaskType
    stored_as: dict[Encoding, Encoding]
    categorical: dict[str, list[list[bool]]]
    has_weight: bool
    rungs: NotRequired[Annotated[list[Annotated[float, Meta(gt=0, le=1)]], Meta(min_length=1)]]
    files: list[ShortText]


def _read_index(folder: Path) -> _Index:
    try:
        check_folder(folder)
        check_regular(folder / _INDEX)
    except FileNotFoundError as error:
        raise RunDirectoryError(folder, f"holds no prepared folds, or not all of them. {_AGAIN}") from error
    except OSError as error:
        raise RunDirectoryError(error.filename, f"cannot be used ({reason(error)}). {_AGAIN}") from error
    with failures_as(CorruptStoreError, folder / _INDEX, _AGAIN):
        index = read_json(folder / _INDEX, _Index)
        lists = [index["categorical"][stored] for stored in index["stored_as"].values()]
        if any(len(each) != index["n_folds"] for each in lists):
            raise ValueError("it describes more or fewer folds than it counts")
        return index


def is_complete(folder: str | Path) -> bool:
    """Return whether a folder holds everything `prepare_folds` writes."""
    try:
        return all(is_regular(Path(folder) / name) for name in _read_index(Path(folder))["files"])
    except RunDirectoryError:
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
    rungs: Sequence[float] = (1.0,),
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
    rungs : sequence of float
        Shares of the training rows for trials, from `rungs`. With more than one, training rows are stored in the order
        of `rung_order`. Encoders learn from all training rows, whatever the share: so a level is encoded alike on
        every rung, and models of all rungs read the same matrices.

    Returns
    -------
    PreparedFolds
        The folder, opened.
    list of dict
        Per fold, the fitted encoder of each form; forms that share files share the encoder.
    """
    folder = Path(folder)
    try:
        remove_leftovers(own_folder(folder))
        (folder / _INDEX).unlink(missing_ok=True)
    except OSError as error:
        raise RunDirectoryError(folder, f"cannot be used ({reason(error)}). Delete it, then try again.") from error
    wanted = list(dict.fromkeys(Encoding(encoding) for encoding in encodings))
    stored_as = {encoding: encoding for encoding in wanted}
    if not coded.schema.has_categories and Encoding.TARGET in stored_as:
        stored_as[Encoding.TARGET] = Encoding.ONEHOT
    files: list[str] = []

    def write(name: str, array: AnyArray) -> None:
        with writing(folder / name, durable=False) as file:
            np.save(file, np.ascontiguousarray(array), allow_pickle=False)
        files.append(name)

    write("y.npy", y)
    if weight is not None:
        write("weight.npy", weight)
    encoders: list[dict[Encoding, FoldEncoder]] = []
    categorical: dict[str, list[list[bool]]] = {stored.value: [] for stored in stored_as.values()}
    for number, fold in enumerate(folds):
        fold_seed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
        train_rows = fold.train
        if len(rungs) > 1:
            train_rows = train_rows[rung_order(y[train_rows], task_type, fold_seed)]
        write(f"fold{number}-rows-train.npy", train_rows)
        write(f"fold{number}-rows-valid.npy", fold.validation)
        train, validation = coded.take(train_rows), coded.take(fold.validation)
        fitted: dict[Encoding, FoldEncoder] = {}
        for encoding in dict.fromkeys(stored_as.values()):
            encoder = FoldEncoder.for_schema(encoding, coded.schema)
            matrix = encoder.fit_transform(train, y[train_rows], task_type, fold_seed)
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
        "rungs": list(rungs),
        "files": files,
    }
    with writing(folder / _INDEX, durable=False) as file:
        file.write(json.dumps(index).encode())
    return PreparedFolds(folder), encoders
