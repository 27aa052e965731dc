"""Trials along a path: one position for all folds, patience, limits, and what remains of a stopped trial."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
from ConfigSpace import Configuration
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.neural_network import MLPRegressor

from cashmere.data.frames import to_frame
from cashmere.data.inference import infer_schema
from cashmere.data.prepared import PreparedFolds, prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.task import TaskProfile, TaskType
from cashmere.evaluation.following import FollowedFolds
from cashmere.evaluation.metrics import METRICS, get_metric
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.model.archives import load_fold_models
from cashmere.records.cause import CauseKind
from cashmere.records.trial import Trial, TrialStatus
from cashmere.space import make_space
from cashmere.space.path import PathData
from cashmere.space.paths.epochs import EpochsPath

SPACE = "default"
METRIC = get_metric("log_loss", TaskType.BINARY)

BOOSTERS = ["lightgbm", "xgboost", "catboost", "hist_gradient_boosting"]
FOLLOWED = [*BOOSTERS, "random_forest", "extra_trees", "logistic_regression", "mlp", "knn", "svm"]


@functools.cache
def table():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:240, :6], y[:240].astype(np.int64)


def make_objective(folder, resampling):
    X, y = table()
    frame = to_frame(X)
    schema = infer_schema(frame)
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=len(y), n_columns=X.shape[1], n_classes=2)
    space = make_space(SPACE, profile)
    folds = make_folds(y, TaskType.BINARY, resampling, seed=0)
    prepare_folds(folder, schema.code(frame), y, folds, sorted(space.encodings), task_type=TaskType.BINARY, seed=0)
    return CrossValidationObjective(folder=folder, space=space, metric=METRIC)


@pytest.fixture(
    scope="module", params=["holdout", "4fold", RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)]
)
def objective(request, tmp_path_factory):
    return make_objective(tmp_path_factory.mktemp("prepared") / "folds", request.param)


@pytest.fixture(scope="module")
def four_folds(tmp_path_factory):
    return make_objective(tmp_path_factory.mktemp("prepared") / "folds", "4fold")


def make_trial(objective, name="lightgbm", **options):
    return Trial(number=0, configuration=objective.space.completed({"algorithm": name}), seed=5, **options)


class Watch:
    """A supervisor that keeps every checkpoint, and has no time left after some of them."""

    def __init__(self, n_positions=10**6):
        self.kept, self._n = [], n_positions

    def seconds_left(self):
        return float("inf") if len(self.kept) < self._n else -1.0

    def wants_checkpoint(self):
        return True

    def keep(self, outcome):
        self.kept.append(outcome)


@pytest.mark.parametrize("name", ["lightgbm", "logistic_regression", "knn"])
def test_models_predict_what_the_trial_returns(objective, name, tmp_path):
    outcome = objective(make_trial(objective, name))
    folds = PreparedFolds(objective.folder)
    (tmp_path / "model.skops").write_bytes(outcome.model)
    total, counts = np.zeros((len(folds.y), 2)), np.zeros(len(folds.y))
    encoding = objective.space.encoding_of(make_trial(objective, name).configuration)
    losses = []
    for k, (fold, model) in enumerate(zip(folds.folds, load_fold_models(tmp_path / "model.skops"), strict=True)):
        predicted = model.predict(folds.load(k, encoding)[1])
        losses.append(METRIC.loss(folds.y[fold.validation], predicted))
        total[fold.validation] += predicted
        counts[fold.validation] += 1
    rows = np.flatnonzero(counts)
    np.testing.assert_allclose(outcome.predictions, total[rows] / counts[rows, None], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(outcome.fold_losses, losses, rtol=1e-4)
    assert outcome.loss == pytest.approx(np.mean(losses), rel=1e-4)


def test_position_follows_from_the_pooled_losses(objective):
    outcome = objective(make_trial(objective))
    folds, path = PreparedFolds(objective.folder), outcome.path
    assert path.parameter == "rounds"
    kept = np.argmin(path.losses) + 1  # boosters: one beyond the best
    assert path.chosen == path.positions[kept]
    pooled = METRIC.loss(folds.y[folds.validation_rows], outcome.predictions)
    assert path.losses[kept] == pytest.approx(pooled, rel=1e-6)
    assert path.positions[:3] == (10, 14, 20)
    assert outcome.cut_short is None


def test_metrics_of_labels_keep_the_position_with_the_lowest_brier_score(four_folds):
    counting = dataclasses.replace(four_folds, metric=get_metric("accuracy", TaskType.BINARY))
    outcome, folds = counting(make_trial(counting)), PreparedFolds(counting.folder)
    y = folds.y[folds.validation_rows]
    kept = np.argmin(outcome.path.losses) + 1
    assert outcome.path.losses[kept] == pytest.approx(METRICS["brier"].loss(y, outcome.predictions), rel=1e-6)
    assert outcome.loss == pytest.approx(counting.metric.loss(y, outcome.predictions))


def follow(losses, **options):
    """Return how many positions a path with these losses is followed to."""
    pooled = iter(losses)
    positions = tuple(range(1, len(losses) + 1))
    followed = FollowedFolds("rounds", positions, 2, lambda _: next(pooled), n_folds=1, **options)
    followed.begin(FlatPath)
    assert followed.follow(seconds_left=lambda: np.inf)
    return len(followed.losses)


class FlatPath:
    def advance(self, position):
        pass

    def predict(self):
        return np.zeros(1, dtype=np.float32)


EARLY = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]


@pytest.mark.parametrize(
    ("losses", "n_positions"),
    [
        ([0.5, 0.6, 0.4, 0.5, 0.45, 0.3], 5),  # patience
        ([*EARLY, 0.199, 0.1985, 0.1984, 0.1], 11),  # later, the first that gains less than 0.2 %
        ([*EARLY, 0.21, 0.1], 9),
        ([-1, -2, -3, -4, -5, -6, -7, -8, -8.1, -8.1, -9], 10),
        ([0.0] * 12, 3),
        ([float("nan"), *EARLY, 0.1, 0.05, 0.02], 12),  # what cannot be compared does not count
    ],
)
def test_patience(losses, n_positions):
    assert follow(losses) == n_positions


@pytest.mark.parametrize(
    ("losses", "n_positions"), [([*EARLY, 0.18, 0.177, 0.1], 10), ([np.nan, *EARLY, 0.1, 0.05], 11)]
)
def test_gains_that_are_negligible_beside_the_first_loss_end_a_path(losses, n_positions):
    assert follow(losses, negligible=0.005) == n_positions
    assert follow(losses) == 11


def test_negligible_gains_end_paths_for_metrics_of_labels_only(four_folds, monkeypatch):
    monkeypatch.setattr("cashmere.evaluation.objective.NEGLIGIBLE_FOR_LABELS", 10.0)
    n_positions = []
    for metric in ("brier", "accuracy"):
        objective = dataclasses.replace(four_folds, metric=get_metric(metric, TaskType.BINARY))
        n_positions.append(len(objective(make_trial(objective)).path.losses))
    assert n_positions[0] > n_positions[1] == 9


def test_every_position_of_all_folds_is_a_checkpoint(four_folds):
    watch = Watch()
    outcome = four_folds.run(make_trial(four_folds), watch)
    assert len(watch.kept) == len(outcome.path.positions)
    losses = [kept.loss for kept in watch.kept]
    assert watch.kept[-1].loss == outcome.loss
    assert all(kept.status is TrialStatus.SUCCESS and kept.model for kept in watch.kept)
    assert [min(kept.path.losses) for kept in watch.kept] == list(np.minimum.accumulate(outcome.path.losses))
    assert losses[0] == watch.kept[0].loss


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", FOLLOWED)
def test_checkpoints_change_nothing(four_folds, name):
    """The clock decides when they are made; the trial must not depend on it."""
    trial = make_random_trial(four_folds, name)
    assert_equal(four_folds.run(trial, Watch()), four_folds(trial))


def make_random_trial(objective, name):
    """Return a trial that draws rows and columns where its algorithm can."""
    drawn = {"subsample": 0.6, "colsample_bytree": 0.6, "bagging_temperature": 2.0, "rsm": 0.6, "max_features": 0.5}
    space = objective.space.configuration_space
    known = dict(objective.space.completed({"algorithm": name}))
    values = {**known, **{f"{name}:{k}": v for k, v in drawn.items() if f"{name}:{k}" in known}}
    return Trial(number=0, configuration=Configuration(space, values=values), seed=5)


def assert_equal(one, other):
    assert one.path == other.path
    assert one.fold_losses == other.fold_losses
    assert np.array_equal(one.predictions, other.predictions)


@pytest.mark.parametrize("n_positions", [1, 4])
def test_trial_without_time_ends_where_it_is(four_folds, n_positions):
    outcome = four_folds.run(make_trial(four_folds), Watch(n_positions))
    whole = four_folds(make_trial(four_folds))
    assert outcome.status is TrialStatus.SUCCESS
    assert outcome.cut_short.kind is CauseKind.TIME_LIMIT
    assert outcome.path.losses == whole.path.losses[:n_positions]


def test_algorithms_without_a_path_have_no_checkpoints(four_folds):
    watch = Watch()
    outcome = four_folds.run(make_trial(four_folds, "knn"), watch)
    assert (outcome.path, outcome.cut_short, watch.kept) == (None, None, [])


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc"])
def test_sharpness_is_chosen_by_the_log_loss_whatever_the_metric(four_folds, metric):
    by_log_loss = four_folds(make_trial(four_folds, "svm"))
    other = dataclasses.replace(four_folds, metric=get_metric(metric, TaskType.BINARY))(make_trial(four_folds, "svm"))
    assert other.path == by_log_loss.path
    assert len(other.path.positions) == 12
    assert np.array_equal(other.predictions, by_log_loss.predictions)
    assert other.loss != by_log_loss.loss


def test_hopeless_trials_stop_after_their_first_fold(four_folds):
    whole = four_folds(make_trial(four_folds))
    stopped = four_folds(make_trial(four_folds, stop_above=0.5 * min(whole.fold_losses)))
    assert stopped.status is TrialStatus.STOPPED
    assert len(stopped.fold_losses) == 1
    assert stopped.loss is None


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", FOLLOWED)
def test_trial_that_is_raced_to_its_end_equals_one_that_is_not(four_folds, name):
    trial = make_random_trial(four_folds, name)
    assert_equal(four_folds(dataclasses.replace(trial, stop_above=1e6)), four_folds(trial))


class DivergingPath:
    """A path whose predictions are its positions, and NaN from one of them on."""

    def __init__(self, end):
        self._end = end

    def advance(self, position):
        assert position <= self._end  # it is not continued beyond
        self._position = position

    def predict(self):
        return np.array([self._position if self._position < self._end else np.nan], dtype=np.float32)


def test_path_without_a_finite_prediction_fails_the_trial():
    followed = FollowedFolds("rounds", (1, 2, 3), None, lambda predictions: 0.0, n_folds=1)
    followed.begin(lambda: DivergingPath(1))
    with pytest.raises(FloatingPointError, match="1 rounds"):
        followed.follow(seconds_left=lambda: float("inf"))


@pytest.mark.parametrize("ends", [(4, 9), (9, 4), (4, 4), (9, 2)])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_path_ends_where_the_first_fold_diverges(ends, one_by_one):
    losses = {1: 0.5, 2: 0.3, 3: 0.4}
    followed = FollowedFolds(
        "rounds", (1, 2, 3, 4, 5), None, lambda predictions: losses.get(int(predictions[0][0]), 1.0), n_folds=2
    )
    for k, end in enumerate(ends):
        followed.begin(functools.partial(DivergingPath, end))
        if one_by_one or k == 1:
            assert followed.follow(seconds_left=lambda: float("inf"))
    usable = min(ends) - 1
    assert followed.record().positions == (1, 2, 3, 4, 5)[:usable]
    assert followed.record().chosen == min(2, usable)
    assert [each.tolist() for each in followed.predictions()] == [[min(2, usable)]] * 2


def test_diverging_network_fails_and_keeps_earlier_positions():
    X = np.random.default_rng(0).normal(size=(60, 3))
    data = PathData(
        X=X, y=X[:, 0], weight=None, unseen=X, n_classes=1, categorical=np.zeros(3, dtype=bool), n_threads=1
    )
    path = EpochsPath(MLPRegressor(hidden_layer_sizes=(4,), batch_size=20, random_state=0), data)
    path.advance(1)
    before = path.predict()
    path._learner.coefs_[0][:] = 1e300
    with pytest.raises(FloatingPointError, match="diverged"):
        path.advance(200)
    np.testing.assert_array_equal(path.learner_at(1).predict(X), before)


def test_losses_that_are_not_finite_are_never_chosen():
    class Path:
        def advance(self, position):
            self.position = position

        def predict(self):
            return np.array([self.position], dtype=np.float32)

    losses = {1: float("nan"), 2: 0.5, 3: float("inf"), 4: 0.7}
    followed = FollowedFolds("rounds", (1, 2, 3, 4), None, lambda predictions: losses[predictions[0][0]], n_folds=1)
    followed.begin(Path)
    assert followed.follow(seconds_left=lambda: float("inf"))
    assert followed.record().chosen == 2
    assert np.isfinite(followed.record().losses).all()
    assert followed.predictions()[0] == [2]


@pytest.mark.parametrize(
    ("losses", "chosen"), [([0.5, 0.4, 0.6], 3), ([0.5, 0.4], 2), ([0.5, 0.4, float("nan")], 2), ([0.4, 0.5, 0.6], 2)]
)
def test_positions_beyond_the_best(losses, chosen):
    pooled = iter(losses)
    positions = tuple(range(1, len(losses) + 1))
    followed = FollowedFolds("rounds", positions, None, lambda _: next(pooled), n_folds=1, beyond=1)
    followed.begin(FlatPath)
    followed.follow(seconds_left=lambda: np.inf)
    assert followed.record().chosen == chosen
    assert len(followed.predictions()) == 1


def test_trials_at_a_share_of_the_rows(tmp_path):
    X, y = table()
    frame = to_frame(X)
    objective = make_objective(tmp_path / "unused", "holdout")
    folder = tmp_path / "rungs"
    prepare_folds(
        folder,
        infer_schema(frame).code(frame),
        y,
        make_folds(y, TaskType.BINARY, "holdout", seed=0),
        sorted(objective.space.encodings),
        task_type=TaskType.BINARY,
        seed=0,
        rungs=(0.25, 1.0),
    )
    objective = dataclasses.replace(objective, folder=folder)
    algorithm = objective.space.algorithm_of(make_trial(objective).configuration)
    as_many_as_rows = dataclasses.replace(algorithm.path, positions=lambda n_rows, n_classes: (1, n_rows))
    space = objective.space.with_algorithm(dataclasses.replace(algorithm, path=as_many_as_rows))
    objective = dataclasses.replace(objective, space=space)
    few, all_rows = (objective(make_trial(objective, fidelity=share)) for share in (0.25, 1.0))
    n_rows = len(PreparedFolds(folder).folds[0].train)
    assert max(all_rows.path.positions) == n_rows
    assert max(few.path.positions) == round(0.25 * n_rows)
    assert few.predictions.shape == all_rows.predictions.shape
