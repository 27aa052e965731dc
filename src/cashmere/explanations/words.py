"""How predictions change when a word is taken out of texts.

The words that go most with the predictions are removed, one at a time, from texts that contain them, and the model
predicts these texts again. The mean change is what a word adds to the predictions, whatever columns are made of texts.

References
----------
Li, Monroe, Jurafsky (2016), Understanding neural networks through representation erasure, arXiv:1612.08220.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cashmere.base.arrays import AnyArray, Float64, FloatArray, IntArray
from cashmere.data.words import UNSPACED, WORD, pairs_as_words
from cashmere.explanations.unseen_rows import UnseenRows, chosen_outputs

_SHOWN, _TRIED = 12, 36
"""Number of words described, and of those that are removed from texts."""

_LEAST_TEXTS, _MOST_TEXTS = 5, 50
"""A word in fewer texts says little about others; from more, it is not removed."""

_MOST_WORDS, _MOST_OF_TEXT = 20_000, 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WordEffects:
    """How predictions depend on the words of a text column.

    Attributes
    ----------
    column : str
        Its name.
    words : tuple of str
        In lower case, those that change predictions most first.
    outputs : tuple of str
        With two classes, the second one; with more, all; for regression, the name of the target.
    change : (n_words, n_outputs) array
        Mean prediction for texts with the word minus that for the same texts without it: what the word adds.
    share : (n_words,) array
        Share of the rows whose text contains the word.
    """

    column: str
    words: tuple[str, ...]
    outputs: tuple[str, ...]
    change: Float64
    share: Float64


def word_effects(
    unseen: UnseenRows,
    column: str,
    text: int,
    base: AnyArray,
    outputs: Sequence[int] | None,
    names: tuple[str, ...],
    *,
    rng: np.random.Generator,
) -> WordEffects | None:
    """Measure what the words of a text column add to predictions.

    Parameters
    ----------
    unseen : UnseenRows
        Rows and models.
    column : str
        Name of the column.
    text : int
        Its number among the text columns.
    base : (n_rows, n_classes) or (n_rows,) array
        Predictions for the rows.
    outputs : sequence of int or None
        Classes whose probabilities to describe; None for regression.
    names : tuple of str
        Names of the outputs.
    rng : numpy.random.Generator
        Draws the texts from which a frequent word is removed.

    Returns
    -------
    WordEffects or None
        None if there is no word in at least five texts that is not in all.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    texts = unseen.texts[text]
    counter = CountVectorizer(
        token_pattern=WORD, binary=True, min_df=min(_LEAST_TEXTS, len(texts)), max_features=_MOST_WORDS
    )
    try:
        contains = counter.fit_transform(pairs_as_words(texts)).tocsc()
    except ValueError:  # no word is in enough texts
        return None
    known = chosen_outputs(base, outputs)
    association = _association(contains, known)
    tried = np.argsort(-association, kind="stable")[:_TRIED]
    tried = tried[association[tried] > 0]
    if not len(tried):
        return None
    words = counter.get_feature_names_out()[tried]
    rows = [_some(contains.indices[contains.indptr[j] : contains.indptr[j + 1]], rng) for j in tried]
    change = _changes(unseen, text, texts, words, rows, known, outputs)
    order = np.argsort(-np.abs(change).max(axis=1), kind="stable")[:_SHOWN]
    return WordEffects(
        column=column,
        words=tuple(str(word) for word in words[order]),
        outputs=names,
        change=change[order],
        share=np.diff(contains.indptr)[tried[order]] / len(texts),
    )


def words_of_text(text: str, predict: Callable[[list[str]], FloatArray]) -> list[tuple[str, float]]:
    """Measure what each different word of a text adds to its prediction, by taking it out.

    Parameters
    ----------
    text : str
        The text.
    predict : callable
        (texts) -> predictions, shape ``(n_texts,)``.

    Returns
    -------
    list of (str, float)
        Words in lower case and what they add, the most effective first. Of a long text, only the first 200 different
        words are tried.

    Examples
    --------
    >>> words_of_text("Good, very good!", lambda texts: np.array([float("ood" in each) for each in texts]))[:2]
    [('good', 1.0), ('very', 0.0)]
    """
    words = list(dict.fromkeys(re.findall(WORD, pairs_as_words([text.lower()])[0])))[:_MOST_OF_TEXT]
    if not words:
        return []
    known, *without = predict([text, *(_pattern(word).sub(" ", text) for word in words)])
    added = [(word, float(known - each)) for word, each in zip(words, without, strict=True)]
    return sorted(added, key=lambda one: -abs(one[1]))


def _association(contains: Any, predictions: Float64) -> Float64:
    """Return for each word by how many standard errors predictions for texts with it differ from all; the largest."""
    n_texts, n_rows = np.diff(contains.indptr).astype(np.float64), len(predictions)
    centred = predictions - predictions.mean(axis=0)
    deviation = np.abs(contains.T @ centred) / np.maximum(n_texts, 1)[:, None]
    scale = centred.std(axis=0)
    relative = np.divide(deviation, scale, out=np.zeros_like(deviation), where=scale > 0).max(axis=1)
    found: Float64 = relative * np.sqrt(n_texts * (1 - n_texts / n_rows))
    return found


def _pattern(word: str) -> re.Pattern[str]:
    """Return what finds a word; symbols, and letters of scripts without blanks, may stand next to others."""
    edge = "" if re.match(rf"[{UNSPACED}]|\W", word) else r"\b"
    return re.compile(f"{edge}{re.escape(word)}{edge}", re.IGNORECASE)


def _some(rows: IntArray, rng: np.random.Generator) -> IntArray:
    return rows if len(rows) <= _MOST_TEXTS else np.sort(rng.choice(rows, _MOST_TEXTS, replace=False))


def _changes(
    unseen: UnseenRows,
    text: int,
    texts: AnyArray,
    words: Sequence[str],
    rows: Sequence[IntArray],
    known: Float64,
    outputs: Sequence[int] | None,
) -> Float64:
    """Return the mean change of predictions by each word, shape ``(n_words, n_outputs)``."""
    without = [
        pattern.sub(" ", each) for pattern, own in zip(map(_pattern, words), rows, strict=True) for each in texts[own]
    ]
    every = np.concatenate(rows)
    columns = tuple(
        np.array(without, dtype=object) if i == text else of_column[every] for i, of_column in enumerate(unseen.texts)
    )
    change = known[every] - chosen_outputs(unseen.predict(rows=every, texts=columns), outputs)
    weight = np.ones(len(every)) if unseen.weight is None else np.asarray(unseen.weight, dtype=np.float64)[every]
    parts = np.cumsum([len(own) for own in rows])[:-1]
    return np.array(
        [
            np.average(each, axis=0, weights=w) if w.sum() > 0 else np.zeros(known.shape[1])
            for each, w in zip(np.split(change, parts), np.split(weight, parts), strict=True)
        ]
    )
