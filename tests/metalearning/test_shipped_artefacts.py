"""The artefacts that come with the package."""

from __future__ import annotations

import numpy as np
import pytest

from cashmere.data.task import TaskProfile, TaskType
from cashmere.metalearning.artefact import SHIPPED, find_artefact, load_artefact
from cashmere.metalearning.meta_features import META_FEATURES
from cashmere.metalearning.observations import SourceObservations
from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.space.named.registry import make_space
from cashmere.strategies import make_strategy

FOLDERS = sorted(path.parent for path in SHIPPED.glob("*/manifest.json"))
PROFILES = (
    TaskProfile(task_type=TaskType.BINARY, n_rows=200, n_columns=4, n_classes=2),
    TaskProfile(task_type=TaskType.MULTICLASS, n_rows=90000, n_columns=40, n_classes=7, has_categories=True),
    TaskProfile(task_type=TaskType.BINARY, n_rows=200, n_columns=4, n_classes=2, has_weights=True),
)


def test_there_is_one_for_sklearn12():
    assert [folder.name for folder in FOLDERS] == ["sklearn12"]


@pytest.mark.parametrize("profile", PROFILES, ids=["binary", "multiclass", "weights"])
def test_it_serves_its_space_for_every_task(profile):
    """With row weights, some algorithms are left out."""
    space = make_space("sklearn12", profile).configuration_space
    blocks = AlgorithmBlocks(SpaceEncoder(space))
    artefact = find_artefact("auto", blocks)
    assert artefact is not None and artefact.space == "sklearn12"
    embedding = artefact.embedding(0, blocks)
    rows = blocks.encoder.sample(50, np.random.default_rng(0))
    assert np.isfinite(embedding.encoders.embed(blocks.tasks(rows), blocks.vectors(rows))).all()


@pytest.mark.parametrize("name", ["latent:embedding=ranked", "pretrain_bo", "as_ml", "ahs_ml"])
def test_strategies_find_it_by_themselves(name):
    space = make_space("sklearn12", PROFILES[0]).configuration_space
    strategy = make_strategy(name, space).for_table(dict.fromkeys(META_FEATURES, float("nan")))
    assert strategy.found_artefact is not None


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_it_is_small_and_made_from_the_observations_beside_it(folder):
    assert sum(path.stat().st_size for path in folder.iterdir()) < 3_000_000
    artefact = load_artefact(folder)
    observations = SourceObservations.load(folder / "observations.npz")
    assert set(artefact.sources) <= {table.name for table in observations.tables}
    assert np.isfinite(artefact.encoders.w3).all() and len(artefact.priors) == len(artefact.algorithms)
