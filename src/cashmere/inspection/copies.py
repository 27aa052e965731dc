"""Rows that are equal in all columns, and those among them whose targets differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from cashmere.base.arrays import AnyArray
from cashmere.data.schema import CodedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """Equal rows.

    Attributes
    ----------
    n_rows : int
        Number of rows that occur more than once.
    n_surplus : int
        How many of them would be removed if one of each were kept.
    n_contradicted : int
        Number of rows whose class differs from that of most of their copies: no model of these columns can classify all
        of them correctly. 0 for regression.
    """

    n_rows: int
    n_surplus: int
    n_contradicted: int


def count_copies(coded: CodedTable, y: AnyArray | None = None) -> Copies:
    """Count equal rows.

    Parameters
    ----------
    coded : CodedTable
        The columns that are used.
    y : (n_rows,) array of int, optional
        Class codes; without them no row is contradicted.

    Examples
    --------
    >>> from cashmere.data.inference import infer_schema
    >>> frame = pd.DataFrame({"size": [1, 1, 1, 2]})
    >>> count_copies(infer_schema(frame).code(frame), np.array([0, 0, 1, 1]))
    Copies(n_rows=3, n_surplus=2, n_contradicted=1)
    """
    group = np.unique(_digests(coded), return_inverse=True)[1]
    sizes = np.bincount(group)
    n_contradicted = 0
    if y is not None:
        pairs, counts = np.unique(group * (int(y.max()) + 1) + y, return_counts=True)
        most = np.zeros(len(sizes), dtype=np.int64)
        np.maximum.at(most, pairs // (int(y.max()) + 1), counts)
        n_contradicted = int((sizes - most).sum())
    return Copies(n_rows=int(sizes[sizes > 1].sum()), n_surplus=int((sizes - 1).sum()), n_contradicted=n_contradicted)


def _digests(coded: CodedTable) -> AnyArray:
    """Return a 64-bit hash of each row; different rows collide in less than one of a million tables."""
    columns = [*coded.values.T, *coded.take_texts(slice(None))]
    digests = np.zeros(len(coded), dtype=np.uint64)
    for column in columns:
        with np.errstate(over="ignore"):
            digests = digests * np.uint64(0x9E3779B97F4A7C15) + pd.util.hash_array(np.asarray(column))
    return digests
