from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import TargetEncoder

from cashmere.data import preparation
from cashmere.data.inference import infer_schema
from cashmere.data.preparation import FoldEncoder
from cashmere.data.task import Encoding, TaskType

BINARY, MULTICLASS, REGRESSION = TaskType
ORDINAL, ONEHOT, TARGET = Encoding


def encode(frame, encoding, y=None, task_type=REGRESSION, later=None):
    schema = infer_schema(frame)
    coded = schema.code(frame)
    encoder = FoldEncoder.for_schema(encoding, schema)
    y = np.arange(len(frame), dtype=float) if y is None else y
    matrix = encoder.fit_transform(coded, y, task_type, 0)
    assert matrix.dtype == np.float32 and matrix.flags.c_contiguous and len(encoder.categorical) == matrix.shape[1]
    return matrix, encoder, None if later is None else encoder.transform(schema.code(later))


def table(n=60, seed=0, missing=0.1):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "n": rng.normal(size=n),
            "m": rng.normal(size=n),
            "two": rng.choice(["no", "yes"], n),
            "few": rng.choice(list("abcd"), n),
            "many": [f"v{i}" for i in rng.integers(0, 40, n)],
            "b": rng.random(n) < 0.5,
            "d": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 500, n), unit="D"),
            "t": [
                " ".join(rng.choice(["red", "green", "blue", "old", "new", "box", "jar"], 6)) + f" {i}"
                for i in range(n)
            ],
        }
    )
    return frame.mask(rng.random(frame.shape) < missing)


def test_ordinal_keeps_nan_and_marks_categories():
    frame = pd.DataFrame({"c": ["a", "b", None, "c"], "n": [1.0, np.nan, 3.0, 4.0], "two": list("xyxy")})
    matrix, encoder, _ = encode(frame, ORDINAL)
    np.testing.assert_array_equal(matrix, [[1, 0, 0], [np.nan, 1, 1], [3, np.nan, 0], [4, 2, 1]])
    assert encoder.categorical.tolist() == [False, True, False]


def test_levels_outside_the_training_rows_are_missing_in_ordinal():
    frame = pd.DataFrame({"c": ["a", "b", "c", "a"]})
    schema = infer_schema(frame)
    coded = schema.code(frame)
    encoder = FoldEncoder.for_schema(ORDINAL, schema)
    encoder.fit_transform(coded.take(np.array([0, 1, 3])), np.zeros(3), REGRESSION, 0)
    np.testing.assert_array_equal(encoder.transform(coded)[:, 0], [0, 1, np.nan, 0])


def test_onehot_has_a_column_per_level_and_zeros_for_the_unknown():
    frame = pd.DataFrame({"c": ["a", "b", "c", "a"], "two": list("xyxy")})
    later = pd.DataFrame({"c": ["c", "new", None], "two": ["y", "new", None]})
    matrix, _, unknown = encode(frame, ONEHOT, later=later)
    assert matrix.tolist() == [[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0], [1, 0, 0, 1]]
    assert unknown.tolist() == [[0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]


def test_missing_is_a_level_if_it_occurs_in_training():
    matrix, _, _ = encode(pd.DataFrame({"two": ["x", None, "y"]}), ONEHOT)
    assert matrix.tolist() == [[0, 0], [0, 1], [1, 0]]
    matrix, _, _ = encode(pd.DataFrame({"one": ["x", None, "x"]}), ONEHOT)
    assert matrix.shape == (3, 2) and matrix[:, 1].tolist() == [0, 1, 0]


@pytest.mark.parametrize("task", [BINARY, MULTICLASS, REGRESSION])
def test_more_than_twenty_levels_become_means_of_the_target(task):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"few": rng.choice(list("abc"), 200), "many": [f"v{i % 21:02}" for i in range(200)]})
    y = rng.normal(size=200) if task is REGRESSION else np.arange(200) % (2 if task is BINARY else 3)
    later = pd.DataFrame({"few": ["a", "b"], "many": ["new", "v20"]})
    matrix, encoder, unseen = encode(frame, ONEHOT, y=y, task_type=task, later=later)
    means, _, of_target = encode(frame[["many"]], TARGET, y=y, task_type=task, later=later)
    np.testing.assert_array_equal(matrix[:, 3:], means)  # no row sees its own target
    np.testing.assert_array_equal(unseen[:, 3:], of_target)
    assert not encoder.categorical.any()
    narrower, _, _ = encode(frame.assign(many=[f"v{i % 20:02}" for i in range(200)]), ONEHOT, y=y, task_type=task)
    assert narrower.shape == (200, 23)


def test_numbers_are_imputed_with_indicators_when_missing_is_not_rare():
    n = 200
    frame = pd.DataFrame({"rare": np.arange(n) * 1.0, "often": np.arange(n) * 2.0})
    frame.loc[0, "rare"] = np.nan
    frame.loc[:9, "often"] = np.nan
    matrix, _, _ = encode(frame, ONEHOT)
    assert matrix.shape == (n, 3) and matrix[0, 0] == 100 and matrix[0, 1] == frame["often"].median()
    assert matrix[:, 2].sum() == 10


def test_values_beyond_float32_are_clipped():
    matrix, _, _ = encode(pd.DataFrame({"n": [1e300, -1e300, 0.0]}), ORDINAL)
    assert np.isfinite(matrix).all() and matrix[0, 0] > 3e38


@pytest.mark.parametrize("encoding", Encoding)
def test_table_without_columns_becomes_zeros(encoding):
    matrix, _, later = encode(pd.DataFrame({"k": [1, 1, 1]}), encoding, later=pd.DataFrame({"k": [2]}))
    assert matrix.tolist() == [[0], [0], [0]] and later.tolist() == [[0]]


@pytest.mark.parametrize("encoding", Encoding)
def test_columns_missing_in_the_whole_fold_are_harmless(encoding):
    frame = pd.DataFrame({"n": [None, None, 1.0, 2.0], "c": [None, None, "a", "b"], "t": ["", "", *"xy"]})
    schema = infer_schema(frame)
    coded = schema.code(frame)
    encoder = FoldEncoder.for_schema(encoding, schema)
    encoder.fit_transform(coded.take(np.array([0, 1])), np.array([0, 1]), BINARY, 0)
    result = encoder.transform(coded)
    assert encoding == ORDINAL or np.isfinite(result).all()


@pytest.mark.parametrize("texts", [["?! .", "", "!", "?"], ["word"] * 4, ["a b c", "one", "", "two words here"]])
def test_strange_texts_are_harmless(texts):
    schema = infer_schema(pd.DataFrame({"t": [f"text number {i} of quite a few words" for i in range(4)]}))
    coded = schema.code(pd.DataFrame({"t": texts}))
    encoder = FoldEncoder.for_schema(ORDINAL, schema)
    matrix = encoder.fit_transform(coded, np.zeros(4), REGRESSION, 0)
    assert np.isfinite(matrix).all()
    np.testing.assert_allclose(encoder.transform(coded), matrix)


@pytest.mark.parametrize("n_texts", [1, 2])
def test_texts_become_components_and_then_scores(n_texts):
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(400)])
    frame = pd.DataFrame({f"t{k}": [" ".join(rng.choice(words, 9)) for _ in range(500)] for k in range(n_texts)})
    matrix, encoder, _ = encode(frame, ORDINAL)
    assert matrix.shape == (500, n_texts * 31)
    later = encoder.transform(infer_schema(frame).code(frame))
    np.testing.assert_array_equal(later[:, : n_texts * 30], matrix[:, : n_texts * 30])
    assert not np.isclose(later[:, n_texts * 30 :], matrix[:, n_texts * 30 :]).any(axis=1).all()


def test_encoders_of_earlier_versions_make_no_scores():
    frame = pd.DataFrame({"n": np.arange(40.0), "t": [f"some words about number {i % 7} or é{i}" for i in range(40)]})
    matrix, encoder, _ = encode(frame, ORDINAL, np.arange(40) % 2, BINARY)
    del encoder._weights
    encoder._n_outputs -= 1
    earlier = encoder.transform(infer_schema(frame).code(frame))
    np.testing.assert_array_equal(earlier, matrix[:, :-1])


@pytest.mark.parametrize(("limit", "value"), [("_MOST_SCORES", 3), ("_SCORE_TERMS", 159), ("_SCORE_TERMS", 1000)])
def test_too_many_scores_are_left_out(limit, value, monkeypatch):
    frame = pd.DataFrame({"t": [f"some words about number {i % 7} or é{i}" for i in range(40)]})
    matrix, _, _ = encode(frame, ORDINAL, np.arange(40) % 4, MULTICLASS)
    monkeypatch.setattr(preparation, limit, value)
    without, _, later = encode(frame, ORDINAL, np.arange(40) % 4, MULTICLASS, later=frame)
    np.testing.assert_array_equal(without, matrix[:, :-4])
    assert later.shape == without.shape


@pytest.mark.parametrize("task_type", TaskType)
def test_target_means_are_those_of_sklearn(task_type):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"c": rng.choice(list("abcde"), 80)})
    y = rng.normal(size=80) if task_type is REGRESSION else rng.integers(0, 2 if task_type is BINARY else 3, 80)
    kind = {BINARY: "binary", MULTICLASS: "multiclass", REGRESSION: "continuous"}[task_type]
    oracle = TargetEncoder(smooth="auto", target_type=kind).fit(frame, y)
    later = pd.DataFrame({"c": [*list("abcde"), "new"]})
    _, _, ours = encode(frame, TARGET, y, task_type, later=later)
    np.testing.assert_allclose(ours, oracle.transform(later), rtol=1e-5)


def test_target_means_of_many_classes_take_little_memory():
    n_rows, n_classes = 20_000, 100
    rng = np.random.default_rng(0)
    coded = (schema := infer_schema(frame := pd.DataFrame({"c": rng.choice(list("abc"), n_rows)}))).code(frame)
    y = np.arange(n_rows) % n_classes
    encoder = FoldEncoder.for_schema(TARGET, schema)
    tracemalloc.start()
    try:
        encoder.fit(coded.values, (), y, MULTICLASS, 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * n_rows * n_classes / 4  # their indicators would take four times as much


def test_no_training_row_sees_its_own_target():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": rng.choice(list("abc"), 50)})
    y = rng.normal(size=50)
    first, _, _ = encode(frame, TARGET, y)
    y[7] += 100
    second, _, _ = encode(frame, TARGET, y)
    assert second[7, 0] == first[7, 0] and not np.array_equal(first, second)


@pytest.mark.long
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 50),
    encoding=st.sampled_from(list(Encoding)),
    task_type=st.sampled_from(list(TaskType)),
)
def test_any_table_is_encoded_row_by_row_without_nan(seed, n, encoding, task_type):
    frame = table(n, seed, missing=0.2)
    schema = infer_schema(frame)
    coded = schema.code(frame)
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n) if task_type is REGRESSION else rng.integers(0, 2 if task_type is BINARY else 4, n)
    encoder = FoldEncoder.for_schema(encoding, schema)
    fitted = encoder.fit_transform(coded, y, task_type, seed)
    whole = encoder.transform(coded)
    assert encoding == ORDINAL or (np.isfinite(whole).all() and np.isfinite(fitted).all())
    for i in range(0, n, 7):
        np.testing.assert_allclose(encoder.transform(coded.take(np.array([i])))[0], whole[i], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("encoding", Encoding)
def test_encoder_survives_skops(encoding):
    frame = table()
    schema = infer_schema(frame)
    coded = schema.code(frame)
    encoder = FoldEncoder.for_schema(encoding, schema)
    encoder.fit_transform(coded, np.arange(60) % 3, MULTICLASS, 0)
    data = skops.io.dumps(encoder)
    untrusted = skops.io.get_untrusted_types(data=data)
    assert untrusted == ["cashmere.data.preparation.FoldEncoder"]
    back = skops.io.loads(data, trusted=untrusted)
    np.testing.assert_array_equal(back.transform(coded), encoder.transform(coded))
    np.testing.assert_array_equal(back.categorical, encoder.categorical)


@pytest.mark.parametrize("encoding", Encoding)
def test_one_row_takes_less_than_two_milliseconds(encoding):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"n{i}": rng.normal(size=200) for i in range(10)})
    frame = frame.assign(**{f"c{i}": rng.choice(list("abcdef"), 200) for i in range(10)})
    schema = infer_schema(frame)
    coded = schema.code(frame)
    encoder = FoldEncoder.for_schema(encoding, schema)
    encoder.fit_transform(coded, np.arange(200) % 2, BINARY, 0)
    row = coded.take(np.array([5]))
    seconds = []
    for _ in range(50):
        clock = time.perf_counter()
        encoder.transform(row)
        seconds.append(time.perf_counter() - clock)
    assert min(seconds) < 0.002


def test_training_rows_learn_from_other_groups():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 20, 400)
    y = rng.normal(size=20)[groups]
    texts = [f"all about the thing{g} and more, no {i}" for i, g in enumerate(groups)]
    frame = pd.DataFrame({"c": [f"level {g}" for g in groups], "t": texts})
    schema = infer_schema(frame)
    coded = schema.code(frame)
    for_groups, for_rows = (FoldEncoder.for_schema(TARGET, schema) for _ in range(2))
    texts = coded.take_texts(slice(None))
    by_groups = for_groups.fit(coded.values, texts, y, REGRESSION, 0, groups=groups)
    by_rows = for_rows.fit(coded.values, texts, y, REGRESSION, 0)
    values = {}
    for name, encoder, others in (("groups", for_groups, by_groups), ("rows", for_rows, by_rows)):
        matrix = encoder.transform(coded)
        others.overwrite(matrix, coded.values)
        values[name] = [abs(np.corrcoef(matrix[:, j], y)[0, 1]) for j in (0, -1)]
    assert min(values["rows"]) > 0.8 > 0.5 > max(values["groups"])
