from __future__ import annotations

import numpy as np
import pytest
from synthetic_recording import make_recording

from benchmarks.experiments.divbo.report_forms import FORMS, checkpoints, make_report
from benchmarks.recordings.replay import ReplayObjective, ensemble_curve
from cashmere.analysis import pool_trajectory, pool_updates
from cashmere.data.task import TaskType
from cashmere.ensembles import build_ensemble
from cashmere.evaluation.metrics import get_metric
from cashmere.records.trial import History, Observation, Trial

CHOSEN = [3, *range(10, 21)]
"""Trial 0 has failed."""


@pytest.fixture(params=list(TaskType))
def search(request):
    """A recording, the metric, and the history of a search that chose some of it."""
    recorded = make_recording(request.param)
    metric = get_metric("accuracy" if request.param.is_classification else "mse", request.param)
    objective = ReplayObjective.of(recorded, metric)
    observations = []
    for n, position in enumerate(CHOSEN):
        trial = Trial(number=n, configuration=recorded.configurations[position], seed=0)
        observations.append(Observation(trial=trial, outcome=objective(trial)))
    history = History(observations=tuple(observations), metric=metric, targets=recorded.y_validation.astype(np.float64))
    test = [recorded.test[position] if o.succeeded else None for position, o in zip(CHOSEN, history, strict=True)]
    return recorded, metric, history, test


def test_checkpoints_end_with_the_last_trial():
    assert checkpoints(10) == [5, 10] and checkpoints(3) == [3]


def test_curves_match_replays(search):
    recorded, metric, history, test = search
    report = make_report(history, test, recorded.y_test, metric)
    curve = ensemble_curve(recorded, metric, CHOSEN)
    rows = report.forms["selection"]
    assert [row[0] for row in rows] == [5, 10, 12]
    for row, expected in zip(rows, curve, strict=False):
        assert row[1] == pytest.approx(expected["validation"], abs=1e-8)
        assert row[2] == pytest.approx(expected["test"], abs=1e-8)
    single = report.forms["best"]
    assert [row[1] for row in single[:2]] == pytest.approx([each["single_validation"] for each in curve], abs=1e-8)


def test_final_forms_match_direct_calls(search):
    recorded, metric, history, test = search
    report = make_report(history, test, recorded.y_test, metric)
    assert set(report.forms) == set(FORMS) - {"members"}
    there = [i for i in CHOSEN if i != 3]
    numbers, stack = range(1, len(CHOSEN)), recorded.validation[there]
    for form, method, options in (
        ("selection100", "selection", {"size": 100, "tie": "secondary"}),
        ("bagging", "bagging", {}),
        ("stacking", "stacking", {}),
    ):
        ensemble, loss = build_ensemble(method, list(numbers), stack, recorded.y_validation, metric, **options)
        combined = ensemble.combine([recorded.test[CHOSEN[i]] for i in ensemble.members])
        (row,) = report.forms[form]
        assert row == (12, pytest.approx(loss, abs=1e-8), pytest.approx(metric.loss(recorded.y_test, combined)))
    losses = [o.loss for o in history.successes]
    five = np.argsort(losses, kind="stable")[:5]
    mean = recorded.test[there][five].astype(np.float64).mean(axis=0)
    assert report.forms["bagging_uniform"][0][2] == pytest.approx(metric.loss(recorded.y_test, mean))
    best = there[int(np.argmin(losses))]
    assert report.forms["best"][-1][2] == pytest.approx(metric.loss(recorded.y_test, recorded.test[best]))


def test_pool_matches_the_analysis(search):
    recorded, metric, history, test = search
    report = make_report(history, test, recorded.y_test, metric)
    pool = pool_trajectory(history, tie="secondary")
    assert report.updates == {"50": list(pool_updates(pool, last=50)), "100": list(pool_updates(pool, last=100))}
    assert report.minimum_diversity[0] is None  # a failure
    assert report.minimum_diversity[-1] == pytest.approx(pool.minimum_diversity[-1], abs=1e-4)
    assert report.member_loss == pytest.approx(pool.member_losses[-1])
    is_classification = metric.needs != "values"
    assert len(report.disagreement) == (3 if is_classification else 0)
    assert report.test_losses[0] is None and len(report.test_losses) == 12


def test_ensemble_of_the_strategy_has_the_lowest_validation_loss_so_far(search):
    recorded, metric, history, test = search
    order = np.argsort([np.inf if o.loss is None else o.loss for o in history])

    def members(seen):
        # Good ones first, the worst at last.
        return (int(order[0]),) * 2 + (int(order[1]),) if len(seen) < 12 else (int(order[-2]),)

    rows = make_report(history, test, recorded.y_test, metric, members).forms["members"]
    two = [history[order[0]].predictions, history[order[0]].predictions, history[order[1]].predictions]
    mean = np.mean(np.asarray(two, dtype=np.float64), axis=0)
    assert rows[0][1] == pytest.approx(metric.loss(recorded.y_validation, mean), abs=1e-8)
    assert rows[2][1] == rows[0][1]
    last = recorded.test[CHOSEN[order[-2]]]
    assert rows[2][2] == pytest.approx(metric.loss(recorded.y_test, last))


def test_without_a_success_nothing_is_reported():
    recorded = make_recording(failures=tuple(range(6)))
    metric = get_metric("accuracy", TaskType.BINARY)
    objective = ReplayObjective.of(recorded, metric)
    trials = [Trial(number=n, configuration=recorded.configurations[n], seed=0) for n in range(6)]
    history = History(
        observations=tuple(Observation(trial=trial, outcome=objective(trial)) for trial in trials),
        metric=metric,
        targets=recorded.y_validation.astype(np.float64),
    )
    report = make_report(history, [None] * 6, recorded.y_test, metric, lambda seen: ())
    assert report.forms == {} and report.member_loss is None and report.disagreement == [None, None]
