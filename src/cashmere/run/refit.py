"""Fit members again, with one model on all rows instead of one for each fold."""

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

_N_FOLDS = 5
"""Folds of the comparison if the run has a custom splitter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefitComparison:
    """One model per member compared with one per fold, on rows that neither has seen.

    Attributes
    ----------
    n_rows : int
        Number of these rows: the validation rows of the run's first fold; in time, of the last.
    single_loss : float
        Loss of the ensemble whose members have one model fitted on all other rows.
    folds_loss : float
        Loss of the same ensemble whose members have the mean of models fitted on folds of these other rows; in time,
        the model of the newest fold.
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
        Trials to fit.

    Returns
    -------
    encoders : list
        Encoders of the one fold that holds all rows.
    models : dict of int to list of FoldModel
        One model of each member, by trial number.
    """
    rows = np.arange(len(run.rows.y))
    with _fitted(run, members, [Fold(train=rows, validation=rows[:1])]) as (_, encoders, models):
        return encoders, models


def compare_refit(
    run: RunDirectory, members: Sequence[Observation], ensemble: Ensemble, metric: Metric
) -> RefitComparison | None:
    """Compare one model per member with those of folds, on the validation rows of the run's first fold.

    In time, they are those of the last fold, the newest.

    Without these rows, members are fitted once on all others, and once on folds of these. So both kinds of models are
    fitted on fewer rows than the models that they stand for.

    Parameters
    ----------
    run : RunDirectory
        Open.
    members : sequence of Observation
        Members of the ensemble.
    ensemble : Ensemble
        Combines their predictions.
    metric : Metric
        Metric to compare by; probabilities are neither calibrated nor decided by thresholds.

    Returns
    -------
    RefitComparison or None
        None if the other rows are of one group or moment, which no fold can part.
    """
    y, weight, structure = run.rows.y, run.rows.weight, run.rows.structure
    outer = run.splits[-1 if is_in_time(structure) else 0]
    seen, judged = outer.train, outer.validation
    of_seen = None if structure is None else structure.take(seen)
    n_folds = len(run.splits) if isinstance(run.settings.resampling, str) else _N_FOLDS
    if of_seen is not None:
        n_folds = min(n_folds, of_seen.most_folds)
    if n_folds == 0:
        return None
    inner = make_folds(
        y[seen],
        run.target.task_type,
        f"{n_folds}fold" if n_folds > 1 else "holdout",
        seed=run.settings.seed,
        structure=of_seen,
    )
    folds = [Fold(train=seen[fold.train], validation=judged) for fold in inner]
    # The first fold has the seeds of the run's first fold: unless in time, its models are the same.
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
    """Fit members on folds prepared in a separate folder, which is removed afterwards."""
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
            n_classes=run.target.n_classes,
            weight=run.rows.weight,
            structure=run.rows.structure,
            rungs=run.rungs,  # for the order of rows: encoders learn from the first ones
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
