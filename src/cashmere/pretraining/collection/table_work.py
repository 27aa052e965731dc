"""A table of a collection during its evaluation: the remaining work, and the results so far."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ConfigSpace import Configuration

from cashmere.base.arrays import AnyArray
from cashmere.base.seeds import seed_of
from cashmere.data.inference import infer_schema
from cashmere.data.prepared import prepare_folds
from cashmere.data.rows import canonical_rows
from cashmere.data.target import TargetCoding
from cashmere.data.task import TaskProfile
from cashmere.evaluation.metrics import get_metric
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.exceptions import UnknownNameError
from cashmere.pretraining.collection.batches import BatchObjective, TrialBatch, failure_record, records_of
from cashmere.pretraining.collection.journal import METRIC, Journal
from cashmere.pretraining.collection.tables import SourceFile, draw_rows, holdout
from cashmere.records.cause import CauseKind
from cashmere.records.trial import Outcome, Trial, TrialStatus
from cashmere.space.named.registry import SpaceFactory, make_space
from cashmere.space.space import ALGORITHM, Space

_BATCH = 25

_NOT_OFFERED = "not offered"
"""Status of a configuration that the space does not offer for a table."""


class TableWork:
    """The remaining work on a table.

    Parameters
    ----------
    source : SourceFile
        The table; it is read and prepared immediately.
    journal : Journal
        Takes the results; evaluations it already holds are not repeated.
    configurations : sequence of mapping
        All configurations to evaluate.
    space : str or callable
        See `make_space`.
    n_rows, limit_seconds, seed
        See `collect`.
    folder : Path
        Where the prepared rows are stored; deleted by `close`.

    Attributes
    ----------
    objective : BatchObjective
        Evaluates its batches.

    Raises
    ------
    DataError
        If the table cannot be used.
    """

    def __init__(
        self,
        source: SourceFile,
        journal: Journal,
        configurations: Sequence[Mapping[str, Any]],
        *,
        space: str | SpaceFactory,
        n_rows: int,
        limit_seconds: float,
        seed: int,
        folder: Path,
    ) -> None:
        self.name = source.name
        self._journal, self._n_configurations = journal, len(configurations)
        self._folder = folder
        objective, y = _prepare(source, folder, space, n_rows=n_rows, seed=seed)
        self.objective = BatchObjective(objective=objective, y=y, limit_seconds=limit_seconds)
        self._batches = deque(self._open_batches(configurations, seed))

    def _open_batches(self, configurations: Sequence[Mapping[str, Any]], seed: int) -> Iterator[tuple[Trial, ...]]:
        """Yield the remaining batches; each has one algorithm, so that those of fast algorithms are long."""
        batch: list[Trial] = []
        for number, values in enumerate(configurations):
            if number in self._journal.records:
                continue
            configuration = _in_space(self.objective.objective.space, values)
            if configuration is None:
                self._journal.add([{"number": number, "status": _NOT_OFFERED, "seconds": 0.0}])
                continue
            if batch and (len(batch) == _BATCH or batch[0].configuration[ALGORITHM] != values[ALGORITHM]):
                yield tuple(batch)
                batch = []
            batch.append(Trial(number=number, configuration=configuration, seed=seed_of(seed, self.name, number)))
        if batch:
            yield tuple(batch)

    def next_batch(self) -> TrialBatch | None:
        """Return the next batch, for `objective`, or None if all are done or running."""
        return TrialBatch.of(self._batches.popleft()) if self._batches else None

    def tell(self, batch: TrialBatch, outcome: Outcome) -> None:
        """Record the results of a batch; trials it did not reach come next."""
        records = records_of(outcome)
        done = {record["number"] for record in records}
        left = [trial for trial in batch.trials if trial.number not in done]
        ended = _ended(outcome)
        if left and ended.status not in (TrialStatus.SUCCESS, TrialStatus.ABORTED):
            seconds, limit = outcome.duration_seconds, self.objective.limit_seconds
            if ended.status is TrialStatus.ERROR and seconds >= limit:
                ended = Outcome(status=TrialStatus.TIMEOUT)  # ended by its own clock
            records.append(failure_record(left.pop(0).number, ended, min(seconds, limit)))
        self._journal.add(records)
        if left:
            self._batches.appendleft(tuple(left))

    @property
    def is_complete(self) -> bool:
        """Whether every configuration has a result."""
        return len(self._journal.records) == self._n_configurations

    def close(self) -> None:
        """Delete the prepared rows."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def __str__(self) -> str:
        records = self._journal.records.values()
        failed = sum(record["status"] != TrialStatus.SUCCESS for record in records)
        seconds = sum(record["seconds"] for record in records)
        return f"{self.name}: {len(records)} configurations ({failed} failed), {seconds:.0f} CPU seconds"


_STATUS_OF_CAUSE = {
    CauseKind.TIME_LIMIT: TrialStatus.TIMEOUT,
    CauseKind.CPU_LIMIT: TrialStatus.TIMEOUT,
    CauseKind.MEMORY_LIMIT: TrialStatus.MEMORY,
    CauseKind.SEARCH_ENDED: TrialStatus.ABORTED,
}


def _ended(outcome: Outcome) -> Outcome:
    """Return how the worker of a batch ended, regardless of the records it had handed over before."""
    if (cause := outcome.cut_short) is None:
        return outcome
    return Outcome(status=_STATUS_OF_CAUSE.get(cause.kind, TrialStatus.ERROR), error=cause)


def _prepare(
    source: SourceFile, folder: Path, space: str | SpaceFactory, *, n_rows: int, seed: int
) -> tuple[CrossValidationObjective, AnyArray]:
    """Return the objective on the drawn rows, and the classes of the validation rows."""
    frame, labels = source.read()
    rows = draw_rows(labels, n_rows, seed_of(seed, source.name, "rows"))
    target = TargetCoding.from_target(labels[rows], "classification")
    table = canonical_rows(frame.iloc[rows].reset_index(drop=True), target.encode(labels[rows]))
    schema = infer_schema(table.frame)
    fold = holdout(table.y, seed_of(seed, source.name, "holdout"))
    profile = TaskProfile(
        task_type=target.task_type,
        n_rows=len(fold.train),
        n_columns=len(schema.used),
        n_classes=target.n_classes,
        has_categories=schema.has_categories,
        most_levels=schema.most_levels,
    )
    made = make_space(space, profile)
    prepare_folds(
        folder, schema.code(table.frame), table.y, [fold], sorted(made.encodings),
        task_type=target.task_type, seed=seed, n_classes=target.n_classes,
    )  # fmt: skip
    metric = get_metric(METRIC, target.task_type)
    objective = CrossValidationObjective(folder=folder, space=made, metric=metric, keep_model=False)
    return objective, table.y[fold.validation]


def _in_space(space: Space, values: Mapping[str, Any]) -> Configuration | None:
    """Return the configuration with these values and otherwise defaults; None if the space has no such one."""
    try:
        return space.completed(values)
    except (UnknownNameError, ValueError):
        return None
