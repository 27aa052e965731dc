from __future__ import annotations

import numpy as np

from cashmere.execution.file_bundle import FileBundle
from cashmere.execution.messages import pack


def test_files_are_written_as_they_were_read(tmp_path):
    contents = {"a.txt": b"text", "below/empty": b"", "below/b.bin": b"\0\0x\0"}
    for name, content in contents.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    FileBundle.read({name: tmp_path / name for name in contents}).write(tmp_path / "copy")
    assert {name: (tmp_path / "copy" / name).read_bytes() for name in contents} == contents


def test_zeros_are_neither_sent_nor_stored(tmp_path):
    matrix = np.lib.format.open_memmap(tmp_path / "matrix.npy", "w+", np.float32, (20_000, 1000))
    matrix[12_345] = 7
    matrix.flush()
    bundle = FileBundle.read({"matrix.npy": tmp_path / "matrix.npy"})
    assert len(pack(bundle)) < 40 * 2**20 < matrix.nbytes
    bundle.write(tmp_path / "copy")
    copy = tmp_path / "copy" / "matrix.npy"
    assert copy.stat().st_size == (tmp_path / "matrix.npy").stat().st_size
    assert copy.stat().st_blocks * 512 < 40 * 2**20
    np.testing.assert_array_equal(np.load(copy, mmap_mode="r"), matrix)
