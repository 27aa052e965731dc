"""Factories of strategies: a strategy's class, a preset of it, or any function from a search space."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cashmere.exceptions import InvalidParameterError
from cashmere.protocols import Strategy
from cashmere.strategies.shared.search_space import SearchSpace

StrategyFactory = Callable[..., Strategy]
"""Makes a strategy from a search space and keyword options; a strategy class is one."""

HOLDS_STRATEGY = {"holds": "strategy"}
"""Metadata of a dataclass field that holds a factory of strategies, which may be written as text."""


@dataclass(frozen=True)
class Preset:
    """A factory with options set beforehand; unlike a function it can be compared, printed and pickled.

    Attributes
    ----------
    factory : StrategyFactory
        Makes the strategy.
    options : mapping of str to object
        Passed to the factory unless the caller gives others.
    summary : str
        Description of the strategy in one line; that of the factory if empty.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace
    >>> from cashmere.strategies import TPE
    >>> Preset(TPE, {"density": "independent"})(ConfigurationSpace({"x": (0.0, 1.0)}), n_initial=3).density
    'independent'
    """

    factory: StrategyFactory
    options: Mapping[str, Any] = field(hash=False)
    summary: str = field(default="", repr=False)

    def __call__(self, space: SearchSpace, **options: Any) -> Strategy:
        """Make the strategy."""
        return self.factory(space, **{**self.options, **options})


def described_class(factory: Any) -> Any:
    """Return the class or function behind a preset; return anything else unchanged."""
    while isinstance(factory, Preset):
        factory = factory.factory
    return factory


def options_of(factory: Any) -> dict[str, dataclasses.Field[Any]] | None:
    """Return the options of a strategy class or a preset of it by name; None if they are unknown.

    Those of a class that inherits the fields of a dataclass, but has an ``__init__`` of its own, are unknown.
    """
    described = described_class(factory)
    if not (inspect.isclass(described) and dataclasses.is_dataclass(described)):
        return None
    maker = next(each for each in described.__mro__ if "__init__" in vars(each))
    if "__dataclass_params__" not in vars(maker):
        return None
    return {option.name: option for option in dataclasses.fields(described) if option.name != "space"}


def open_options(factory: Any) -> set[str]:
    """Return the known options of a factory that no preset has set.

    Examples
    --------
    >>> from cashmere.strategies import RandomSearch
    >>> open_options(RandomSearch), open_options(lambda space: RandomSearch(space))
    (set(), set())
    """
    names = set(options_of(factory) or ())
    while isinstance(factory, Preset):
        names -= factory.options.keys()
        factory = factory.factory
    return names


def make_inner(factory: StrategyFactory, space: SearchSpace, **options: Any) -> Strategy:
    """Make the strategy that searches inside a part of the space.

    Parameters
    ----------
    factory : StrategyFactory
        The option ``inner`` of a strategy.
    space : ConfigurationSpace or SpaceEncoder
        The part.
    **options
        Passed to the factory if it has them and no preset has set them.

    Raises
    ------
    InvalidParameterError
        If `factory` does not make a strategy.
    """
    given = {name: value for name, value in options.items() if name in open_options(factory)}
    made = factory(space, **given) if callable(factory) else None
    if not isinstance(made, Strategy):
        raise InvalidParameterError(
            "inner",
            factory,
            "a strategy class or a function that makes a strategy from a space",
            'To use a name, write make_strategy("...:inner=NAME", space).',
        )
    return made
