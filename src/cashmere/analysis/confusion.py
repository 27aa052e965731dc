"""The confusion matrix: which classes are confused with which."""

from __future__ import annotations

import numpy as np

from cashmere.base.arrays import Float64, FloatArray, IntArray


def confusion_matrix(y: IntArray, decided: IntArray, n_classes: int, weight: FloatArray | None = None) -> Float64:
    """Count rows by true and by predicted class.

    Parameters
    ----------
    y, decided : (n_rows,) int arrays
        Codes of the true and of the predicted classes.
    n_classes : int
        Number of classes of the task.
    weight : (n_rows,) array, optional
        Row weights, summed instead of counting rows.

    Returns
    -------
    (n_classes, n_classes) array
        Rows are true classes, columns predicted classes.

    Examples
    --------
    >>> confusion_matrix(np.array([0, 0, 1]), np.array([0, 1, 1]), 2)
    array([[1., 1.],
           [0., 1.]])
    """
    cells = np.bincount(y * n_classes + decided, weights=weight, minlength=n_classes**2)
    return np.asarray(cells.reshape(n_classes, n_classes), dtype=np.float64)


def join_small_classes(matrix: Float64, most: int) -> tuple[Float64, list[int]]:
    """Keep the classes with the most rows, and merge the others into a last one.

    Parameters
    ----------
    matrix : (n_classes, n_classes) array
        From `confusion_matrix`.
    most : int
        Number of classes to keep, including the merged one.

    Returns
    -------
    matrix : (n_kept, n_kept) array
        The last row and column are those of the merged classes, if there are any.
    kept : list of int
        Codes of the classes that are not merged, ascending.

    Examples
    --------
    >>> join_small_classes(np.diag([5.0, 1.0, 2.0, 9.0]), 3)
    (array([[5., 0., 0.],
           [0., 9., 0.],
           [0., 0., 3.]]), [0, 3])
    """
    n_classes = len(matrix)
    if n_classes <= most:
        return matrix, list(range(n_classes))
    kept = np.sort(np.argsort(-matrix.sum(axis=1), kind="stable")[: most - 1])
    place = np.full(n_classes, most - 1)
    place[kept] = np.arange(most - 1)
    joined = np.zeros((most, most))
    np.add.at(joined, (place[:, None], place[None, :]), matrix)
    return joined, kept.tolist()
