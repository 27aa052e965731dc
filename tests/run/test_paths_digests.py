"""Runs whose trials follow paths are the same for any number of workers, if their budget is a number of trials."""

from __future__ import annotations

import pytest

from cashmere import AutoClassifier
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.space import make_space
from cashmere.storage.store import RunStore

SPACE = "default"
FEW = ["lightgbm", "logistic_regression", "knn"]


def few(profile):
    return make_space(SPACE, profile).restricted_to(FEW)


def fit(folder, n_workers, space, n_rows, n_trials, resampling):
    """Return the digest of a run, and the path of each trial."""
    table = demo_table().head(n_rows)
    model = AutoClassifier(
        space=space,
        resampling=resampling,
        budget=f"{n_trials}trials",
        n_workers=n_workers,
        run_directory=folder,
        random_state=3,
    )
    model.fit(table.drop(columns=DEMO_TARGET), table[DEMO_TARGET])
    with RunStore(folder, read_only=True) as store:
        digest = store.facts().digest
    return digest, [o.outcome.path for o in model.study_.history]


@pytest.mark.parametrize(
    ("space", "n_rows", "n_trials", "resampling"),
    [
        pytest.param(few, 160, 8, "holdout", id="few"),
        pytest.param(SPACE, 1000, 30, "auto", id="all", marks=pytest.mark.slow),
    ],
)
def test_digests_are_equal_for_1_2_and_4_workers(tmp_path, space, n_rows, n_trials, resampling):
    runs = [fit(tmp_path / f"{n}", n, space, n_rows, n_trials, resampling) for n in (1, 2, 4)]
    digests, paths = zip(*runs, strict=True)
    assert len(set(digests)) == 1
    assert paths[0] == paths[1] == paths[2]
    assert sum(path is not None for path in paths[0]) >= n_trials / 3  # neighbours and support vectors have none
