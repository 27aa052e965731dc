"""The content of an explanation: importances and effects, as data frames and as a file in the run directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Self, TypedDict

import numpy as np
from msgspec import Meta

from cashmere.base.files import reason
from cashmere.base.json_files import Count, Finite, Positive, ShortText, checked
from cashmere.data.column import ColumnKind
from cashmere.exceptions import CorruptStoreError, RunDirectoryError
from cashmere.explanations.effects import Effect
from cashmere.explanations.permutation import Importance
from cashmere.explanations.words import WordEffects
from cashmere.storage.directory import EXPLANATION, read_json, write_json

if TYPE_CHECKING:
    import pandas as pd

_AGAIN = "Run `cashmere explain` again."
_VERSION = 1

_Table = list[list[Finite]]


class _StoredImportance(TypedDict):
    columns: Annotated[list[ShortText], Meta(min_length=1)]
    mean: Finite
    lower: Finite
    upper: Finite


class _StoredEffect(TypedDict):
    column: ShortText
    kind: ColumnKind
    points: Annotated[list[Finite | ShortText], Meta(min_length=1, max_length=1000)]
    partial_dependence: _Table
    ale: _Table | None
    share: list[Positive]


class _StoredWords(TypedDict):
    column: ShortText
    words: Annotated[list[ShortText], Meta(min_length=1, max_length=1000)]
    outputs: Annotated[list[ShortText], Meta(min_length=1)]
    change: _Table
    share: list[Positive]


class _Stored(TypedDict):
    """Content of the file."""

    format: ShortText
    version: Count
    digest: ShortText | None
    metric: ShortText
    greater_is_better: bool
    loss: Finite
    rows: Count
    validation_rows: Count
    repeats: Count
    columns: Count
    outputs: list[ShortText]
    importances: Annotated[list[_StoredImportance], Meta(max_length=10_000)]
    effects: Annotated[list[_StoredEffect], Meta(max_length=1000)]
    words: NotRequired[Annotated[list[_StoredWords], Meta(max_length=1000)]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Explanation:
    """Which columns the ensemble of a run relies on, and how its predictions depend on them.

    Attributes
    ----------
    digest : str or None
        Digest of the run when it was explained; an ensemble chosen later has another one.
    metric : str
        Metric in which importances are measured.
    greater_is_better : bool
        Direction of the metric. Importances are increases of the loss. If greater is better, the loss is 1 - score, so
        they are decreases of the score as well.
    loss : float
        Loss on these rows, with nothing permuted.
    n_rows, n_validation_rows : int
        Number of rows that were predicted, and of all validation rows.
    repeats : int
        Number of permutations of each group of columns.
    n_columns : int
        Number of columns that the model uses. Importances cover all of them, or a selection, see `explain`.
    outputs : tuple of str
        Classes whose probabilities the effects describe; for regression, the name of the target.
    importances : tuple of Importance
        Importances, largest first.
    effects : tuple of Effect
        Effects of the most important columns.
    words : tuple of WordEffects
        Effects of words, for each text column among the most important columns.
    """

    digest: str | None
    metric: str
    greater_is_better: bool
    loss: float
    n_rows: int
    n_validation_rows: int
    repeats: int
    n_columns: int
    outputs: tuple[str, ...]
    importances: tuple[Importance, ...]
    effects: tuple[Effect, ...]
    words: tuple[WordEffects, ...] = ()

    @property
    def importance(self) -> pd.DataFrame:
        """Importances, largest first: ``columns`` (names joined by commas), ``importance``, ``lower``, ``upper``."""
        import pandas as pd

        rows = [(", ".join(each.columns), each.mean, each.lower, each.upper) for each in self.importances]
        return pd.DataFrame(rows, columns=["columns", "importance", "lower", "upper"])

    @property
    def effect(self) -> pd.DataFrame:
        """Effects, one row per point: ``column, value, output, partial_dependence, ale, share``."""
        import pandas as pd

        rows = [
            (
                each.column,
                point,
                output,
                each.partial_dependence[i, k],
                np.nan if each.ale is None else each.ale[i, k],
                each.share[i],
            )
            for each in self.effects
            for k, output in enumerate(self.outputs)
            for i, point in enumerate(each.points)
        ]
        return pd.DataFrame(rows, columns=["column", "value", "output", "partial_dependence", "ale", "share"])

    @property
    def word(self) -> pd.DataFrame:
        """Effects of words, one row per word and output: ``column, word, output, change, share``."""
        import pandas as pd

        rows = [
            (each.column, word, output, each.change[i, k], each.share[i])
            for each in self.words
            for i, word in enumerate(each.words)
            for k, output in enumerate(each.outputs)
        ]
        return pd.DataFrame(rows, columns=["column", "word", "output", "change", "share"])

    def save(self, folder: str | Path) -> Path:
        """Write the explanation to the run directory for the report, and return the path of the file.

        Raises
        ------
        RunDirectoryError
            If it cannot be written.
        """
        path = Path(folder) / EXPLANATION
        try:
            write_json(path, self.to_json())
        except OSError as error:
            text = f"cannot be written ({reason(error)}). Free disk space, or give this user the right to write."
            raise RunDirectoryError(path, text) from error
        return path

    def to_json(self) -> dict[str, Any]:
        """Return plain data for `from_json`."""
        return {
            "format": "cashmere explanation",
            "version": _VERSION,
            "digest": self.digest,
            "metric": self.metric,
            "greater_is_better": self.greater_is_better,
            "loss": self.loss,
            "rows": self.n_rows,
            "validation_rows": self.n_validation_rows,
            "repeats": self.repeats,
            "columns": self.n_columns,
            "outputs": list(self.outputs),
            "importances": [
                {"columns": list(each.columns), "mean": each.mean, "lower": each.lower, "upper": each.upper}
                for each in self.importances
            ],
            "effects": [
                {
                    "column": each.column,
                    "kind": each.kind.value,
                    "points": list(each.points),
                    "partial_dependence": each.partial_dependence.tolist(),
                    "ale": None if each.ale is None else each.ale.tolist(),
                    "share": each.share.tolist(),
                }
                for each in self.effects
            ],
            "words": [
                {
                    "column": each.column,
                    "words": list(each.words),
                    "outputs": list(each.outputs),
                    "change": each.change.tolist(),
                    "share": each.share.tolist(),
                }
                for each in self.words
            ],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild the explanation that `to_json` described.

        Raises
        ------
        ValueError
            If the data do not describe an explanation.
        """
        data = checked(data, _Stored)
        if data["format"] != "cashmere explanation" or data["version"] > _VERSION:
            raise ValueError("it is of another program or a later version")
        n_outputs = len(data["outputs"])
        return cls(
            digest=data["digest"],
            metric=data["metric"],
            greater_is_better=data["greater_is_better"],
            loss=data["loss"],
            n_rows=data["rows"],
            n_validation_rows=data["validation_rows"],
            repeats=data["repeats"],
            n_columns=data["columns"],
            outputs=tuple(data["outputs"]),
            importances=tuple(
                Importance(columns=tuple(each["columns"]), mean=each["mean"], lower=each["lower"], upper=each["upper"])
                for each in data["importances"]
            ),
            effects=tuple(_effect(each, n_outputs) for each in data["effects"]),
            words=tuple(_words(each) for each in data.get("words", ())),
        )


def _effect(stored: _StoredEffect, n_outputs: int) -> Effect:
    shape = (len(stored["points"]), n_outputs)
    dependence = np.array(stored["partial_dependence"], dtype=np.float64)
    ale = None if stored["ale"] is None else np.array(stored["ale"], dtype=np.float64)
    kinds = {isinstance(point, str) for point in stored["points"]}
    if dependence.shape != shape or (ale is not None and ale.shape != shape) or len(stored["share"]) != shape[0]:
        raise ValueError("an effect has more or fewer numbers than points")
    if len(kinds) != 1 or kinds == {ale is not None}:
        raise ValueError("an effect mixes numbers and names")
    points: Any = tuple(stored["points"])
    return Effect(
        column=stored["column"],
        kind=ColumnKind(stored["kind"]),
        points=points,
        partial_dependence=dependence,
        ale=ale,
        share=np.array(stored["share"], dtype=np.float64),
    )


def _words(stored: _StoredWords) -> WordEffects:
    change = np.array(stored["change"], dtype=np.float64)
    if change.shape != (len(stored["words"]), len(stored["outputs"])) or len(stored["share"]) != len(change):
        raise ValueError("a column has more or fewer numbers than words")
    return WordEffects(
        column=stored["column"],
        words=tuple(stored["words"]),
        outputs=tuple(stored["outputs"]),
        change=change,
        share=np.array(stored["share"], dtype=np.float64),
    )


def read_explanation(folder: str | Path) -> Explanation:
    """Read the explanation that `cashmere explain` has saved in a run directory.

    Raises
    ------
    RunDirectoryError
        If there is no explanation.
    CorruptStoreError
        If the file is damaged.
    """
    path = Path(folder) / EXPLANATION
    if not path.exists() and not path.is_symlink():
        raise RunDirectoryError(Path(folder), "holds no explanation yet. Run `cashmere explain` on it.")
    content = read_json(path, dict[str, Any])
    try:
        return Explanation.from_json(content)
    except ValueError as error:
        raise CorruptStoreError(path, f"holds no explanation ({error}). {_AGAIN}") from error
