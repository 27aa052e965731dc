"""Make strategies from text: a name with options, as the command line and the estimators accept it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace

from cashmere.base.text import is_dotted_path
from cashmere.exceptions import CashmereError, InvalidParameterError, StrategyError, UnknownNameError
from cashmere.protocols import Strategy
from cashmere.space.space import ALGORITHM
from cashmere.strategies.importing import import_strategy
from cashmere.strategies.registry import find_strategy, strategy_names
from cashmere.strategies.shared.factories import Preset, StrategyFactory, options_of
from cashmere.strategies.shared.search_space import SearchSpace


def make_strategy(strategy: str | Strategy | StrategyFactory, space: SearchSpace, **options: Any) -> Strategy:
    """Make a strategy for a search space.

    Parameters
    ----------
    strategy : str, Strategy or callable
        A name from `strategy_names`, or the path of a class to import (``"my_module.MyStrategy"``), both optionally
        with options after a colon (``"optdivbo:tau=0.1,surrogate=pairwise"``); a finished strategy, which is returned
        unchanged; or a factory.
    space : ConfigurationSpace or SpaceEncoder
        The search space; a `CatalogueEncoder` restricts it to the configurations it lists.
    **options
        Passed to the factory; see the parameters of the strategy.

    Raises
    ------
    UnknownNameError
        If there is no strategy of that name, or it has no such option.
    InvalidParameterError
        If the value of an option cannot be used, a path cannot be imported, or `strategy` is none of these.
    StrategyError
        If `strategy` is a class that cannot be called with a space alone, or has no method ``suggest``.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace
    >>> make_strategy("bo:n_initial=3", ConfigurationSpace({"x": (0.0, 1.0)})).n_initial
    3
    """
    if isinstance(strategy, str):
        name, written = parse_strategy(strategy)
        factory = factory_of(strategy)
        options = _read_options(name, factory, {**written, **options}, written.keys())
        if is_dotted_path(strategy):
            return make_strategy(factory, space, **options)
        try:
            return factory(space, **options)
        except TypeError as error:
            raise InvalidParameterError(
                "strategy", strategy, "a name with options of the right types", f"Its factory says: {error}."
            ) from error
    if isinstance(strategy, Strategy) and not inspect.isclass(strategy):
        if options:
            raise TypeError(
                f"Options go with the name of a strategy or its class, but {strategy!r} is made already. Set "
                f"{', '.join(sorted(options))} where it is made."
            )
        return strategy
    if inspect.isclass(strategy) and getattr(strategy, "suggest", None) is None:
        raise StrategyError(f"{strategy.__name__} has no method suggest(history, rng).", strategy=strategy)
    if not options:
        _check_takes_space(strategy, space)
    made = strategy(space, **_read_strategies(strategy, options)) if callable(strategy) else None
    if not isinstance(made, Strategy):
        expected = (
            f"one of {', '.join(map(repr, strategy_names()))}, a strategy, or a function that makes one from a space"
        )
        raise InvalidParameterError("strategy", strategy, expected)
    return made


def factory_of(strategy: str) -> StrategyFactory:
    """Return what makes a strategy that is given as text: registered under its name, or imported.

    Raises
    ------
    UnknownNameError, InvalidParameterError
        As from `make_strategy`.

    Examples
    --------
    >>> factory_of("random").__name__
    'RandomSearch'
    """
    name, _ = parse_strategy(strategy)
    return import_strategy(name) if is_dotted_path(strategy) else find_strategy(name)


def _check_takes_space(strategy: object, space: SearchSpace) -> None:
    """Raise a `StrategyError` if a class cannot be called with a space alone."""
    if not inspect.isclass(strategy):
        return
    try:
        inspect.signature(strategy).bind(space)
    except TypeError as error:
        raise StrategyError(
            f"{strategy.__name__} cannot be made from a space ({error}). The space must be the first parameter of its "
            "__init__, and all others need defaults; or pass a function from a space to a strategy.",
            strategy=strategy,
        ) from error


def parse_strategy(text: str) -> tuple[str, dict[str, Any]]:
    """Return name and options of ``"name:option=value,option=value"``; values are Python literals or plain words.

    Commas inside parentheses belong to a value: ``inner=(NAME:option=value,option=value)``.

    Examples
    --------
    >>> parse_strategy("divbo:beta=0.01,surrogate=pairwise")
    ('divbo', {'beta': 0.01, 'surrogate': 'pairwise'})
    """
    name, _, rest = text.partition(":")
    options: dict[str, Any] = {}
    for part in filter(None, split_options(rest)):
        option, equals, value = part.partition("=")
        if not equals:
            raise InvalidParameterError("strategy", text, "a name or of the form name:option=value,option=value")
        option, value = option.strip(), value.strip()
        if option in options:
            raise InvalidParameterError(
                "strategy", text, "a name with every option at most once", f"{option} is there twice."
            )
        try:
            options[option] = ast.literal_eval(_SPELLINGS.get(value.lower(), value))
        except (ValueError, SyntaxError):
            options[option] = value
    return name.strip(), options


def check_strategy(text: str) -> None:
    """Raise the errors of `make_strategy` that need no table: for an unknown name, option or kind of value, or a range.

    Examples
    --------
    >>> check_strategy("bo:n_initial=3")
    """
    name, written = parse_strategy(text)
    factory = factory_of(text)
    options = _read_options(name, factory, written, written.keys())
    if written and not is_dotted_path(text):
        try:
            factory(ConfigurationSpace({ALGORITHM: ["one", "other"]}), **options)
        except InvalidParameterError as error:
            if error.parameter in written:
                raise
        except (CashmereError, TypeError):  # that space need not suit it
            pass


def split_options(text: str) -> list[str]:
    """Return the parts between commas that are not inside parentheses.

    Examples
    --------
    >>> split_options("inner=(bo:n_initial=3,variance=between),window=2")
    ['inner=(bo:n_initial=3,variance=between)', 'window=2']
    """
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def read_strategy(text: str) -> StrategyFactory:
    """Return the factory for a name with options, in parentheses or not.

    Raises
    ------
    UnknownNameError, InvalidParameterError
        As from `make_strategy`; options that only the strategy itself can check are refused when it is made.

    Examples
    --------
    >>> read_strategy("bo:n_initial=3")
    Preset(factory=<class 'cashmere.strategies.bayesian_optimisation.BayesianOptimisation'>, options={'n_initial': 3})
    """
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    if is_dotted_path(text):  # a run to be resumed must not name what is imported
        raise InvalidParameterError(
            "inner",
            text,
            f"one of {', '.join(map(repr, strategy_names()))}",
            "To use a custom strategy inside another, write a function from a space to a strategy: "
            'lambda space: make_strategy("max_ucb", space, inner=MyStrategy).',
        )
    name, written = parse_strategy(text)
    factory = find_strategy(name)
    options = _read_options(name, factory, written, written.keys())
    return Preset(factory, options) if options else factory


_NOT_WRITTEN = {"meta_features", "priors"}
"""Options that hold objects, and cannot be written as text."""

_SPELLINGS = {"true": "True", "false": "False", "none": "None"}


def _read_options(
    name: str, factory: StrategyFactory, options: Mapping[str, Any], written: Collection[str]
) -> dict[str, Any]:
    """Check options against those of a strategy, and replace names of strategies by factories.

    `written` are the options that were given as text.
    """
    known = options_of(factory)
    if known is None:
        _check_options(name, factory, options)
    else:
        for option, value in options.items():
            if option not in known or (option in _NOT_WRITTEN and option in written):
                raise UnknownNameError(f"{name!r} option", option, known.keys() - _NOT_WRITTEN)
            _check_kind(name, option, value, known[option])
    return _read_strategies(factory, options)


def _check_options(name: str, factory: StrategyFactory, options: Mapping[str, Any]) -> None:
    """Raise an `UnknownNameError` for an option that a class or function without declared fields does not take."""
    try:
        parameters = list(inspect.signature(factory).parameters.values())[1:]
    except (TypeError, ValueError):
        return
    if not any(each.kind is each.VAR_KEYWORD for each in parameters):
        known = [each.name for each in parameters if each.kind is not each.POSITIONAL_ONLY]
        for option in options:
            if option not in known:
                raise UnknownNameError(f"{name!r} option", option, known)


def _read_strategies(factory: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options, with names of strategies replaced by factories."""
    known = options_of(factory) or {}
    named = {
        option: read_strategy(value)
        for option, value in options.items()
        if isinstance(value, str) and option in known and known[option].metadata.get("holds") == "strategy"
    }
    return {**options, **named}


def _check_kind(strategy: str, name: str, value: Any, field: dataclasses.Field[Any]) -> None:
    """Reject a value whose type differs from that of the default: the text "no" would count as true."""
    default = field.default
    wanted: dict[type, tuple[str, tuple[type, ...]]] = {
        bool: ("True or False", (bool,)),
        int: ("a whole number", (int, np.integer)),
        float: ("a number", (int, float, np.integer, np.floating)),
    }
    if value is None and "None" in str(field.type):
        return
    expected, kinds = wanted.get(type(default), ("", (object,)))
    if not isinstance(value, kinds) or (type(default) is not bool and expected and isinstance(value, bool)):
        raise InvalidParameterError(f"{name} of strategy {strategy!r}", value, expected)
