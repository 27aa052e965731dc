from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cashmere.base.array_files import write_arrays
from cashmere.data.texts import PackedTexts, map_texts
from cashmere.exceptions import CorruptStoreError
from cashmere.storage.directory import TrainingRows

ANY_TEXT = st.text(st.characters(codec=None), max_size=8)  # lone surrogates and NUL included


@given(st.lists(ANY_TEXT, max_size=6), st.data())
def test_any_texts_come_back_in_any_order(texts, data):
    packed = PackedTexts.pack(texts)
    assert len(packed) == len(texts) and packed[:].tolist() == texts
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=6)) if texts else []
    assert packed[np.array(rows, dtype=np.int64)].tolist() == [texts[row] for row in rows]


def test_texts_are_mapped_from_the_file_that_holds_them(tmp_path):
    texts = np.array(["short", "", "x" * 1000 + "\0"], dtype=object)
    rows = TrainingRows(values=np.zeros((3, 1)), texts=(texts,), y=np.arange(3), weight=None)
    rows.save(tmp_path / "table.npz")
    assert (tmp_path / "table.npz").stat().st_size < 3000  # not as if every text were as long as the longest
    assert map_texts(tmp_path / "table.npz", 0)[np.array([2, 0])].tolist() == [texts[2], "short"]
    read = TrainingRows.read(tmp_path / "table.npz")
    assert read.texts[0].tolist() == texts.tolist()
    for mapped in (read.mapped_from(tmp_path / "table.npz"), TrainingRows.read(tmp_path / "table.npz", mapped=True)):
        assert isinstance(mapped.texts[0], PackedTexts) and mapped.texts[0][:2].tolist() == ["short", ""]
        assert isinstance(mapped.values, np.memmap)


def test_texts_of_earlier_versions_are_read(tmp_path):
    np.savez(tmp_path / "table.npz", values=np.zeros((2, 1)), y=np.arange(2), text0=np.array(["some", "words"]))
    for mapped in (False, True):
        assert TrainingRows.read(tmp_path / "table.npz", mapped=mapped).texts[0].tolist() == ["some", "words"]


CONTENT = np.frombuffer(b"abc", np.uint8)


@pytest.mark.parametrize(
    ("content", "ends"),
    [
        (CONTENT, np.array([2, 1, 3])),
        (CONTENT, np.array([1, 2])),
        (CONTENT, np.array([-1, 3])),
        (CONTENT, np.array([1, 4])),
        (CONTENT, np.array([1.0, 3.0])),
        (CONTENT.astype(np.int64), np.array([1, 3])),
        (CONTENT, np.array([], dtype=np.int64)),
        (np.array([255, 255, 255], dtype=np.uint8), np.array([1, 3])),
    ],
)
def test_arrays_that_are_not_texts_are_refused(tmp_path, content, ends):
    arrays = {"values": np.zeros((2, 1)), "y": np.arange(2), "text0.content": content, "text0.ends": ends}
    with (tmp_path / "table.npz").open("wb") as file:
        write_arrays(file, arrays)
    with pytest.raises(CorruptStoreError, match=r"table\.npz"):
        TrainingRows.read(tmp_path / "table.npz")
