"""Nodes of scikit-learn's trees in narrower types: smaller on disk, with the same predictions bit for bit.

scikit-learn takes 64 bytes for a node and 8 for each of its values. Numbers of nodes, columns and rows need less; a
threshold is compared with float32 only; the values of most nodes are whole numbers, of rows or sums of targets, divided
by the number of their rows. With two classes that is 26 bytes instead of 80.
"""

from __future__ import annotations

import numpy as np

from cashmere.base.arrays import AnyArray, FloatArray

_NARROW = tuple(map(np.dtype, ("i1", "i2", "i4", "f4")))
"""Types to try, the narrowest first."""

_THRESHOLD, _WEIGHT = "threshold", "weighted_n_node_samples"


def narrow_nodes(nodes: AnyArray) -> AnyArray:
    """Return the same nodes in the narrowest types that hold them exactly; thresholds are rounded down to float32.

    Parameters
    ----------
    nodes : (n_nodes,) record array
        From the state of `sklearn.tree._tree.Tree`; ``astype`` of its type restores them.

    Notes
    -----
    For every x in float32, x <= t is the same as x <= t', where t' is the largest float32 that is not above t.
    """
    names = nodes.dtype.names or ()
    columns = {name: nodes[name] for name in names} | {_THRESHOLD: _rounded_down(nodes[_THRESHOLD])}
    narrow = np.empty(len(nodes), dtype=[(name, _narrowest(columns[name])) for name in names])
    for name in names:
        narrow[name] = columns[name]
    return narrow


def whole_sums(values: FloatArray, nodes: AnyArray) -> AnyArray | None:
    """Return the values of nodes times the weight of their rows, if these are integers that reproduce the values.

    Parameters
    ----------
    values : (n_nodes, 1, n_values) array
        Shares of the classes, or means.
    nodes : (n_nodes,) record array
        Their nodes.

    Returns
    -------
    (n_nodes, 1, n_values) array of int, or None
        For `from_whole_sums`.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        sums = np.rint(values * nodes[_WEIGHT][:, None, None])
        narrowest = _narrowest(sums)
    if narrowest.kind != "i" or not _same(from_whole_sums(sums, nodes), values):
        return None
    return np.asarray(sums, dtype=narrowest)


def from_whole_sums(sums: AnyArray, nodes: AnyArray) -> FloatArray:
    """Return the values of nodes, see `whole_sums`."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums / nodes[_WEIGHT].astype(np.float64)[:, None, None], dtype=np.float64)


def _rounded_down(thresholds: FloatArray) -> AnyArray:
    with np.errstate(over="ignore", under="ignore"):
        nearest = thresholds.astype(np.float32)
        return np.where(nearest > thresholds, np.nextafter(nearest, np.float32(-np.inf)), nearest)


def _narrowest(column: AnyArray) -> np.dtype[np.generic]:
    with np.errstate(invalid="ignore", over="ignore"):
        for dtype in _NARROW:
            if dtype.itemsize < column.dtype.itemsize and _same(column.astype(dtype).astype(column.dtype), column):
                return dtype
    return column.dtype


def _same(first: AnyArray, second: AnyArray) -> bool:
    """Return whether two arrays of one type are equal bit for bit, the sign of zero included."""
    if not np.array_equal(first, second):
        return False
    return first.dtype.kind != "f" or bool(np.array_equal(np.signbit(first), np.signbit(second)))
