"""An audit of resampling: prove that no validation row enters the rows a learner is fitted on."""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from ConfigSpace import Configuration
from threadpoolctl import threadpool_limits

from cashmere.base.arrays import AnyArray, FloatArray, IntArray
from cashmere.data.fold import Fold
from cashmere.data.frames import has_labels, to_frame
from cashmere.data.inference import infer_schema
from cashmere.data.prepared import prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.rows import canonical_rows
from cashmere.data.schema import CodedTable
from cashmere.data.target import TargetCoding
from cashmere.data.task import TaskProfile
from cashmere.evaluation.objective import fold_context
from cashmere.evaluation.row_origins import Origin, explain_rows
from cashmere.model.fold_model import rows_for_learner
from cashmere.space.component import Resampler
from cashmere.space.estimators.standardisation import nominal_columns
from cashmere.space.named.registry import SpaceFactory, make_space
from cashmere.space.space import Space


def audit_resampling(
    X: Any,
    y: Any,
    *,
    space: str | SpaceFactory = "imbalance",
    configurations: Sequence[Mapping[str, Any]] | None = None,
    resampling: Any = "5fold",
    seed: int = 0,
) -> pd.DataFrame:
    """Resample the training rows of every fold as a run does, and prove where each resampled row comes from.

    Two proofs per configuration and fold. First, every resampled row is a training row of the fold, or a
    combination of training rows of the fold: its parents are found (`Origin`). Second, preparation and resampling
    are repeated with all features of the validation rows missing and all their classes changed: the resampled rows
    must be the same, bit for bit, so nothing of a validation row can have entered.

    Parameters
    ----------
    X : (n_rows, n_columns) table
        As for `AutoClassifier.fit`.
    y : (n_rows,) array-like
        Class labels.
    space : str or callable
        A space with a step of resamplers: its name, or a function from `TaskProfile` to `Space`.
    configurations : sequence of mappings, optional
        Values of hyper-parameters, such as ``{"resampler": "smote", "smote:k_neighbors": 3}``; the others keep their
        defaults. By default each resampler once, with its defaults.
    resampling : str or splitter
        As for `AutoClassifier`; with the same `seed` the folds are those of its run.
    seed : int
        Seed of folds and resamplers.

    Returns
    -------
    DataFrame
        A row per configuration and fold: ``resampler``, ``fold``; the numbers of ``training_rows`` and
        ``resampled_rows``; how many of the latter have each `Origin` (``kept``, ``between``, ``mixed``, ``beyond``,
        ``across``, ``centroid``, ``unexplained``); ``same_without_validation``, the second proof; ``failure``, the
        error message if the resampler refuses the rows, else empty. A fold is proven if ``unexplained`` is 0 and
        ``same_without_validation`` is true.

    Raises
    ------
    MissingDependencyError
        If imbalanced-learn is not installed.
    DataError, UnknownNameError, InvalidParameterError
        If table, space or a configuration cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> table = audit_resampling(X, ["no"] * 30 + ["yes"] * 10, configurations=[{"resampler": "smote"}])
    >>> table[["training_rows", "kept", "between", "unexplained", "same_without_validation"]].head(2)
       training_rows  kept  between  unexplained  same_without_validation
    0             32    32       16            0                     True
    1             32    32       16            0                     True
    """
    frame = to_frame(X)
    target = TargetCoding.from_target(y, "classification")
    rows = canonical_rows(frame, target.encode(y, n_rows=len(frame)), keep_order=not isinstance(resampling, str))
    schema = infer_schema(rows.frame, named=has_labels(X))
    coded = schema.code(rows.frame)
    profile = TaskProfile(
        task_type=target.task_type,
        n_rows=len(rows.y),
        n_columns=len(schema.used),
        n_classes=target.n_classes,
        has_categories=schema.has_categories,
        most_levels=schema.most_levels,
    )
    searched = make_space(space, profile)
    chosen = [searched.completed(values) for values in configurations or _every_resampler(searched)]
    folds = make_folds(rows.y, target.task_type, resampling, seed=seed, n_columns=coded.values.shape[1])
    entries: list[dict[str, Any]] = []
    for number, fold in enumerate(folds):
        seen = _FoldRows.prepare(searched, coded, rows.y, fold, seed=seed)
        blind = _FoldRows.prepare(
            searched, *_without_validation(coded, rows.y, fold, target.n_classes), fold, seed=seed
        )
        entries += [_audit(searched, configuration, number, seen, blind, seed) for configuration in chosen]
    return pd.DataFrame(entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FoldRows:
    """Prepared training rows of a fold, from the files a run would read."""

    X: FloatArray
    y: IntArray
    categorical: AnyArray

    @classmethod
    def prepare(cls, space: Space, coded: CodedTable, y: AnyArray, fold: Fold, *, seed: int) -> _FoldRows:
        (encoding,) = space.encodings
        with tempfile.TemporaryDirectory(prefix="cashmere-audit-") as folder:
            prepared, _ = prepare_folds(
                folder, coded, y, [fold], [encoding], task_type=space.profile.task_type, seed=seed
            )
            X, _, categorical = prepared.load(0, encoding)
            # A fold may lack a class; like `fit_fold_model`, number those present.
            classes = np.unique(prepared.y[fold.train], return_inverse=True)[1].astype(np.int64)
            return cls(X=np.array(X), y=classes, categorical=categorical)


def _every_resampler(space: Space) -> list[dict[str, Any]]:
    return [
        {step: operator.name}
        for step, choices in space.operators.items()
        for operator in choices
        if isinstance(operator, Resampler)
    ]


def _without_validation(coded: CodedTable, y: AnyArray, fold: Fold, n_classes: int) -> tuple[CodedTable, AnyArray]:
    """Return the table with all values of validation rows missing, and the classes with theirs shifted by one."""
    values, classes = coded.values.copy(), y.copy()
    values[fold.validation] = np.nan
    classes[fold.validation] = (classes[fold.validation] + 1) % n_classes
    texts = tuple(text.copy() for text in coded.take_texts(slice(None)))
    for text in texts:
        text[fold.validation] = ""
    return CodedTable(schema=coded.schema, values=values, texts=texts), classes


def _audit(
    space: Space, configuration: Configuration, number: int, seen: _FoldRows, blind: _FoldRows, seed: int
) -> dict[str, Any]:
    step = next(s for s, choices in space.operators.items() if any(isinstance(o, Resampler) for o in choices))
    entry: dict[str, Any] = {
        "resampler": str(configuration[step]),
        "fold": number,
        "training_rows": len(seen.y),
        "resampled_rows": 0,
        **{origin.value: 0 for origin in Origin},
        "same_without_validation": False,
        "failure": "",
    }
    fold_seed = (seed + number) % 2**31
    try:
        # As in trials: a resampler may warn about what it does to few rows, and sums depend on the number of threads.
        with warnings.catch_warnings(), np.errstate(all="ignore"), threadpool_limits(1):
            warnings.simplefilter("ignore")
            X, X_new, y_new = _resample(space, configuration, seen, fold_seed)
            _, X_blind, y_blind = _resample(space, configuration, blind, fold_seed)
    except Exception as error:  # whatever the library refuses is a failed trial, and reported as such
        return entry | {"failure": f"{type(error).__name__}: {error}"}
    origins = Counter(
        origin.value for origin in explain_rows(X_new, y_new, X, seen.y, nominal=nominal_columns(X, seen.categorical))
    )
    same = X_new.tobytes() == X_blind.tobytes() and np.array_equal(y_new, y_blind)
    return entry | {"resampled_rows": len(y_new), **origins, "same_without_validation": same}


def _resample(
    space: Space, configuration: Configuration, rows: _FoldRows, seed: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the training rows as the resampler sees them, and the rows and classes that the learner gets."""
    context = fold_context(space.profile, rows.X, rows.y, rows.categorical, seed=seed)
    seen: list[FloatArray] = []
    change = space.build_resampling(configuration, context)

    def observed(X: FloatArray, y: IntArray) -> tuple[FloatArray, IntArray]:
        seen.append(X.copy())
        return (X, y) if change is None else change(X, y)

    X_new, y_new = rows_for_learner(space.build(configuration, context), rows.X, rows.y, observed)
    return seen[0], X_new, y_new
