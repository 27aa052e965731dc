"""Run two trials at a time. The result is the same as with one at a time, bit for bit.

No ``if __name__ == "__main__"`` is needed: workers never run this script again.
"""

import time

import numpy as np

from cashmere import AutoClassifier
from cashmere.data import DEMO_TARGET, demo_table
from cashmere.space import make_space


def quick(profile):
    """Restrict the default space to two cheap algorithms; workers receive functions of scripts and notebooks."""
    return make_space("default", profile).restricted_to(["lightgbm", "logistic_regression"])


table = demo_table()
X, y = table.drop(columns=DEMO_TARGET), table[DEMO_TARGET]

probabilities = {}
for n_workers in (1, 2):
    start = time.perf_counter()
    model = AutoClassifier(budget="8trials", n_workers=n_workers, space=quick, resampling="holdout").fit(X, y)
    probabilities[n_workers] = model.predict_proba(X)
    best = model.leaderboard_.iloc[0]
    seconds = time.perf_counter() - start
    print(f"{n_workers} worker(s): best trial {best.trial} ({best.algorithm}, loss {best.loss:.6f}), {seconds:.1f} s")

assert np.array_equal(probabilities[1], probabilities[2])
print("The predictions are equal, bit for bit.")
