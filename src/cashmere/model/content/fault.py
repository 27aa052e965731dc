"""Checks of the content of an archive, and the error that they raise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cashmere.base.arrays import AnyArray


class ContentError(ValueError):
    """Inconsistent content; the text names the place and what is wrong there."""


def require(holds: object, where: str, problem: str) -> None:
    """Raise a `ContentError` unless a condition holds."""
    if not holds:
        raise ContentError(f"{where} {problem}")


def array(where: str, value: Any, shape: Sequence[int], *, kinds: str = "f", finite: bool = True) -> AnyArray:
    """Return an array after checking its shape, its kind of numbers, and that all are finite.

    Parameters
    ----------
    where : str
        Its place, for the message.
    value : object
        The supposed array.
    shape : sequence of int
        The shape; -1 for any length.
    kinds : str
        Allowed kinds of dtype.
    finite : bool
        Whether NaN and infinities are refused.

    Raises
    ------
    ContentError
        If one of these does not hold.
    """
    # Texts are made only when needed, as models have thousands of arrays.
    if not isinstance(value, np.ndarray):
        raise ContentError(f"{where} is of type {type(value).__name__}. Expected an array.")
    if value.ndim != len(shape) or any(n not in (-1, m) for n, m in zip(shape, value.shape, strict=True)):
        expected = ", ".join("any" if n < 0 else str(n) for n in shape)
        raise ContentError(f"{where} has the shape {value.shape}. Expected ({expected}).")
    if value.dtype.kind not in kinds:
        raise ContentError(f"{where} is of dtype {value.dtype}. Expected one of kind {kinds!r}.")
    if finite and value.dtype.kind == "f" and not np.isfinite(value).all():
        raise ContentError(f"{where} holds infinities or NaN. Expected finite numbers.")
    return value


def indices(where: str, value: Any, n: int, shape: Sequence[int] = (-1,)) -> AnyArray:
    """Return an array of whole numbers after checking that all are in ``range(n)``."""
    found = array(where, value, shape, kinds="iu")
    if found.size and (found.min() < 0 or found.max() >= n):
        raise ContentError(f"{where} leaves the range from 0 to {n - 1}.")
    return found


def count(where: str, value: Any, least: int = 1) -> int:
    """Return a whole number after checking that it is one and not below `least`."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    require(whole and value >= least, where, f"is {str(value)[:40]!r}. Expected a whole number from {least} on.")
    return int(value)
