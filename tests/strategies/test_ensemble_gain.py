from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy.stats import rankdata

from cashmere.ensembles import evidence
from cashmere.ensembles.added_member import best_added_losses
from cashmere.ensembles.evidence import GainEvidence
from cashmere.exceptions import InvalidParameterError, MissingPredictionsError
from cashmere.space.encoding import SpaceEncoder
from cashmere.strategies import BayesianOptimisation, EnsembleGain, ensemble_gain
from cashmere.strategies.bayesian_optimisation import Candidates
from cashmere.strategies.temporary_pool import select_pool
from cashmere.surrogates.prediction import PredictionSurrogate
from cashmere.trial import History, Observation, TrialStatus
from contracts.strategy_contract import METRIC, StrategyContract, cash_space, history_of, run_trials


class TestEnsembleGain(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(EnsembleGain, n_global=150)


class TestUnprotectedEnsembleGain(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(EnsembleGain, n_global=100, protect=False, share="fixed", max_weight=3.0)


@pytest.fixture
def observed():
    space = cash_space()
    return space, run_trials(BayesianOptimisation(space, n_global=50), 30)


def seen_candidates(observations, space):
    rows = SpaceEncoder(space).encode(o.trial.configuration for o in observations)
    return Candidates(rows=rows, log_improvement=np.linspace(0, -1, len(rows)))


def test_ranks_are_those_of_the_loss_with_the_candidate_added(observed, monkeypatch):
    """A fully grown forest knows observed candidates exactly; without spread the gain orders like the loss."""
    space, observations = observed
    monkeypatch.setattr(
        ensemble_gain, "PredictionSurrogate", functools.partial(PredictionSurrogate, min_samples_leaf=1)
    )
    monkeypatch.setattr(ensemble_gain, "log_expected_improvement", lambda mean, std, best: -mean)
    strategy, history = EnsembleGain(space, protect=False), history_of(observations)
    pool = select_pool(history, strategy.encoder, tie="secondary")
    stack = np.stack(pool.predictions).astype(np.float64)
    ensemble = np.average(stack, axis=0, weights=pool.counts)
    losses, _ = best_added_losses(stack, ensemble, pool.y, METRIC, size=25)
    candidates = seen_candidates(observations, space)
    scores = strategy.score(candidates, history, np.random.default_rng(0))
    gain_ranks = (scores - rankdata(-candidates.log_improvement)) / np.tanh(0.1 * 30)
    np.testing.assert_allclose(gain_ranks, rankdata(np.round(losses, 9)), atol=1.01)  # members tie at no gain
    assert np.corrcoef(gain_ranks, losses)[0, 1] > 0.5


@pytest.mark.parametrize(("credibility", "same"), [(0.0, True), (1.0, False)])
def test_gains_that_are_not_believed_leave_bayesian_optimisation(observed, monkeypatch, credibility, same):
    space, observations = observed
    judged = GainEvidence(
        sizes=np.array([1, 25]), losses=np.array([[0.2, 0.1]]), helped=np.array([0.5 + credibility / 6])
    )
    monkeypatch.setattr(ensemble_gain, "judge_gain", lambda *arguments, **options: judged)
    candidates = seen_candidates(observations, space)
    scores = EnsembleGain(space).score(candidates, history_of(observations), np.random.default_rng(0))
    assert np.array_equal(scores, rankdata(-candidates.log_improvement)) == same


def test_evidence_for_fewer_members_shortens_the_pool(observed, monkeypatch):
    space, observations = observed
    sizes = []
    original = PredictionSurrogate.sample_ensemble_losses

    def spy(self, candidates, weights, metric, *, how):
        sizes.append(int(np.sum(weights)))
        return original(self, candidates, weights, metric, how=how)

    monkeypatch.setattr(PredictionSurrogate, "sample_ensemble_losses", spy)
    judged = GainEvidence(sizes=np.array([3, 25]), losses=np.array([[0.1, 0.2]]), helped=np.array([1.0]))
    for options in ({}, {"protect": False}):
        monkeypatch.setattr(ensemble_gain, "judge_gain", lambda *arguments, **names: judged)
        EnsembleGain(space, n_global=50, random_fraction=0, **options).suggest(
            history_of(observations), np.random.default_rng(0)
        )
    assert sizes == [3, 25]


def test_with_few_validation_rows_it_believes(observed, monkeypatch):
    space, observations = observed
    monkeypatch.setattr(evidence, "_LEAST_ROWS", 1000)
    strategy = EnsembleGain(space, n_global=50, random_fraction=0)
    assert strategy.suggest(history_of(observations), np.random.default_rng(0)).origin == "model"


def test_a_history_of_losses_only_is_refused_with_advice(observed):
    space, observations = observed
    bare = tuple(Observation(trial=o.trial, status=TrialStatus.SUCCESS, loss=o.loss) for o in observations[:10])
    with pytest.raises(MissingPredictionsError, match="10 successful trials without predictions"):
        EnsembleGain(space, random_fraction=0).suggest(
            History(observations=bare, metric=METRIC, targets=np.zeros(40)), np.random.default_rng(0)
        )


@pytest.mark.parametrize("options", [{"max_weight": -1}, {"tau": 0}, {"share": "half"}, {"ensemble_size": 0}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidParameterError, match=next(iter(options))):
        EnsembleGain(cash_space(), **options)
