from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from toy_artefact import toy_artefact

from cashmere.data.task import TaskProfile, TaskType
from cashmere.exceptions import ArtefactError, MissingParameterError
from cashmere.metalearning.artefact import find_artefact, load_artefact
from cashmere.space import make_space
from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.strategies import make_strategy
from contracts.strategy_contract import cash_space, flat_space

TABLE = {"log_rows": 5.0, "class_entropy": 0.6}


def blocks_of(space: ConfigurationSpace) -> AlgorithmBlocks:
    return AlgorithmBlocks(SpaceEncoder(space))


@pytest.fixture
def saved(tmp_path):
    artefact = toy_artefact(cash_space())
    artefact.save(tmp_path / "artefact")
    return artefact, tmp_path / "artefact"


def test_a_loaded_artefact_ranks_like_the_saved_one(saved):
    artefact, folder = saved
    loaded = load_artefact(folder)
    blocks = blocks_of(cash_space())
    assert loaded.sources == artefact.sources and loaded.signature == artefact.signature
    np.testing.assert_array_equal(loaded.rank_embeddings(TABLE), artefact.rank_embeddings(TABLE))
    np.testing.assert_array_equal(loaded.rank_algorithms(TABLE, blocks), artefact.rank_algorithms(TABLE, blocks))
    np.testing.assert_array_equal(loaded.rank_configurations(TABLE), artefact.rank_configurations(TABLE))
    assert [prior.length_scales.tolist() for prior in loaded.priors] == [
        pytest.approx(prior.length_scales.tolist()) for prior in artefact.priors
    ]


def test_half_precision_hardly_moves_embeddings(saved):
    artefact, folder = saved
    blocks = blocks_of(cash_space())
    rows = blocks.encoder.sample(200, np.random.default_rng(0))
    tasks, vectors = blocks.tasks(rows), blocks.vectors(rows)
    exact = artefact.embedding(1, blocks).encoders.embed(tasks, vectors)
    kept = load_artefact(folder).embedding(1, blocks).encoders.embed(tasks, vectors)
    assert np.abs(exact - kept).max() < 0.01 * exact.std()


def test_fewer_algorithms_are_served_with_their_own_networks():
    artefact = toy_artefact(cash_space())
    space = ConfigurationSpace({"algorithm": ["dummy"], "scaler": ["none", "standard", "quantile"]})
    blocks = blocks_of(space)
    assert artefact.serves(blocks)
    rows = blocks.encoder.sample(3, np.random.default_rng(0))
    place = artefact.algorithms.index("dummy")
    few = artefact.embedding(0, blocks).encoders.embed(blocks.tasks(rows), blocks.vectors(rows))
    padded = np.zeros((len(rows), artefact.encoders.w1.shape[2]))
    padded[:, : blocks.width] = blocks.vectors(rows)
    all_blocks = blocks_of(cash_space())
    full = artefact.embedding(0, all_blocks).encoders.embed(np.full(len(rows), place), padded)
    np.testing.assert_allclose(few, full)


def test_other_ranges_are_not_served():
    artefact = toy_artefact(cash_space())
    assert not artefact.serves(blocks_of(flat_space()))


def test_a_space_without_artefact_finds_none_and_a_wrong_folder_is_an_error(saved):
    _, folder = saved
    assert find_artefact("auto", blocks_of(flat_space())) is None
    with pytest.raises(ArtefactError, match=r"toy.*does not know all"):
        find_artefact(folder, blocks_of(flat_space()))


@pytest.mark.parametrize("name", ["arrays.npz", "embeddings.txt", "manifest.json"])
def test_damage_is_named(saved, name):
    _, folder = saved
    (folder / name).write_bytes((folder / name).read_bytes()[:-20])
    with pytest.raises(ArtefactError, match=rf"cannot be read|holds a damaged {name}: its checksum"):
        load_artefact(folder)


def test_a_missing_folder_and_another_format_are_named(tmp_path, saved):
    with pytest.raises(ArtefactError, match="Expected a folder made by `cashmere pretrain`"):
        load_artefact(tmp_path / "nowhere")
    _, folder = saved
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"version": 99}))
    with pytest.raises(ArtefactError, match="Upgrade cashmere"):
        load_artefact(folder)


def test_an_earlier_artefact_of_the_default_space_is_one_of_the_classic_space(tmp_path):
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=100, n_columns=4, n_classes=2)
    classic, default = (make_space(name, profile).configuration_space for name in ("classic", "default"))
    replace(toy_artefact(classic), space="default").save(tmp_path)
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 1}))
    found = find_artefact(tmp_path, blocks_of(classic))
    assert found is not None and found.space == "classic"
    with pytest.raises(ArtefactError, match=r"for the space 'classic' and does not know lightgbm"):
        find_artefact(tmp_path, blocks_of(default))
    make_strategy(f"latent:artefact={tmp_path}", classic)
    with pytest.raises(ArtefactError, match="'classic'"):
        make_strategy(f"latent:artefact={tmp_path}", default)


@pytest.mark.parametrize("name", ["pretrain_bo", "as_ml", "ahs_ml"])
def test_no_artefact_serves_the_default_space(name):
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=100, n_columns=4, n_classes=2)
    strategy = make_strategy(name, make_space("default", profile).configuration_space)
    with pytest.raises(MissingParameterError, match="no artefact for this space"):
        _ = strategy.known_artefact


def test_a_missing_ranker_is_named(saved):
    artefact, _ = saved
    with pytest.raises(ArtefactError, match="no ranker of embeddings"):
        replace(artefact, rankers={}).rank_embeddings(TABLE)
