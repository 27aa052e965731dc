"""Strategies that are others with some options: searches that papers report under names of their own."""

from __future__ import annotations

from cashmere.strategies.bo4ml import BO4ML
from cashmere.strategies.contest import Contest
from cashmere.strategies.rising_bandit import RisingBandit
from cashmere.strategies.shared.factories import Preset
from cashmere.strategies.smac import SMAC
from cashmere.strategies.tpe import TPE

_HYPEROPT = Preset(TPE, {"density": "independent"})
"""Parzen estimators by hyperopt's rules, as in the DACOpt paper."""

PRESETS: dict[str, Preset] = {
    "dac_hb": Preset(
        Contest,
        {"elimination": "highest", "inner": BO4ML},
        "Decides like `Contest` by the highest value, with BO4ML inside: DAC-HB of the paper.",
    ),
    "dac_hh": Preset(
        Contest,
        {"elimination": "highest", "inner": _HYPEROPT},
        "Decides like `Contest` by the highest value, with hyperopt's Parzen estimators inside: DAC-HH of the paper.",
    ),
    "dac_sb": Preset(
        Contest,
        {"elimination": "statistical", "inner": BO4ML},
        "Decides like `Contest` by statistics, with BO4ML inside: DAC-SB of the paper.",
    ),
    "dac_sh": Preset(
        Contest,
        {"elimination": "statistical", "inner": _HYPEROPT},
        "Decides like `Contest` by statistics, with hyperopt's Parzen estimators inside: DAC-SH of the paper.",
    ),
    "rb_smac": Preset(RisingBandit, {"inner": SMAC}, "Decides like `RisingBandit`, with SMAC inside: RB-SMAC."),
}
"""Presets by the name under which they are registered; their reference is that of the strategy."""
