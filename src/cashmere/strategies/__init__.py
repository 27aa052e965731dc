"""One file per search method, and the names by which they are chosen."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from ConfigSpace import ConfigurationSpace

from cashmere.exceptions import UnknownNameError
from cashmere.protocols import Strategy
from cashmere.strategies.bayesian_optimisation import BayesianOptimisation
from cashmere.strategies.divbo import DivBO, FixedDivBO
from cashmere.strategies.optdivbo import OptDivBO
from cashmere.strategies.random_search import RandomSearch

StrategyFactory = Callable[..., Strategy]
"""Makes a strategy from a `ConfigurationSpace` and keyword options; a strategy class is one."""

STRATEGIES: dict[str, StrategyFactory] = {
    "bo": BayesianOptimisation,
    "divbo": DivBO,
    "divbo_fixed": FixedDivBO,
    "optdivbo": OptDivBO,
    "random": RandomSearch,
}
"""Strategies that can be chosen by name; add yours to make it available everywhere."""


def strategy_names() -> list[str]:
    """Return the names that `make_strategy` knows.

    Examples
    --------
    >>> strategy_names()
    ['bo', 'divbo', 'divbo_fixed', 'optdivbo', 'random']
    """
    return sorted(STRATEGIES)


def make_strategy(strategy: str | Strategy | StrategyFactory, space: ConfigurationSpace, **options: Any) -> Strategy:
    """Make a strategy for a search space.

    Parameters
    ----------
    strategy : str, Strategy or callable
        A name of `strategy_names`, a finished strategy, which is returned as it is, or a factory.
    space : ConfigurationSpace
        What is searched.
    **options
        Passed to the factory; see the parameters of the strategy.

    Raises
    ------
    UnknownNameError
        If there is no strategy of that name, or it has no such option.
    """
    if isinstance(strategy, str):
        factory = _find(strategy)
        if dataclasses.is_dataclass(factory):
            known = [field.name for field in dataclasses.fields(factory) if field.name != "space"]
            for option in options:
                if option not in known:
                    raise UnknownNameError(f"option of strategy {strategy!r}", option, known)
        return factory(space, **options)
    if isinstance(strategy, Strategy) and not inspect.isclass(strategy):
        if options:
            raise TypeError(f"{strategy!r} is finished and takes no options; got {', '.join(sorted(options))}")
        return strategy
    return strategy(space, **options)


def cite(strategy: str | Strategy | StrategyFactory) -> str:
    """Return the reference of a strategy, as its documentation gives it.

    Examples
    --------
    >>> print(cite("random"))
    Bergstra and Bengio (2012), Random search for hyper-parameter optimization, JMLR 13.
    """
    described: Any = _find(strategy) if isinstance(strategy, str) else strategy
    if not (inspect.isclass(described) or inspect.isfunction(described)):
        described = type(described)
    text = inspect.getdoc(described) or ""
    _, found, references = text.partition("References\n----------\n")
    return references.partition("\n\n")[0].strip() if found else ""


def _find(name: str) -> StrategyFactory:
    try:
        return STRATEGIES[name]
    except KeyError:
        raise UnknownNameError("strategy", name, STRATEGIES) from None


__all__ = [
    "STRATEGIES",
    "BayesianOptimisation",
    "DivBO",
    "FixedDivBO",
    "OptDivBO",
    "RandomSearch",
    "StrategyFactory",
    "cite",
    "make_strategy",
    "strategy_names",
]
