"""Find a custom strategy by the dotted path of its class, such as ``my_package.my_module.MyStrategy``."""

from __future__ import annotations

import importlib
from typing import Any

from cashmere.exceptions import InvalidParameterError
from cashmere.strategies.shared.factories import StrategyFactory

_EXPECTED = "the path of a class or function that Python can import, such as my_module.MyStrategy"


def import_strategy(path: str) -> StrategyFactory:
    """Import the class or function that makes a strategy.

    Parameters
    ----------
    path : str
        Module and name, with dots between them.

    Raises
    ------
    InvalidParameterError
        If the module cannot be found, or holds no such class or function. Errors in the module itself are raised as
        they are.

    Notes
    -----
    Importing runs code: call this only with what the user has given, never with what a file names.

    Examples
    --------
    >>> import_strategy("cashmere.strategies.RandomSearch").__name__
    'RandomSearch'
    """
    module_name, _, name = path.rpartition(".")
    try:
        module = importlib.import_module(module_name)
    except (ModuleNotFoundError, TypeError, ValueError) as error:
        missing = getattr(error, "name", None)
        if isinstance(error, ModuleNotFoundError) and missing and not f"{module_name}.".startswith(f"{missing}."):
            raise  # the module is there, and one that it needs is not
        text = f"There is no module {missing or module_name!r}. Run in its folder, or install its package."
        raise InvalidParameterError("strategy", path, _EXPECTED, text) from error
    found: Any = getattr(module, name, None)
    if not callable(found):
        text = f"The module {module_name!r} ({module.__file__}) has no class or function {name!r}."
        raise InvalidParameterError("strategy", path, _EXPECTED, text)
    return found  # type: ignore[no-any-return]
