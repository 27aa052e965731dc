from __future__ import annotations

import pickle
import re
from pathlib import Path

import cloudpickle
import pytest
from ConfigSpace import ConfigurationSpace

from cashmere.exceptions import InvalidParameterError, UnknownNameError
from cashmere.space.encoding import CatalogueEncoder
from cashmere.strategies import (
    STRATEGIES,
    TPE,
    BayesianOptimisation,
    Contest,
    OptDivBO,
    Preset,
    RandomSearch,
    RisingBandit,
    cite,
    describe,
    make_strategy,
    status,
    strategy_names,
)
from cashmere.strategies.shared.factories import described_class
from cashmere.strategies.shared.search_space import encoder_of
from contracts.strategy_contract import name_of_contract

SPACE = ConfigurationSpace({"x": (0.0, 1.0)})


def test_every_name_makes_a_strategy_with_a_reference():
    for name in strategy_names():
        assert type(make_strategy(name, SPACE)) is described_class(STRATEGIES[name])
        assert "(20" in cite(name)


def test_every_name_passes_the_contract():
    """A test class named after the strategy inherits it, and checks that it tests the strategy of that name."""
    written = "\n".join(path.read_text() for path in sorted(Path(__file__).parent.glob("test_*.py")))
    tested = set(re.findall(r"^class Test(\w+)\(StrategyContract\):", written, flags=re.MULTILINE))
    assert [name for name in STRATEGIES if name_of_contract(name) not in tested] == []


def test_every_name_has_a_status():
    assert {status(name) for name in strategy_names()} == {"method", "variant", "baseline", "ours"}
    assert status("divbo:tau=0.1") == "method" and status(RandomSearch(SPACE)) == "baseline"
    assert status(lambda space: None) == "custom"
    with pytest.raises(UnknownNameError):
        status("nothing")


def test_options_reach_the_strategy():
    assert make_strategy("bo", SPACE, n_initial=7) == BayesianOptimisation(SPACE, n_initial=7)


def test_options_may_follow_a_name():
    assert make_strategy("bo:n_initial=7,cap_losses=False", SPACE) == BayesianOptimisation(
        SPACE, n_initial=7, cap_losses=False
    )
    assert make_strategy("bo:n_initial=7", SPACE, n_initial=8).n_initial == 8
    assert make_strategy("divbo: surrogate = pairwise", SPACE).surrogate == "pairwise"
    assert "Shen" in cite("divbo:tau=0.1")


def test_inner_strategies_are_made_from_their_names_at_once():
    bandit = make_strategy("rising_bandit:inner=optdivbo:tau=1", SPACE)
    assert bandit == RisingBandit(SPACE, inner=Preset(OptDivBO, {"tau": 1}))
    inside = make_strategy("rising_bandit:slope=authors,inner=(bo:n_initial=3,variance=between),window=2", SPACE)
    assert inside == RisingBandit(
        SPACE, slope="authors", window=2, inner=Preset(BayesianOptimisation, {"n_initial": 3, "variance": "between"})
    )
    assert make_strategy("contest:inner=random", SPACE) == Contest(SPACE, inner=RandomSearch)
    assert make_strategy(Contest, SPACE, inner="random") == Contest(SPACE, inner=RandomSearch)
    assert make_strategy("contest", SPACE, inner="tpe").inner is TPE
    for dump in (pickle.dumps, cloudpickle.dumps):
        assert pickle.loads(dump(bandit)).inner == bandit.inner
    assert "OptDivBO" in repr(bandit)


def test_a_preset_is_described_by_its_summary_and_cited_like_its_strategy():
    assert describe("dac_hb") == describe(STRATEGIES["dac_hb"]) != describe("contest")
    assert describe(Preset(TPE, {"n_initial": 3})) == describe("tpe")
    assert cite("rb_smac") == cite("rising_bandit") and status("rb_smac") == status("rising_bandit")


def test_true_false_and_none_may_be_in_lower_case():
    assert make_strategy("ensemble_gain:protect=false", SPACE).protect is False
    assert make_strategy("divbo:draws=none", SPACE).draws is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bo:cap_losses=no", "True or False"),
        ("bo:cap_losses=1", "True or False"),
        ("divbo:ensemble_size=2.5", "a whole number"),
        ("divbo:ensemble_size=True", "a whole number"),
        ("divbo:beta=much", "a number"),
    ],
)
def test_options_of_another_kind_are_refused(text, expected):
    with pytest.raises(InvalidParameterError, match=expected):
        make_strategy(text, SPACE)


@pytest.mark.parametrize("text", ["bo:n_initial", "bo:n_initial=many", "bo:n_initial=0", "divbo:surrogate=nothing"])
def test_options_that_cannot_be_used_are_named(text):
    with pytest.raises((InvalidParameterError, UnknownNameError), match=r"n_initial|nothing"):
        make_strategy(text, SPACE)


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'random'"):
        make_strategy("randm", SPACE)
    with pytest.raises(UnknownNameError, match="Did you mean 'n_initial'"):
        make_strategy("bo", SPACE, n_intial=3)
    with pytest.raises(UnknownNameError):
        cite("nothing")


def test_option_given_twice_is_refused():
    with pytest.raises(InvalidParameterError, match="tau is there twice"):
        make_strategy("divbo:tau=0.1, tau =0.2", SPACE)


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_an_encoder_may_stand_for_the_space(name):
    encoder = CatalogueEncoder(SPACE, SPACE.sample_configuration(3))
    strategy = make_strategy(name, encoder)
    assert strategy.space is encoder
    assert encoder_of(strategy.space) is encoder and encoder_of(SPACE).space is SPACE


def test_catalogue_is_not_an_option():
    with pytest.raises(UnknownNameError, match=r"'tau'\. Known: none\.$"):
        make_strategy("random:tau=1", SPACE)
    for text in ("random:catalogue=None", "bo:catalogue=x"):
        with pytest.raises(UnknownNameError) as caught:
            make_strategy(text, SPACE)
        assert "catalogue" not in caught.value.known


@pytest.mark.parametrize("strategy", [3, None, ["bo"], lambda space: "bo"])
def test_anything_but_a_strategy_is_refused(strategy):
    with pytest.raises(
        InvalidParameterError,
        match=r"strategy must be one of 'agreeing_sources', .* 'bo', .* or a function that makes one",
    ):
        make_strategy(strategy, SPACE)


def test_instance_and_factory_pass_through():
    strategy = RandomSearch(SPACE)
    assert make_strategy(strategy, SPACE) is strategy
    assert make_strategy(RandomSearch, SPACE) == strategy
    assert make_strategy(lambda space: BayesianOptimisation(space, n_initial=2), SPACE).n_initial == 2
    with pytest.raises(TypeError, match="n_initial"):
        make_strategy(strategy, SPACE, n_initial=2)


def test_citation_of_an_object_and_of_something_without_reference():
    assert cite(RandomSearch(SPACE)) == cite("random") == cite(RandomSearch)
    assert "Hutter" in cite("bo") and "Shen" in cite("bo")
    assert cite(lambda space: None) == ""
