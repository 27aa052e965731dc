"""The names by which to choose strategies."""

from __future__ import annotations

from cashmere.exceptions import UnknownNameError
from cashmere.strategies.agreeing_sources import AgreeingSources
from cashmere.strategies.ahs_ml import AhsMl
from cashmere.strategies.as_ml import AsMl
from cashmere.strategies.bandit_bo import BanditBO
from cashmere.strategies.bayesian_optimisation import BayesianOptimisation
from cashmere.strategies.bo4ml import BO4ML
from cashmere.strategies.contest import Contest
from cashmere.strategies.divbo import DivBO, FixedDivBO
from cashmere.strategies.ensemble_contest import EnsembleContest
from cashmere.strategies.ensemble_gain import EnsembleGain
from cashmere.strategies.ensemble_optimisation import EnsembleOptimisation
from cashmere.strategies.kbo import KBO
from cashmere.strategies.latent import Latent
from cashmere.strategies.max_ucb import MaxUCB
from cashmere.strategies.nes import NES
from cashmere.strategies.optdivbo import OptDivBO
from cashmere.strategies.presets import PRESETS
from cashmere.strategies.pretrain_bo import PretrainBO
from cashmere.strategies.random_search import RandomSearch
from cashmere.strategies.rising_bandit import RisingBandit
from cashmere.strategies.shared.factories import StrategyFactory
from cashmere.strategies.smac import SMAC
from cashmere.strategies.tpe import TPE

STRATEGIES: dict[str, StrategyFactory] = {
    "agreeing_sources": AgreeingSources,
    "ahs_ml": AhsMl,
    "as_ml": AsMl,
    "bandit_bo": BanditBO,
    "bo": BayesianOptimisation,
    "bo4ml": BO4ML,
    "contest": Contest,
    "divbo": DivBO,
    "divbo_fixed": FixedDivBO,
    "ensemble_contest": EnsembleContest,
    "ensemble_gain": EnsembleGain,
    "ensemble_optimisation": EnsembleOptimisation,
    "kbo": KBO,
    "latent": Latent,
    "max_ucb": MaxUCB,
    "nes": NES,
    "optdivbo": OptDivBO,
    "pretrain_bo": PretrainBO,
    "random": RandomSearch,
    "rising_bandit": RisingBandit,
    "smac": SMAC,
    "tpe": TPE,
    **PRESETS,
}
"""Strategies that can be chosen by name; add a custom strategy to make it available everywhere."""


def strategy_names() -> list[str]:
    """Return the names that `make_strategy` knows.

    Examples
    --------
    >>> strategy_names()
    ['agreeing_sources', 'ahs_ml', 'as_ml', 'bandit_bo', 'bo', 'bo4ml', 'contest', 'dac_hb', 'dac_hh', 'dac_sb',
     'dac_sh', 'divbo', 'divbo_fixed', 'ensemble_contest', 'ensemble_gain', 'ensemble_optimisation', 'kbo', 'latent',
     'max_ucb', 'nes', 'optdivbo', 'pretrain_bo', 'random', 'rb_smac', 'rising_bandit', 'smac', 'tpe']
    """
    return sorted(STRATEGIES)


def find_strategy(name: str) -> StrategyFactory:
    """Return the factory with a given name.

    Raises
    ------
    UnknownNameError
        If there is none.
    """
    try:
        return STRATEGIES[name]
    except KeyError:
        raise UnknownNameError("strategy", name, STRATEGIES) from None
