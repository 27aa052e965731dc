"""Explain the ensemble of a run: importances of all columns, effects of the first ones."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cashmere.analysis.out_of_fold import final_ensemble
from cashmere.base.arrays import AnyArray, FloatArray
from cashmere.base.sklearn_settings import with_default_sklearn
from cashmere.data.column import ColumnKind
from cashmere.ensembles.threshold import as_certain, decide
from cashmere.evaluation.metrics import default_metric
from cashmere.exceptions import InvalidParameterError, RunDirectoryError
from cashmere.explanations.column_groups import (
    associations,
    explained_by_levels,
    group_columns,
    levels_of,
    order_place,
    standardised_ranks,
)
from cashmere.explanations.effects import BINS, column_effect
from cashmere.explanations.explanation import Explanation
from cashmere.explanations.permutation import permutation_importance
from cashmere.explanations.unseen_rows import SourceColumn, UnseenRows, source_columns
from cashmere.explanations.words import word_effects
from cashmere.model.predictor import Predictor
from cashmere.storage.facts import RunFacts
from cashmere.storage.store import RunStore
from cashmere.storage.trial_tables import read_description, stored_metric

MOST_COLUMNS = 100
"""Largest number of columns whose importances are measured."""

_SECONDS = 30.0
_LEAST_ROWS, _MOST_ROWS = 100, 2000
_ROWS_OF_EFFECTS = 300
_MOST_CELLS = 30_000_000
"""Largest number of cells of coded rows to predict at a time: 240 MB."""

_OUTPUTS = 3
"""Number of classes to follow if there are more than two: the most frequent."""


@with_default_sklearn
def explain(
    folder: str | Path,
    *,
    rows: int | None = None,
    repeats: int = 5,
    effects: int = 6,
    seed: int = 0,
    trusted: Iterable[str] = (),
) -> Explanation:
    """Measure which columns the ensemble of a run relies on, and how its predictions depend on them.

    Each row is predicted by models that have not seen it, as for the selection score. No model is fitted. The run
    directory is not changed; `Explanation.save` stores the result there for the report.

    Parameters
    ----------
    folder : path
        The directory of a run with a final ensemble.
    rows : int, optional
        Largest number of validation rows to predict. By default it is chosen between 100 and 2000, so that all
        predictions take about half a minute, judging by the latency measured in the run.
    repeats : int
        Number of permutations of each column or group of columns.
    effects : int
        Number of columns whose effects are computed, the most important first; for a text column, those of words.
    seed : int
        Seed for the permutations, the intervals and the choice of rows.
    trusted : iterable of str
        Types of custom algorithms to accept, see `Predictor.load`.

    Returns
    -------
    Explanation
        With more than 100 columns (fewer if members are slow), it covers only those most strongly associated with the
        predictions of the ensemble.

    Raises
    ------
    RunDirectoryError
        If the folder is not a run, has no final ensemble, or its model is the constant predictor.
    CorruptStoreError, ModelFileError
        If a file is damaged.
    InvalidParameterError
        If a number is too small, or `folder` is no path.

    See Also
    --------
    sklearn.inspection.permutation_importance : the same for a fitted estimator and your own rows.

    Examples
    --------
    ::

        explanation = cashmere.explain("income-run")
        explanation.importance.head()
    """
    for name, number, least in (("rows", rows, 1), ("repeats", repeats, 1), ("effects", effects, 0)):
        if number is not None and number < least:
            raise InvalidParameterError(name, number, f"a whole number of at least {least}")
    if not isinstance(folder, str | os.PathLike):
        raise InvalidParameterError(
            "folder",
            folder,
            "the directory of a run",
            "Rows that a model has not seen are there: an estimator keeps it with run_directory=. For other rows, use "
            "sklearn.inspection.permutation_importance.",
        )
    folder = Path(folder)
    settings, facts, predictor = finished_model(folder, trusted)
    predictor.use_threads(1)
    task = predictor.target.task_type
    metric = stored_metric(settings, task.value) or default_metric(task)
    columns = source_columns(predictor.schema)
    n_rows, n_columns = _affordable(facts, predictor, len(columns), repeats, effects)
    unseen = UnseenRows.draw(folder, predictor, settings, n_rows=n_rows if rows is None else rows, seed=seed)
    rng = np.random.default_rng(seed)
    base = unseen.predict()
    measured = _screened(unseen, columns, base, n_columns)
    groups = [[measured[i] for i in group] for group in group_columns(associations(unseen.values, measured))]

    def loss(predictions: AnyArray, weight: FloatArray) -> float:
        if metric.needs == "labels":
            predictions = as_certain(decide(predictions, predictor.thresholds), predictions.shape[1])
        return metric.loss(unseen.y, predictions, weight)

    importances = permutation_importance(unseen, groups, loss, repeats=repeats, rng=rng)
    order = sorted(range(len(groups)), key=lambda i: (-importances[i].mean, i))
    outputs, names = _outputs(unseen, settings, _OUTPUTS)
    all_outputs, all_names = _outputs(unseen, settings, None)
    followed = rng.permutation(len(unseen))[:_ROWS_OF_EFFECTS]
    first = [column for i in order for column in groups[i]][:effects]
    found = (
        column_effect(unseen, column, outputs, rows=followed) for column in first if column.kind is not ColumnKind.TEXT
    )
    words = (
        word_effects(unseen, column.name, column.text, base, all_outputs, all_names, rng=rng)
        for column in first
        if column.text is not None
    )
    return Explanation(
        digest=facts.digest,
        metric=metric.name,
        greater_is_better=metric.greater_is_better,
        loss=loss(base, np.ones(len(unseen)) if unseen.weight is None else unseen.weight),
        n_rows=len(unseen),
        n_validation_rows=unseen.n_validation_rows,
        repeats=repeats,
        n_columns=len(columns),
        outputs=names,
        importances=tuple(importances[i] for i in order),
        effects=tuple(effect for effect in found if effect is not None),
        words=tuple(each for each in words if each is not None),
    )


def finished_model(folder: Path, trusted: Iterable[str]) -> tuple[Mapping[str, Any], RunFacts, Predictor]:
    """Return settings, facts and model of a run that has a final ensemble.

    Raises
    ------
    RunDirectoryError
        If the folder is not a run, has no final ensemble, or its model is the constant predictor or another one.
    CorruptStoreError, ModelFileError
        If a file is damaged.
    """
    settings = read_description(folder)[0].get("settings") or {}
    with RunStore(folder, read_only=True) as store:
        facts = store.facts()
    ensemble = final_ensemble(folder, facts)
    predictor = Predictor.load(folder, trusted=trusted)
    if predictor.ensemble != ensemble:
        text = "holds another model than that of its last result: it is at work, or was killed. Use `cashmere resume`."
        raise RunDirectoryError(folder, text)
    return settings, facts, predictor


def _affordable(facts: RunFacts, predictor: Predictor, n_columns: int, repeats: int, effects: int) -> tuple[int, int]:
    """Return how many rows to predict and how many columns to measure in about `_SECONDS`."""
    width = max(1, len(predictor.schema.value_names))
    most = max(1, min(_MOST_ROWS, _MOST_CELLS // (width * max(repeats, BINS + 1))))
    n_columns = min(n_columns, MOST_COLUMNS)
    rate = (facts.latency or {}).get("batch_rows_per_second")
    if rate is None or not np.isfinite(rate) or rate <= 0:
        return min(500, most), n_columns
    # The latency was measured with all models that a member averages; only one of them predicts an unseen row.
    predictions = _SECONDS * rate * min(len(predictor.averaged_models(n)) for n in predictor.ensemble.members)
    predictions -= effects * (BINS + 2) * _ROWS_OF_EFFECTS
    n_columns = int(min(n_columns, max(10, predictions / (repeats * _LEAST_ROWS))))
    n_rows = int(predictions / (repeats * max(1, n_columns)))
    return min(max(n_rows, _LEAST_ROWS), most), n_columns


def _screened(unseen: UnseenRows, columns: Sequence[SourceColumn], base: AnyArray, most: int) -> list[SourceColumn]:
    """Return all columns, or those most strongly associated with the predictions; text columns are kept."""
    if len(columns) <= most:
        return list(columns)
    outputs = base[:, None] if base.ndim == 1 else base
    ranks = np.column_stack([standardised_ranks(each) for each in outputs.T])
    scores = []
    for column in columns:
        if column.text is not None:
            scores.append(1.0)
        elif column.categories:
            scores.append(explained_by_levels(levels_of(unseen.values[:, column.places[0]]), ranks).max())
        else:
            own = standardised_ranks(unseen.values[:, order_place(column)])
            scores.append(np.abs(own @ ranks).max() / len(own))
    return [columns[i] for i in sorted(np.argsort(-np.array(scores), kind="stable")[:most].tolist())]


def _outputs(
    unseen: UnseenRows, settings: Mapping[str, Any], most: int | None
) -> tuple[list[int] | None, tuple[str, ...]]:
    """Return the classes to follow, the most frequent or all (None for regression), and their names."""
    target = unseen.predictor.target
    if not target.task_type.is_classification:
        return None, (str(settings.get("target_name") or "target")[:1000],)
    labels = target.labels()
    if len(labels) == 2:
        codes = [1]
    else:
        counts = np.bincount(unseen.y, minlength=len(labels))
        codes = sorted(np.argsort(-counts, kind="stable")[:most].tolist())
    return codes, tuple(str(labels[code])[:1000] for code in codes)
