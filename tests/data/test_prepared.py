from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cashmere.data.inference import infer_schema
from cashmere.data.preparation import FoldEncoder
from cashmere.data.prepared import PreparedFolds, is_complete, prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.task import Encoding, TaskType
from cashmere.exceptions import CorruptStoreError, RunDirectoryError
from cashmere.storage.directory import TrainingRows


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"n": rng.normal(size=30), "c": rng.choice(list("abc"), 30)})
    y = np.arange(30) % 2
    return infer_schema(frame).code(frame), y, make_folds(y, TaskType.BINARY, "3fold", seed=0)


def prepare(folder, parts, encodings=tuple(Encoding), **kwargs):
    coded, y, folds = parts
    return prepare_folds(folder, coded, y, folds, encodings, task_type=TaskType.BINARY, seed=1, **kwargs)


def test_what_is_written_is_loaded(tmp_path, parts):
    coded, y, folds = parts
    weight = np.linspace(0.5, 1.5, 30)
    prepared, encoders = prepare(tmp_path / "prepared", parts, weight=weight)
    assert is_complete(tmp_path / "prepared") and prepared.n_folds == 3
    assert prepared.encodings == tuple(Encoding) and prepared.n_classes == 2
    np.testing.assert_array_equal(prepared.y, y)
    np.testing.assert_array_equal(prepared.weight, weight)
    np.testing.assert_array_equal(prepared.validation_rows, np.arange(30))
    for k, fold in enumerate(folds):
        np.testing.assert_array_equal(prepared.folds[k].train, fold.train)
        for encoding in Encoding:
            train, valid, categorical = prepared.load(k, encoding)
            assert isinstance(train, np.memmap) and train.mode == "c" and train.flags.c_contiguous
            assert train.dtype == np.float32 and len(train) == len(fold.train)
            np.testing.assert_array_equal(valid, encoders[k][encoding].transform(coded.take(fold.validation)))
            np.testing.assert_array_equal(categorical, encoders[k][encoding].categorical)


def test_same_seed_writes_the_same_bytes(tmp_path, parts):
    prepare(tmp_path / "a", parts)
    prepare(tmp_path / "b", parts)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_prepared_folds_are_small_and_picklable(tmp_path, parts):
    prepared, _ = prepare(tmp_path, parts)
    prepared.load(0, Encoding.ONEHOT)
    assert len(prepared.y) == 30
    data = pickle.dumps(prepared)
    assert len(data) < 1000 and pickle.loads(data).n_folds == 3


def test_target_shares_files_without_categories_of_three_levels(tmp_path):
    frame = pd.DataFrame({"n": np.arange(10.0), "two": list("ab") * 5})
    y = np.arange(10) % 2
    folds = make_folds(y, TaskType.BINARY, "2fold", seed=0)
    prepared, encoders = prepare(tmp_path, (infer_schema(frame).code(frame), y, folds), [Encoding.TARGET])
    assert not list(tmp_path.glob("*target*")) and encoders[0].keys() == {Encoding.TARGET}
    assert prepared.encodings == (Encoding.TARGET,) and prepared.load(1, Encoding.TARGET)[0].shape == (5, 2)


def test_incomplete_folders_are_recognised(tmp_path, parts):
    assert not is_complete(tmp_path / "nothing")
    with pytest.raises(RunDirectoryError, match="holds no prepared folds"):
        PreparedFolds(tmp_path / "nothing")
    prepared, _ = prepare(tmp_path, parts)
    (tmp_path / "fold1-onehot-train.npy").unlink()
    assert not is_complete(tmp_path)
    with pytest.raises(CorruptStoreError, match="Prepare the folds again"):
        prepared.load(1, Encoding.ONEHOT)
    (tmp_path / "prepared.json").write_text("{")
    assert not is_complete(tmp_path)
    with pytest.raises(CorruptStoreError, match="damaged"):
        PreparedFolds(tmp_path)


def test_writing_into_a_loaded_matrix_never_reaches_the_file(tmp_path):
    """Some learners need writable arrays (forests with NaN refused read-only ones); the folds must survive that."""
    frame = pd.DataFrame({"x": np.arange(20.0), "y": np.arange(20.0) ** 2})
    coded = infer_schema(frame).code(frame)
    target = np.arange(20) % 2
    folds = make_folds(target, TaskType.BINARY, "2fold", seed=0)
    prepared, _ = prepare_folds(tmp_path, coded, target, folds, [Encoding.ORDINAL], task_type=TaskType.BINARY, seed=0)
    matrix, _, _ = prepared.load(0, Encoding.ORDINAL)
    before = matrix.copy()
    matrix[:] = -1
    np.testing.assert_array_equal(prepared.load(0, Encoding.ORDINAL)[0], before)


def test_rungs_are_leading_slices_with_the_same_validation_rows(tmp_path, parts):
    shares = (1 / 9, 1 / 3, 1.0)
    prepared, _ = prepare(tmp_path, parts, rungs=shares)
    assert prepared.rungs == shares
    for k, fold in enumerate(parts[2]):
        np.testing.assert_array_equal(np.sort(prepared.train_rows(k)), fold.train)
        assert not np.array_equal(prepared.train_rows(k), fold.train)
        np.testing.assert_array_equal(prepared.folds[k].train, prepared.train_rows(k))
        for encoding in Encoding:
            everything, valid, categorical = prepared.load(k, encoding)
            for share, n_rows in zip(shares, (2, 7, 20), strict=True):
                train, same_valid, same_categorical = prepared.load(k, encoding, share)
                assert len(train) == len(prepared.train_rows(k, share)) == n_rows
                np.testing.assert_array_equal(train, everything[:n_rows])
                np.testing.assert_array_equal(same_valid, valid)
                np.testing.assert_array_equal(same_categorical, categorical)
            encoded = prepared.load(k, Encoding.ORDINAL)[0]
            np.testing.assert_array_equal(encoded[:, 0], parts[0].values[prepared.train_rows(k), 0].astype(np.float32))


def test_with_one_rung_rows_keep_their_order(tmp_path, parts):
    prepared, _ = prepare(tmp_path, parts)
    assert prepared.rungs == (1.0,)
    for k, fold in enumerate(parts[2]):
        np.testing.assert_array_equal(prepared.train_rows(k), fold.train)


# ---------------------------------------------------------------- rows encoded on demand

SHARES = (1 / 9, 1 / 3, 1.0)


@pytest.fixture
def late(tmp_path, parts):
    """The same folds, encoded at once and encoded late from a file."""
    coded = replace(parts[0], values=np.asfortranarray(parts[0].values, dtype=np.float32))
    np.savez(tmp_path / "table.npz", values=coded.values)
    at_once, encoders = prepare(tmp_path / "at_once", (coded, *parts[1:]), rungs=SHARES)
    prepared, late_encoders = prepare(
        tmp_path / "late", (coded, *parts[1:]), rungs=SHARES, table=tmp_path / "table.npz"
    )
    return at_once, encoders, prepared, late_encoders


def test_late_rows_are_those_of_encoding_at_once(late):
    at_once, encoders, prepared, late_encoders = late
    for fold in range(3):
        for encoding in Encoding:
            for share in SHARES:
                for loaded, expected in zip(
                    prepared.load(fold, encoding, share), at_once.load(fold, encoding, share), strict=True
                ):
                    np.testing.assert_array_equal(loaded, expected)
            assert encoders[fold][encoding].__dict__.keys() == late_encoders[fold][encoding].__dict__.keys()
            for a, b in zip(encoders[fold][encoding]._tables, late_encoders[fold][encoding]._tables, strict=True):
                np.testing.assert_array_equal(a, b)


def test_files_are_all_that_another_machine_needs(late, tmp_path):
    at_once, _, prepared, _ = late
    for name, path in prepared.files().items():
        copy = tmp_path / "elsewhere" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    moved = PreparedFolds(tmp_path / "elsewhere" / "late")
    for loaded, expected in zip(moved.load(0, Encoding.TARGET), at_once.load(0, Encoding.TARGET), strict=True):
        np.testing.assert_array_equal(loaded, expected)
    assert not np.load(prepared.folder / "fold0-target-train.npy")[2:].any()


def test_only_the_smallest_rung_is_encoded_in_advance(late):
    prepared = late[2]
    stored = [np.load(prepared.folder / f"fold0-{encoding}-train.npy") for encoding in Encoding]
    assert all(matrix[:2].any() and not matrix[2:].any() for matrix in stored)
    prepared.load(0, Encoding.ORDINAL, 1 / 3)
    assert json.loads((prepared.folder / "fold0-ordinal-train.json").read_bytes()) == {"rows": 7}
    assert not np.load(prepared.folder / "fold0-onehot-train.npy")[2:].any()


def test_rows_from_which_an_encoder_has_not_learned_get_its_own_means(tmp_path, parts, monkeypatch):
    monkeypatch.setattr("cashmere.data.prepared._LEARNING_ROWS", 12)
    coded = parts[0]
    np.savez(tmp_path / "table.npz", values=coded.values)
    prepared, encoders = prepare(tmp_path / "late", parts, rungs=SHARES, table=tmp_path / "table.npz")
    rows = prepared.train_rows(0)
    train, plain = prepared.load(0, Encoding.TARGET)[0], encoders[0][Encoding.TARGET].transform(coded.take(rows))
    np.testing.assert_array_equal(train[12:], plain[12:])
    assert not np.array_equal(train[:12], plain[:12])
    expected = FoldEncoder.for_schema(Encoding.TARGET, coded.schema)
    seed = int(np.random.SeedSequence([1, 0]).generate_state(1)[0])
    first = expected.fit_transform(coded.take(rows[:12]), parts[1][rows[:12]], TaskType.BINARY, seed)
    np.testing.assert_array_equal(train[:12], first)


@pytest.fixture
def with_texts():
    frame = pd.DataFrame({"n": np.arange(60.0), "t": [f"some words about number {i % 7} or é{i}" for i in range(60)]})
    coded, y = infer_schema(frame).code(frame), np.arange(60) % 2
    return coded, y, make_folds(y, TaskType.BINARY, "2fold", seed=0)


def test_texts_are_encoded_late_as_at_once(tmp_path, with_texts):
    coded, y, _ = with_texts
    TrainingRows(values=coded.values, texts=coded.texts, y=y, weight=None).save(tmp_path / "table.npz")
    at_once, encoders = prepare(tmp_path / "at_once", with_texts, rungs=SHARES)
    late, late_encoders = prepare(tmp_path / "late", with_texts, rungs=SHARES, table=tmp_path / "table.npz")
    n_first = len(late.train_rows(0, SHARES[0]))
    assert not np.load(late.folder / "fold0-onehot-train.npy")[n_first:].any()
    other = PreparedFolds(late.folder)  # as in a worker, which learns the words separately
    for folds in (other, late):
        for encoding in Encoding:
            for share in SHARES:
                for loaded, expected in zip(
                    folds.load(1, encoding, share), at_once.load(1, encoding, share), strict=True
                ):
                    np.testing.assert_array_equal(loaded, expected)
    for encoding in Encoding:
        a, b = (fold[1][encoding]._vectorizers[0] for fold in (encoders, late_encoders))
        assert a.vocabulary_ == b.vocabulary_


def test_words_are_learned_once_for_all_forms_and_from_a_bounded_number_of_texts(tmp_path, with_texts, monkeypatch):
    monkeypatch.setattr("cashmere.data.prepared._LEARNING_TEXTS", 10)
    coded, y, _ = with_texts
    TrainingRows(values=coded.values, texts=coded.texts, y=y, weight=None).save(tmp_path / "table.npz")
    learned = []
    learn = FoldEncoder._fit_texts

    def counted(self, texts, *arguments):
        learned.append(len(texts[0]))
        return learn(self, texts, *arguments)

    monkeypatch.setattr(FoldEncoder, "_fit_texts", counted)
    prepare(tmp_path / "late", with_texts, rungs=SHARES, table=tmp_path / "table.npz")
    prepare(tmp_path / "at_once", with_texts, rungs=SHARES)
    assert learned == [10, 10, 30, 30]  # for each of two folds


def test_an_encoding_has_the_largest_rung_that_is_small_enough(tmp_path, parts):
    prepared, _ = prepare(tmp_path, parts, rungs=SHARES, largest_matrix_mib=7 * 2 * 4 / 2**20)
    assert prepared.largest_share[Encoding.ORDINAL] == 1 / 3  # 7 rows of 2 columns of 4 bytes
    assert prepared.largest_share[Encoding.ONEHOT] == 1 / 9  # 4 columns
    assert prepare(tmp_path, parts)[0].largest_share == dict.fromkeys(Encoding, 1.0)
