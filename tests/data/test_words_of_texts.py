"""Texts in scripts without blanks between words."""

import numpy as np
import pandas as pd
import pytest

from cashmere.data.column import ColumnKind
from cashmere.data.inference import infer_schema
from cashmere.data.preparation import FoldEncoder
from cashmere.data.task import Encoding, TaskType
from cashmere.data.words import pairs_as_words

CHINESE = "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种"


def sentences(n, seed=0):
    rng = np.random.default_rng(seed)
    good = rng.random(n) < 0.5
    texts = ["".join(rng.choice(list(CHINESE), 20)) for _ in range(n)]
    return [text[:9] + ("好吃" if each else "难吃") + text[9:] for text, each in zip(texts, good, strict=True)], good


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("很好吃", "很好 好吃"),
        ("好", "好"),
        ("wifi很好", "wifi 很好"),
        ("très bon", "très bon"),
        ("ขนม", "ขน นม"),
    ],
)
def test_pairs_of_letters_become_words(text, expected):
    assert " ".join(pairs_as_words([text])[0].split()) == expected


def test_sentences_without_blanks_are_text_and_names_are_not():
    texts, _ = sentences(100)
    names = ["".join(np.random.default_rng(i).choice(list(CHINESE), 3)) for i in range(100)]
    schema = infer_schema(pd.DataFrame({"t": texts, "n": names}))
    assert [column.kind for column in schema.columns] == [ColumnKind.TEXT, ColumnKind.CATEGORICAL]


def test_scores_tell_sentences_apart_by_a_word_inside():
    texts, good = sentences(400)
    frame = pd.DataFrame({"t": texts[:300]})
    encoder = FoldEncoder.for_schema(Encoding.ORDINAL, schema := infer_schema(frame))
    encoder.fit_transform(schema.code(frame), good[:300].astype(int), TaskType.BINARY, 0)
    score = encoder.transform(schema.code(pd.DataFrame({"t": texts[300:]})))[:, -1]
    assert score[good[300:]].min() > score[~good[300:]].max()


def test_emojis_and_symbols_are_words():
    rng = np.random.default_rng(0)
    for signs in (["😀", "😡"], ["C++", "C#"], ["a", "b"]):
        texts = [" ".join([*rng.choice(["word", "other", "more", "text"], 6), sign]) for sign in signs * 150]
        frame = pd.DataFrame({"t": texts})
        encoder = FoldEncoder.for_schema(Encoding.ORDINAL, schema := infer_schema(frame))
        score = encoder.fit_transform(schema.code(frame), np.arange(300) % 2, TaskType.BINARY, 0)[:, -1]
        assert score[1::2].min() > score[::2].max()
