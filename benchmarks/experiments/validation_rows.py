"""How well so many validation rows tell configurations on a large table apart.

    python -m benchmarks.experiments.validation_rows --data large

Six settings of LightGBM are fitted on 150,000 rows of the table `large_1000000` (`python -m benchmarks large`) and
compared on the last 400,000. Prints the standard error of the difference of two log losses, and how much worse than the
best of the six the one is that so many rows choose, mean over 300 draws.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.tables.manifest import add_data_argument, find_tables

N_TRAIN, N_COMPARED = 150_000, 400_000
SETTINGS: list[dict[str, Any]] = [
    {"n_estimators": 100, "num_leaves": 31},
    {"n_estimators": 110, "num_leaves": 31},
    {"n_estimators": 100, "num_leaves": 40},
    {"n_estimators": 150, "num_leaves": 24, "learning_rate": 0.08},
    {"n_estimators": 100, "num_leaves": 31, "feature_fraction": 0.8},
    {"n_estimators": 60, "num_leaves": 63},
]


def main() -> None:
    from lightgbm import LGBMClassifier

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_argument(parser)
    parser.add_argument("--draws", type=int, default=300)
    arguments = parser.parse_args()
    (table,) = find_tables(arguments.data, ["large_1000000"])
    X, target = table.read()
    y = (target == "yes").to_numpy()
    rows = []
    for setting in SETTINGS:
        model = LGBMClassifier(verbose=-1, random_state=0, n_jobs=1, **setting).fit(X[:N_TRAIN], y[:N_TRAIN])
        chance = np.asarray(model.predict_proba(X[-N_COMPARED:]))[:, 1]
        rows.append(-np.log(np.where(y[-N_COMPARED:], chance, 1 - chance)))
    losses = np.array(rows)
    means = losses.mean(axis=1)
    print("log losses", means.round(4))
    i, j = np.triu_indices(len(losses), 1)
    deviation = np.median((losses[i] - losses[j]).std(axis=1))
    rng = np.random.default_rng(0)
    for n_rows in (5_000, 20_000, 100_000):
        drawn = (rng.integers(N_COMPARED, size=n_rows) for _ in range(arguments.draws))
        regret = np.mean([means[losses[:, chosen].mean(axis=1).argmin()] - means.min() for chosen in drawn])
        error = deviation / np.sqrt(n_rows)
        print(f"{n_rows} rows: standard error of a difference {error:.5f}, chosen is worse by {regret:.5f}", flush=True)


if __name__ == "__main__":
    main()
