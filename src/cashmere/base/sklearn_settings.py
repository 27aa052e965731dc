"""Keep the global settings of scikit-learn, which belong to the user, from changing what this package does."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_DEFAULTS = {"enable_metadata_routing": False, "transform_output": "default"}
"""Routing refuses row weights that were not requested; steps that return tables make models that cannot be stored."""


def default_sklearn() -> AbstractContextManager[Any]:
    """Use scikit-learn's defaults inside a ``with`` block, in this thread."""
    from sklearn import config_context, get_config

    current = get_config()
    if all(current.get(name) == value for name, value in _DEFAULTS.items()):
        return contextlib.nullcontext()
    context: AbstractContextManager[Any] = config_context(**_DEFAULTS)
    return context


def with_default_sklearn(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let a function use scikit-learn's defaults; see `default_sklearn`."""

    @functools.wraps(function)
    def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with default_sklearn():
            return function(*args, **kwargs)

    return wrapped
