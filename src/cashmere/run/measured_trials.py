"""The trials from which another ensemble of a finished run can be selected, and what ensembles of them cost."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from cashmere.data.row_structure import is_in_time
from cashmere.ensembles import WeightedEnsemble
from cashmere.ensembles.limits import Cost
from cashmere.exceptions import RunDirectoryError
from cashmere.model.files import Encoders, read_manifest, save_model
from cashmere.model.first_load import check_first_load
from cashmere.records.budget import Deadline
from cashmere.records.trial import History, Observation
from cashmere.run.current_model import CurrentModel
from cashmere.run.latencies import Latencies
from cashmere.run.members import Members
from cashmere.run.run_directory import RunDirectory
from cashmere.space.convertible import converts

_MEASURING_SECONDS = 60.0
"""Time for measuring trials in one call; the next call continues with the others."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredTrials:
    """Trials that can be members, and what ensembles of them cost.

    Attributes
    ----------
    numbers : tuple of int
        Trial numbers: members of the run's ensemble first, then by loss.
    n_unmeasured : int
        Number of trials left out because there was no time to measure their latency.
    size : Cost
        Bytes of a model folder.
    row, batch : Cost or None
        Seconds to predict one row, and the sample; None without a sample.
    """

    numbers: tuple[int, ...]
    n_unmeasured: int
    size: Cost
    row: Cost | None
    batch: Cost | None

    @classmethod
    def measure(
        cls,
        usable: Sequence[Observation],
        *,
        model: CurrentModel,
        members: Members,
        encoders: Callable[[int], Encoders],
    ) -> Self:
        """Measure trials, the first ones first, as long as there is time; without a sample, take all of them.

        Parameters
        ----------
        usable : sequence of Observation
            From `usable_trials`.
        model : CurrentModel
            The model of the run.
        members : Members
            The models of the trials.
        encoders : callable
            Returns the encoders of a number of splits.
        """
        sample = model.sample
        numbers = [o.trial.number for o in usable]
        _check_members_of_others(numbers, model.run, members, encoders)
        row = batch = None
        if sample is not None:
            forms = {o.trial.number: model.run.space.encoding_of(o.trial.configuration) for o in usable}
            latencies = Latencies(model.run, members, encoders, forms, sample)
            deadline = Deadline(_MEASURING_SECONDS)
            numbers = latencies.measure(numbers, lambda seconds: seconds <= deadline.remaining)
            row, batch = latencies.costs(numbers)
            # Parts that run one after the other take longer than the sum of their shortest times: make the sums right
            # for the ensemble that was measured as a whole.
            of_run = model.members
            if set(of_run) <= set(numbers) and row.of(of_run) > 0 and batch.of(of_run) > 0:
                row = row.times(model.latency["single_row_ms"] / 1000 / row.of(of_run))
                batch = batch.times(len(sample) / model.latency["batch_rows_per_second"] / batch.of(of_run))
        files = {number: members.path(number).stat().st_size for number in numbers}
        return cls(
            numbers=tuple(numbers),
            n_unmeasured=len(usable) - len(numbers),
            size=Cost(fixed=model.fixed_bytes, own=files),
            row=row,
            batch=batch,
        )

    def with_one_model(self, run: RunDirectory, members: Members) -> Self:
        """Return the trials as if each had one model fitted on all rows, instead of one for each fold."""
        n_folds, refitted = len(run.splits), run.first_refit is not None

        def kept(number: int) -> list[int]:
            """Return the training rows of each model in the file of a trial."""
            trained, n_more = [len(fold.train) for fold in run.splits], members.splits(number) - 1
            return [*trained, *n_more * ([len(run.rows.y)] if refitted else trained)]

        def asked(number: int) -> list[int]:
            """Return the training rows of each model that predicts."""
            trained = kept(number)
            if run.refits_alone and len(trained) > n_folds and refitted:
                return trained[n_folds:]
            return trained[-1:] if is_in_time(run.rows.structure) else trained

        def one(cost: Cost, models: Callable[[int], list[int]]) -> Cost:
            """Return the cost with one model on all rows instead of these."""
            n_models = {cost.shares[number]: len(models(number)) for number in cost.own if number in cost.shares}
            return replace(
                cost,
                own={number: len(run.rows.y) * each / sum(models(number)) for number, each in cost.own.items()},
                shared={name: each / n_models.get(name, n_folds) for name, each in cost.shared.items()},
            )

        return replace(
            self,
            size=one(self.size, kept),
            row=None if self.row is None else one(self.row, asked),
            batch=None if self.batch is None else one(self.batch, asked),
        )


def usable_trials(
    run: RunDirectory, history: History, members: Members, *, first: Sequence[int], convertible: bool
) -> list[Observation]:
    """Return the trials whose models exist, best first.

    Parameters
    ----------
    run : RunDirectory
        Open.
    history : History
        Its trials.
    members : Members
        The models of the trials.
    first : sequence of int
        Trials that come before all others.
    convertible : bool
        Whether to leave out trials whose models do not convert to ONNX.

    Raises
    ------
    RunDirectoryError
        If there are none.
    """
    usable = members.usable(history)
    if not usable:
        raise RunDirectoryError(run.folder, "holds no trial whose models still exist. Resume it with more budget.")
    if convertible:
        usable = [o for o in usable if converts(run.space, o.trial.configuration)]
    if not usable:
        raise RunDirectoryError(
            run.folder,
            "holds no trial whose models convert to ONNX. Fit again with deployable='onnx' (--deployable onnx).",
        )
    return sorted(usable, key=lambda o: (o.trial.number not in first, o.loss, o.trial.number))


def _check_members_of_others(
    numbers: Sequence[int], run: RunDirectory, members: Members, encoders: Callable[[int], Encoders]
) -> None:
    """Load models that another machine trained in a child process; see `check_first_load`."""
    others = [number for number in numbers if not members.is_own(number)]
    if not others:
        return
    with tempfile.TemporaryDirectory(dir=run.folder) as name:
        save_model(
            Path(name),
            schema=run.schema,
            target=run.target,
            encoders=encoders(max(map(members.splits, others))),
            n_folds=len(run.splits),
            refitted=run.first_refit is not None,
            ensemble=WeightedEnsemble(tuple(others), (1 / len(others),) * len(others)),
            member_files={number: members.path(number) for number in others},
            information={},
            sign=False,
        )
        check_first_load(Path(name), read_manifest(Path(name)), trusted=run.space.trusted_types)
