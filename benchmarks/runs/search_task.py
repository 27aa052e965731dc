"""What a run searches: a table cut into folds, the space and the metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from ConfigSpace import Configuration

from benchmarks.tables.search_table import SearchTable
from cashmere.data.fold import Fold
from cashmere.data.prepared import is_complete
from cashmere.evaluation.metrics import Metric
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.protocols import Strategy
from cashmere.space.space import Space
from cashmere.storage.store import RunStore
from cashmere.study import Study


def _no_rows() -> np.ndarray:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchTask:
    """A search that a strategy is given.

    Attributes
    ----------
    table : SearchTable
        Features of the table.
    y : (n_rows,) array
        Class codes or values, of all rows of the table.
    folds : sequence of Fold
        Folds; the loss of a trial is the mean over them.
    space : Space
        Builds the pipelines.
    metric : Metric
        Computes the loss.
    seed : int
        Seed of the encoders and of the study.
    held_out : (n_held_out,) int array
        Validation rows whose targets no trial knows, and whose predictions the search does not see.
    final_fold : Fold or None
        Fold on which the best configuration is fitted and judged at the end.
    warm_start : sequence of Configuration
        Configurations that are evaluated first.
    baseline_loss : float
        Loss of a constant prediction; NaN if unknown.
    """

    table: SearchTable
    y: np.ndarray
    folds: Sequence[Fold]
    space: Space
    metric: Metric
    seed: int
    held_out: np.ndarray = field(default_factory=_no_rows)
    final_fold: Fold | None = None
    warm_start: Sequence[Configuration] = ()
    baseline_loss: float = float("nan")

    @property
    def validation_rows(self) -> np.ndarray:
        """Numbers of the rows that trials predict, in the order of the predictions."""
        return np.unique(np.concatenate([fold.validation for fold in self.folds]))

    @property
    def is_seen(self) -> np.ndarray:
        """Whether the search sees what is predicted for each of the `validation_rows`."""
        return ~np.isin(self.validation_rows, self.held_out)

    @property
    def targets(self) -> np.ndarray:
        """Targets of the validation rows that the search sees, as `History` takes them."""
        return np.asarray(self.y[self.validation_rows[self.is_seen]], dtype=np.float64)

    def prepare(self, folder: Path, folds: Sequence[Fold]) -> CrossValidationObjective:
        """Return the objective on some folds, which are prepared in the folder unless they are there."""
        if not is_complete(folder):
            known = self.y.copy()
            known[self.held_out] = self.y[self.folds[0].train[0]]
            self.table.prepare(folder, known, folds, self.space, seed=self.seed, weight=self._weight())
        return CrossValidationObjective(
            folder=folder.absolute(), space=self.space, metric=self.metric, keep_model=False
        )

    def _weight(self) -> np.ndarray | None:
        """Return weights by which trials choose positions of their paths without the held-out rows."""
        if not len(self.held_out) or all(algorithm.path is None for algorithm in self.space.algorithms):
            return None
        weight = np.ones(len(self.y))
        weight[self.held_out] = 0.0
        return weight

    def make_study(self, strategy: Strategy, *, lookahead: int, store: RunStore | None) -> Study:
        """Return the study in which a strategy searches; what the store holds is continued."""
        return Study(
            self.space.configuration_space,
            strategy,
            seed=self.seed,
            lookahead=lookahead,
            warm_start=self.warm_start,
            store=store,
            worst_loss=self.metric.worst_loss,
            baseline_loss=self.baseline_loss,
            metric=self.metric,
            targets=self.targets,
        )
