from __future__ import annotations

import pytest

from cashmere.space.encoding import CatalogueEncoder, SpaceEncoder
from cashmere.space.splitting.restriction import restrict
from cashmere.strategies.shared.search_space import encoder_of, restrict_search
from contracts.strategy_contract import cash_space

ALLOWED = {"algorithm": ["svm", "knn"], "scaler": ["standard"]}


@pytest.fixture
def space():
    return cash_space()


def test_a_space_is_compiled_and_an_encoder_is_taken_as_it_is(space):
    encoder = SpaceEncoder(space)
    assert encoder_of(space).names == encoder.names
    assert encoder_of(encoder) is encoder


def test_a_restricted_space_is_a_space_and_a_restricted_encoder_an_encoder(space):
    part = restrict(space, ALLOWED)
    assert restrict_search(space, part, ALLOWED) is part
    encoder = restrict_search(SpaceEncoder(space), part, ALLOWED)
    assert type(encoder) is SpaceEncoder and encoder.space is part


def test_a_restricted_catalogue_offers_its_listed_configurations(space):
    listed = space.sample_configuration(200)
    encoder = restrict_search(CatalogueEncoder(space, listed), restrict(space, ALLOWED), ALLOWED)
    inside = [c for c in listed if c["algorithm"] in ("svm", "knn") and c["scaler"] == "standard"]
    drawn = [encoder.decode(row) for row in encoder.enumerate(200)]
    assert 0 < len(drawn) == len(set(map(str, inside))) < 200
    assert {id(c) for c in drawn} <= {id(c) for c in inside}  # the objects listed, which belong to the whole space
