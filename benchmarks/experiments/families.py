"""Whether one more family in the ensemble of a run would help: best weights on half of the rows, judged on the others.

    python -m benchmarks.experiments.families my-run another-run --out benchmarks/results/families.csv

For runs on tables of two classes, with holdout. Of each family (algorithm) the three trials with the lowest loss take
part. Weights are the best convex ones, not those of a greedy selection, so that nothing is left out for its coarseness;
in the last rows each of three families must have a share of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.runs.code_version import commit
from benchmarks.runs.row_file import RowFile
from cashmere.base.arrays import Float64
from cashmere.run.run_directory import RunDirectory
from cashmere.storage.trial_tables import algorithm_name

Probabilities = Float64

_TRIALS = 3
_LEAST_SHARES = (0.05, 0.1, 0.2)


@dataclass(frozen=True, slots=True, kw_only=True)
class FamiliesRow:
    """The loss with the best weights of the best trials of some families of one run.

    Attributes
    ----------
    run : str
        Name of the run directory.
    trials : int
        Of the run that have predictions.
    families : int
        The best so many take part.
    names : str
        Their algorithms, by ascending loss of the best trial.
    least : float
        Each family has at least this share of the weight.
    loss : float
        Mean log loss on each half of the validation rows with weights from the other.
    commit : str
        Of the code.
    """

    run: str
    trials: int
    families: int
    names: str
    least: float
    loss: float
    commit: str


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


def compare(folder: Path) -> Iterator[FamiliesRow]:
    """Yield the loss of the best one, two, three and all families of a run, and of three with a share for each."""
    with RunDirectory.open(folder) as run:
        y = np.asarray(run.rows.y, dtype=np.int64)[np.sort(run.splits[0].validation)]
        observations = run.store.load(run.space.configuration_space).values()
    predicted = [o for o in observations if o.loss is not None and o.predictions is not None]
    by_family: dict[str, list[Probabilities]] = {}
    for o in sorted(predicted, key=lambda o: o.loss or 0.0):
        kept = by_family.setdefault(algorithm_name(dict(o.trial.configuration)), [])
        if len(kept) < _TRIALS:
            kept.append(np.asarray(o.predictions, dtype=np.float64)[:, 1])
    names, families = list(by_family), list(by_family.values())
    half = np.random.default_rng(0).permutation(len(y)) < len(y) // 2
    shares = [(n, 0.0) for n in sorted({1, 2, 3, len(families)})] + [(3, least) for least in _LEAST_SHARES]
    for n, least in shares:
        yield FamiliesRow(
            run=folder.name,
            trials=len(predicted),
            families=n,
            names=" ".join(names[:n]),
            least=least,
            loss=judged(families[:n], y, half, least),
            commit=commit(),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, help="run directories")
    parser.add_argument("--out", type=Path, default=Path(".replay/families.csv"), help="rows; grows")
    arguments = parser.parse_args()
    file = RowFile(arguments.out, FamiliesRow)
    done = file.keys("run")
    for folder in arguments.folders:
        if (folder.name,) not in done:
            file.add(compare(folder))
    rows = file.frame(run=[folder.name for folder in arguments.folders])
    print(rows.pivot(index=["families", "least"], columns="run", values="loss").to_string(float_format="%.5f"))


if __name__ == "__main__":
    main()
