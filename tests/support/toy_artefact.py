"""An artefact for any space, made without pre-training: networks at random, rankers of made-up losses."""

from __future__ import annotations

import numpy as np
from ConfigSpace import ConfigurationSpace

from cashmere.metalearning.artefact import Artefact
from cashmere.metalearning.meta_features import META_FEATURES, MetaFeatureScaler
from cashmere.metalearning.observations import SourceObservations, SourceTable
from cashmere.metalearning.ranking import algorithm_queries, configuration_queries, embedding_queries
from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.storage.store import plain_values
from cashmere.surrogates.gaussian_process import GaussianProcessPrior
from cashmere.surrogates.latent_space import Encoders


def toy_artefact(space: ConfigurationSpace, *, n_sources: int = 4, n_contenders: int = 12, seed: int = 0) -> Artefact:
    rng = np.random.default_rng(seed)
    encoder = SpaceEncoder(space)
    blocks = AlgorithmBlocks(encoder)
    rows = encoder.sample(n_contenders, rng)
    rows = rows[np.unique(encoder.keys(rows), return_index=True)[1]]
    tasks, vectors = blocks.tasks(rows), blocks.vectors(rows)
    features = rng.normal(size=(n_sources, len(META_FEATURES)))
    z = MetaFeatureScaler.fit(features).apply(features)
    origins = tuple(f"origin {s}" for s in range(n_sources))
    encoders = [
        Encoders.draw(n_algorithms=len(blocks.names), width=blocks.width, q=2, rng=rng, n_hidden=8)
        for _ in range(n_sources)
    ]
    names = ("w1", "b1", "w2", "b2", "w3", "b3")
    losses = rng.random((n_sources, len(rows)))
    return Artefact(
        space="toy",
        metric="accuracy",
        signature=blocks.signature(),
        sources=tuple(f"source {s}" for s in range(n_sources)),
        origins=origins,
        meta_features=features,
        encoders=Encoders(**{name: np.stack([getattr(found, name) for found in encoders]) for name in names}),
        loss_stds=rng.uniform(0.05, 0.2, n_sources),
        candidates=tuple(dict(encoder.decode(row)) for row in rows),
        candidate_tasks=tasks,
        candidate_vectors=vectors,
        rankers={
            "embeddings": embedding_queries(z, rng.random((n_sources, n_sources)), origins).fit(),
            "algorithms": algorithm_queries(z, rng.random((n_sources, len(blocks.names)))).fit(),
            "configurations": configuration_queries(z, losses, tasks, vectors, blocks.n_dims.tolist()).fit(),
        },
        priors=tuple(
            GaussianProcessPrior(mean=0.0, signal_variance=1.0, noise_variance=0.01, length_scales=np.full(n, 0.5))
            for n in blocks.n_dims.tolist()
        ),
        notes={"made": "for tests"},
    )


def toy_observations(
    space: ConfigurationSpace, *, n_sources: int = 4, n_configurations: int = 12
) -> SourceObservations:
    """Return made-up losses on the sources of `toy_artefact`."""
    rng = np.random.default_rng(1)
    encoder = SpaceEncoder(space)
    rows = encoder.sample(n_configurations, rng)
    rows = rows[np.unique(encoder.keys(rows), return_index=True)[1]]
    tables = tuple(
        SourceTable(
            name=f"source {s}",
            origin=f"origin {s}",
            configurations=np.arange(len(rows)),
            losses=rng.random(len(rows)),
            seconds=np.full(len(rows), 0.1),
        )
        for s in range(n_sources)
    )
    configurations = tuple(plain_values(encoder.decode(row)) for row in rows)
    return SourceObservations(space="toy", metric="accuracy", configurations=configurations, tables=tables)
