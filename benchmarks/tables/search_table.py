"""A table as searches see it: rows in canonical order, targets as codes or values, prepared for a search space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from benchmarks.tables.manifest import BenchmarkTable
from cashmere.data.fold import Fold
from cashmere.data.frames import to_frame
from cashmere.data.inference import infer_schema
from cashmere.data.prepared import prepare_folds
from cashmere.data.rows import canonical_rows
from cashmere.data.schema import TableSchema
from cashmere.data.target import TargetCoding
from cashmere.data.task import TaskProfile, TaskType
from cashmere.space.named.registry import make_space
from cashmere.space.space import Space


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchTable:
    """Features and target of a table.

    Attributes
    ----------
    frame : DataFrame
        Features, rows in canonical order.
    schema : TableSchema
        Kinds of the columns.
    y : (n_rows,) array
        Class codes or values.
    target : TargetCoding
        The classes behind the codes.
    """

    frame: pd.DataFrame
    schema: TableSchema
    y: np.ndarray
    target: TargetCoding

    @classmethod
    def read(cls, table: BenchmarkTable) -> Self:
        """Read a table."""
        X, labels = table.read()
        target = TargetCoding.from_target(labels, None if table.is_classification else TaskType.REGRESSION)
        rows = canonical_rows(to_frame(X), target.encode(labels), None)
        return cls(frame=rows.frame, schema=infer_schema(rows.frame), y=rows.y, target=target)

    @property
    def task_type(self) -> TaskType:
        """Kind of target."""
        return self.target.task_type

    def make_space(self, name: str, n_rows: int) -> Space:
        """Return the named search space for this many training rows."""
        profile = TaskProfile(
            task_type=self.task_type,
            n_rows=n_rows,
            n_columns=len(self.schema.used),
            n_classes=self.target.n_classes,
            has_categories=self.schema.has_categories,
        )
        return make_space(name, profile)

    def prepare(
        self,
        folder: Path,
        y: np.ndarray,
        folds: Sequence[Fold],
        space: Space,
        *,
        seed: int,
        weight: np.ndarray | None = None,
    ) -> None:
        """Write the folds as the algorithms of the space need them; `y` are the targets that trials may know."""
        prepare_folds(
            folder, self.schema.code(self.frame), y, folds, sorted(space.encodings),
            task_type=self.task_type, seed=seed, weight=weight,
        )  # fmt: skip
