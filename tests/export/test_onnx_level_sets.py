"""Splits on categories as chains of comparisons."""

from __future__ import annotations

import numpy as np
import pytest

onnxruntime = pytest.importorskip("onnxruntime")

from cashmere.export.graph import Graph  # noqa: E402
from cashmere.export.trees import Levels, Tree, sum_of_trees  # noqa: E402

N_CODES = 20_000
"""So many that a chain of them would overflow the stack of a runtime, which ends the process."""

ALL_BUT_FEW = tuple(sorted({*range(N_CODES)} - {3, 7000, N_CODES - 2}))
SETS = [(), (0,), (2, 5), (0, 1, 2, 3), (0, 2, 3, 4, 5), ALL_BUT_FEW]


def split_twice(codes: tuple[int, ...], *, go_left: bool, missing_left: bool) -> Tree:
    """A split on categories, with one on a number below its left child."""
    return Tree(
        column=np.array([0, 1, 0, 0, 0]),
        threshold=np.array([0.0, 0.5, 0.0, 0.0, 0.0]),
        left=np.array([1, 3, 0, 0, 0]),
        right=np.array([2, 4, 0, 0, 0]),
        is_leaf=np.array([False, False, True, True, True]),
        missing_left=np.array([missing_left, False, False, False, False]),
        values=np.array([[0.0], [0.0], [4.0], [1.0], [2.0]]),
        levels={0: Levels(codes=codes, go_left=go_left)},
    )


@pytest.mark.parametrize("go_left", [True, False])
@pytest.mark.parametrize("missing_left", [True, False])
@pytest.mark.parametrize("codes", SETS, ids=len)
def test_rows_take_the_branches_of_the_set(codes, go_left, missing_left):
    graph = Graph()
    columns = [graph.input(name, np.dtype(np.float32)) for name in "ab"]
    tree = split_twice(codes, go_left=go_left, missing_left=missing_left)
    graph.output("sum", sum_of_trees(graph, graph.node("Concat", *columns, axis=1), [tree], [[0]], 1), 1)
    session = onnxruntime.InferenceSession(graph.to_model({}).SerializeToString())

    code = np.array([*range(10), 6999, 7000, 7001, *range(N_CODES - 3, N_CODES), np.nan] * 2)
    number = np.repeat([0, 1], len(code) // 2)
    inputs = {"a": code[:, None].astype(np.float32), "b": number[:, None].astype(np.float32)}
    goes_left = np.where(np.isnan(code), missing_left, np.isin(code, codes) == go_left)
    expected = np.where(goes_left, 1.0 + number, 4.0)
    np.testing.assert_array_equal(session.run(None, inputs)[0].ravel(), expected)
