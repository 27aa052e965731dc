"""Whether one more family in the ensemble of a run would help: best weights on half of the rows, judged on the others.

    python -m benchmarks.experiments.families my-run

For a run on a table of two classes, with holdout. Of each family (algorithm) the three trials with the lowest loss take
part. Weights are the best convex ones, not those of a greedy selection, so that nothing is left out for its coarseness;
in the last rows each of three families must have a share of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from cashmere.base.arrays import Float64
from cashmere.run.run_directory import RunDirectory
from cashmere.storage.trial_tables import algorithm_name

Probabilities = Float64

_TRIALS = 3
_LEAST_SHARES = (0.05, 0.1, 0.2)


def loss(weights: Probabilities, stack: Probabilities, y: NDArray[np.int64]) -> float:
    """Return the log loss of weighted probabilities of the second class, `stack` being ``(n_members, n_rows)``."""
    p = np.clip(weights @ stack, 1e-7, 1 - 1e-7)
    return -float(np.mean(np.log(np.where(y == 1, p, 1 - p))))


def best_weights(
    stack: Probabilities, family: NDArray[np.int64], y: NDArray[np.int64], least: float = 0.0
) -> Probabilities:
    """Return the convex weights with the lowest loss that give each family at least a share."""
    constraints: list[Any] = [{"type": "eq", "fun": lambda w: w.sum() - 1}]
    if least:
        constraints += [{"type": "ineq", "fun": lambda w, k=k: w[family == k].sum() - least} for k in np.unique(family)]
    start = np.full(len(stack), 1 / len(stack))
    found = minimize(
        loss, start, args=(stack, y), bounds=[(0, 1)] * len(stack), constraints=constraints, method="SLSQP"
    )
    weights: Probabilities = np.maximum(found.x, 0) / np.maximum(found.x, 0).sum()
    return weights


def judged(
    families: Sequence[Sequence[Probabilities]], y: NDArray[np.int64], half: NDArray[np.bool_], least: float = 0.0
) -> float:
    """Return the mean loss on each half of the rows with weights from the other."""
    stack = np.array([each for family in families for each in family])
    owner = np.array([k for k, family in enumerate(families) for _ in family])
    losses = []
    for chosen_on in (half, ~half):
        weights = best_weights(stack[:, chosen_on], owner, y[chosen_on], least)
        losses.append(loss(weights, stack[:, ~chosen_on], y[~chosen_on]))
    return float(np.mean(losses))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a run directory")
    with RunDirectory.open(parser.parse_args().folder) as run:
        y = np.asarray(run.rows.y, dtype=np.int64)[np.sort(run.splits[0].validation)]
        observations = run.store.load(run.space.configuration_space).values()
    by_family: dict[str, list[tuple[float, Probabilities]]] = {}
    for o in sorted((o for o in observations if o.loss is not None), key=lambda o: o.loss or 0.0):
        assert o.loss is not None and o.predictions is not None
        kept = by_family.setdefault(algorithm_name(dict(o.trial.configuration)), [])
        if len(kept) < _TRIALS:
            kept.append((o.loss, np.asarray(o.predictions, dtype=np.float64)[:, 1]))
    families = [[p for _, p in kept] for kept in by_family.values()]
    half = np.random.default_rng(0).permutation(len(y)) < len(y) // 2
    for name, kept in by_family.items():
        print(f"{name:<24} {kept[0][0]:.4f}")
    for n in sorted({1, 2, 3, len(families)}):
        print(f"the best {n:<15} {judged(families[:n], y, half):.5f}")
    for least in _LEAST_SHARES:
        print(f"three, each {least:<12.0%} {judged(families[:3], y, half, least):.5f}")


if __name__ == "__main__":
    main()
