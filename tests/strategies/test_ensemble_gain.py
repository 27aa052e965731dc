from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy.stats import rankdata

from cashmere.data.task import TaskType
from cashmere.ensembles import evidence
from cashmere.ensembles.added_member import losses_with_added
from cashmere.ensembles.evidence import GainEvidence
from cashmere.evaluation.metrics import get_metric
from cashmere.exceptions import InvalidParameterError, MissingPredictionsError
from cashmere.records.trial import History, Observation, Outcome, TrialStatus
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.strategies import BayesianOptimisation, EnsembleGain, ensemble_gain
from cashmere.strategies.shared.candidates import Candidates
from cashmere.strategies.shared.temporary_pool import select_pool
from cashmere.surrogates.prediction import PredictionSurrogate
from contracts.strategy_contract import METRIC, StrategyContract, cash_space, history_of, run_trials


class TestEnsembleGain(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(EnsembleGain, n_global=150)


@pytest.mark.long
class TestUnprotectedEnsembleGain(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(EnsembleGain, n_global=100, protect=False, kappa=0.5)


@pytest.fixture
def observed():
    space = cash_space()
    return space, run_trials(BayesianOptimisation(space, n_global=50), 30)


def seen_candidates(observations, space):
    rows = SpaceEncoder(space).encode(o.trial.configuration for o in observations)
    return Candidates(rows=rows, log_improvement=np.linspace(0, -1, len(rows)))


def test_ranks_are_those_of_the_loss_of_the_pool_with_the_candidate_added(observed, monkeypatch):
    """A fully grown forest knows these losses of observed candidates exactly, and without spread."""
    space, observations = observed
    monkeypatch.setattr(
        ensemble_gain, "PredictionSurrogate", functools.partial(PredictionSurrogate, min_samples_leaf=1)
    )
    strategy, history = EnsembleGain(space, protect=False, ensemble_size=4), history_of(observations)
    pool = select_pool(history, strategy.encoder, size=4)
    stack = np.stack(pool.predictions).astype(np.float64)
    ensemble = np.average(stack, axis=0, weights=pool.counts)
    losses = np.array([METRIC.loss(pool.y, 0.8 * ensemble + 0.2 * p) for p in stack])
    losses = np.minimum(losses, np.percentile(losses, 75))
    candidates = seen_candidates(observations, space)
    scores = strategy.score(candidates, history, np.random.default_rng(0))
    ranks = (scores - rankdata(-candidates.log_improvement)) / np.tanh(0.1 * 30)
    np.testing.assert_allclose(ranks, rankdata(np.round(losses, 7)), atol=1e-6)


def test_spread_of_the_trees_attracts(observed):
    space, observations = observed
    history = history_of(observations)
    encoder = SpaceEncoder(space)
    candidates = Candidates(rows=encoder.sample(200, np.random.default_rng(0)), log_improvement=np.zeros(200))
    cautious, bold = (
        EnsembleGain(space, protect=False, kappa=kappa).score(candidates, history, np.random.default_rng(1))
        for kappa in (0.0, 10.0)
    )
    assert np.argmin(cautious) != np.argmin(bold)


@pytest.mark.parametrize(("gains", "same"), [([-0.1, 0.1], True), ([0.1, 0.1], False)])
def test_gains_that_are_not_believed_leave_bayesian_optimisation(observed, monkeypatch, gains, same):
    space, observations = observed
    judged = GainEvidence(sizes=np.array([1, 25]), losses=np.array([[0.2, 0.1]] * 2), gains=np.array(gains))
    monkeypatch.setattr(ensemble_gain, "judge_gain", lambda *arguments, **options: judged)
    candidates = seen_candidates(observations, space)
    scores = EnsembleGain(space, ensemble_size=4).score(candidates, history_of(observations), np.random.default_rng(0))
    assert np.array_equal(np.argsort(scores), np.argsort(-candidates.log_improvement)) == same


def test_evidence_for_fewer_members_shortens_the_pool(observed, monkeypatch):
    space, observations = observed
    sizes = []

    def spy(*arguments, **options):
        sizes.append(options["size"])
        return losses_with_added(*arguments, **options)

    judged = GainEvidence(sizes=np.array([3, 25]), losses=np.array([[0.1, 0.2]]), gains=np.array([1.0]))
    monkeypatch.setattr(ensemble_gain, "losses_with_added", spy)
    monkeypatch.setattr(ensemble_gain, "judge_gain", lambda *arguments, **names: judged)
    for protect in (True, False):
        strategy = EnsembleGain(space, n_global=50, random_fraction=0, protect=protect)
        strategy.suggest(history_of(observations), np.random.default_rng(0))
    assert sizes == [3, 25]


def test_without_evidence_it_does_not_believe(observed, monkeypatch):
    space, observations = observed
    monkeypatch.setattr(evidence, "_LEAST_ROWS", 1000)
    candidates = seen_candidates(observations, space)
    scores = EnsembleGain(space).score(candidates, history_of(observations), np.random.default_rng(0))
    assert np.array_equal(np.argsort(scores), np.argsort(-candidates.log_improvement))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n_classes", "n_rows"), [(1, 200), (1, 9000), (2, 9000), (3, 300), (60, 2500)])
def test_any_task_and_many_rows(observed, n_classes, n_rows, weighted):
    space, observations = observed
    rng = np.random.default_rng(0)
    if n_classes == 1:
        targets, metric = rng.normal(size=n_rows), get_metric("mse", TaskType.REGRESSION)
        predictions = [(targets + rng.normal(size=n_rows)).astype(np.float32) for _ in range(12)]
    else:
        targets = np.arange(n_rows) % n_classes
        task = TaskType.BINARY if n_classes == 2 else TaskType.MULTICLASS
        metric = get_metric("log_loss", task)
        predictions = [rng.dirichlet(np.ones(n_classes), size=n_rows).astype(np.float32) for _ in range(12)]
    done = tuple(
        Observation(
            trial=o.trial, outcome=Outcome(status=TrialStatus.SUCCESS, loss=metric.loss(targets, p), predictions=p)
        )
        for o, p in zip(observations, predictions, strict=False)
    )
    history = History(
        observations=done,
        metric=metric,
        targets=targets.astype(np.float64),
        row_weights=rng.random(n_rows) if weighted else None,
    )
    suggestion = EnsembleGain(space, n_global=50, random_fraction=0).suggest(history, np.random.default_rng(0))
    assert str(suggestion.origin) == "model"


def test_a_history_of_losses_only_is_refused_with_advice(observed):
    space, observations = observed
    bare = tuple(
        Observation(trial=o.trial, outcome=Outcome(status=TrialStatus.SUCCESS, loss=o.loss)) for o in observations[:10]
    )
    with pytest.raises(MissingPredictionsError, match="10 successful trials without predictions"):
        EnsembleGain(space, random_fraction=0).suggest(
            History(observations=bare, metric=METRIC, targets=np.zeros(40)), np.random.default_rng(0)
        )


@pytest.mark.parametrize("options", [{"max_weight": -1}, {"tau": 0}, {"kappa": -1}, {"ensemble_size": 0}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidParameterError, match=next(iter(options))):
        EnsembleGain(cash_space(), **options)
