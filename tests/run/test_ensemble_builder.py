from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from sklearn.metrics import recall_score

from cashmere.data.row_structure import RowStructure, StructureKind
from cashmere.data.task import TaskType
from cashmere.ensembles.pool import MAX_ROWS, ValidationPool
from cashmere.ensembles.selection import select_ensemble
from cashmere.ensembles.threshold import as_certain, decide
from cashmere.evaluation.metrics import METRICS, get_metric, metric_from_callable
from cashmere.records.trial import History, Observation, Outcome, Trial, TrialStatus
from cashmere.run.ensemble_builder import BASELINE, EnsembleBuilder

SPACE = ConfigurationSpace({"x": (0.0, 1.0)})


def observed(second: np.ndarray, losses: Sequence[float]) -> History:
    """Trials that predict these probabilities of the second class."""
    configuration = SPACE.get_default_configuration()
    return History(
        observations=tuple(
            Observation(
                trial=Trial(number=number, configuration=configuration, seed=0),
                outcome=Outcome(
                    status=TrialStatus.SUCCESS,
                    loss=float(loss),
                    predictions=np.column_stack([1 - p.astype(np.float32), p.astype(np.float32)]),
                ),
            )
            for number, (p, loss) in enumerate(zip(second, losses, strict=True))
        )
    )


def history(n: int, n_rows: int = 200, noise: float = 0.3) -> tuple[History, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n_rows)
    second = np.clip(y * 0.4 + 0.3 + rng.normal(0, noise, (n, n_rows)), 0.01, 0.99)
    return observed(second, rng.random(n)), y


def builder(
    y, method="selection", metric="log_loss", has_model=lambda number: True, decision_threshold="auto", positive=1
):
    return EnsembleBuilder(
        method=method,
        size=10,
        metric=get_metric(metric, TaskType.BINARY),
        pool=ValidationPool(y=y),
        seed=0,
        has_model=has_model,
        decision_threshold=decision_threshold,
        positive=positive,
    )


def imbalanced(n: int, n_rows: int = 600) -> tuple[History, np.ndarray]:
    """Calibrated models of a rare second class."""
    rng = np.random.default_rng(0)
    score = rng.normal(size=n_rows)
    y = (rng.random(n_rows) < 1 / (1 + np.exp(3 - 1.5 * score))).astype(np.int64)
    second = 1 / (1 + np.exp(3 - 1.5 * score + rng.normal(0, 0.3, (n, n_rows))))
    return observed(second, rng.random(n)), y


def test_constant_predictor_is_the_ensemble_until_the_first_success():
    empty = builder(np.array([0, 1]))
    empty.update(History())
    assert empty.weights == {BASELINE: 1.0}
    assert empty.loss is None


def test_other_predictions_may_take_the_place_of_the_trials_own():
    trials, y = history(4, noise=2.0)
    exact = np.column_stack([1.0 - y, y]).astype(np.float32)
    chosen = builder(y)
    chosen.choose_by({2: exact})
    chosen.update(trials)
    assert chosen.weights == {2: 1.0}
    chosen.choose_by({2: exact[:, ::-1]})  # now the worst of all
    chosen.update(trials)
    assert 2 not in chosen.weights
    chosen.choose_by({2: exact[:, ::-1]}, only=True)
    chosen.update(trials)
    assert chosen.weights == {2: 1.0}
    chosen.choose_by({})
    chosen.update(trials)
    fresh = builder(y)
    fresh.update(trials)
    assert chosen.weights == fresh.weights


@pytest.mark.parametrize("metric", ["log_loss", "accuracy", "roc_auc", "f1_macro", "g_mean"])
def test_growing_the_ensemble_equals_choosing_once(metric):
    whole, y = history(25)
    grown = builder(y, metric=metric)
    for end in (1, 3, 4, 11, 25):
        grown.update(History(observations=whole.observations[:end]))
    fresh = builder(y, metric=metric)
    fresh.update(whole)
    assert grown.weights == fresh.weights
    assert grown.loss == fresh.loss


def too_certain(n: int, n_rows: int = 1500, *, of_mean: bool = False) -> tuple[History, np.ndarray]:
    """Overconfident models, whose log-odds are twice as large as they should be, or as far from those of the mean."""
    rng = np.random.default_rng(0)
    score = rng.normal(size=n_rows)
    y = (rng.random(n_rows) < 1 / (1 + np.exp(2 - score))).astype(np.int64)
    mean = np.log(y.mean() / (1 - y.mean())) if of_mean else 0.0
    second = 1 / (1 + np.exp(-mean - 2 * (score - 2 - mean + rng.normal(0, 0.2, (n, n_rows)))))
    return observed(second, rng.random(n)), y


@pytest.mark.parametrize("metric", ["log_loss", "brier"])
@pytest.mark.parametrize("method", ["selection", "bagging", "best"])
def test_calibration_lowers_both_losses_by_about_its_gain(metric, method):
    seen, y = too_certain(5, of_mean=True)
    built_in = get_metric(metric, TaskType.BINARY)
    custom = replace(built_in, function=lambda y, p, w: built_in.function(y, p, w))
    chosen, plain = builder(y, method, metric), builder(y, method, custom)
    for each in (chosen, plain):
        each.update(seen)
    assert chosen.calibration is None
    before, after = plain.cross_fit(seen), chosen.cross_fit(seen)
    assert chosen.calibration.temperature > 1.4
    assert after == pytest.approx(before - chosen.calibration.gain)
    assert chosen.loss == pytest.approx(plain.loss - chosen.calibration.gain, rel=0.05)
    assert plain.calibration is None


@pytest.mark.parametrize("n_seen", [80, 300])
def test_mean_of_five_selections_is_better_on_other_rows(n_seen):
    gained = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, n_seen + 1000)
        second = np.clip(y * 0.3 + 0.35 + rng.normal(0, 0.35, (60, len(y))), 0.02, 0.98)
        seen, others = (observed(part, [0.5] * 60) for part in (second[:, :n_seen], second[:, n_seen:]))
        chosen, losses = builder(y[:n_seen]), []
        for step in (chosen.update, chosen.cross_fit):
            step(seen)
            combined = chosen.ensemble.combine([others[number].predictions for number in chosen.ensemble.members])
            losses.append(get_metric("log_loss", TaskType.BINARY).loss(y[n_seen:], combined))
        gained.append(losses[0] - losses[1])
    assert np.mean(gained) > 0.001


@pytest.mark.parametrize(
    ("method", "metric", "n_trials"),
    [
        ("selection", "log_loss", 19),
        ("selection", "roc_auc", 25),
        ("selection", "accuracy", 25),
        ("bagging", "log_loss", 25),
        ("stacking", "log_loss", 25),
    ],
)
def test_few_trials_and_other_metrics_and_methods_keep_their_ensemble(method, metric, n_trials):
    seen, y = history(n_trials, n_rows=400)
    chosen = builder(y, method, metric)
    chosen.update(seen)
    before = chosen.ensemble
    assert chosen.cross_fit(seen) is not None
    assert chosen.ensemble is before


def test_cross_fitting_keeps_to_the_trials_it_may_choose_from():
    seen, y = history(50, n_rows=400)
    chosen, among = builder(y), range(0, 50, 2)
    chosen.update(seen, among=among)
    before = chosen.ensemble
    assert chosen.cross_fit(seen, among=among) is not None
    assert chosen.ensemble != before
    assert {number % 2 for number in chosen.ensemble.members} == {0}


def test_thresholds_are_chosen_again_for_calibrated_probabilities():
    seen, y = too_certain(5)
    chosen = builder(y, decision_threshold="tune")
    chosen.update(seen)
    before = chosen.thresholds[1]
    chosen.cross_fit(seen)
    assert chosen.thresholds[1] > before + 0.02
    members = [seen[number].predictions for number in chosen.ensemble.members]
    second = chosen.calibration.apply(chosen.ensemble.combine(members))[:, 1]
    assert np.mean(second >= chosen.thresholds[1]) == pytest.approx(0.5, abs=0.2)


def test_calibration_is_sharper_where_the_mean_of_several_models_predicts():
    seen, y = too_certain(5, 3000)

    def scale(n_fold_models: int, kind: StructureKind | None) -> float:
        structure = None if kind is None else RowStructure(kind=kind, codes=np.arange(len(y)))
        chosen = EnsembleBuilder(
            method="best",
            size=1,
            metric=get_metric("log_loss", TaskType.BINARY),
            pool=ValidationPool(y=y, structure=structure),
            seed=0,
            has_model=lambda number: True,
            decision_threshold="none",
            n_fold_models=n_fold_models,
        )
        chosen.update(seen)
        chosen.cross_fit(seen)
        return chosen.calibration.scales[0]

    assert scale(5, None) > scale(1, None)
    assert scale(5, StructureKind.TIME) == scale(1, StructureKind.TIME)


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc", "g_mean"])
def test_metric_that_does_not_judge_probabilities_gets_no_calibration(metric):
    seen, y = too_certain(5)
    chosen = builder(y, metric=metric)
    chosen.update(seen)
    chosen.cross_fit(seen)
    assert chosen.calibration is None


def test_custom_metric_of_a_known_name_gets_no_calibration():
    seen, y = too_certain(5)

    def log_loss(y_true, p):
        return -float(np.mean(np.abs(y_true - p)))

    chosen = builder(y, metric=metric_from_callable(log_loss, needs="probabilities"))
    chosen.update(seen)
    chosen.cross_fit(seen)
    assert chosen.calibration is None


def test_new_choice_forgets_the_calibration_of_the_one_before():
    seen, y = too_certain(5)
    chosen = builder(y)
    chosen.update(seen)
    loss = chosen.loss
    chosen.cross_fit(seen)
    assert chosen.loss < loss
    chosen.update(seen)
    assert (chosen.calibration, chosen.loss) == (None, loss)


def test_calibration_that_is_stopped_changes_nothing():
    seen, y = too_certain(5)
    chosen, whole = builder(y, decision_threshold="tune"), builder(y, decision_threshold="tune")
    for each in (chosen, whole):
        each.update(seen)

    def state(each):
        rows = None if each.cross_fitted_rows is None else each.cross_fitted_rows.tolist()
        return each.ensemble, each.calibration, each.loss, each.thresholds.tolist(), each.decision_gain, rows

    before = state(chosen)
    whole.cross_fit(seen)
    for instant in range(0, 400, 25):
        asked = iter([False] * instant)
        found = chosen.cross_fit(seen, stop=lambda asked=asked: next(asked, True))
        assert (found is None) == (state(chosen) == before)
        if state(chosen) != before:
            break
    assert state(chosen) == state(whole)


def test_trial_whose_models_are_gone_is_not_a_member():
    whole, y = history(10)
    first = builder(y)
    first.update(whole)
    gone = max(first.weights, key=first.weights.get)
    second = builder(y, has_model=lambda number: number != gone)
    second.update(whole)
    assert gone not in second.weights


def test_cross_fitted_loss_is_larger_than_the_optimistic_one_on_noise():
    whole, y = history(60, n_rows=120, noise=3.0)
    noisy = builder(y)
    noisy.update(whole)
    assert noisy.cross_fit(whole) > noisy.loss


def test_cross_fitted_loss_says_nothing_on_few_rows():
    whole, y = history(5, n_rows=20)
    small = builder(y)
    small.update(whole)
    assert small.cross_fit(whole) is None


def test_pool_keeps_all_rows_up_to_its_limit_and_a_fixed_draw_beyond():
    y = np.arange(MAX_ROWS + 10)
    rows = np.arange(5, MAX_ROWS + 10)
    assert ValidationPool.draw(rows[:100], y, None, seed=0).positions is None
    pool = ValidationPool.draw(rows, y, None, seed=0)
    assert len(pool.y) == MAX_ROWS
    np.testing.assert_array_equal(pool.take(rows), pool.y)
    np.testing.assert_array_equal(ValidationPool.draw(rows, y, None, seed=0).y, pool.y)


@pytest.mark.parametrize("method", ["selection", "bagging", "stacking", "best"])
def test_thresholds_lower_the_loss_and_the_cross_fitted_loss_with_it(method):
    whole, y = imbalanced(8)
    tuned, plain = (builder(y, method, "g_mean", decision_threshold=t) for t in ("auto", "none"))
    for each in (tuned, plain):
        each.update(whole)
    assert plain.thresholds is None
    assert tuned.thresholds[1] < 0.3
    assert tuned.decision_gain > 0.1
    assert tuned.loss < plain.loss - 0.1
    assert tuned.cross_fit(whole) < plain.cross_fit(whole) - 0.1
    assert tuned.loss <= tuned.cross_fit(whole) + 0.02


@pytest.mark.parametrize("metric", ["accuracy", "g_mean", "mcc", metric_from_callable(recall_score)])
def test_metrics_of_labels_select_by_probabilities(metric):
    whole, y = imbalanced(8)
    chosen, by_brier = builder(y, metric=metric), builder(y, metric="brier")
    for each in (chosen, by_brier):
        each.update(whole)
    assert chosen.weights == by_brier.weights
    combined = chosen.ensemble.combine([whole.observations[n].predictions for n in chosen.ensemble.members])
    decided = as_certain(decide(combined, chosen.thresholds), 2)
    assert chosen.loss == pytest.approx(chosen.metric.loss(y, decided, None))


def test_without_thresholds_the_metric_selects():
    whole, y = imbalanced(8)
    chosen = builder(y, metric="g_mean", decision_threshold="none")
    expected = select_ensemble(
        [each.predictions for each in whole.observations], y, METRICS["g_mean"], size=10, tie="secondary"
    )
    chosen.update(whole)
    assert list(chosen.weights.values()) == pytest.approx(expected.weights[expected.weights > 0].tolist())
    assert chosen.loss == pytest.approx(expected.trajectory[-1])


@pytest.mark.parametrize("metric", ["accuracy", "log_loss", "roc_auc"])
def test_auto_leaves_accuracy_and_probability_metrics_alone(metric):
    whole, y = imbalanced(3)
    chosen = builder(y, metric=metric)
    chosen.update(whole)
    assert chosen.thresholds is None
    assert not chosen.decides_by_threshold


def test_probability_metric_is_tuned_for_balanced_accuracy_when_asked_and_keeps_its_loss():
    whole, y = imbalanced(3)
    tuned, plain = (builder(y, decision_threshold=t) for t in ("tune", "none"))
    for each in (tuned, plain):
        each.update(whole)
    assert tuned.decision_metric.name == "balanced_accuracy"
    assert tuned.thresholds[1] < 0.3
    assert tuned.loss == plain.loss
    assert tuned.cross_fit(whole) == plain.cross_fit(whole)


def test_given_threshold_is_used_and_judged():
    whole, y = imbalanced(3)
    fixed, plain = (builder(y, "best", "balanced_accuracy", decision_threshold=t) for t in (0.1, "none"))
    np.testing.assert_allclose(fixed.thresholds, [0.9, 0.1])
    for each in (fixed, plain):
        each.update(whole)
    np.testing.assert_allclose(fixed.thresholds, [0.9, 0.1])
    assert fixed.decision_gain == pytest.approx(plain.loss - fixed.loss)
    assert fixed.decision_gain > 0.1


@pytest.mark.parametrize("positive", [0, 1])
def test_threshold_reaches_the_rate_that_is_wanted(positive):
    whole, y = imbalanced(3)
    chosen = builder(y, decision_threshold="recall>=0.9", positive=positive)
    chosen.update(whole)
    numbers = chosen.ensemble.members
    combined = chosen.ensemble.combine([o.predictions for o in whole if o.trial.number in numbers])
    called = decide(combined, chosen.thresholds) == positive
    assert 0.9 <= called[y == positive].mean() < 0.95
    assert not chosen.tunes_thresholds
    assert chosen.wanted_rate == "recall>=0.9"
    chosen.cross_fit(whole)
    assert chosen.decision_gain is not None


def test_choice_that_is_stopped_leaves_the_one_before():
    seen, y = history(12)
    chosen, never = builder(y), builder(y)
    chosen.update(History(observations=seen.observations[:3]))
    before = (chosen.ensemble, chosen.loss)
    chosen.update(seen, stop=lambda: True)
    never.update(seen, stop=lambda: True)
    assert (chosen.ensemble, chosen.loss) == before
    assert (never.ensemble.members, never.loss) == ((BASELINE,), None)
    assert chosen.cross_fit(seen, stop=lambda: True) is None
    fresh = builder(y)
    for each in (chosen, fresh):
        each.update(seen)
    assert (chosen.ensemble, chosen.loss) == (fresh.ensemble, fresh.loss) != before
    assert chosen.cross_fit(seen) == fresh.cross_fit(seen, stop=lambda: False)


def test_ensemble_can_be_chosen_among_some_trials():
    seen, y = history(12)
    few, some = builder(y), builder(y)
    some.update(seen)
    some.update(seen, among={2, 5, BASELINE})
    few.update(History(observations=tuple(seen.observations[n] for n in (2, 5))))
    assert set(some.ensemble.members) <= {2, 5}
    assert (some.ensemble, some.loss) == (few.ensemble, few.loss)


def test_choice_that_is_stopped_at_any_instant_changes_ensemble_and_thresholds_together():
    seen, y = imbalanced(6)
    few = History(observations=seen.observations[:2])

    def state(chosen):
        return chosen.ensemble, chosen.loss, chosen.thresholds.tolist(), chosen.decision_gain

    before, after = builder(y, metric="balanced_accuracy"), builder(y, metric="balanced_accuracy")
    before.update(few)
    after.update(seen)
    found = []
    for instant in range(0, 60, 3):
        chosen = builder(y, metric="balanced_accuracy")
        chosen.update(few)
        clock = iter(range(10_000))
        chosen.update(seen, stop=lambda c=clock, i=instant: next(c) >= i)
        found.append([state(before), state(after)].index(state(chosen)))
    assert found == sorted(found) and set(found) == {0, 1}
