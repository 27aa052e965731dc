"""Run the trials on a Dask cluster, here one with two workers on this machine. The result is that of one machine.

Needs the extra `dask`. Dask itself starts its workers by running this script again: hence the last lines.
"""

import numpy as np
from distributed import Client, LocalCluster

from cashmere import AutoClassifier
from cashmere.data import DEMO_TARGET, demo_table
from cashmere.space import make_space


def quick(profile):
    """Restrict the default space to two cheap algorithms; functions travel to the workers."""
    return make_space("default", profile).restricted_to(["lightgbm", "logistic_regression"])


def main():
    table = demo_table()
    X, y = table.drop(columns=DEMO_TARGET), table[DEMO_TARGET]
    options = {"budget": "4trials", "space": quick, "resampling": "holdout"}

    here = AutoClassifier(n_workers=1, **options).fit(X, y)
    print(f"This machine: {len(here.leaderboard_)} trials, best {here.leaderboard_.iloc[0].algorithm}")

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        there = AutoClassifier(executor=client, **options).fit(X, y)
        print(f"Cluster: {len(there.leaderboard_)} trials, best {there.leaderboard_.iloc[0].algorithm}")
        print(f"The client is still {client.status}.")

    assert np.array_equal(here.predict_proba(X), there.predict_proba(X))
    print("The predictions are equal, bit for bit.")


if __name__ == "__main__":
    main()
