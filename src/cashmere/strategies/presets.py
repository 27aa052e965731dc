"""Presets: strategies with certain options, which papers report under separate names."""

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
        "Choose like `contest` by the highest value, with `bo4ml` inside: the paper's DAC-HB.",
    ),
    "dac_hh": Preset(
        Contest,
        {"elimination": "highest", "inner": _HYPEROPT},
        "Choose like `contest` by the highest value, with hyperopt's Parzen estimators inside: the paper's DAC-HH.",
    ),
    "dac_sb": Preset(
        Contest,
        {"elimination": "statistical", "inner": BO4ML},
        "Choose like `contest` by statistical tests, with `bo4ml` inside: the paper's DAC-SB.",
    ),
    "dac_sh": Preset(
        Contest,
        {"elimination": "statistical", "inner": _HYPEROPT},
        "Choose like `contest` by statistical tests, with hyperopt's Parzen estimators inside: the paper's DAC-SH.",
    ),
    "rb_smac": Preset(RisingBandit, {"inner": SMAC}, "Choose like `rising_bandit`, with `smac` inside: RB-SMAC."),
}
"""Presets by registered name; each has the reference of its strategy."""
