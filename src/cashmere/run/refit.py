"""Members fitted again on other rows than those of the folds: one model each, on all rows."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cashmere.base.arrays import AnyArray
from cashmere.base.cores import available_cores
from cashmere.data.fold import Fold
from cashmere.data.prepared import PreparedFolds, prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.row_structure import is_in_time
from cashmere.ensembles import Ensemble
from cashmere.evaluation.metrics import Metric
from cashmere.evaluation.objective import CrossValidationObjective, forget_folds
from cashmere.model.files import Encoders
from cashmere.model.fold_model import FoldModel
from cashmere.records.trial import Observation
from cashmere.run.run_directory import RunDirectory

_FOLDS = "5fold"
"""Of the comparison, if the run has a splitter of the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefitComparison:
    """One model for each member beside one for each fold, on rows that neither has seen.

    Attributes
    ----------
    n_rows : int
        Number of these rows: those that the first fold of the run validates; in time, the last.
    single_loss : float
        Of the ensemble, each member with one model fitted on all other rows.
    folds_loss : float
        Of the same ensemble, each member with the mean of models fitted on folds of these other rows; in time, with the
        model of the newest fold.
    """

    n_rows: int
    single_loss: float
    folds_loss: float


def refit_on_all_rows(run: RunDirectory, members: Sequence[Observation]) -> tuple[Encoders, dict[int, list[FoldModel]]]:
    """Fit members on all rows; those that followed a path go as far as they went on the folds.

    Parameters
    ----------
    run : RunDirectory
        Open.
    members : sequence of Observation
        What to fit.

    Returns
    -------
    encoders : list
        Of the one fold that holds all rows.
    models : dict of int to list of FoldModel
        One of each member, by trial number.
    """
    rows = np.arange(len(run.rows.y))
    with _fitted(run, members, [Fold(train=rows, validation=rows[:1])]) as (_, encoders, models):
        return encoders, models


def compare_refit(
    run: RunDirectory, members: Sequence[Observation], ensemble: Ensemble, metric: Metric
) -> RefitComparison:
    """Judge one model for each member beside those of folds, on the rows that the run's first fold validates.

    In time, they are the rows of the last fold: the newest.

    Without these rows, members are fitted once on all others and once on folds of them, as the run has folds of its
    rows. So both kinds of models come from fewer rows than those that are compared here in the end.

    Parameters
    ----------
    run : RunDirectory
        Open.
    members : sequence of Observation
        Those of the ensemble.
    ensemble : Ensemble
        Combines them.
    metric : Metric
        Judges; probabilities are neither calibrated nor decided by thresholds.
    """
    y, weight, structure = run.rows.y, run.rows.weight, run.rows.structure
    outer = run.splits[-1 if is_in_time(structure) else 0]
    seen, judged = outer.train, outer.validation
    inner = make_folds(
        y[seen],
        run.target.task_type,
        run.settings.resampling if isinstance(run.settings.resampling, str) else _FOLDS,
        seed=run.settings.seed,
        structure=None if structure is None else structure.take(seen),
    )
    folds = [Fold(train=seen[fold.train], validation=judged) for fold in inner]
    # The first one has the seeds of the run's first fold: unless in time, its models are those of that fold.
    with _fitted(run, members, [Fold(train=seen, validation=judged), *folds]) as (prepared, _, models):
        of_members: list[list[AnyArray]] = [
            [model.predict(prepared.load(k, model.encoding)[1]) for k, model in enumerate(models[number])]
            for number in ensemble.members
        ]
    row_weight = None if weight is None else weight[judged]
    n_asked = 1 if is_in_time(structure) else len(folds)
    single, of_folds = (
        metric.loss(y[judged], ensemble.combine(stack), row_weight)
        for stack in ([each[0] for each in of_members], [np.mean(each[-n_asked:], axis=0) for each in of_members])
    )
    return RefitComparison(n_rows=len(judged), single_loss=single, folds_loss=of_folds)


@contextlib.contextmanager
def _fitted(
    run: RunDirectory, members: Sequence[Observation], folds: Sequence[Fold]
) -> Iterator[tuple[PreparedFolds, Encoders, dict[int, list[FoldModel]]]]:
    """Fit members on folds that are prepared in a folder of their own, which does not stay."""
    folder = (run.folder / "prepared" / "refit").absolute()
    try:
        prepared, encoders = prepare_folds(
            folder,
            run.coded_table,
            run.rows.y,
            folds,
            sorted({run.space.encoding_of(each.trial.configuration) for each in members}),
            task_type=run.target.task_type,
            seed=run.settings.seed,
            weight=run.rows.weight,
            structure=run.rows.structure,
        )
        objective = CrossValidationObjective(
            folder=folder, space=run.space, metric=run.metric, n_threads=available_cores()
        )
        models = {
            each.trial.number: objective.fit(replace(each.trial, fidelity=1.0), each.outcome.path) for each in members
        }
        yield prepared, encoders, models
    finally:
        forget_folds()
        shutil.rmtree(folder, ignore_errors=True)
