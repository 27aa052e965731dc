"""Estimators that pack their trees in `__getstate__`, which takes long for large ones."""

from __future__ import annotations

from collections.abc import Callable
from copyreg import __newobj__  # type: ignore[attr-defined]  # what pickle itself names there
from typing import Any, Self


class PackedState:
    """Pack the state only when it is written, and only once.

    Otherwise, every shallow copy would pack and unpack it: paths make one for a checkpoint, LightGBM one in every
    prediction. And skops would pack it twice: it calls ``__reduce__`` to see whether the constructor alone makes the
    object, then ``__getstate__``.
    """

    def __copy__(self) -> Self:
        """Return an estimator that shares the trees."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[type]]:
        """Return how to create the object, without its state."""
        return __newobj__, (type(self),)

    def __reduce_ex__(self, protocol: Any) -> tuple[Callable[..., Any], tuple[type], Any]:
        """Return what pickle and `copy.deepcopy` need, including the state."""
        return __newobj__, (type(self),), self.__getstate__()
