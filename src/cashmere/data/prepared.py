"""Prepared folds on disk: written once by the run, mapped into memory by every worker."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

import numpy as np
from filelock import FileLock
from msgspec import Meta
from numpy.typing import NDArray

from cashmere.base.array_files import map_archived, map_array, reserve_rows, write_rows
from cashmere.base.arrays import AnyArray, BoolArray, FloatArray, IntArray
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
from cashmere.base.json_files import Count, ShortText, read_json
from cashmere.data.preparation import FoldEncoder, MeansOfOthers
from cashmere.data.resampling import Fold
from cashmere.data.rungs import rows_at, rung_order
from cashmere.data.schema import CodedTable, take_rows
from cashmere.data.task import Encoding, TaskType
from cashmere.exceptions import CorruptStoreError, RunDirectoryError

_INDEX = "prepared.json"

_LEARNING_ROWS = 1_000_000
"""Encoders of tables in a file learn from so many training rows at most: what they learn is accurate enough then."""

_STEP_CELLS = 8_000_000
"""Cells of a matrix that are encoded before this is written down: 32 MiB."""

_AGAIN = "Prepare the folds again: `cashmere resume` does so."


class PreparedFolds:
    """Read a folder written by `prepare_folds`; small, picklable, made from the path alone.

    Where the table stays in a file, matrices hold the rows of the smallest rung at first. Whoever asks for more encodes
    the rows that are missing, in steps: what a killed process has done is not done again.

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
    largest_share : dict of Encoding to float
        The largest rung whose matrix is small enough, for each form; see `prepare_folds`.

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
        self.largest_share = index.get("largest_share", dict.fromkeys(self.encodings, self.rungs[-1]))
        self._stored_as = index["stored_as"]
        self._categorical = index["categorical"]
        self._has_weight = index["has_weight"]
        self._source = index.get("source")
        self._learned: dict[tuple[int, Encoding], _Learned] = {}

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
        n_rows = len(self.train_rows(fold, share))
        if self._source is not None:
            self._encode(fold, stored, n_rows)
        train, validation = (self._mapped(f"fold{fold}-{stored}-{part}.npy") for part in ("train", "valid"))
        return train[:n_rows], validation, np.array(self._categorical[stored][fold], dtype=bool)

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
        return tuple(Fold(self._array(f"{name}-train.npy"), self._array(f"{name}-valid.npy")) for name in names)

    @functools.cached_property
    def y(self) -> AnyArray:
        """Target of all training rows, codes or values."""
        return self._array("y.npy")

    @functools.cached_property
    def weight(self) -> NDArray[np.float64] | None:
        """Row weights, or None."""
        return self._array("weight.npy") if self._has_weight else None

    @functools.cached_property
    def validation_rows(self) -> IntArray:
        """Numbers of the validation rows, ascending: the order of out-of-fold predictions."""
        return np.unique(np.concatenate([fold.validation for fold in self.folds]))

    def _array(self, name: str) -> AnyArray:
        """Return a plain array whose pages the workers share."""
        return np.asarray(self._mapped(name))

    def _mapped(self, name: str) -> AnyArray:
        path = self.folder / name
        # Copy-on-write: learners see writable arrays (some refuse others), the files never change.
        with failures_as(CorruptStoreError, path, _AGAIN), open_regular(path) as file:
            return map_array(file, "c")

    # ------------------------------------------------------------ rows encoded later

    def _encode(self, fold: int, encoding: Encoding, n_rows: int) -> None:
        """Encode training rows of a fold until the first `n_rows` are there."""
        if self._n_encoded(fold, encoding) >= n_rows:
            return
        name = f"fold{fold}-{encoding}-train"
        with FileLock(self.folder / f"{name}.lock"):  # the system releases it when its holder is killed
            learned = self._learn(fold, encoding)
            step = max(1, _STEP_CELLS // len(learned.encoder.categorical))
            for start in range(self._n_encoded(fold, encoding), n_rows, step):
                stop = min(n_rows, start + step)
                write_rows(self.folder / f"{name}.npy", learned.encoded(self._values, start, stop), start)
                _write_json(self.folder / f"{name}.json", {"rows": stop})

    def _n_encoded(self, fold: int, encoding: Encoding) -> int:
        path = self.folder / f"fold{fold}-{encoding}-train.json"
        with failures_as(CorruptStoreError, path, _AGAIN):
            return read_json(path, _Progress)["rows"] if path.exists() else 0

    def _learn(self, fold: int, encoding: Encoding) -> _Learned:
        """Return the encoder of a fold; every process learns it by itself, and all learn the same."""
        if (fold, encoding) not in self._learned:
            assert self._source is not None
            rows = self.folds[fold].train
            self._learned[fold, encoding] = _Learned.from_rows(
                take_rows(self._values, rows[:_LEARNING_ROWS]),
                self.y,
                rows,
                encoding=encoding,
                n_levels=np.array(self._source["n_levels"], dtype=np.int64),
                task_type=self.task_type,
                seed=self._source["seeds"][fold],
            )
        return self._learned[fold, encoding]

    @functools.cached_property
    def _values(self) -> FloatArray:
        """Values of the coded table."""
        assert self._source is not None
        path = self.folder / self._source["table"]
        with failures_as(CorruptStoreError, path, _AGAIN):
            return np.asarray(map_archived(path, "values"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Learned:
    """What an encoder has learned from a fold of a large table.

    Attributes
    ----------
    encoder : FoldEncoder
        Fitted on the first `_LEARNING_ROWS` of `rows`.
    others : MeansOfOthers
        For these rows.
    rows : (n_train,) array of int
        Numbers of the training rows in the order of the matrix.
    """

    encoder: FoldEncoder
    others: MeansOfOthers
    rows: IntArray

    @classmethod
    def from_rows(
        cls,
        values: FloatArray,
        y: AnyArray,
        rows: IntArray,
        *,
        encoding: Encoding,
        n_levels: IntArray,
        task_type: TaskType,
        seed: int,
    ) -> _Learned:
        """Learn from the first of the training rows, whose values are given."""
        encoder = FoldEncoder(encoding, n_levels)
        others = encoder.fit(values, (), y[rows[: len(values)]], task_type, seed)
        return cls(encoder=encoder, others=others, rows=rows)

    def encoded(self, values: FloatArray, start: int, stop: int) -> NDArray[np.float32]:
        """Return some rows of the training matrix."""
        taken = take_rows(values, self.rows[start:stop])
        matrix = self.encoder.transform_values(taken)
        self.others.overwrite(matrix, taken, start=start)
        return matrix


class _Progress(TypedDict):
    rows: Count


class _Source(TypedDict):
    """Where rows are encoded from that are not in a matrix yet."""

    table: ShortText
    n_levels: list[Count]
    seeds: list[Count]


_Share = Annotated[float, Meta(gt=0, le=1)]


class _Index(TypedDict):
    n_folds: Annotated[int, Meta(ge=1, le=10_000)]
    n_classes: Annotated[int, Meta(ge=1, le=1_000_000)]
    task_type: TaskType
    stored_as: dict[Encoding, Encoding]
    categorical: dict[str, list[list[bool]]]
    has_weight: bool
    rungs: NotRequired[Annotated[list[_Share], Meta(min_length=1)]]
    largest_share: NotRequired[dict[Encoding, _Share]]
    source: NotRequired[_Source]
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
    table: Path | None = None,
    largest_matrix_mib: float = np.inf,
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
        of `rung_order`. Encoders learn from training rows of all rungs: so a level is encoded alike on every rung, and
        models of all rungs read the same matrices.
    table : Path, optional
        A ``.npz`` file that holds the values of `coded` as its array ``values``. Given it, only the smallest rung is
        encoded now, unless there are texts: learning their words takes too long to be done by every worker.
    largest_matrix_mib : float
        Size up to which the training matrix of a form is offered, see `PreparedFolds.largest_share`. The smallest rung
        always is.

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
        for path in folder.glob("fold*-train.json"):
            path.unlink()
    except OSError as error:
        raise RunDirectoryError(folder, f"cannot be used ({reason(error)}). Delete it, then try again.") from error
    wanted = list(dict.fromkeys(Encoding(encoding) for encoding in encodings))
    stored_as = {encoding: encoding for encoding in wanted}
    if not coded.schema.has_categories and Encoding.TARGET in stored_as:
        stored_as[Encoding.TARGET] = Encoding.ONEHOT
    is_late = table is not None and not coded.texts
    files: list[str] = []

    def write(name: str, array: AnyArray) -> None:
        with writing(folder / name, durable=False) as file:
            np.save(file, np.ascontiguousarray(array), allow_pickle=False)
        files.append(name)

    write("y.npy", y)
    if weight is not None:
        write("weight.npy", weight)
    encoders: list[dict[Encoding, FoldEncoder]] = []
    learned: dict[tuple[int, Encoding], _Learned] = {}
    categorical: dict[str, list[list[bool]]] = {stored.value: [] for stored in stored_as.values()}
    seeds = [int(np.random.SeedSequence([seed, number]).generate_state(1)[0]) for number in range(len(folds))]
    for number, (fold, fold_seed) in enumerate(zip(folds, seeds, strict=True)):
        train_rows = fold.train
        if len(rungs) > 1:
            train_rows = train_rows[rung_order(y[train_rows], task_type, fold_seed)]
        write(f"fold{number}-rows-train.npy", train_rows)
        write(f"fold{number}-rows-valid.npy", fold.validation)
        validation = coded.take(fold.validation)
        train = coded.take(train_rows[:_LEARNING_ROWS] if is_late else train_rows)
        fitted: dict[Encoding, FoldEncoder] = {}
        for encoding in dict.fromkeys(stored_as.values()):
            name = f"fold{number}-{encoding}-train.npy"
            if is_late:
                learned[number, encoding] = _Learned.from_rows(
                    train.values,
                    y,
                    train_rows,
                    encoding=encoding,
                    n_levels=coded.schema.n_levels,
                    task_type=task_type,
                    seed=fold_seed,
                )
                encoder = learned[number, encoding].encoder
                with writing(folder / name, durable=False) as file:
                    reserve_rows(file, (len(train_rows), len(encoder.categorical)), np.float32)
                files.append(name)
            else:
                encoder = FoldEncoder.for_schema(encoding, coded.schema)
                write(name, encoder.fit_transform(train, y[train_rows], task_type, fold_seed))
            write(f"fold{number}-{encoding}-valid.npy", encoder.transform(validation))
            categorical[encoding.value].append(encoder.categorical.tolist())
            fitted[encoding] = encoder
        encoders.append({encoding: fitted[stored] for encoding, stored in stored_as.items()})
    n_rows = max(len(fold.train) for fold in folds)
    index: dict[str, Any] = {
        "n_folds": len(folds),
        "task_type": task_type.value,
        "n_classes": int(y.max()) + 1 if task_type.is_classification else 1,
        "stored_as": {encoding.value: stored.value for encoding, stored in stored_as.items()},
        "categorical": categorical,
        "has_weight": weight is not None,
        "rungs": list(rungs),
        "largest_share": {
            encoding.value: _largest_share(
                rungs, n_rows, max(len(mask) for mask in categorical[stored.value]), largest_matrix_mib
            )
            for encoding, stored in stored_as.items()
        },
        "files": files,
    }
    if table is not None and is_late:
        index["source"] = {
            "table": os.path.relpath(table, folder),
            "n_levels": coded.schema.n_levels.tolist(),
            "seeds": seeds,
        }
    _write_json(folder / _INDEX, index)
    prepared = PreparedFolds(folder)
    prepared._learned.update(learned)
    for number in range(len(folds)):
        for encoding in wanted:
            prepared.load(number, encoding, rungs[0])
    return prepared, encoders


def _largest_share(rungs: Sequence[float], n_rows: int, n_columns: int, most_mib: float) -> float:
    """Return the largest rung whose float32 matrix takes at most so many MiB, or the smallest."""
    return max(
        (share for share in rungs if rows_at(share, n_rows) * n_columns * 4 <= most_mib * 2**20), default=rungs[0]
    )


def _write_json(path: Path, content: Any) -> None:
    with writing(path, durable=False) as file:
        file.write(json.dumps(content).encode())
