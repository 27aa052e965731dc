"""Objectives of boosters under which the sum of the trees is the logarithm of the value: deviances."""

from __future__ import annotations

LOGS_OF_LIGHTGBM = ("poisson", "gamma", "tweedie")
LOGS_OF_XGBOOST = ("count:poisson", "reg:gamma", "reg:tweedie")
LOGS_OF_HISTOGRAMS = ("poisson", "gamma")
