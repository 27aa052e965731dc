"""Made-up tables of any length, as a folder that all benchmarks read with ``--data``.

    python -m benchmarks large --out large --rows 20000 200000 1000000 5000000

Each has 25 numbers, five columns of 50 categories and two classes. The classes depend on interactions: of numbers, of
categories, and of both. On unseen rows the log loss of the frequencies is 0.693, of a logistic regression 0.684, of
LightGBM with 600 rounds on 100,000 rows 0.549, and of the true probabilities 0.462. Rows are drawn in blocks, each with
its own seed: a longer table begins with the rows of a shorter one.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.tables.manifest import read_manifest
from cashmere.base.arrays import AnyArray, BoolArray, FloatArray
from cashmere.base.files import write_atomically

N_NUMBERS = 25
N_CATEGORIES = 5
N_LEVELS = 50

_BLOCK = 100_000
"""Rows drawn at a time, so that memory stays small."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", nargs="+", type=int, default=[20_000, 200_000, 1_000_000], help="one table for each")
    parser.add_argument("--seed", type=int, default=0, help="of effects and rows")
    parser.add_argument("--out", type=Path, required=True, help="folder; tables it already holds are kept")


def main(arguments: argparse.Namespace) -> None:
    """Write the tables that the folder lacks."""
    folder = arguments.out
    folder.mkdir(parents=True, exist_ok=True)
    manifest = folder / "manifest.json"
    there = read_manifest(folder) if manifest.exists() else {}
    entries = json.loads(manifest.read_text()) if there else []
    for n_rows in arguments.rows:
        if n_rows < 1:
            raise SystemExit(f"--rows {n_rows}: expected at least 1.")
        name = f"large_{n_rows}" if arguments.seed == 0 else f"large_{n_rows}_{arguments.seed}"
        if name in there:
            print(f"{name}: already there")
            continue
        write_table(folder / f"{name}.parquet", n_rows, seed=arguments.seed)
        entries.append({"name": name, "file": f"{name}.parquet", "task": "binary", "n_rows": n_rows})
        write_atomically(manifest, json.dumps(entries, indent=1).encode())
        print(f"{name}: written")


def write_table(path: Path, n_rows: int, *, seed: int = 0) -> None:
    """Write one table as Parquet."""
    names = [f"number_{i}" for i in range(N_NUMBERS)], [f"category_{i}" for i in range(N_CATEGORIES)]
    levels = pa.array([f"level_{i}" for i in range(N_LEVELS)])
    writer: pq.ParquetWriter | None = None
    try:
        for start in range(0, n_rows, _BLOCK):
            numbers, codes, y = draw(min(_BLOCK, n_rows - start), block=start // _BLOCK, seed=seed)
            columns = dict(zip(names[0], map(pa.array, numbers.T), strict=True))
            for name, code in zip(names[1], codes.T, strict=True):
                columns[name] = pa.DictionaryArray.from_arrays(pa.array(code), levels)
            block = pa.table({**columns, "target": pa.array(np.where(y, "yes", "no"))})
            writer = writer or pq.ParquetWriter(path, block.schema)
            writer.write_table(block)
    finally:
        if writer is not None:
            writer.close()


def draw(n_rows: int, *, block: int = 0, seed: int = 0) -> tuple[FloatArray, AnyArray, BoolArray]:
    """Draw a block of rows.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    block : int
        Number of the block; blocks are independent.
    seed : int
        Seed of the effects of categories, and of the rows.

    Returns
    -------
    numbers : (n_rows, 25) float32 array
        Standard normal.
    codes : (n_rows, 5) int8 array
        Uniform in 0 .. 49.
    y : (n_rows,) bool array
        The class.
    """
    effects = np.random.default_rng(seed).normal(size=(N_CATEGORIES, N_LEVELS))
    rng = np.random.default_rng([seed, block])
    x = rng.normal(size=(_BLOCK, N_NUMBERS)).astype(np.float32)[:n_rows]
    codes = rng.integers(N_LEVELS, size=(_BLOCK, N_CATEGORIES), dtype=np.int8)[:n_rows]
    chance = rng.random(_BLOCK)[:n_rows]
    return x, codes, chance < 1 / (1 + np.exp(-_log_odds(x, np.take_along_axis(effects, codes.T.astype(int), axis=1))))


def _log_odds(x: FloatArray, effect: FloatArray) -> FloatArray:
    """Return the log odds for numbers ``(n, 25)`` and the effects ``(5, n)`` of the categories."""
    total: FloatArray = (
        1.3 * x[:, 0] * x[:, 1]
        + 1.3 * np.sin(2 * x[:, 2]) * np.sign(x[:, 3])
        + 1.0 * (np.abs(x[:, 4]) - 0.8)
        + 0.9 * effect[0] * x[:, 5]
        + 0.9 * effect[1] * effect[2]
        + 0.4 * effect[3]
        + 0.2 * x[:, 6]
    )
    return total
