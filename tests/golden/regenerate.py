"""Write the golden trajectories again: ``python tests/golden/regenerate.py [strategy ...]``. Review the diff.

A golden trajectory is a short run on a tabulated objective: a finite space, so that the configurations do not depend
on the last bits of a machine's arithmetic.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace, EqualsCondition, Integer, OrdinalHyperparameter

from cashmere.data.task import TaskType
from cashmere.evaluation.metrics import get_metric
from cashmere.records.trial import History, Observation, Outcome, Trial, TrialStatus, configuration_key
from cashmere.records.work_budget import WorkBudget
from cashmere.strategies import make_strategy, strategy_names

FOLDER = Path(__file__).parent
N_TRIALS = 30

OPTIONS = {"nes": "population=8"}
"""Of strategies whose random start would take all of the trials."""


def tabulated_space() -> ConfigurationSpace:
    """Return a finite space of three algorithms."""
    space = ConfigurationSpace(name="golden", seed=0)
    algorithm = CategoricalHyperparameter("algorithm", ["svm", "forest", "knn"])
    kernel, cost = CategoricalHyperparameter("kernel", ["linear", "poly", "rbf"]), Integer("cost", (1, 20))
    trees, depth = OrdinalHyperparameter("trees", [10, 30, 100, 300]), Integer("depth", (1, 15))
    k = Integer("k", (1, 31))
    scaler = CategoricalHyperparameter("scaler", ["none", "standard"])
    space.add([algorithm, kernel, cost, trees, depth, k, scaler])
    space.add([EqualsCondition(child, algorithm, "svm") for child in (kernel, cost)])
    space.add([EqualsCondition(child, algorithm, "forest") for child in (trees, depth)])
    space.add(EqualsCondition(k, algorithm, "knn"))
    return space


def tabulated_loss(configuration) -> float | None:
    """Return the loss in thousandths, made of whole numbers; None for the configurations that fail."""
    values = dict(configuration)
    thousandths = 20 if values["scaler"] == "none" else 0
    if values["algorithm"] == "svm":
        if values["kernel"] == "poly" and values["cost"] > 15:
            return None
        thousandths += 250 + 40 * ["rbf", "linear", "poly"].index(values["kernel"]) + 3 * abs(values["cost"] - 9)
    elif values["algorithm"] == "forest":
        thousandths += 180 + 15 * [300, 100, 30, 10].index(values["trees"]) + 8 * abs(values["depth"] - 11)
    else:
        thousandths += 300 + 5 * abs(values["k"] - 7)
    return thousandths / 1000


TARGETS = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 0])
METRIC = get_metric("brier", TaskType.BINARY)


def tabulated_predictions(configuration) -> np.ndarray:
    """Return probabilities of ten rows, in sixteenths, that depend on the configuration and are right on average."""
    digits = np.array([int(digit, 16) for digit in configuration_key(configuration)[:10]])
    right = (8 + digits // 2) / 16
    return np.stack([np.where(TARGETS == 0, right, 1 - right), np.where(TARGETS == 1, right, 1 - right)], axis=1)


def run_trajectory(name: str) -> list[dict[str, object]]:
    """Return number, origin, key and loss of every trial, with two trials pending."""
    strategy = make_strategy(f"{name}:{OPTIONS[name]}" if name in OPTIONS else name, tabulated_space())
    done: list[Observation] = []
    for number in range(N_TRIALS):
        suggestion = None
        for committed in range(max(0, number - 2), number + 1):
            history = History(
                observations=tuple(done[:committed]),
                pending=tuple(o.trial for o in done[committed:]),
                worst_loss=1.0,
                metric=METRIC,
                targets=TARGETS.astype(np.float64),
                budget=WorkBudget(trials=N_TRIALS),
            )
            suggestion = strategy.suggest(history, np.random.default_rng([7, number]))
            if suggestion is not None:
                break
        trial = Trial(number=number, configuration=suggestion.configuration, seed=number, origin=suggestion.origin)
        loss = tabulated_loss(trial.configuration)
        status = TrialStatus.ERROR if loss is None else TrialStatus.SUCCESS
        predictions = None if loss is None else tabulated_predictions(trial.configuration)
        done.append(Observation(trial=trial, outcome=Outcome(status=status, loss=loss, predictions=predictions)))
    return [
        {
            "number": o.trial.number,
            "origin": str(o.trial.origin),
            "key": configuration_key(o.trial.configuration),
            "loss": None if o.loss is None else round(o.loss, 6),
        }
        for o in done
    ]


def main() -> None:
    """Write one JSON file per strategy, a line per trial."""
    for name in sys.argv[1:] or strategy_names():
        lines = ",\n ".join(json.dumps(trial) for trial in run_trajectory(name))
        (FOLDER / f"{name.partition(':')[0]}.json").write_text(f"[\n {lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
