"""Target means of a large table, learned from the rows of the first rung, of the model's own rung, or of all.

    python -m benchmarks.experiments.encoder_rows --seeds 3

A made-up table of 330,000 rows: six numbers, a category of 8000 levels, most of them rare, and one of 50. For every
rung, LightGBM (150 rounds) and a logistic regression are judged by the log loss on 30,000 held-out rows. The same
command continues an interrupted one.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.runs.row_file import RowFile
from cashmere.base.arrays import AnyArray, IntArray
from cashmere.data.inference import infer_schema
from cashmere.data.preparation import FoldEncoder
from cashmere.data.rungs import rows_at, rung_order, rungs
from cashmere.data.schema import CodedTable
from cashmere.data.task import Encoding, TaskType

N_TRAIN, N_HELD_OUT = 300_000, 30_000
N_RARE, N_FREQUENT = 8000, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderRow:
    """Losses on the rows of one rung.

    Attributes
    ----------
    seed, rows
        Of the table; rows that the learners were fitted on.
    means : str
        The rows that the target means were learned from: ``"first rung"``, ``"own rung"`` or ``"all rungs"``.
    lightgbm, logistic : float
        Log losses on held-out rows.
    """

    seed: int
    rows: int
    means: str
    lightgbm: float
    logistic: float


def draw(seed: int) -> tuple[CodedTable, IntArray]:
    """Return a coded table and its classes."""
    rng = np.random.default_rng(seed)
    n = N_TRAIN + N_HELD_OUT
    shares = 1 / np.arange(1, N_RARE + 1) ** 0.7
    rare, frequent = rng.choice(N_RARE, n, p=shares / shares.sum()), rng.integers(N_FREQUENT, size=n)
    rare_effect, frequent_effect = 1.2 * rng.normal(size=N_RARE), rng.normal(size=N_FREQUENT)
    x = rng.normal(size=(n, 6))
    log_odds = rare_effect[rare] + frequent_effect[frequent] * x[:, 0] + 0.7 * x[:, 1] + 0.8 * x[:, 2] * x[:, 3]
    frame = pd.DataFrame(x, columns=list("uvwxyz"))
    frame["rare"] = pd.Categorical([f"l{i}" for i in rare])
    frame["frequent"] = pd.Categorical([f"l{i}" for i in frequent])
    return infer_schema(frame).code(frame), (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(np.int64)


def losses(X: AnyArray, y: IntArray, held_out: AnyArray, y_held_out: IntArray) -> list[float]:
    """Return the log losses of both learners."""
    from lightgbm import LGBMClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    learners = [
        LGBMClassifier(n_estimators=150, verbose=-1, random_state=0, n_jobs=1),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ]
    return [float(log_loss(y_held_out, each.fit(X, y).predict_proba(held_out)[:, 1])) for each in learners]


def measure(seed: int, done: Collection[tuple[int, int, str]]) -> Iterator[EncoderRow]:
    """Yield what is not done of a table: for every rung and every source of the means."""
    coded, y = draw(seed)
    held_out = np.arange(N_TRAIN, N_TRAIN + N_HELD_OUT)
    train = rung_order(y[:N_TRAIN], TaskType.BINARY, seed)
    sizes = [rows_at(share, N_TRAIN) for share in rungs(N_TRAIN)]
    for size in sizes:
        for name, learned in (("first rung", sizes[0]), ("own rung", size), ("all rungs", N_TRAIN)):
            if (seed, size, name) in done:
                continue
            encoder = FoldEncoder.for_schema(Encoding.TARGET, coded.schema)
            first = train[: max(learned, size)]
            others = encoder.fit(coded.values[train[:learned]], (), y[train[:learned]], TaskType.BINARY, 0)
            X = encoder.transform(coded.take(first))
            others.overwrite(X, coded.values[first])
            lightgbm, logistic = losses(X[:size], y[first[:size]], encoder.transform(coded.take(held_out)), y[held_out])
            yield EncoderRow(seed=seed, rows=size, means=name, lightgbm=lightgbm, logistic=logistic)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(".replay/encoder_rows.csv"), help="rows; grows")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # LightGBM warns about column names
    file = RowFile(arguments.out, EncoderRow)
    for seed in range(arguments.seeds):
        for row in measure(seed, file.keys("seed", "rows", "means")):
            file.add([row])
            print(
                f"seed {row.seed}, {row.rows} rows, means from {row.means}: log loss of LightGBM {row.lightgbm:.4f}, "
                f"of logistic regression {row.logistic:.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
