"""Score texts by ridge regressions on their words and parts of words, for learners that see only leading components.

Parts of words, four letters each, tell what forms of a word, compounds and misspelt words have in common. They are
counted under hash values, so that no list of them is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import AnyArray, Float64
from cashmere.data.fold import Fold
from cashmere.data.task import TaskType
from cashmere.data.words import WORD

_PENALTY = 1.0
"""Of the ridge regressions. Rows of words, and of parts, have length 1; 0.3 and 3 predict little worse."""

_EXTREME = 0.01
_PART_LETTERS = 4
N_PARTS = 2**15
"""Number of hash values of parts of words. With more, scores predict no better."""

Matrix = NDArray[np.float32]


def scored_outputs(y: AnyArray, task_type: TaskType) -> Matrix:
    """Return what scores predict.

    Parameters
    ----------
    y : (n_rows,) array
        Class codes or values.
    task_type : TaskType
        How to read `y`.

    Returns
    -------
    (n_rows, n_outputs) array of float32
        An indicator of each class, if there are more than two; else one column: 0 and 1 for two classes, or values,
        shifted and scaled to at most 1 in size. The lowest and the highest hundredth of values become equal, so that
        no few of them decide.
    """
    if task_type is TaskType.MULTICLASS:
        indicators: Matrix = (y[:, None] == np.arange(int(y.max()) + 1)).astype(np.float32)
        return indicators
    values = _scaled(np.asarray(y, dtype=np.float64)[:, None])  # before differences, which may overflow
    low, high = np.quantile(values, [_EXTREME, 1 - _EXTREME])
    if low < high:
        values = values.clip(low, high)
    return _scaled(values - values.mean()).astype(np.float32)


def _scaled(values: Float64) -> Float64:
    """Return values divided by the largest in size, unless all are 0."""
    largest = float(np.abs(values).max(initial=0))
    return values / largest if largest > 0 else values


def word_counter(most_words: int | None = None) -> Any:
    """Return what learns the words of texts and weighs their counts, a `TfidfVectorizer`; at most the most frequent."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(token_pattern=WORD, max_features=most_words, sublinear_tf=True, dtype=np.float32)


def count_parts(texts: Iterable[str]) -> Any:
    """Return weighted counts of parts of words, a sparse matrix ``(n_texts, n_parts)``: ``1 + log(count)``."""
    from sklearn.feature_extraction.text import HashingVectorizer

    size = (_PART_LETTERS, _PART_LETTERS)
    counter = HashingVectorizer(
        analyzer="char_wb", ngram_range=size, n_features=N_PARTS, alternate_sign=False, norm=None, dtype=np.float32
    )
    counts = counter.transform(texts)
    counts.data = 1 + np.log(counts.data)
    return counts


def part_rarities(counts: Any) -> Matrix:
    """Return the logarithm of how rare parts are among texts, ``(n_parts,)``, as `TfidfTransformer` computes it."""
    n_texts, n_parts = counts.shape
    containing = np.bincount(counts.indices, minlength=n_parts)
    rarities: Float64 = np.log((1 + n_texts) / (1 + containing)) + 1
    return rarities.astype(np.float32)


def with_parts(words: Any, counts: Any, rarities: Matrix) -> Any:
    """Return the terms of texts, a sparse matrix ``(n_texts, n_words + n_parts)``.

    Parameters
    ----------
    words : (n_texts, n_words) sparse matrix
        Weighted counts of words.
    counts : (n_texts, n_parts) sparse matrix
        From `count_parts`; overwritten, since there may be many.
    rarities : (n_parts,) array
        From `part_rarities`.
    """
    from scipy.sparse import hstack
    from sklearn.preprocessing import normalize

    counts.data *= rarities[counts.indices]
    return hstack([words, normalize(counts, copy=False)], format="csr")


def score_weights(terms: Any, outputs: Matrix) -> Matrix:
    """Return the weights of terms, ``(n_terms + 1, n_outputs)``; the last row holds the intercepts.

    Parameters
    ----------
    terms : (n_rows, n_terms) sparse matrix
        From `with_parts`.
    outputs : (n_rows, n_outputs) array
        From `scored_outputs`.
    """
    from sklearn.linear_model import Ridge

    model = Ridge(alpha=_PENALTY, solver="sparse_cg").fit(terms, outputs)
    n_outputs = outputs.shape[1]
    intercepts = np.broadcast_to(model.intercept_, (1, n_outputs))
    return np.concatenate([model.coef_.reshape(n_outputs, -1).T, intercepts], dtype=np.float32)


def scores_of(terms: Any, weights: Matrix) -> Matrix:
    """Return the scores of texts, ``(n_rows, n_outputs)``, given their terms and the `score_weights`."""
    scores: Matrix = (terms @ weights[:-1]).astype(np.float32)
    scores += weights[-1]
    return scores


def scores_by_others(terms: Any, outputs: Matrix, folds: Sequence[Fold]) -> Matrix:
    """Return the scores of training rows, ``(n_rows, n_outputs)``, each by weights from the rows of other folds."""
    scores = np.empty(outputs.shape, dtype=np.float32)
    for fold in folds:
        weights = score_weights(terms[fold.train], outputs[fold.train])
        scores[fold.validation] = scores_of(terms[fold.validation], weights)
    return scores
