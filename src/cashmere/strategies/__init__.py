"""One file per search method, and the names by which they are chosen."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from ConfigSpace import ConfigurationSpace

from cashmere.exceptions import InvalidParameterError, UnknownNameError
from cashmere.protocols import Strategy
from cashmere.strategies.ahs_ml import AhsMl
from cashmere.strategies.as_ml import AsMl
from cashmere.strategies.bandit_bo import BanditBO
from cashmere.strategies.bayesian_optimisation import BayesianOptimisation
from cashmere.strategies.bo4ml import BO4ML
from cashmere.strategies.contest import Contest, HighestBO4ML, HighestTPE, StatisticalBO4ML, StatisticalTPE
from cashmere.strategies.divbo import DivBO, FixedDivBO
from cashmere.strategies.ensemble_gain import EnsembleGain
from cashmere.strategies.ensemble_optimisation import EnsembleOptimisation
from cashmere.strategies.kbo import KBO
from cashmere.strategies.latent import Latent
from cashmere.strategies.nes import NES
from cashmere.strategies.optdivbo import OptDivBO
from cashmere.strategies.pretrain_bo import PretrainBO
from cashmere.strategies.random_search import RandomSearch
from cashmere.strategies.rising_bandit import RisingBandit, RisingSMAC
from cashmere.strategies.smac import SMAC
from cashmere.strategies.tpe import TPE

StrategyFactory = Callable[..., Strategy]
"""Makes a strategy from a `ConfigurationSpace` and keyword options; a strategy class is one."""

STRATEGIES: dict[str, StrategyFactory] = {
    "ahs_ml": AhsMl,
    "as_ml": AsMl,
    "bandit_bo": BanditBO,
    "bo": BayesianOptimisation,
    "bo4ml": BO4ML,
    "contest": Contest,
    "dac_hb": HighestBO4ML,
    "dac_hh": HighestTPE,
    "dac_sb": StatisticalBO4ML,
    "dac_sh": StatisticalTPE,
    "divbo": DivBO,
    "divbo_fixed": FixedDivBO,
    "ensemble_gain": EnsembleGain,
    "ensemble_optimisation": EnsembleOptimisation,
    "kbo": KBO,
    "latent": Latent,
    "nes": NES,
    "optdivbo": OptDivBO,
    "pretrain_bo": PretrainBO,
    "random": RandomSearch,
    "rb_smac": RisingSMAC,
    "rising_bandit": RisingBandit,
    "smac": SMAC,
    "tpe": TPE,
}
"""Strategies that can be chosen by name; add yours to make it available everywhere."""

Status = Literal["method", "variant", "baseline", "ours", "own"]
"""What a strategy is here.

``"method"``: proposed by one of the four papers that the package is about. ``"variant"``: an ablation in one of them.
``"baseline"``: what they were compared with. ``"ours"``: new in this package. ``"own"``: everything else, such as a
strategy that you add.
"""

_STATUSES: dict[Status, tuple[StrategyFactory, ...]] = {
    "method": (Contest, DivBO, HighestBO4ML, HighestTPE, Latent, OptDivBO, StatisticalBO4ML, StatisticalTPE),
    "variant": (FixedDivBO,),
    "baseline": (
        AhsMl,
        AsMl,
        BO4ML,
        BanditBO,
        BayesianOptimisation,
        EnsembleOptimisation,
        KBO,
        NES,
        PretrainBO,
        RandomSearch,
        RisingBandit,
        RisingSMAC,
        SMAC,
        TPE,
    ),
    "ours": (EnsembleGain,),
}


def strategy_names() -> list[str]:
    """Return the names that `make_strategy` knows.

    Examples
    --------
    >>> strategy_names()
    ['ahs_ml', 'as_ml', 'bandit_bo', 'bo', 'bo4ml', 'contest', 'dac_hb', 'dac_hh', 'dac_sb', 'dac_sh', 'divbo',
     'divbo_fixed', 'ensemble_gain', 'ensemble_optimisation', 'kbo', 'latent', 'nes', 'optdivbo', 'pretrain_bo',
     'random', 'rb_smac', 'rising_bandit', 'smac', 'tpe']
    """
    return sorted(STRATEGIES)


def make_strategy(strategy: str | Strategy | StrategyFactory, space: ConfigurationSpace, **options: Any) -> Strategy:
    """Make a strategy for a search space.

    Parameters
    ----------
    strategy : str, Strategy or callable
        A name of `strategy_names`, options after a colon (``"optdivbo:tau=0.1,surrogate=pairwise"``) if need be; a
        finished strategy, which is returned as it is; or a factory.
    space : ConfigurationSpace
        What is searched.
    **options
        Passed to the factory; see the parameters of the strategy.

    Raises
    ------
    UnknownNameError
        If there is no strategy of that name, or it has no such option.
    InvalidParameterError
        If an option has a value that cannot be used, or `strategy` is none of the three.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace
    >>> make_strategy("bo:n_initial=3", ConfigurationSpace({"x": (0.0, 1.0)})).n_initial
    3
    """
    if isinstance(strategy, str):
        name, written = parse_strategy(strategy)
        factory, options = _find(name), {**written, **options}
        if dataclasses.is_dataclass(factory):
            known = {field.name: field for field in dataclasses.fields(factory) if field.name != "space"}
            for option, value in options.items():
                if option not in known or option in _NOT_WRITTEN & written.keys():
                    raise UnknownNameError(f"{name!r} option", option, known.keys() - _NOT_WRITTEN)
                _check_kind(name, option, value, known[option])
        try:
            return factory(space, **options)
        except TypeError as error:
            expected = f"a name with options of the right type ({error})"
            raise InvalidParameterError("strategy", strategy, expected) from error
    if isinstance(strategy, Strategy) and not inspect.isclass(strategy):
        if options:
            raise TypeError(f"{strategy!r} is finished and takes no options; got {', '.join(sorted(options))}")
        return strategy
    made = strategy(space, **options) if callable(strategy) else None
    if not isinstance(made, Strategy):
        expected = f"one of {', '.join(map(repr, strategy_names()))}, a strategy, or what makes one from a space"
        raise InvalidParameterError("strategy", strategy, expected)
    return made


def parse_strategy(text: str) -> tuple[str, dict[str, Any]]:
    """Return name and options of ``"name:option=value,option=value"``; values are Python literals or plain words.

    Examples
    --------
    >>> parse_strategy("divbo:beta=0.01,surrogate=pairwise")
    ('divbo', {'beta': 0.01, 'surrogate': 'pairwise'})
    """
    name, _, rest = text.partition(":")
    options: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        option, equals, value = part.partition("=")
        if not equals:
            raise InvalidParameterError("strategy", text, "of the form name:option=value,option=value")
        option, value = option.strip(), value.strip()
        if option in options:
            raise InvalidParameterError("strategy", text, f"a name with every option once ({option} is there twice)")
        try:
            options[option] = ast.literal_eval(_SPELLINGS.get(value.lower(), value))
        except (ValueError, SyntaxError):
            options[option] = value
    return name.strip(), options


_NOT_WRITTEN = {"catalogue", "meta_features", "priors"}
"""Options that hold objects and have no meaning as text."""

_SPELLINGS = {"true": "True", "false": "False", "none": "None"}


def _check_kind(strategy: str, name: str, value: Any, field: dataclasses.Field[Any]) -> None:
    """Refuse a value of another kind than the option's default: the text "no" would count as true."""
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


def cite(strategy: str | Strategy | StrategyFactory) -> str:
    """Return the reference of a strategy, as its documentation gives it.

    Examples
    --------
    >>> print(cite("random"))
    Bergstra and Bengio (2012), Random search for hyper-parameter optimization, JMLR 13.
    """
    _, found, references = _documentation(strategy).partition("References\n----------\n")
    return references.partition("\n\n")[0].strip() if found else ""


def describe(strategy: str | Strategy | StrategyFactory) -> str:
    """Return the first line of a strategy's documentation: what it decides by.

    Examples
    --------
    >>> describe("bo")
    'Decides for the candidate with the largest expected improvement, from the losses of all trials so far.'
    """
    return _documentation(strategy).partition("\n")[0]


def status(strategy: str | Strategy | StrategyFactory) -> Status:
    """Return what a strategy is here: a paper's method, a baseline, ..., see `Status`.

    Examples
    --------
    >>> status("optdivbo"), status("bo"), status("ensemble_gain")
    ('method', 'baseline', 'ours')
    """
    described = _described(strategy)
    return next((name for name, factories in _STATUSES.items() if described in factories), "own")


def _documentation(strategy: str | Strategy | StrategyFactory) -> str:
    return inspect.getdoc(_described(strategy)) or ""


def _described(strategy: str | Strategy | StrategyFactory) -> Any:
    """Return the class or function that a name or an object stands for."""
    described: Any = _find(parse_strategy(strategy)[0]) if isinstance(strategy, str) else strategy
    if not (inspect.isclass(described) or inspect.isfunction(described)):
        described = type(described)
    return described


def _find(name: str) -> StrategyFactory:
    try:
        return STRATEGIES[name]
    except KeyError:
        raise UnknownNameError("strategy", name, STRATEGIES) from None


__all__ = [
    "BO4ML",
    "KBO",
    "NES",
    "SMAC",
    "STRATEGIES",
    "TPE",
    "AhsMl",
    "AsMl",
    "BanditBO",
    "BayesianOptimisation",
    "Contest",
    "DivBO",
    "EnsembleGain",
    "EnsembleOptimisation",
    "FixedDivBO",
    "Latent",
    "OptDivBO",
    "PretrainBO",
    "RandomSearch",
    "RisingBandit",
    "Status",
    "StrategyFactory",
    "cite",
    "describe",
    "make_strategy",
    "parse_strategy",
    "status",
    "strategy_names",
]
