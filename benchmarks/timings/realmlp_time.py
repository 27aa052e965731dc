"""Milliseconds of a step of RealMLP, written out in numpy, against PyTorch; seconds until PyTorch can take the first.

    python -m benchmarks.timings.realmlp_time [--columns 10 60] [--repeats 5] --out FILE

Random columns of numbers, batches of 256 rows, the default network without dropout, one thread. Medians of the CPU time
of 20 steps (gradient and AdamW). A fresh process counts what importing PyTorch and making its optimiser takes. Rows
are added to the file; what it holds is not measured again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.runs.code_version import commit
from benchmarks.runs.row_file import RowFile
from cashmere.space.estimators.realmlp import RealMLPClassifier, RealMLPRegressor
from cashmere.space.estimators.realmlp_training import RealMLPTraining

BATCH, N_STEPS = 256, 20

FIRST_STEP = """
import time; start = time.perf_counter(); import torch; imported = time.perf_counter()
torch.optim.AdamW([torch.zeros(1, requires_grad=True)], foreach=True)
print(imported - start, time.perf_counter() - imported)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """How long a step takes, or what comes before the first one.

    Attributes
    ----------
    columns, n_classes : int
        Of the batch; 0 for what comes before.
    what : str
        ``"numpy"``, ``"PyTorch"``, ``"import"`` or ``"optimiser"``.
    repeats : int
        How often it was timed.
    milliseconds : float
        Median CPU time of a step; wall time of what comes before.
    commit : str
        Version of the code.
    """

    columns: int
    n_classes: int
    what: str
    repeats: int
    milliseconds: float
    commit: str


def loss_in_pytorch(
    weights: dict[str, Any], x: Any, embedded: Any, *, y: Any, weight: Any, kept: Sequence[Any] = (), n_classes: int
) -> Any:
    """Return RealMLP's mean loss as a PyTorch scalar.

    Parameters
    ----------
    weights : dict
        Tensors, or lists of them, by the names of `cashmere.space.estimators.realmlp.WEIGHTS`.
    x, embedded : tensor
        Scaled columns ``(n, d)``, and those that are embedded ``(n, e)``.
    y, weight : (n,) tensor
        Classes or values; weights of the rows.
    kept : sequence of (n, width) tensors
        Factors of the outputs of the hidden layers; empty without dropout.
    n_classes : int
        1 for regression.
    """
    import torch
    from torch.nn import functional

    if embedded.shape[1]:
        columns = embedded.T[:, :, None]
        waves = torch.cos(columns * weights["frequencies_"][:, None] + weights["phases_"][:, None])
        embeddings = waves @ weights["mixing_"] + weights["shifts_"][:, None]
        x = torch.cat([x, embeddings.transpose(0, 1).flatten(1)], dim=1)
    values = x * weights["front_"]
    activation = functional.mish if n_classes == 1 else functional.selu
    *hidden, last = zip(weights["coefs_"], weights["intercepts_"], strict=True)
    for k, ((W, b), s) in enumerate(zip(hidden, weights["slopes_"], strict=True)):
        values = values @ W + b
        values = torch.lerp(values, activation(values), s)
        if kept:
            values = values * kept[k]
    outputs = values @ last[0] + last[1]
    if n_classes == 1:
        losses = (outputs[:, 0] - y) ** 2 / 2
    elif n_classes == 2:
        losses = functional.binary_cross_entropy_with_logits(outputs[:, 0], y, reduction="none")
    else:
        losses = functional.cross_entropy(outputs, y, reduction="none")
    return (losses * weight).mean()


def as_tensors(weights: dict[str, Any]) -> dict[str, Any]:
    """Return copies of weights as PyTorch's leaves."""
    import torch

    return {
        name: [torch.from_numpy(each.copy()).requires_grad_() for each in value]
        if isinstance(value, list)
        else torch.from_numpy(value.copy()).requires_grad_()
        for name, value in weights.items()
    }


def milliseconds(step: Callable[[], None], repeats: int) -> float:
    """Return the median CPU time of a step."""
    step()
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(N_STEPS):
            step()
        taken.append(1e3 * (time.process_time() - start) / N_STEPS)
    return float(np.median(taken))


def steps(n_classes: int, n_columns: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return a step of a training in numpy, and the same in PyTorch."""
    import torch

    rng = np.random.default_rng(0)
    X = rng.normal(size=(BATCH, n_columns))
    y = X[:, 0] if n_classes == 1 else rng.integers(n_classes, size=BATCH)
    network = (RealMLPRegressor if n_classes == 1 else RealMLPClassifier)(dropout=0.0)
    training = RealMLPTraining(network, X, y)

    weights = as_tensors(network.weights())
    leaves = [each for value in weights.values() for each in (value if isinstance(value, list) else [value])]
    optimiser = torch.optim.AdamW(leaves, lr=network.learning_rate, betas=(0.9, 0.95), foreach=True)
    x, target = (
        torch.from_numpy(network.scaled(X)),
        torch.from_numpy(np.asarray(y, np.int64 if n_classes > 2 else "f4")),
    )
    ones = torch.ones(BATCH)

    def in_pytorch() -> None:
        optimiser.zero_grad()
        loss_in_pytorch(weights, x, x, y=target, weight=ones, n_classes=n_classes).backward()
        optimiser.step()

    def in_numpy() -> None:  # with one batch, an epoch is a step
        training.learn(training.n_epochs + 1)

    return in_numpy, in_pytorch


def main() -> None:
    """Measure what the file lacks, and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", nargs="+", type=int, default=[10, 60])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(".timings/realmlp_time.csv"), help="rows; grows")
    arguments = parser.parse_args()

    file = RowFile(arguments.out, StepTime)
    done = file.keys("columns", "n_classes", repeats=arguments.repeats)

    def keep(columns: int, n_classes: int, taken: dict[str, float]) -> None:
        shared = {"columns": columns, "n_classes": n_classes, "repeats": arguments.repeats, "commit": commit()}
        file.add(StepTime(what=what, milliseconds=round(ms, 3), **shared) for what, ms in taken.items())

    if (0, 0) not in done:
        command = [sys.executable, "-c", FIRST_STEP]
        done_before = subprocess.run(command, capture_output=True, text=True, check=True)
        imported, made = (1000 * float(text) for text in done_before.stdout.split())
        keep(0, 0, {"import": imported, "optimiser": made})

    import torch

    torch.set_num_threads(1)
    for n_columns in arguments.columns:
        for n_classes in (1, 2, 5):
            if (n_columns, n_classes) not in done:
                ours, theirs = (milliseconds(step, arguments.repeats) for step in steps(n_classes, n_columns))
                keep(n_columns, n_classes, {"numpy": ours, "PyTorch": theirs})
    print(file.frame(repeats=arguments.repeats).drop(columns=["repeats", "commit"]).to_string(index=False))


if __name__ == "__main__":
    main()
