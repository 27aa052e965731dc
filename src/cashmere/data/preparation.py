"""Turn coded tables into the matrices learners see, fitted on the training rows of a fold.

Categories arrive as small integers, so every encoding of a category is a row of a table: `FoldEncoder` learns one
table per column, and `transform` looks up rows. This takes microseconds for a single row, and loading needs only
numpy. Texts go through scikit-learn's `TfidfVectorizer`, then through `TruncatedSVD` and the ridge regressions of
`text_scores`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import AnyArray, BoolArray, Float64, FloatArray, IntArray
from cashmere.data.column_values import LARGEST
from cashmere.data.fold import Fold
from cashmere.data.resampling import make_folds
from cashmere.data.row_structure import RowStructure, StructureKind
from cashmere.data.schema import CodedTable, TableSchema
from cashmere.data.task import Encoding, TaskType
from cashmere.data.text_scores import (
    Matrix,
    count_parts,
    part_rarities,
    score_weights,
    scored_outputs,
    scores_by_others,
    scores_of,
    with_parts,
    word_counter,
)
from cashmere.data.words import pairs_as_words

_ONEHOT_LEVELS = 20
"""Most levels with a column each; more become means of the target (docs/benchmarks.md#categories-of-many-levels)."""

_INDICATOR_SHARE = 0.01
_TEXT_COMPONENTS = 30
"""With scores, more components of a text predict no better, and trials take as many times longer
(docs/benchmarks.md#columns-made-from-texts)."""

_TEXT_WORDS = 10_000
_MOST_SCORES = 100
_SCORE_TERMS, _SCORE_LETTERS = 50_000_000, 500_000_000
"""Most scores of a text column, and how many terms all texts may have for one score: learning takes ten seconds. With
more letters, parts of words are not even counted."""

_CROSS_FIT = 5

_NUMBER_ROWS = 100_000
"""Medians and shares of missing values are learned from at most this many rows, on which their error is small."""

_BLOCK_CELLS = 2_000_000
"""Cells of the matrix that are filled in at a time, to keep temporary arrays small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedFromOthers:
    """What training rows get instead of what they would get from `FoldEncoder.transform`: no row sees its own target.

    Attributes
    ----------
    part : (n_rows,) array of int16
        The part of each row from which an encoder has learned; empty if it uses no means.
    means : tuple of (int, int, array)
        For each averaged category, its column among the values, its first column in the matrix, and the means, shape
        ``(n_parts, n_levels + 1, n_outputs)``, each computed on the other parts.
    scores : (n_scored_rows, n_scores) array of float32
        Scores of the texts of the first rows, each learned from the texts of the other parts; the last columns of the
        matrix. The same in all forms.
    """

    part: NDArray[np.int16]
    means: tuple[tuple[int, int, Matrix], ...]
    scores: Matrix

    def overwrite(self, result: Matrix, values: FloatArray, *, start: int = 0) -> None:
        """Put means and scores into a matrix.

        Parameters
        ----------
        result : (n_rows, n_features) array
            From `FoldEncoder.transform`. Rows from which the encoder has not learned are left unchanged.
        values : (n_rows, n_value_columns) array
            The values that were transformed.
        start : int
            Number of the first of these rows among the training rows.
        """
        part = self.part[start : start + len(result)]
        for j, position, means in self.means:
            levels = _level_numbers(values[: len(part), j], means.shape[1] - 1)
            result[: len(part), position : position + means.shape[2]] = means[part, levels]
        scores = self.scores[start : start + len(result)]
        result[: len(scores), result.shape[1] - scores.shape[1] :] = scores


class FoldEncoder:
    """Turn a coded table into a float32 matrix, with encodings learned from the training rows of one fold.

    Columns of the result: numbers (booleans and dates included), missing indicators, categories, components of texts,
    scores of texts. If there is none of these, the result is one column of zeros.

    ============ ==================================== ======================================= =====================
    encoding     numbers                              categories                              unknown level
    ============ ==================================== ======================================= =====================
    ``ordinal``  NaN kept                             one column of codes, NaN when missing   NaN
    ``onehot``   median, and an indicator if more     two levels: one 0/1 column; up to 20    all zeros
                 than 1 % are missing in training     levels seen: one column each, and one
                                                      for missing if seen; else as target
    ``target``   as onehot                            up to two levels: as onehot; else mean  mean of the target
                                                      of the target given the level (per
                                                      class if more than two classes)
    ============ ==================================== ======================================= =====================

    Parameters
    ----------
    encoding : Encoding
        The form to produce.
    n_levels : (n_value_columns,) array of int
        Levels per value column, 0 for numbers; `TableSchema.n_levels`.
    n_texts : int
        Number of text columns.

    Attributes
    ----------
    categorical : (n_outputs,) array of bool
        Which columns of the result hold unordered codes, for learners that split on categories; only in
        ``ordinal``, for columns with more than two levels. Set by `fit_transform`.

    Notes
    -----
    Level means are shrunk towards the mean of all rows with the empirical Bayes weight of scikit-learn's
    `TargetEncoder(smooth="auto")`. `fit_transform` gives the training rows means from the other rows (5 folds,
    stratified); unlike scikit-learn's class this works with any number of rows per class.

    All forms have the same columns for texts. The leading components show what texts are about. Scores, one or one for
    each class, are ridge regressions of the target on all words and their parts: decisive words are often rare, so that
    no leading component contains them. Training rows get scores from the other rows, too.
    """

    _weights: Sequence[Matrix] = ()  # models of earlier versions have no scores, and know no words without blanks
    _rarities: Sequence[Matrix] = ()

    def __init__(self, encoding: Encoding, n_levels: IntArray, n_texts: int = 0) -> None:
        self.encoding = Encoding(encoding).value
        self.n_levels = np.asarray(n_levels, dtype=np.int64)
        self.n_texts = n_texts
        self.categorical: BoolArray = np.zeros(0, dtype=bool)
        self._vectorizers: list[Any]
        self._reducers: list[Any]
        self._n_components: list[int]

    @classmethod
    def for_schema(cls, encoding: Encoding, schema: TableSchema) -> FoldEncoder:
        """Return the encoder of a table."""
        return cls(encoding, schema.n_levels, len(schema.text_names))

    def fit_transform(self, coded: CodedTable, y: AnyArray, task_type: TaskType, seed: int) -> Matrix:
        """Learn from training rows and return their matrix.

        Parameters
        ----------
        coded : CodedTable
            Training rows.
        y : (n_rows,) array
            Class codes or values.
        task_type : TaskType
            How to read `y`.
        seed : int
            Seed of the cross-fitting and of the text components.

        Returns
        -------
        (n_rows, n_outputs) array of float32
            C-contiguous. With means of the target, it differs from ``transform(coded)``: no row sees its own target.
        """
        others = self.fit(coded.values, coded.take_texts(slice(None)), y, task_type, seed)
        result = self.transform(coded)
        others.overwrite(result, coded.values)
        return result

    def fit(
        self,
        values: FloatArray,
        texts: tuple[AnyArray, ...],
        y: AnyArray,
        task_type: TaskType,
        seed: int,
        *,
        groups: IntArray | None = None,
        words_of: tuple[FoldEncoder, LearnedFromOthers] | None = None,
    ) -> LearnedFromOthers:
        """Learn from training rows.

        Parameters
        ----------
        values, texts
            Those of a `CodedTable`; texts may be those of fewer rows. Medians and gaps of numbers are learned from the
            first 100,000 rows, so more rows should be in random order, or begin with those that matter most.
        y, task_type, seed
            As for `fit_transform`.
        groups : (n_rows,) array of int, optional
            Groups of rows: what training rows get is learned from other groups only.
        words_of : pair of FoldEncoder and LearnedFromOthers, optional
            An encoder of another form that has learned from the same texts with the same seed, and what its `fit`
            returned: learning words takes longer than everything else, and gives the same for all forms.

        Returns
        -------
        LearnedFromOthers
            What training rows get instead of what `transform` gives.
        """
        is_category = self.n_levels > 0
        self._numbers: IntArray = np.flatnonzero(~is_category)
        self._categories: IntArray = np.flatnonzero(is_category)
        numbers = values[:_NUMBER_ROWS, self._numbers]
        missing = np.isnan(numbers)
        keeps_nan = self.encoding == Encoding.ORDINAL
        self._medians = _medians(numbers, missing)
        flagged = missing.mean(axis=0) > _INDICATOR_SHARE if len(values) else missing.any(axis=0)
        self._flagged: IntArray = np.flatnonzero(flagged & (not keeps_nan))
        levels = [_level_numbers(values[:, j], int(self.n_levels[j])) for j in self._categories]
        self._tables: list[Matrix] = [
            self._table(rows, int(n), y, task_type)
            for rows, n in zip(levels, self.n_levels[self._categories], strict=True)
        ]
        if words_of is None:
            scores = self._fit_texts(texts, y, task_type, seed, groups)
        else:
            other, learned = words_of
            # The same objects, which a file then holds once.
            self._vectorizers, self._reducers = other._vectorizers, other._reducers
            self._n_components, self._weights, self._rarities = other._n_components, other._weights, other._rarities
            scores = learned.scores
        n_plain = len(self._numbers) + len(self._flagged)
        self._n_values = n_plain + sum(table.shape[1] for table in self._tables)
        self._n_outputs = self._n_values + sum(self._n_components) + scores.shape[1]
        self.categorical = np.zeros(max(self._n_outputs, 1), dtype=bool)
        if keeps_nan:
            self.categorical[n_plain : self._n_values] = self.n_levels[self._categories] > 2
        part, means = self._means_of_others(levels, y, task_type, seed, groups)
        return LearnedFromOthers(part=part, means=means, scores=scores)

    def transform(self, coded: CodedTable) -> Matrix:
        """Return the float32 matrix ``(n_rows, n_outputs)`` of any rows; each row depends only on its own content."""
        return self.transform_values(coded.values, self.text_columns(coded.take_texts(slice(None)), len(coded)))

    def text_columns(self, texts: Sequence[AnyArray], n_rows: int) -> Matrix:
        """Return the columns made from texts, ``(n_rows, n_text_outputs)``; they are the same in all forms."""
        parts = [np.empty((n_rows, 0), dtype=np.float32)]
        scores = []
        for i, (text, n) in enumerate(zip(texts, self._n_components, strict=True)):
            if n:
                words = pairs_as_words(text) if self._weights else text
                terms = self._vectorizers[i].transform(words)
                parts.append(self._reducers[i].transform(terms))
                if self._weights and self._weights[i].size:
                    scores.append(scores_of(with_parts(terms, count_parts(words), self._rarities[i]), self._weights[i]))
        return np.concatenate(parts + scores, axis=1, dtype=np.float32)

    def transform_values(self, values: FloatArray, of_texts: Matrix) -> Matrix:
        """Return the matrix of rows, given the `text_columns` of their texts."""
        result = np.zeros((len(values), max(self._n_outputs, 1)), dtype=np.float32)
        result[:, self._n_values : self._n_outputs] = of_texts
        step = max(1, _BLOCK_CELLS // result.shape[1])
        for start in range(0, len(values), step):
            self._fill_in(values[start : start + step], result[start : start + step])
        return result

    def _fill_in(self, values: FloatArray, result: Matrix) -> None:
        numbers = values[:, self._numbers]
        missing = np.isnan(numbers)
        if self.encoding != Encoding.ORDINAL:
            numbers = np.where(missing, self._medians, numbers)
        n_numbers = numbers.shape[1]
        result[:, :n_numbers] = np.clip(numbers, -LARGEST, LARGEST)
        position = n_numbers + len(self._flagged)
        result[:, n_numbers:position] = missing[:, self._flagged]
        for j, table in zip(self._categories, self._tables, strict=True):
            stop = position + table.shape[1]
            result[:, position:stop] = table[_level_numbers(values[:, j], int(self.n_levels[j]))]
            position = stop

    def _table(self, rows: IntArray, n_levels: int, y: AnyArray, task_type: TaskType) -> Matrix:
        """Return the encoding of each level, shape ``(n_levels + 1, n_columns)``; the last row is for missing."""
        counts = np.bincount(rows, minlength=n_levels + 1)
        seen = counts > 0
        if self.encoding == Encoding.ORDINAL:
            codes = np.arange(n_levels + 1, dtype=np.float32)
            codes[~seen] = np.nan
            codes[-1] = np.nan
            return codes[:, None]
        if self._is_averaged(rows, n_levels):
            return _level_means(rows, n_levels + 1, y, _averaged_classes(y, task_type)).astype(np.float32)
        kept = np.flatnonzero(seen)
        if n_levels == 2:
            kept = np.array([1, 2] if seen[2] else [1])
        table = np.zeros((n_levels + 1, len(kept)), dtype=np.float32)
        table[kept, np.arange(len(kept))] = 1
        return table

    def _is_averaged(self, rows: IntArray, n_levels: int) -> bool:
        """Return whether a category becomes means of the target."""
        if self.encoding == Encoding.ONEHOT:
            return int((np.bincount(rows, minlength=n_levels + 1)[:-1] > 0).sum()) > _ONEHOT_LEVELS
        return self.encoding == Encoding.TARGET and n_levels > 2

    def _means_of_others(
        self, levels: list[IntArray], y: AnyArray, task_type: TaskType, seed: int, groups: IntArray | None
    ) -> tuple[NDArray[np.int16], tuple[tuple[int, int, Matrix], ...]]:
        """Return parts, and target means over the rows outside each; none if the encoding uses no means."""
        averaged = [
            self._is_averaged(rows, int(n)) for rows, n in zip(levels, self.n_levels[self._categories], strict=True)
        ]
        if len(y) < 2 or not any(averaged):
            return np.zeros(0, dtype=np.int16), ()
        classes = _averaged_classes(y, task_type)
        folds = _cross_fit_folds(y, task_type, seed, groups)
        part = np.zeros(len(y), dtype=np.int16)
        for number, fold in enumerate(folds):
            part[fold.validation] = number
        found = []
        position = len(self._numbers) + len(self._flagged)
        for rows, j, table, is_averaged in zip(levels, self._categories, self._tables, averaged, strict=True):
            stop = position + table.shape[1]
            if is_averaged:
                n_levels = int(self.n_levels[j]) + 1
                means = [_level_means(rows[fold.train], n_levels, y[fold.train], classes) for fold in folds]
                found.append((int(j), position, np.asarray(means, dtype=np.float32)))
            position = stop
        return part, tuple(found)

    def _fit_texts(
        self, texts: tuple[AnyArray, ...], y: AnyArray, task_type: TaskType, seed: int, groups: IntArray | None
    ) -> Matrix:
        """Learn words, components and weights of scores; return the scores of these rows, learned from other rows."""
        self._vectorizers, self._reducers, self._n_components, self._weights, self._rarities = [], [], [], [], []
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        from sklearn.decomposition import TruncatedSVD

        y = y[: len(texts[0])]
        n_scores = int(y.max()) + 1 if task_type is TaskType.MULTICLASS else 1
        may_score = len(y) > 1 and n_scores <= _MOST_SCORES and len(y) * n_scores <= _SCORE_TERMS
        if may_score:
            outputs, folds = scored_outputs(y, task_type), _cross_fit_folds(y, task_type, seed, groups)
        scores = [np.empty((len(y), 0), dtype=np.float32)]
        for text in map(pairs_as_words, texts):
            vectorizer = word_counter(_TEXT_WORDS)
            reducer = TruncatedSVD(random_state=seed % 2**32)
            n = 0
            weights, rarities = np.zeros((0, 0), dtype=np.float32), np.zeros(0, dtype=np.float32)
            with contextlib.suppress(ValueError):  # these training rows contain no words
                terms = vectorizer.fit_transform(text)
                vectorizer.vocabulary_ = {word: int(i) for word, i in vectorizer.vocabulary_.items()}  # small in files
                n = min(_TEXT_COMPONENTS, *terms.shape) if terms.shape[1] > 1 else 0
            if n:
                reducer.set_params(n_components=n)
                with np.errstate(all="ignore"):  # explained variance of constant texts is 0 / 0
                    reducer.fit(terms)
            if n and may_score and sum(map(len, text)) <= _SCORE_LETTERS:
                counts = count_parts(text)
                if (terms.nnz + counts.nnz) * n_scores <= _SCORE_TERMS:
                    rarities = part_rarities(counts)
                    terms = with_parts(terms, counts, rarities)
                    weights = score_weights(terms, outputs)
                    scores.append(scores_by_others(terms, outputs, folds))
            self._vectorizers.append(vectorizer)
            self._reducers.append(reducer)
            self._n_components.append(n)
            self._weights.append(weights)
            self._rarities.append(rarities)
        return np.concatenate(scores, axis=1)


def _cross_fit_folds(y: AnyArray, task_type: TaskType, seed: int, groups: IntArray | None) -> list[Fold]:
    """Divide training rows into five parts, or if rows form several groups, the groups into at most five."""
    n_folds, structure = _CROSS_FIT, None
    if groups is not None:
        names, codes = np.unique(groups[: len(y)], return_inverse=True)
        if len(names) > 1:
            n_folds = min(len(names), _CROSS_FIT)
            structure = RowStructure(kind=StructureKind.GROUPS, codes=codes.astype(np.int64))
    return make_folds(y, task_type, f"{n_folds}fold", seed=seed, structure=structure)


def _medians(numbers: FloatArray, missing: BoolArray) -> Float64:
    """Return column medians; 0 for columns without any value."""
    medians = np.zeros(numbers.shape[1])
    some = ~missing.all(axis=0) if len(numbers) else np.zeros(numbers.shape[1], dtype=bool)
    if some.any():
        medians[some] = np.nanmedian(numbers[:, some], axis=0)
    return medians


def _level_numbers(codes: FloatArray, n_levels: int) -> IntArray:
    """Return rows of a level table: the code, or `n_levels` for missing."""
    return np.where(np.isnan(codes), n_levels, codes).astype(np.int64)


def _averaged_classes(y: AnyArray, task_type: TaskType) -> range | None:
    """Return the classes whose indicators are averaged; None to average `y`: values, or 0 and 1 for two classes."""
    return range(int(y.max()) + 1) if task_type is TaskType.MULTICLASS else None


def _level_means(rows: IntArray, n_levels: int, y: AnyArray, classes: range | None) -> Float64:
    r"""Return shrunken target means per level, shape ``(n_levels, n_outputs)``.

    .. math:: \lambda_l \bar y_l + (1 - \lambda_l) \bar y, \quad
        \lambda_l = \sigma^2 n_l / (\sigma^2 n_l + \sigma_l^2)

    with the variance :math:`\sigma_l^2` within level l and :math:`\sigma^2` of all rows; levels without rows get
    the mean of all rows.
    """
    counts = np.bincount(rows, minlength=n_levels).astype(np.float64)
    divisor = np.maximum(counts, 1)
    means = np.empty((n_levels, 1 if classes is None else len(classes)))
    # One class at a time: a hundred classes of a million rows would be 0.8 GB.
    for column, numbers in enumerate([y] if classes is None else (y == code for code in classes)):
        target = np.asarray(numbers, dtype=np.float64)
        centre = float(target.mean())
        centred = target - centre  # shrinking deviations from the centre avoids cancellation
        level = np.bincount(rows, weights=centred, minlength=n_levels) / divisor
        within = np.bincount(rows, weights=(centred - level[rows]) ** 2, minlength=n_levels) / divisor
        between = float(np.mean(centred**2)) * counts
        total = between + within
        weight = np.divide(between, total, out=np.zeros(n_levels), where=total > 0)
        means[:, column] = centre + weight * level
    return means
