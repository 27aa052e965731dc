"""Prepared folds on disk: written once by the run, mapped by every worker."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

import numpy as np
from filelock import FileLock
from msgspec import Meta
from numpy.typing import NDArray

from cashmere.base.array_files import map_archived, map_array, reserve_rows, write_array, write_rows
from cashmere.base.arrays import AnyArray, BoolArray, Float64, FloatArray, IntArray
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
from cashmere.data.fold import Fold, validation_rows
from cashmere.data.preparation import FoldEncoder, LearnedFromOthers
from cashmere.data.row_structure import RowStructure, StructureKind
from cashmere.data.rungs import rows_at, rung_order
from cashmere.data.schema import CodedTable, take_rows
from cashmere.data.task import Encoding, TaskType
from cashmere.data.texts import PackedTexts, map_texts
from cashmere.exceptions import CorruptStoreError, RunDirectoryError

_INDEX = "prepared.json"

_LEARNING_ROWS = 1_000_000
"""Encoders of tables in a file learn from at most this many training rows, which is accurate enough."""

_STEP_CELLS = 8_000_000
"""Cells of a matrix that are encoded before the progress is recorded: 32 MiB."""

_LEARNING_TEXTS = 20_000
"""Words are learned from at most this many rows: it takes seconds, in every process that encodes rows."""

_STEP_TEXTS = 10_000
"""Rows with texts that are encoded before the progress is recorded: texts take long."""

_AGAIN = "Prepare the folds again: `cashmere resume` does so."


class PreparedFolds:
    """Read a folder written by `prepare_folds`; small, picklable, constructed from the path alone.

    If the table stays in a file, matrices at first contain the rows of the smallest rung. A process that needs more
    encodes the missing rows, in steps, so that a kill does not undo finished ones.

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
        self._has_groups = index.get("has_groups", False)
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
    def weight(self) -> Float64 | None:
        """Row weights, or None."""
        return self._array("weight.npy") if self._has_weight else None

    @property
    def n_columns(self) -> dict[str, list[int]]:
        """Number of columns of the matrices, by form and fold."""
        return {
            encoding.value: [len(mask) for mask in self._categorical[stored]]
            for encoding, stored in self._stored_as.items()
        }

    @functools.cached_property
    def _groups(self) -> IntArray | None:
        """Group of each row, or None."""
        return self._array("groups.npy") if self._has_groups else None

    @functools.cached_property
    def validation_rows(self) -> IntArray:
        """Numbers of the validation rows, ascending: the order of out-of-fold predictions."""
        return validation_rows(self.folds)

    def files(self) -> dict[str, Path]:
        """Return all files needed elsewhere, by their paths below the folder's parent, with slashes."""
        paths = [path for path in self.folder.iterdir() if is_regular(path) and path.suffix != ".lock"]
        if self._source is not None:
            paths.append(Path(os.path.normpath(self.folder / self._source["table"])))
        return {path.relative_to(self.folder.parent).as_posix(): path for path in sorted(paths)}

    def _array(self, name: str) -> AnyArray:
        """Return a plain array whose pages the workers share."""
        return np.asarray(self._mapped(name))

    def _mapped(self, name: str) -> AnyArray:
        path = self.folder / name
        # Copy-on-write: learners see writable arrays, which some require; the files never change.
        with failures_as(CorruptStoreError, path, _AGAIN), open_regular(path) as file:
            return map_array(file, "c")

    # ------------------------------------------------------------ rows encoded later

    def _encode(self, fold: int, encoding: Encoding, n_rows: int) -> None:
        """Encode training rows of a fold until the first `n_rows` are done."""
        if self._n_encoded(fold, encoding) >= n_rows:
            return
        name = f"fold{fold}-{encoding}-train"
        path = self.folder / f"{name}.npy"
        with FileLock(self.folder / f"{name}.lock"):  # the system releases it if its holder is killed
            begun = path.stat()
            learned = self._learn(fold, encoding)
            step = max(1, _STEP_CELLS // len(learned.encoder.categorical))
            step = min(step, _STEP_TEXTS) if self._texts else step
            for start in range(self._n_encoded(fold, encoding), n_rows, step):
                stop = min(n_rows, start + step)
                rows = learned.encoded(self._values, self._texts, start, stop)
                write_rows(path, rows, start)
                if not os.path.samestat(begun, path.stat()):  # rows before these may be missing in the new file
                    raise CorruptStoreError(path, f"was replaced by a process that has taken over the run. {_AGAIN}")
                _write_json(self.folder / f"{name}.json", {"rows": stop})

    def _n_encoded(self, fold: int, encoding: Encoding) -> int:
        path = self.folder / f"fold{fold}-{encoding}-train.json"
        with failures_as(CorruptStoreError, path, _AGAIN):
            return read_json(path, _Progress)["rows"] if path.exists() else 0

    def _learn(self, fold: int, encoding: Encoding) -> _Learned:
        """Return the encoder of a fold; every process learns it separately, with the same result."""
        if (fold, encoding) not in self._learned:
            assert self._source is not None
            rows = self.folds[fold].train
            others = [learned for (k, _), learned in self._learned.items() if k == fold]
            self._learned[fold, encoding] = _Learned.from_rows(
                take_rows(self._values, rows[:_LEARNING_ROWS]),
                tuple(text[rows[:_LEARNING_TEXTS]] for text in self._texts) if not others else (),
                self.y,
                rows,
                encoding=encoding,
                n_levels=np.array(self._source["n_levels"], dtype=np.int64),
                task_type=self.task_type,
                seed=self._source["seeds"][fold],
                n_texts=len(self._texts),
                groups=self._groups,
                words_of=others[0] if others else None,
            )
        return self._learned[fold, encoding]

    @functools.cached_property
    def _values(self) -> FloatArray:
        """Values of the coded table."""
        assert self._source is not None
        path = self.folder / self._source["table"]
        with failures_as(CorruptStoreError, path, _AGAIN):
            return np.asarray(map_archived(path, "values"))

    @functools.cached_property
    def _texts(self) -> tuple[PackedTexts, ...]:
        """Texts of the coded table."""
        assert self._source is not None
        path = self.folder / self._source["table"]
        with failures_as(CorruptStoreError, path, _AGAIN):
            return tuple(map_texts(path, i) for i in range(self._source.get("n_texts", 0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Learned:
    """An encoder fitted to a fold of a large table.

    Attributes
    ----------
    encoder : FoldEncoder
        Fitted on the first `_LEARNING_ROWS` of `rows`.
    others : LearnedFromOthers
        What these rows get instead of what the encoder gives.
    rows : (n_train,) array of int
        Numbers of the training rows in the order of the matrix.
    """

    encoder: FoldEncoder
    others: LearnedFromOthers
    rows: IntArray

    @classmethod
    def from_rows(
        cls,
        values: FloatArray,
        texts: tuple[AnyArray, ...],
        y: AnyArray,
        rows: IntArray,
        *,
        encoding: Encoding,
        n_levels: IntArray,
        task_type: TaskType,
        seed: int,
        n_texts: int,
        groups: IntArray | None,
        words_of: _Learned | None,
    ) -> _Learned:
        """Learn from the first training rows, whose values and texts are given; words may already be known."""
        encoder = FoldEncoder(encoding, n_levels, n_texts)
        words = None if words_of is None else (words_of.encoder, words_of.others)
        known = rows[: len(values)]
        of_rows = None if groups is None else groups[known]
        others = encoder.fit(values, texts, y[known], task_type, seed, groups=of_rows, words_of=words)
        return cls(encoder=encoder, others=others, rows=rows)

    def encoded(self, values: FloatArray, texts: Sequence[PackedTexts], start: int, stop: int) -> NDArray[np.float32]:
        """Return some rows of the training matrix."""
        rows = self.rows[start:stop]
        taken = take_rows(values, rows)
        of_texts = self.encoder.text_columns([text[rows] for text in texts], len(rows))
        matrix = self.encoder.transform_values(taken, of_texts)
        self.others.overwrite(matrix, taken, start=start)
        return matrix


class _Progress(TypedDict):
    rows: Count


class _Source(TypedDict):
    """Source of the rows that are not yet in a matrix."""

    table: ShortText
    n_levels: list[Count]
    seeds: list[Count]
    n_texts: NotRequired[Count]


_Share = Annotated[float, Meta(gt=0, le=1)]


class _Index(TypedDict):
    n_folds: Annotated[int, Meta(ge=1, le=10_000)]
    n_classes: Annotated[int, Meta(ge=1, le=1_000_000)]
    task_type: TaskType
    stored_as: dict[Encoding, Encoding]
    categorical: dict[str, list[list[bool]]]
    has_weight: bool
    has_groups: NotRequired[bool]
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
    n_classes: int | None = None,
    weight: Float64 | None = None,
    structure: RowStructure | None = None,
    rungs: Sequence[float] = (1.0,),
    table: Path | None = None,
    largest_matrix_mib: float = np.inf,
    check: Callable[[], object] = lambda: None,
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
    n_classes : int, optional
        Number of classes, 1 for regression; by default no class is above those of the rows.
    weight : (n_rows,) array, optional
        Row weights, stored next to the target.
    structure : RowStructure, optional
        Groups or moments of the rows, which determine the order of rungs. What training rows get for their categories
        and texts is learned from other groups.
    rungs : sequence of float
        Shares of the training rows for trials, from `rungs`. With more than one, training rows are stored in the order
        of `rung_order`. Encoders learn from the training rows of all rungs, so that a level has the same encoding on
        every rung, and models of all rungs read the same matrices.
    table : Path, optional
        A ``.npz`` file with the values of `coded` as its array ``values``, and its texts as `map_texts` reads them. If
        given, only the smallest rung is encoded now.
    largest_matrix_mib : float
        Size up to which the training matrix of a form is offered, see `PreparedFolds.largest_share`. The smallest rung
        is always offered.
    check : callable
        Called before each form of each fold; an exception that it raises ends the work.

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
    files: list[str] = []

    def write(name: str, array: AnyArray) -> None:
        with writing(folder / name, durable=False) as file:
            write_array(file, np.ascontiguousarray(array))
        files.append(name)

    write("y.npy", y)
    if weight is not None:
        write("weight.npy", weight)
    groups = structure.codes if structure is not None and structure.kind is StructureKind.GROUPS else None
    if groups is not None:
        write("groups.npy", groups)
    encoders: list[dict[Encoding, FoldEncoder]] = []
    learned: dict[tuple[int, Encoding], _Learned] = {}
    categorical: dict[str, list[list[bool]]] = {stored.value: [] for stored in stored_as.values()}
    seeds = [int(np.random.SeedSequence([seed, number]).generate_state(1)[0]) for number in range(len(folds))]
    for number, (fold, fold_seed) in enumerate(zip(folds, seeds, strict=True)):
        train_rows = fold.train
        if len(rungs) > 1:
            inside = None if structure is None else structure.take(train_rows)
            train_rows = train_rows[rung_order(y[train_rows], task_type, fold_seed, inside)]
        write(f"fold{number}-rows-train.npy", train_rows)
        write(f"fold{number}-rows-valid.npy", fold.validation)
        n_learning, n_texts = (_LEARNING_ROWS, _LEARNING_TEXTS) if table is not None else (None, None)
        values, texts = take_rows(coded.values, train_rows[:n_learning]), coded.take_texts(train_rows[:n_texts])
        of_fold: dict[Encoding, _Learned] = {}
        for encoding in dict.fromkeys(stored_as.values()):
            check()
            of_fold[encoding] = _Learned.from_rows(
                values,
                texts,
                y,
                train_rows,
                encoding=encoding,
                n_levels=coded.schema.n_levels,
                task_type=task_type,
                seed=fold_seed,
                n_texts=len(coded.texts),
                groups=groups,
                words_of=next(iter(of_fold.values()), None),
            )
        any_encoder = next(iter(of_fold.values())).encoder
        validation = take_rows(coded.values, fold.validation)
        of_validation = any_encoder.text_columns(coded.take_texts(fold.validation), len(fold.validation))
        of_train = any_encoder.text_columns(texts, len(train_rows)) if table is None else None
        for encoding, one in of_fold.items():
            check()
            name = f"fold{number}-{encoding}-train.npy"
            if of_train is None:
                learned[number, encoding] = one
                with writing(folder / name, durable=False) as file:
                    reserve_rows(file, (len(train_rows), len(one.encoder.categorical)), np.float32)
                # A worker of a run that was taken over may have recorded its progress since.
                (folder / name).with_suffix(".json").unlink(missing_ok=True)
                files.append(name)
            else:
                matrix = one.encoder.transform_values(values, of_train)
                one.others.overwrite(matrix, values)
                write(name, matrix)
            write(f"fold{number}-{encoding}-valid.npy", one.encoder.transform_values(validation, of_validation))
            categorical[encoding.value].append(one.encoder.categorical.tolist())
        encoders.append({encoding: of_fold[stored].encoder for encoding, stored in stored_as.items()})
    n_rows = max(len(fold.train) for fold in folds)
    if n_classes is None:
        n_classes = int(y.max()) + 1 if task_type.is_classification else 1
    index: dict[str, Any] = {
        "n_folds": len(folds),
        "task_type": task_type.value,
        "n_classes": n_classes,
        "stored_as": {encoding.value: stored.value for encoding, stored in stored_as.items()},
        "categorical": categorical,
        "has_weight": weight is not None,
        "has_groups": groups is not None,
        "rungs": list(rungs),
        "largest_share": {
            encoding.value: _largest_share(
                rungs, n_rows, max(len(mask) for mask in categorical[stored.value]), largest_matrix_mib
            )
            for encoding, stored in stored_as.items()
        },
        "files": files,
    }
    if table is not None:
        index["source"] = {
            "table": os.path.relpath(table, folder),
            "n_levels": coded.schema.n_levels.tolist(),
            "seeds": seeds,
            "n_texts": len(coded.texts),
        }
    _write_json(folder / _INDEX, index)
    prepared = PreparedFolds(folder)
    prepared._learned.update(learned)
    for number in range(len(folds)):
        for encoding in wanted:
            prepared.load(number, encoding, rungs[0])
    return prepared, encoders


def _largest_share(rungs: Sequence[float], n_rows: int, n_columns: int, most_mib: float) -> float:
    """Return the largest rung whose float32 matrix takes at most `most_mib`, or the smallest."""
    return max(
        (share for share in rungs if rows_at(share, n_rows) * n_columns * 4 <= most_mib * 2**20), default=rungs[0]
    )


def _write_json(path: Path, content: Any) -> None:
    with writing(path, durable=False) as file:
        file.write(json.dumps(content).encode())
