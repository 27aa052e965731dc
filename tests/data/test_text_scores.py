from io import BytesIO
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline, make_union

from cashmere.data.inference import infer_schema
from cashmere.data.preparation import FoldEncoder
from cashmere.data.task import Encoding, TaskType
from cashmere.data.text_scores import scored_outputs

BINARY, MULTICLASS, REGRESSION = TaskType.BINARY, TaskType.MULTICLASS, TaskType.REGRESSION
N_SCORES = {BINARY: 1, MULTICLASS: 3, REGRESSION: 1}


def texts(n, seed=0):
    """Return a table of random texts, and for each how often one rare word is in it."""
    rng = np.random.default_rng(seed)
    words = np.array([f"word{i}" for i in range(300)])
    drawn = rng.choice(words, (n, 30))
    return pd.DataFrame({"t": [" ".join(row) for row in drawn]}), (drawn == "word17").sum(axis=1)


def targets(counts, task_type):
    return {BINARY: counts > 0, MULTICLASS: np.minimum(counts, 2), REGRESSION: counts * 0.5 + 3}[task_type].astype(
        float if task_type is REGRESSION else int
    )


def fitted(frame, y, task_type):
    schema = infer_schema(frame)
    encoder = FoldEncoder.for_schema(Encoding.ORDINAL, schema)
    return encoder, encoder.fit_transform(schema.code(frame), y, task_type, 0)


@pytest.mark.parametrize("task_type", TaskType)
def test_scores_of_new_texts_are_ridge_regressions_on_their_words(task_type):
    frame, counts = texts(400)
    later, _ = texts(50, seed=1)
    y = targets(counts, task_type)
    encoder, _ = fitted(frame, y, task_type)
    scores = encoder.transform(infer_schema(frame).code(later))[:, -N_SCORES[task_type] :]
    parts = HashingVectorizer(analyzer="char_wb", ngram_range=(4, 4), n_features=2**15, alternate_sign=False, norm=None)
    words = make_union(
        TfidfVectorizer(token_pattern=r"\w+|[^\w\s.,]", sublinear_tf=True),
        make_pipeline(parts, TfidfTransformer(sublinear_tf=True)),
    )
    clipped = y.clip(*np.quantile(y, [0.01, 0.99]))[:, None]
    outputs = y[:, None] == np.arange(3) if task_type is MULTICLASS else clipped
    oracle = Ridge(solver="lsqr", tol=1e-10).fit(words.fit_transform(frame["t"]), outputs)
    expected = oracle.predict(words.transform(later["t"])).reshape(50, -1)
    for j in range(N_SCORES[task_type]):
        assert np.corrcoef(scores[:, j], expected[:, j])[0, 1] > 0.9999
    if task_type is MULTICLASS:  # not shifted or scaled
        np.testing.assert_allclose(scores, expected, atol=1e-3)


@pytest.mark.parametrize("task_type", TaskType)
def test_no_training_row_sees_its_own_target_in_its_score(task_type):
    frame, counts = texts(200)
    y = targets(counts, task_type)
    other = y.copy()
    i, j = np.flatnonzero(counts == 0)[0], np.flatnonzero(counts == 1)[0]
    other[[i, j]] = y[[j, i]]  # keeps the folds of regressions, and the scale
    if task_type is not REGRESSION:  # folds depend on the classes: scores may change a little, not towards the target
        assert fitted(frame, other, task_type)[1][i, -1] < 0.5
        return
    first, second = (fitted(frame, values, task_type)[1][:, -1] for values in (y, other))
    assert not np.array_equal(first, second)
    encoder, _ = fitted(frame, other, task_type)
    seen = encoder.transform(infer_schema(frame).code(frame))[:, -1]
    assert abs(seen[i] - first[i]) > 10 * abs(second[i] - first[i])


def test_a_rare_word_decides_through_the_score_and_not_through_components():
    frame, counts = texts(1000)
    _, matrix = fitted(frame, targets(counts, BINARY), BINARY)
    correlations = np.abs(np.corrcoef(matrix.T, counts)[-1, :-1])
    assert correlations[-1] > 0.6 > 2 * correlations[:30].max()


@pytest.mark.parametrize("y", [[0.0] * 4, [5.0] * 4, [1e308, -1e308, 1e308, 0.0], [1e-310, 0, 0, 0], [7.0, 1, 2, 3]])
def test_any_values_are_scaled(y):
    outputs = scored_outputs(np.array(y), REGRESSION)
    assert outputs.shape == (4, 1) and np.isfinite(outputs).all()
    assert np.abs(outputs).max() in (0, pytest.approx(1))
    assert outputs.mean() == pytest.approx(0, abs=1e-6)


def test_a_wild_value_does_not_decide():
    frame, counts = texts(300)
    y = counts.astype(float)
    y[5] = 1e9
    encoder, _ = fitted(frame, y, REGRESSION)
    later, counts = texts(300, seed=1)
    scores = encoder.transform(infer_schema(frame).code(later))[:, -1]
    assert np.corrcoef(scores, counts)[0, 1] > 0.5


def test_files_of_encoders_hold_a_list_of_words_and_not_an_array_for_each():
    frame, counts = texts(400)
    encoder, _ = fitted(frame, targets(counts, BINARY), BINARY)
    with ZipFile(BytesIO(skops.io.dumps(encoder))) as archive:
        assert len(archive.namelist()) < 30
