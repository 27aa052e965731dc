"""Combine many predictions into one."""

from cashmere.ensembles.build import METHODS, Ensemble, EnsembleMethod, build_ensemble, ensemble_from_json
from cashmere.ensembles.selection import IncrementalSelection, SelectionResult, TieRule, choose_rows, select_ensemble
from cashmere.ensembles.stacking import StackedEnsemble, fit_stacking, stacked_ensemble
from cashmere.ensembles.weights import (
    WeightedEnsemble,
    bagging,
    bagging_weights,
    ensemble_of_selection,
    greedy_ensemble,
    mean_ensemble,
)

__all__ = [
    "METHODS",
    "Ensemble",
    "EnsembleMethod",
    "IncrementalSelection",
    "SelectionResult",
    "StackedEnsemble",
    "TieRule",
    "WeightedEnsemble",
    "bagging",
    "bagging_weights",
    "build_ensemble",
    "choose_rows",
    "ensemble_from_json",
    "ensemble_of_selection",
    "fit_stacking",
    "greedy_ensemble",
    "mean_ensemble",
    "select_ensemble",
    "stacked_ensemble",
]
