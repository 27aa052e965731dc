"""Check that arrays of nodes are trees, many at once, as models have thousands of small ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cashmere.base.arrays import AnyArray, BoolArray, IntArray
from cashmere.model.content.fault import ContentError


def tree_depths(
    sizes: IntArray, left: AnyArray, right: AnyArray, inner: BoolArray, name: Callable[[int], str]
) -> IntArray:
    """Check that nodes form trees whose roots are their first nodes, and return how deep each tree is.

    Parameters
    ----------
    sizes : (n_trees,) int array
        Number of nodes of each tree; the arrays below hold the nodes of tree after tree.
    left, right : (n_nodes,) int arrays
        Children of the inner nodes, counted from 0 in each tree; ignored for leaves.
    inner : (n_nodes,) bool array
        Which nodes have children.
    name : callable
        Returns the name of a tree, given its position.

    Raises
    ------
    ContentError
        If a tree has no node, a child is out of range, is the root or has two parents, or a node cannot be reached.
    """
    if not len(sizes):
        return np.zeros(0, dtype=np.int64)
    if (sizes < 1).any():
        raise ContentError(f"{name(int(np.argmax(sizes < 1)))} has no node. Expected a root.")
    roots = np.cumsum(sizes) - sizes
    tree_of = np.repeat(np.arange(len(sizes)), sizes)
    children = [np.where(inner, side.astype(np.int64), 1) for side in (left, right)]
    stray = np.zeros(len(inner), dtype=bool)
    for side in children:
        stray |= inner & ((side < 1) | (side >= sizes[tree_of]))
    if stray.any():
        where, n = name(int(tree_of[np.argmax(stray)])), sizes[tree_of[np.argmax(stray)]]
        raise ContentError(f"{where} has a child out of range. Expected nodes 1 to {n - 1}.")
    places = [side + roots[tree_of] for side in children]
    counts = np.bincount(np.concatenate([place[inner] for place in places]), minlength=len(inner))
    counts[roots] += 1
    if (counts != 1).any():
        raise ContentError(f"{name(int(tree_of[np.argmax(counts != 1)]))} is no tree: a node has no parent or several.")
    depths, reached, level, depth = np.zeros(len(sizes), dtype=np.int64), np.zeros(len(inner), dtype=bool), roots, 0
    while len(level):
        reached[level] = True
        depths[tree_of[level]] = depth
        parents = level[inner[level]]
        level, depth = np.concatenate([place[parents] for place in places]), depth + 1
    if not reached.all():  # parents that are one another's children
        raise ContentError(f"{name(int(tree_of[np.argmin(reached)]))} has nodes that cannot be reached from its root.")
    return depths
