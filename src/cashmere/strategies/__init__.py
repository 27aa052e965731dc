"""Search strategies, one file per method, and the names by which to choose them."""

from __future__ import annotations

from cashmere.strategies.agreeing_sources import AgreeingSources
from cashmere.strategies.ahs_ml import AhsMl
from cashmere.strategies.as_ml import AsMl
from cashmere.strategies.bandit_bo import BanditBO
from cashmere.strategies.bayesian_optimisation import BayesianOptimisation
from cashmere.strategies.bo4ml import BO4ML
from cashmere.strategies.contest import Contest
from cashmere.strategies.divbo import DivBO, FixedDivBO
from cashmere.strategies.documentation import Status, cite, describe, status
from cashmere.strategies.ensemble_contest import EnsembleContest
from cashmere.strategies.ensemble_gain import EnsembleGain
from cashmere.strategies.ensemble_optimisation import EnsembleOptimisation
from cashmere.strategies.kbo import KBO
from cashmere.strategies.latent import Latent
from cashmere.strategies.making import make_strategy, parse_strategy
from cashmere.strategies.max_ucb import MaxUCB
from cashmere.strategies.nes import NES
from cashmere.strategies.optdivbo import OptDivBO
from cashmere.strategies.pretrain_bo import PretrainBO
from cashmere.strategies.random_search import RandomSearch
from cashmere.strategies.registry import STRATEGIES, strategy_names
from cashmere.strategies.rising_bandit import RisingBandit
from cashmere.strategies.shared.factories import Preset, StrategyFactory
from cashmere.strategies.smac import SMAC
from cashmere.strategies.tpe import TPE

__all__ = [
    "BO4ML",
    "KBO",
    "NES",
    "SMAC",
    "STRATEGIES",
    "TPE",
    "AgreeingSources",
    "AhsMl",
    "AsMl",
    "BanditBO",
    "BayesianOptimisation",
    "Contest",
    "DivBO",
    "EnsembleContest",
    "EnsembleGain",
    "EnsembleOptimisation",
    "FixedDivBO",
    "Latent",
    "MaxUCB",
    "OptDivBO",
    "Preset",
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
