"""Check that the parts of a model fit: schema, target, encoders, members, ensemble, thresholds, calibration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cashmere.base.arrays import Float64
from cashmere.data.preparation import FoldEncoder
from cashmere.data.schema import TableSchema
from cashmere.data.target import TargetCoding
from cashmere.data.task import Encoding
from cashmere.data.text_scores import N_PARTS
from cashmere.ensembles import Ensemble, StackedEnsemble
from cashmere.ensembles.calibration import Calibration
from cashmere.ensembles.conformal import ConformalScores
from cashmere.exceptions import ModelFileError
from cashmere.model.content.fault import ContentError, array, indices, require
from cashmere.model.fold_model import FoldModel


def check_encoders(path: Path, encoders: Any, schema: TableSchema) -> None:
    """Raise if encoders do not fit the columns of the schema.

    Parameters
    ----------
    path : Path
        Their archive, for the error.
    encoders : list of dict of Encoding to FoldEncoder
        Encoders of each fold.
    schema : TableSchema
        The columns.

    Raises
    ------
    ModelFileError
        Naming what does not fit.
    """
    try:
        require(isinstance(encoders, list) and encoders, "the archive", "holds no encoders.")
        for k, fold in enumerate(encoders):
            for encoding, encoder in fold.items():
                where = f"the {encoding.value} encoder of fold {k}"
                require(isinstance(encoder, FoldEncoder), where, "is something else.")
                require(encoder.encoding == encoding.value, where, f"makes {str(encoder.encoding)[:40]!r}.")
                _check_encoder(where, encoder, schema)
            of_texts = {encoder._n_outputs - encoder._n_values for encoder in fold.values()}
            require(len(of_texts) <= 1, f"fold {k}", "makes other columns of texts for one form than for another.")
    except ContentError as error:
        raise ModelFileError(path, f"is damaged or was tampered with: {error}") from error
    except (AttributeError, TypeError, KeyError, ValueError) as error:
        raise ModelFileError(path, f"holds incomplete encoders ({type(error).__name__}: {error}).") from error


def _check_encoder(where: str, encoder: FoldEncoder, schema: TableSchema) -> None:
    n_levels = indices(f"{where}: n_levels", encoder.n_levels, 2**40)
    require(np.array_equal(n_levels, schema.n_levels), where, "knows other columns or levels than the schema.")
    require(encoder.n_texts == len(schema.text_names), where, "knows other text columns than the schema.")
    same = np.array_equal(encoder._numbers, np.flatnonzero(n_levels == 0))
    same = same and np.array_equal(encoder._categories, np.flatnonzero(n_levels > 0))
    require(same, where, "takes other columns for numbers than the schema.")
    n_numbers = len(encoder._numbers)
    array(f"{where}: medians", encoder._medians, (n_numbers,))
    flagged = indices(f"{where}: missing indicators", encoder._flagged, n_numbers)
    require((np.diff(flagged) > 0).all(), where, "has missing indicators out of order.")
    require(len(encoder._tables) == len(encoder._categories), where, "has not one table for each category.")
    n_values = n_numbers + len(flagged)
    for table, n in zip(encoder._tables, n_levels[n_levels > 0], strict=True):
        finite = encoder.encoding != Encoding.ORDINAL
        n_values += array(f"{where}: a table", table, (int(n) + 1, -1), finite=finite).shape[1]
    components = encoder._n_components
    same = len(components) == len(encoder._vectorizers) == len(encoder._reducers) == encoder.n_texts
    require(same, where, "has not one coder for each text column.")
    for n, vectorizer, reducer in zip(components, encoder._vectorizers, encoder._reducers, strict=True):
        if n:
            _check_text(where, n, vectorizer, reducer)
    n_scores = _count_scores(where, encoder)
    require(encoder._n_values == n_values, where, f"makes {n_values} columns of values but announces others.")
    require(encoder._n_outputs == n_values + sum(components) + n_scores, where, "announces another number of columns.")
    array(f"{where}: categorical", encoder.categorical, (max(encoder._n_outputs, 1),), kinds="b")


def _count_scores(where: str, encoder: FoldEncoder) -> int:
    """Check the weights of scores of texts; return the number of scores."""
    if not len(encoder._weights):  # a model of an earlier version, or of a table without texts
        return 0
    same = len(encoder._weights) == len(encoder._rarities) == encoder.n_texts
    require(same, where, "has not one set of weights for each text column.")
    n_scores = 0
    for n, reducer, rarities, weights in zip(
        encoder._n_components, encoder._reducers, encoder._rarities, encoder._weights, strict=True
    ):
        if n and weights.size:
            n_parts = len(array(f"{where}: rarities of parts of words", rarities, (N_PARTS,)))
            n_terms = reducer.components_.shape[1] + n_parts
            n_scores += array(f"{where}: weights of terms", weights, (n_terms + 1, -1)).shape[1]
    return n_scores


def _check_text(where: str, n_components: int, vectorizer: Any, reducer: Any) -> None:
    terms = vectorizer.vocabulary_
    plain = isinstance(terms, dict) and all(isinstance(term, str) for term in terms)
    require(plain and sorted(map(int, terms.values())) == list(range(len(terms))), where, "has terms without a number.")
    require(vectorizer.idf_.shape == (len(terms),) and np.isfinite(vectorizer.idf_).all(), where, "has other weights.")
    array(f"{where}: components", reducer.components_, (n_components, len(terms)))


def check_members(
    paths: Mapping[int, Path],
    models: Mapping[int, list[FoldModel]],
    encoders: list[dict[Encoding, FoldEncoder]],
    target: TargetCoding,
    *,
    n_folds: int,
    refitted: bool = False,
) -> None:
    """Raise if the fold models of members do not fit the encoders and the classes.

    Parameters
    ----------
    paths : dict of int to Path
        The archive of each member, for the error.
    models : dict of int to list of FoldModel
        The members.
    encoders : list of dict
        Encoders of each fold, split after split.
    target : TargetCoding
        The classes.
    n_folds : int
        Folds of a split. Members have models of the first split or the first few.
    refitted : bool
        Whether models after those of the first split have learned from all rows.

    Raises
    ------
    ModelFileError
        If something does not fit; the message names it and the member.
    """
    for number, folds in models.items():
        try:
            fits = len(folds) >= n_folds if refitted else len(folds) > 0 and len(folds) % n_folds == 0
            fits = fits and len(folds) <= len(encoders)
            require(fits, f"trial {number}", f"has {len(folds)} folds. Expected {n_folds} for each split.")
            for k, model in enumerate(folds):
                _check_fold(f"fold {k} of trial {number}", model, encoders[k], target)
        except ContentError as error:
            raise ModelFileError(paths[number], f"is damaged or was tampered with: {error}") from error


def _check_fold(where: str, model: FoldModel, encoders: dict[Encoding, FoldEncoder], target: TargetCoding) -> None:
    require(model.encoding in encoders, where, f"reads the encoding {model.encoding.value!r}, which the model lacks.")
    require(
        model.n_classes == target.n_classes, where, f"knows {model.n_classes} classes. Expected {target.n_classes}."
    )
    if target.task_type.is_classification:
        require(model.classes is not None, where, "predicts values instead of classes.")
        require(model.log_limit is None, where, "predicts classes from logarithms.")
        classes = indices(f"{where}: classes", model.classes, target.n_classes)
        require(len(classes) and (np.diff(classes) > 0).all(), where, "has classes out of order.")
        if len(classes) == 1:
            return
    else:
        require(model.classes is None, where, "predicts classes instead of values.")
        fits = model.log_limit is None or np.isfinite(model.log_limit)
        require(fits, where, f"bounds logarithms by {model.log_limit}.")
    require(hasattr(model.pipeline, "predict"), where, "holds no pipeline.")
    expected = max(encoders[model.encoding]._n_outputs, 1)
    try:
        # A loaded CatBoost model knows the names of its columns, but not their number.
        found = model.pipeline.n_features_in_ or len(model.pipeline[0].feature_names_)
    except (AttributeError, IndexError, TypeError):  # custom first steps need not count their columns
        return
    require(found == expected, where, f"reads {found} columns. Its encoder makes {expected}.")


def check_ensemble(
    path: Path,
    ensemble: Ensemble,
    members: set[int],
    target: TargetCoding,
    thresholds: Float64 | None,
    calibration: Calibration | None,
    conformal: ConformalScores | None = None,
) -> None:
    """Raise for members without files, a calibration or thresholds of other classes, or impossible conformal scores.

    Parameters
    ----------
    path : Path
        The manifest, for the error.
    ensemble : Ensemble
        How members are combined.
    members : set of int
        Members with files.
    target : TargetCoding
        The classes.
    thresholds : (n_classes,) array or None
        How to decide between classes.
    calibration : Calibration or None
        Calibration of the probabilities.
    conformal : ConformalScores or None
        Scores for intervals and sets.

    Raises
    ------
    ModelFileError
        Naming what does not fit.
    """
    try:
        require(set(ensemble.members) <= members, "the ensemble", "has members without a file.")
        if isinstance(ensemble, StackedEnsemble):
            _check_stacking(ensemble, target)
        if thresholds is not None:
            require(target.task_type.is_classification, "the model", "has thresholds, but predicts values.")
            found = array("thresholds", thresholds, (target.n_classes,))
            require((found > 0).all() and abs(found.sum() - 1) < 1e-6, "thresholds", "must be positive, with sum 1.")
        if calibration is not None:
            require(target.task_type.is_classification, "the model", "has a calibration, but predicts values.")
            n_classes = len(calibration.scales)
            require(n_classes == target.n_classes, "the calibration", f"knows {n_classes} classes.")
        if conformal is not None:
            _check_scores(conformal, target)
    except ContentError as error:
        raise ModelFileError(path, f"describes no usable ensemble: {error}") from error


def _check_scores(conformal: ConformalScores, target: TargetCoding) -> None:
    for each in (conformal, *conformal.classes):
        require(len(each.folds) == len(conformal.folds), "conformal scores", "of a class have other folds.")
        for fold in each.folds:
            array("conformal scores", fold, (-1,))
            require((np.diff(fold) >= 0).all(), "conformal scores", "are out of order.")
    if conformal.classes:
        require(len(conformal.classes) == target.n_classes, "conformal scores", "are of other classes.")


def _check_stacking(ensemble: StackedEnsemble, target: TargetCoding) -> None:
    require(ensemble.n_classes == target.n_classes, "the ensemble", f"knows {ensemble.n_classes} classes.")
    classes = indices("classes of the ensemble", np.array(ensemble.classes, dtype=np.int64), target.n_classes)
    fits = (len(classes) > 0) == target.task_type.is_classification and bool((np.diff(classes) > 0).all())
    require(fits, "the ensemble", "has classes out of order.")
    finite = np.isfinite(ensemble.coefficients).all() and np.isfinite(ensemble.intercepts).all()
    require(finite, "the ensemble", "has coefficients that are not finite.")
