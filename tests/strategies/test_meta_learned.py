"""Strategies that have learned from other tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ConfigSpace import Configuration, ConfigurationSpace
from toy_artefact import toy_artefact, toy_observations

from cashmere.exceptions import ArtefactError, InvalidParameterError, MissingParameterError
from cashmere.metalearning.artefact import OBSERVATIONS
from cashmere.protocols import TableAware
from cashmere.space.encoding import CatalogueEncoder
from cashmere.strategies import make_strategy
from contracts.strategy_contract import StrategyContract, cash_space, finite_space, flat_space, history_of, run_trials

TABLE = {"log_rows": 5.0, "class_entropy": 0.6}
NAMES = ("latent", "agreeing_sources", "pretrain_bo", "as_ml", "ahs_ml")


@pytest.fixture(scope="module")
def artefact_of(tmp_path_factory):
    """Return the folder of a made-up artefact for a space."""
    folders = {}

    def find(space):
        key = repr(sorted(space))
        if key not in folders:
            folders[key] = tmp_path_factory.mktemp("artefact")
            toy_observations(space).save(folders[key] / OBSERVATIONS)
            toy_artefact(space).save(folders[key])
        return folders[key]

    return find


class TestLatent(StrategyContract):
    @pytest.fixture
    def strategy_factory(self, artefact_of):
        return lambda space: make_strategy(
            "latent:embedding=ranked,n_initial=1,n_starts=2", space, artefact=artefact_of(space)
        ).for_table(TABLE)


@pytest.mark.long
class TestLatentWithoutPretraining(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return lambda space: make_strategy("latent:embedding=scratch,n_initial=1,n_starts=2", space)


class TestAgreeingSources(StrategyContract):
    @pytest.fixture
    def strategy_factory(self, artefact_of):
        return lambda space: make_strategy(
            "agreeing_sources:n_initial=1,n_starts=2,n_sources=2", space, artefact=artefact_of(space)
        )


class TestPretrainBO(StrategyContract):
    @pytest.fixture
    def strategy_factory(self, artefact_of):
        return lambda space: make_strategy("pretrain_bo:n_initial=1,n_starts=2", space, artefact=artefact_of(space))


class TestAsMl(StrategyContract):
    @pytest.fixture
    def strategy_factory(self, artefact_of):
        return lambda space: make_strategy("as_ml:n_starts=2", space, artefact=artefact_of(space)).for_table(TABLE)


class TestAhsMl(StrategyContract):
    @pytest.fixture
    def strategy_factory(self, artefact_of):
        return lambda space: make_strategy("ahs_ml", space, artefact=artefact_of(space)).for_table(TABLE)


@pytest.mark.parametrize("name", NAMES)
def test_each_accepts_the_meta_features_of_the_table(name, artefact_of):
    strategy = make_strategy(name, cash_space(), artefact=artefact_of(cash_space()))
    assert isinstance(strategy, TableAware)
    assert strategy.for_table(TABLE).meta_features == TABLE


@pytest.mark.parametrize("name", ["as_ml", "ahs_ml", "latent:embedding=ranked"])
def test_without_a_table_a_ranking_says_what_to_call(name, artefact_of):
    strategy = make_strategy(name, cash_space(), artefact=artefact_of(cash_space()))
    with pytest.raises(MissingParameterError, match="for_table"):
        run_trials(strategy, 10)


@pytest.mark.parametrize("name", ["agreeing_sources", "pretrain_bo", "as_ml", "ahs_ml"])
def test_without_an_artefact_for_the_space_it_says_how_to_make_one(name):
    with pytest.raises(MissingParameterError, match="cashmere pretrain"):
        run_trials(make_strategy(name, cash_space()).for_table(TABLE), 10)


def test_an_artefact_of_another_space_is_refused(artefact_of):
    for name in NAMES:
        with pytest.raises(ArtefactError, match="does not know"):
            make_strategy(name, flat_space(), artefact=artefact_of(cash_space()))


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_without_an_artefact_is_refused_before_the_first_trial(name, tmp_path):
    with pytest.raises(ArtefactError, match="cashmere pretrain"):
        make_strategy(f"{name}:artefact={tmp_path}", cash_space())


def test_latent_uses_the_requested_embedding(artefact_of):
    space = cash_space()
    artefact = toy_artefact(space)

    def source(embedding, **more):
        strategy = make_strategy("latent", space, artefact=artefact_of(space), embedding=embedding, **more)
        found = strategy.for_table(TABLE).pretrained
        return None if found is None else found.source

    best = artefact.sources[artefact.rank_embeddings(TABLE)[0]]
    assert source("ranked") == source("auto") == best
    assert source("source 2") == "source 2"
    assert source("scratch") is None
    assert len({source("random", embedding_seed=seed) for seed in range(20)}) == len(artefact.sources)
    assert make_strategy("latent", space, artefact=artefact_of(space)).pretrained is None  # the table is not known
    assert make_strategy("latent", space).for_table(TABLE).pretrained is None  # there is no artefact for the space


def test_latent_refuses_impossible_options(artefact_of):
    space = cash_space()
    for embedding in ("ranked", "random", "source 1"):
        with pytest.raises(MissingParameterError, match="cashmere pretrain"):
            make_strategy("latent", space, embedding=embedding)
    with pytest.raises(InvalidParameterError, match=r"such as 'source \d'"):
        make_strategy("latent", space, embedding="source 9", artefact=artefact_of(space))
    for option in ({"n_initial": 0}, {"n_starts": 0}, {"alpha": -1.0}):
        with pytest.raises(InvalidParameterError, match=next(iter(option))):
            make_strategy("latent", space, **option)


def test_as_ml_searches_the_best_ranked_algorithm_until_it_is_exhausted(artefact_of):
    space = finite_space()
    strategy = make_strategy("as_ml:n_starts=2", space, artefact=artefact_of(space)).for_table(TABLE)
    algorithms = [o.trial.configuration["algorithm"] for o in run_trials(strategy, 8)]
    ranked = [strategy.blocks.names[position] for position in strategy.ranked_algorithms]
    assert list(dict.fromkeys(algorithms)) == ranked


def test_ahs_ml_goes_through_its_list_then_draws(artefact_of):
    space = cash_space()
    strategy = make_strategy("ahs_ml", space, artefact=artefact_of(space)).for_table(TABLE)
    n_listed = len(strategy.ranked_rows)
    observations = run_trials(strategy, n_listed + 3)
    assert [str(o.trial.origin) for o in observations] == ["ranking"] * n_listed + ["random"] * 3
    encoded = strategy.blocks.encoder.encode(o.trial.configuration for o in observations[:n_listed])
    np.testing.assert_allclose(encoded, strategy.ranked_rows)


@pytest.mark.parametrize("name", NAMES)
def test_only_the_catalogue_is_suggested(name, artefact_of):
    space = cash_space()
    catalogue = tuple(space.sample_configuration(20))
    strategy = make_strategy(name, CatalogueEncoder(space, catalogue), artefact=artefact_of(space)).for_table(TABLE)
    assert {o.trial.configuration for o in run_trials(strategy, 12)} <= set(catalogue)


def test_pretrained_priors_decide_what_is_searched(artefact_of):
    space = cash_space()
    learned = make_strategy("pretrain_bo", space, artefact=artefact_of(space))
    fitted = make_strategy("bandit_bo", space)
    start = run_trials(fitted, 12)
    history = history_of(start)
    first, second = (s.suggest(history, np.random.default_rng(0)).configuration for s in (learned, fitted))
    assert first != second


def made_sources(space, folder, *, n=60):
    """Write an artefact whose sources prefer opposite things, and return the losses of the first by configuration."""
    observations = toy_observations(space, n_sources=2, n_configurations=n)
    first, second = observations.tables
    losses = np.linspace(0, 1, len(first.losses))
    tables = (replace(first, losses=losses), replace(second, losses=losses[::-1].copy()))
    replace(observations, tables=tables).save(folder / OBSERVATIONS)
    toy_artefact(space, n_sources=2).save(folder)
    configurations = [Configuration(space, dict(values)) for values in observations.configurations]
    return dict(zip(configurations, losses.tolist(), strict=True))


def test_the_source_that_agrees_says_what_is_good(tmp_path):
    space = cash_space()
    losses = made_sources(space, tmp_path)
    catalogue = CatalogueEncoder(space, tuple(losses))
    strategy = make_strategy("agreeing_sources:n_sources=1", catalogue, artefact=tmp_path)
    # On the table at hand, losses are those of the second source, on another scale.
    observations = run_trials(strategy, 16, loss=lambda c: 3 - 2 * losses[c])
    start, found = observations[:8], observations[8:]
    ordered = sorted(losses.values(), reverse=True)
    assert [str(o.trial.origin) for o in found] == ["model"] * 8
    assert np.median([losses[o.trial.configuration] for o in found]) > np.quantile(ordered, 0.8)
    assert np.median([losses[o.trial.configuration] for o in start]) < np.quantile(ordered, 0.8)


def test_without_its_observations_an_artefact_says_so(tmp_path):
    toy_artefact(cash_space()).save(tmp_path)
    strategy = make_strategy("agreeing_sources", cash_space(), artefact=tmp_path)
    with pytest.raises(ArtefactError, match=r"observations\.npz"):
        run_trials(strategy, 10)


@pytest.mark.parametrize("option", ["n_initial", "n_starts", "n_sources"])
def test_agreeing_sources_refuse_impossible_options(option):
    with pytest.raises(InvalidParameterError, match=option):
        make_strategy("agreeing_sources", cash_space(), **{option: 0})


def test_a_space_of_one_algorithm_is_searched():
    space = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
    strategy = make_strategy("latent:embedding=scratch", space)
    observations = run_trials(strategy, 25, loss=lambda c: (c["x"] - 0.3) ** 2 + (c["y"] - 0.6) ** 2)
    assert min(o.loss for o in observations) < 0.01
