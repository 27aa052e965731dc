"""Describe a strategy: its summary, its reference, and its status in this package."""

from __future__ import annotations

import inspect
from typing import Any, Literal

from cashmere.protocols import Strategy
from cashmere.strategies.making import factory_of
from cashmere.strategies.registry import STRATEGIES
from cashmere.strategies.shared.factories import Preset, StrategyFactory, described_class

Status = Literal["method", "variant", "baseline", "ours", "custom"]
"""Status of a strategy in this package.

``"method"``: proposed by one of the four papers that the package is about. ``"variant"``: an ablation in one of them.
``"baseline"``: a method they were compared with, or another of its kind. ``"ours"``: new in this package. ``"custom"``:
all others, such as yours. A preset has the status of its strategy.
"""

_NAMES: dict[Status, tuple[str, ...]] = {
    "method": ("contest", "divbo", "latent", "optdivbo"),
    "variant": ("divbo_fixed",),
    "baseline": (
        "ahs_ml",
        "as_ml",
        "bandit_bo",
        "bo",
        "bo4ml",
        "ensemble_optimisation",
        "kbo",
        "max_ucb",
        "nes",
        "pretrain_bo",
        "random",
        "rising_bandit",
        "smac",
        "tpe",
    ),
    "ours": ("agreeing_sources", "ensemble_contest", "ensemble_gain"),
}
_STATUSES = {STRATEGIES[name]: status for status, names in _NAMES.items() for name in names}


def cite(strategy: str | Strategy | StrategyFactory) -> str:
    """Return the reference of a strategy from its documentation.

    Examples
    --------
    >>> print(cite("random"))
    Bergstra and Bengio (2012), Random search for hyper-parameter optimization, JMLR 13.
    """
    _, found, references = _documentation(strategy).partition("References\n----------\n")
    return references.partition("\n\n")[0].strip() if found else ""


def describe(strategy: str | Strategy | StrategyFactory) -> str:
    """Return the first line of a strategy's documentation, which says what it chooses and from what.

    Examples
    --------
    >>> describe("bo")
    'Choose the candidate with the largest expected improvement, from the losses of all trials so far.'
    """
    named = _named(strategy)
    if isinstance(named, Preset) and named.summary:
        return named.summary
    return _documentation(named).partition("\n")[0]


def status(strategy: str | Strategy | StrategyFactory) -> Status:
    """Return the status of a strategy: a paper's method, a baseline, ..., see `Status`.

    Examples
    --------
    >>> status("optdivbo"), status("bo"), status("ensemble_gain")
    ('method', 'baseline', 'ours')
    """
    return _STATUSES.get(_described(strategy), "custom")


def _documentation(strategy: str | Strategy | StrategyFactory) -> str:
    return inspect.getdoc(_described(strategy)) or ""


def _described(strategy: str | Strategy | StrategyFactory) -> Any:
    """Return the class or function that a name or an object stands for."""
    described = described_class(_named(strategy))
    return described if inspect.isclass(described) or inspect.isfunction(described) else type(described)


def _named(strategy: str | Strategy | StrategyFactory) -> Any:
    return factory_of(strategy) if isinstance(strategy, str) else strategy
