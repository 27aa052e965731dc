from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from fake_runs import make_run, make_space, predictions_of

from cashmere.analysis import (
    kendall_tau,
    minimum_diversity,
    pairwise_disagreement,
    pairwise_diversity,
    pool_trajectory,
    pool_updates,
    read_predictions,
    surrogate_tau,
    trace_pool,
)
from cashmere.ensembles import select_ensemble
from cashmere.evaluation.metrics import METRICS
from cashmere.exceptions import ArrayError, CorruptStoreError, MissingParameterError, RunDirectoryError
from cashmere.records.trial import History, Observation, Outcome, Trial, TrialStatus
from cashmere.surrogates.pairwise import PairwiseSurrogate
from cashmere.surrogates.prediction import PredictionSurrogate

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "analysis_metrics.json").read_text())


def random_trials(rng, *, n_trials=14, n_rows=40, n_classes=3):
    """Return targets, and predictions with some failures; values if there is one class."""
    if n_classes == 1:
        y = rng.normal(size=n_rows)
        stacks = [y + rng.normal(size=n_rows) for _ in range(n_trials)]
    else:
        y = rng.integers(n_classes, size=n_rows)
        stacks = [rng.dirichlet(np.ones(n_classes) / 2, size=n_rows) + np.eye(n_classes)[y] for _ in range(n_trials)]
        stacks = [stack / stack.sum(axis=1, keepdims=True) for stack in stacks]
    failed = rng.random(n_trials) < 0.3
    return y, [None if fails else stack.astype(np.float32) for fails, stack in zip(failed, stacks, strict=True)]


def history_of(y, stacks, metric, **options) -> History:
    space = make_space()
    configurations = space.sample_configuration(max(2, len(stacks)))
    observations = [
        Observation(
            trial=Trial(number=i, configuration=configurations[i], seed=i),
            outcome=Outcome(
                status=TrialStatus.ERROR if stack is None else TrialStatus.SUCCESS,
                loss=None if stack is None else metric.loss(y, stack),
                predictions=stack,
            ),
        )
        for i, stack in enumerate(stacks)
    ]
    return History(observations=tuple(observations), metric=metric, targets=np.asarray(y, dtype=float), **options)


def distance(f, g, weight):
    """Compute eq. 3, or the root of its variant for values, row by row."""
    rows = [float(np.linalg.norm(a - b)) for a, b in zip(f.astype(float), g.astype(float), strict=True)]
    if f.ndim == 1:
        return np.sqrt(np.average(np.square(rows), weights=weight))
    return np.sqrt(2) / 2 * np.average(rows, weights=weight)


# ---------------------------------------------------------------- trajectory


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "n_classes"), [("log_loss", 2), ("log_loss", 3), ("accuracy", 3), ("f1_macro", 2), ("rmse", 1)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_trajectory_equals_separate_selections(name, n_classes, seed, weighted):
    rng = np.random.default_rng(seed)
    y, stacks = random_trials(rng, n_classes=n_classes)
    metric = METRICS[name]
    weight = rng.uniform(0.5, 2, size=len(y)) if weighted else None
    history = history_of(y, stacks, metric, row_weights=weight)
    found = pool_trajectory(history, size=6)
    pool, loss = (), np.inf
    minima = []
    for t, stack in enumerate(stacks):
        expected = np.nan
        if stack is not None and pool:
            expected = min(distance(stack, stacks[k], weight) for k in set(pool))
        np.testing.assert_allclose(found.minimum_diversity[t], expected, rtol=1e-6)
        if stack is not None:
            minima.append(expected)
        seen = [k for k in range(t + 1) if stacks[k] is not None]
        before, loss_before = pool, loss
        if seen:
            result = select_ensemble([stacks[k] for k in seen], y, metric, size=6, weight=weight)
            pool, loss = tuple(sorted(seen[k] for k in result.order)), result.trajectory[-1]
            assert found.losses[t] == loss
            np.testing.assert_allclose(found.member_losses[t], np.mean([history[k].loss for k in set(pool)]))
        else:
            assert np.isnan([found.losses[t], found.member_losses[t]]).all()
        assert found.pools[t] == pool
        assert found.changed[t] == (pool != before)
        assert found.effective[t] == (pool != before and loss < loss_before)
    np.testing.assert_allclose(minimum_diversity(history, size=6), minima, rtol=1e-6)
    for last in (1, 5, 100):
        expected = (found.changed[-last:].sum(), found.effective[-last:].sum())
        assert pool_updates(found, last=last) == expected
    assert found.frame()["n_members"].tolist() == [len(set(pool)) for pool in found.pools]


def test_non_finite_predictions_count_as_failures():
    y, stacks = random_trials(np.random.default_rng(0), n_classes=1, n_trials=8)
    stacks[4] = np.full_like(y, np.nan)
    with_nan = trace_pool(stacks, np.arange(8.0), y, METRICS["rmse"])
    without = trace_pool([*stacks[:4], None, *stacks[5:]], np.arange(8.0), y, METRICS["rmse"])
    assert with_nan.pools == without.pools
    np.testing.assert_array_equal(with_nan.minimum_diversity, without.minimum_diversity)
    assert np.isnan(with_nan.minimum_diversity[4])


def test_no_success_means_no_pool():
    y = np.array([0, 1])
    for stacks in ([], [None, None]):
        found = trace_pool(stacks, [np.nan] * len(stacks), y, METRICS["log_loss"])
        assert found.pools == ((),) * len(stacks)
        assert pool_updates(found) == (0, 0)


@pytest.mark.parametrize(("n_trials", "max_pools", "n_last"), [(60, 20, 1), (260, 200, 100)])
def test_long_history_gets_its_pools_on_a_grid(n_trials, max_pools, n_last):
    y, stacks = random_trials(np.random.default_rng(0), n_trials=n_trials, n_classes=1)
    losses = np.zeros(n_trials)
    full, grid = (trace_pool(stacks, losses, y, METRICS["rmse"], size=4, max_pools=k) for k in (n_trials, max_pools))
    assert full.built.all()
    assert 0.9 * max_pools <= grid.built.sum() <= max_pools
    assert grid.built[-n_last:].all()
    assert grid.built[0]
    for t in range(n_trials):
        anchor = max(k for k in range(t + 1) if grid.built[k])
        assert grid.pools[t] == full.pools[anchor]
    assert pool_updates(grid, last=n_trials).updates <= pool_updates(full, last=n_trials).updates
    assert pool_updates(grid, last=n_last - 1) == pool_updates(full, last=n_last - 1)
    # The diversity of each trial is to the pool at hand, whether one is built after it or not.
    for t in range(1, n_trials):
        if stacks[t] is not None and grid.pools[t - 1]:
            expected = min(distance(stacks[t], stacks[k], None) for k in set(grid.pools[t - 1]))
            assert grid.minimum_diversity[t] == pytest.approx(expected)


def test_rows_are_bounded_and_chosen_reproducibly():
    y, stacks = random_trials(np.random.default_rng(1), n_rows=200)
    first, second = (trace_pool(stacks, np.zeros(14), y, METRICS["log_loss"], max_rows=30) for _ in range(2))
    assert first.n_rows == 30
    assert first.pools == second.pools
    np.testing.assert_array_equal(first.minimum_diversity, second.minimum_diversity)


def test_history_without_metric_or_targets_is_refused():
    y, stacks = random_trials(np.random.default_rng(0))
    history = history_of(y, stacks, METRICS["log_loss"])
    for missing in ({"metric": None}, {"targets": None}):
        fields = {"observations": history.observations, "metric": history.metric, "targets": history.targets, **missing}
        with pytest.raises(MissingParameterError, match="metric and targets"):
            pool_trajectory(History(**fields))
    fields = {"observations": history.observations, "targets": history.targets}
    assert pool_trajectory(History(**fields), metric=METRICS["log_loss"]).pools == pool_trajectory(history).pools


# ---------------------------------------------------------------- matrices


def test_disagreement_of_labels():
    expected = VECTORS["pairwise_disagreement"]
    np.testing.assert_allclose(pairwise_disagreement(VECTORS["pred_labels"]), expected)
    np.testing.assert_allclose(pairwise_disagreement(np.eye(3)[np.array(VECTORS["pred_labels"])]), expected)


@pytest.mark.parametrize("n_classes", [1, 2, 4])
def test_pairwise_diversity_is_symmetric_and_correct_for_each_pair(n_classes):
    rng = np.random.default_rng(n_classes)
    _, stacks = random_trials(rng, n_classes=n_classes, n_rows=9)
    stacks = [stack for stack in stacks if stack is not None]
    matrix = pairwise_diversity(stacks)
    assert (matrix == matrix.T).all()
    assert (np.diag(matrix) == 0).all()
    for i, j in itertools.combinations(range(len(stacks)), 2):
        assert matrix[i, j] == pytest.approx(distance(stacks[i], stacks[j], None), rel=1e-6)


# ---------------------------------------------------------------- rank correlation


def test_kendall_tau_with_ties():
    case = VECTORS["kendall_tau_b"]
    assert kendall_tau(case["a"], case["b"]) == pytest.approx(case["tau"], abs=1e-12)


@pytest.mark.parametrize("b", [[1.0, 1.0, 1.0], [1.0, np.nan, 2.0]])
def test_constant_or_missing_numbers_have_no_correlation(b):
    assert np.isnan(kendall_tau([1.0, 2.0, 3.0], b))
    assert np.isnan(kendall_tau(b, [1.0, 2.0, 3.0]))


def test_kendall_tau_refuses_arrays_of_different_lengths():
    with pytest.raises(ArrayError, match="equally many"):
        kendall_tau([1, 2], [1, 2, 3])


class Oracle:
    """Knows the predictions: a configuration is its position."""

    def __init__(self, stacks, sign=1.0):
        self.stacks, self.sign = stacks, sign

    def fit(self, X, predictions, y, rng):
        self.train = [int(row[0]) for row in X]
        for position, prediction in zip(self.train, predictions, strict=True):
            np.testing.assert_array_equal(prediction, self.stacks[position])
        return self

    def sample_pairs(self, candidates, members):
        exact = pairwise_diversity(self.stacks)[np.ix_(candidates[:, 0].astype(int), np.array(self.train)[members])]
        return self.sign * np.stack([exact - 1, exact + 1])


class FullOracle(Oracle):
    def predict_pairs(self, candidates, others):
        exact = pairwise_diversity(self.stacks)[np.ix_(candidates[:, 0].astype(int), others[:, 0].astype(int))]
        return -self.sign * exact, np.zeros_like(exact)


def test_tau_of_a_perfect_surrogate_and_of_its_opposite():
    y, stacks = random_trials(np.random.default_rng(3), n_trials=20)
    stacks = [stack for stack in stacks if stack is not None]
    X = np.arange(len(stacks), dtype=float)[:, None]
    split = np.arange(5), np.arange(5, len(stacks))
    right, wrong, full = (
        surrogate_tau(oracle, X, stacks, y, *split)
        for oracle in (Oracle(stacks), Oracle(stacks, sign=-1.0), FullOracle(stacks))
    )
    assert right.to_seen == pytest.approx(1)
    assert np.isnan(right.among_unseen)
    assert wrong.to_seen == pytest.approx(-1)
    assert full == pytest.approx((1, -1))


@pytest.mark.long
@pytest.mark.parametrize("name", ["prediction", "pairwise"])
def test_the_surrogates_of_the_package_can_be_judged(name):
    surrogate = PredictionSurrogate() if name == "prediction" else PairwiseSurrogate()
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=60)
    X = rng.random((40, 2))
    slope = np.where(y == 1, 1, -1) * rng.normal(size=60)
    positive = 1 / (1 + np.exp(-4 * (X[:, :1] - 0.5) * slope))
    stacks = list(np.stack([1 - positive, positive], axis=2))
    tau = surrogate_tau(surrogate, X, stacks, y, np.arange(30), np.arange(30, 40))
    assert tau.to_seen > 0.5
    assert tau.among_unseen > 0.5


# ---------------------------------------------------------------- run directories


@pytest.mark.parametrize("task", ["binary", "regression"])
@pytest.mark.parametrize("n_rows", [None, 100])
def test_predictions_of_a_run_are_read_with_their_targets(tmp_path, task, n_rows):
    run = make_run(tmp_path / "run", n_trials=5, failures={1: (TrialStatus.ERROR, "x")}, task=task, predictions=True,
                   classes=("bad", "good") if task == "binary" else ())  # fmt: skip
    found = read_predictions(run) if n_rows is None else read_predictions(run, max_rows=n_rows)
    assert [p is None for p in found.predictions] == [False, True, False, False, False]
    assert len(found.y) == len(found.predictions[0]) == (n_rows or 1000)
    assert np.isnan(found.losses[1])
    if n_rows is None:
        with np.load(run / "table.npz") as table:
            np.testing.assert_array_equal(found.y, table["y"])
        np.testing.assert_array_equal(found.predictions[3], predictions_of(found.y, task, 3))
    if task == "binary":
        assert found.predictions[0].shape[1] == 2
        assert abs(found.y.mean() - 0.7) < 0.01


def test_single_trials_and_bounded_values(tmp_path):
    run = make_run(tmp_path / "run", n_trials=5, predictions=True)
    found = read_predictions(run, trials=[2], max_values=50)
    assert [p is not None for p in found.predictions] == [False, False, True, False, False]
    assert found.predictions[2].shape == (25, 2)


def test_validation_rows_come_from_the_prepared_folds(tmp_path):
    run = make_run(tmp_path / "run", n_trials=2, predictions=True, settings={"own_objects": ["resampling"]})
    with pytest.raises(RunDirectoryError, match="prepared"):
        read_predictions(run)
    folder = run / "prepared"
    folder.mkdir()
    index = {"n_folds": 1, "n_classes": 2, "task_type": "binary", "stored_as": {}, "categorical": {}}
    (folder / "prepared.json").write_text(json.dumps({**index, "has_weight": True, "files": []}))
    y = np.arange(1003) % 2
    np.save(folder / "y.npy", y)
    np.save(folder / "weight.npy", np.linspace(1, 2, 1003))
    np.save(folder / "fold0-rows-train.npy", np.arange(3))
    np.save(folder / "fold0-rows-valid.npy", np.arange(3, 1003))
    found = read_predictions(run)
    np.testing.assert_array_equal(found.y, y[3:])
    assert found.weight is not None
    assert len(found.weight) == 1000


def test_damaged_predictions_are_named(tmp_path):
    run = make_run(tmp_path / "run", n_trials=2, predictions=True)
    np.save(run / "predictions" / "000001.npy", np.zeros((7, 2)))
    with pytest.raises(CorruptStoreError, match="000001"):
        read_predictions(run)
    (run / "predictions" / "000001.npy").write_bytes(b"nothing")
    with pytest.raises(CorruptStoreError, match="000001"):
        read_predictions(run)


def test_read_only_directory_is_enough(tmp_path):
    run = make_run(tmp_path / "run", n_trials=2, predictions=True)
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    for path in [copy, *copy.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert len(read_predictions(copy).y) == 1000
    finally:
        for path in [copy, *copy.rglob("*")]:
            path.chmod(0o755)
