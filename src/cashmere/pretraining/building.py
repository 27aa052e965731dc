"""Build an artefact from source observations: embeddings, the searches that rank them, rankers and priors.

Most of the time goes into the searches, one for every pair of tables. Their results are kept in ``searches.ndjson``, so
a build that was stopped continues from there, and one with further tables makes only the new searches.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace

from cashmere.base.arrays import Float64, FloatArray, IntArray
from cashmere.base.files import failures_as, read_file
from cashmere.base.seeds import seed_of
from cashmere.base.threads import one_blas_thread
from cashmere.base.versions import versions
from cashmere.exceptions import ArtefactError, ObservationsError
from cashmere.execution.cluster import Cluster
from cashmere.execution.pools import worker_pool
from cashmere.metalearning.artefact import Artefact
from cashmere.metalearning.meta_features import MetaFeatureScaler, stack_features
from cashmere.metalearning.observations import SourceObservations, SourceTable
from cashmere.metalearning.observed_vectors import FOREIGN, observed_vectors
from cashmere.metalearning.ranking import algorithm_queries, choose_candidates, configuration_queries, embedding_queries
from cashmere.pretraining.embeddings import import_torch, pretrain
from cashmere.pretraining.label_searches import search_recorded
from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.surrogates.gaussian_process import GaussianProcessPrior, fit_prior
from cashmere.surrogates.latent_space import Encoders, PretrainedEmbedding

SEARCHES = "searches.ndjson"
"""File of the searches in the work folder, where the files of evaluations are called ``*.jsonl``."""

_MOST_BYTES = 2**28
"""Largest file of searches; one takes 50 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSettings:
    """Settings for building an artefact.

    Attributes
    ----------
    q : int
        Dimension of the latent space.
    lambda_adv : float
        Weight of the adversarial regularisation (eq. 13).
    cap : bool
        Whether networks learn very bad losses as equally bad (docs/benchmarks.md#pre-training).
    n_steps : int
        Steps of the pre-training on each source.
    n_iterations : int
        Decisions of each search that ranks embeddings.
    n_repeats : int
        Searches per pair of tables, each with different initial configurations.
    seed : int
        Seed for all randomness.
    """

    q: int = 2
    lambda_adv: float = 0.1
    cap: bool = True
    n_steps: int = 300
    n_iterations: int = 30
    n_repeats: int = 3
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Described:
    """The observations of one table with the vectors of its configurations."""

    table: SourceTable
    losses: FloatArray
    tasks: IntArray
    vectors: FloatArray


def build_artefact(
    observations: SourceObservations,
    space: ConfigurationSpace,
    *,
    work: str | Path,
    settings: BuildSettings | None = None,
    n_workers: int = 1,
    cluster: Cluster | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> Artefact:
    """Pre-train an embedding on every source, test by searches which helps where, and fit the rankers.

    Parameters
    ----------
    observations : SourceObservations
        Observations of tables from at least three origins, with meta-features.
    space : ConfigurationSpace
        The space of the observations.
    work : path
        Folder for work in progress.
    settings : BuildSettings, optional
        Settings of the build.
    n_workers : int
        Number of processes; the result does not depend on it.
    cluster : Cluster, optional
        Where they are, instead of this machine.
    report : callable
        Called with a line of text to report progress.

    Raises
    ------
    ObservationsError
        If there are too few tables with configurations of this space, or meta-features are missing.
    MissingDependencyError
        If PyTorch is not installed.
    """
    import_torch()  # report its absence before the work
    settings = settings or BuildSettings()
    blocks = AlgorithmBlocks(SpaceEncoder(space))
    tasks, vectors = observed_vectors(observations, blocks)
    if n_foreign := int(np.sum(tasks == FOREIGN)):
        report(f"Left out {n_foreign} configurations that are not in the space {observations.space}")
    sources = _describe(observations, tasks, vectors)
    origins = [source.table.origin for source in sources]
    if len(set(origins)) < 3:
        raise ObservationsError(
            f"Pre-training takes tables of at least 3 origins; the observations have {len(set(origins))}. Collect "
            "observations on further tables."
        )

    with _workers(n_workers, cluster) as executor:
        report(f"Pre-training on {len(sources)} tables")
        pending = [executor.submit(_pretrain, source, len(blocks.names), settings) for source in sources]
        embeddings: list[PretrainedEmbedding] = [future.result() for future in pending]
        report("Searching every table with the embeddings of all others")
        losses = _search_all(sources, embeddings, settings, Path(work), executor, report)
        pending = [executor.submit(_fit_prior, sources, m, int(length)) for m, length in enumerate(blocks.n_dims)]
        priors: list[GaussianProcessPrior] = [future.result() for future in pending]

    report("Fitting the rankers")
    features = stack_features([source.table.meta_features for source in sources])
    z = MetaFeatureScaler.fit(features).apply(features)
    names = {source.table.name for source in sources}
    matrix = observations.loss_matrix()[[table.name in names for table in observations.tables]]
    matrix[:, tasks == FOREIGN] = np.nan
    n_algorithms = len(blocks.names)
    best = np.stack([_least(matrix[:, tasks == m]) for m in range(n_algorithms)], axis=1)
    chosen = choose_candidates(matrix)
    rankers = {
        "embeddings": embedding_queries(z, losses, origins).fit(settings.seed),
        "algorithms": algorithm_queries(z, best).fit(settings.seed),
        "configurations": configuration_queries(
            z, matrix[:, chosen], tasks[chosen], vectors[chosen], blocks.n_dims.tolist()
        ).fit(settings.seed),
    }
    return Artefact(
        space=observations.space,
        metric=observations.metric,
        signature=blocks.signature(),
        sources=tuple(source.table.name for source in sources),
        origins=tuple(origins),
        meta_features=features,
        encoders=_stack([embedding.encoders for embedding in embeddings]),
        loss_stds=np.array([embedding.loss_std for embedding in embeddings]),
        candidates=tuple(observations.configurations[i] for i in chosen.tolist()),
        candidate_tasks=tasks[chosen],
        candidate_vectors=vectors[chosen],
        rankers=rankers,
        priors=tuple(priors),
        notes={
            "configurations": len(observations.configurations),
            "settings": asdict(settings),
            "search_losses": np.round(losses, 6).tolist(),
            "versions": versions(),
        },
    )


# ---------------------------------------------------------------- observations as arrays


def _describe(observations: SourceObservations, tasks: IntArray, vectors: FloatArray) -> list[_Described]:
    described = []
    for table in observations.tables:
        if not table.meta_features:
            raise ObservationsError(
                f"Table {table.name!r} has no meta_features, but similar tables are found by them. Collect its "
                "observations again with `cashmere pretrain`.",
                table=table.name,
            )
        kept = tasks[table.configurations] != FOREIGN
        if not np.isfinite(table.losses[kept]).any():
            continue  # nothing succeeded, nothing to learn
        at = table.configurations[kept]
        described.append(_Described(table=table, losses=table.losses[kept], tasks=tasks[at], vectors=vectors[at]))
    return described


def _least(losses: FloatArray) -> Float64:
    """Return the lowest loss of each row ``(n_rows,)``; NaN where all are NaN."""
    least = np.min(np.where(np.isnan(losses), np.inf, losses), axis=1, initial=np.inf)
    return np.where(np.isinf(least), np.nan, least)


def _stack(encoders: Sequence[Encoders]) -> Encoders:
    """Return encoders whose arrays have a leading axis of sources."""
    names = ("w1", "b1", "w2", "b2", "w3", "b3")
    return Encoders(**{name: np.stack([getattr(found, name) for found in encoders]) for name in names})


# ---------------------------------------------------------------- the costly parts, each in a separate process


class _SameProcess:
    """Run each call immediately."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with one_blas_thread():
            future.set_result(function(*arguments))
        return future


@contextmanager
def _workers(n_workers: int, cluster: Cluster | None) -> Iterator[Any]:
    if n_workers == 1 and cluster is None:
        yield _SameProcess()
    else:
        with worker_pool(n_workers, cluster=cluster) as executor:
            yield executor


def _pretrain(source: _Described, n_algorithms: int, settings: BuildSettings) -> PretrainedEmbedding:
    table = source.table
    return pretrain(
        source.tasks,
        source.vectors,
        source.losses,
        n_algorithms=n_algorithms,
        source=table.name,
        q=settings.q,
        lambda_adv=settings.lambda_adv,
        cap=settings.cap,
        n_steps=settings.n_steps,
        rng=np.random.default_rng(seed_of(settings.seed, "pretrain", table.name)),
    )


def _search_all(
    sources: Sequence[_Described],
    embeddings: Sequence[PretrainedEmbedding],
    settings: BuildSettings,
    work: Path,
    executor: Any,
    report: Callable[[str], None],
) -> Float64:
    """Return the mean loss ``(S, S)`` of searches on table t (row) with the embedding of s; NaN for the same origin."""
    stamps = [_stamp(source, settings) for source in sources]
    known = SearchFile(work / SEARCHES)
    done = known.read()
    missing = {
        t: [
            s
            for s, source in enumerate(sources)
            if source.table.origin != target.table.origin and (stamps[t], stamps[s]) not in done
        ]
        for t, target in enumerate(sources)
    }
    calls = {t: (sources[t], [embeddings[s] for s in others], settings) for t, others in missing.items() if others}
    for n_done, (t, losses) in enumerate(_as_completed(executor, _search_one, calls), start=1):
        found = {(stamps[t], stamps[s]): loss for s, loss in zip(missing[t], losses, strict=True)}
        known.add(found)
        done |= found
        report(f"Searched {sources[t].table.name}; {len(calls) - n_done} tables left")
    return np.array([[done.get((target, source), np.nan) for source in stamps] for target in stamps])


def _as_completed(
    executor: Any, function: Callable[..., Any], calls: Mapping[int, tuple[Any, ...]]
) -> Iterator[tuple[int, Any]]:
    """Yield key and result of each call when it ends; in the same process, before the next call begins."""
    if isinstance(executor, _SameProcess):
        for key, arguments in calls.items():
            yield key, executor.submit(function, *arguments).result()
        return
    futures = {executor.submit(function, *arguments): key for key, arguments in calls.items()}
    for future in as_completed(futures):
        yield futures[future], future.result()


def _search_one(source: _Described, embeddings: Sequence[PretrainedEmbedding], settings: BuildSettings) -> list[float]:
    """Return, per embedding, the best loss so far, averaged over decisions and repeats (Algorithm 2)."""
    worth = []
    for embedding in embeddings:
        curves = [
            search_recorded(
                source.losses,
                source.tasks,
                source.vectors,
                embedding,
                np.random.default_rng(seed_of(settings.seed, "search", source.table.name, repeat)),
                n_iterations=settings.n_iterations,
            )
            for repeat in range(settings.n_repeats)
        ]
        worth.append(float(np.mean([curve[1:] for curve in curves])))
    return worth


def _fit_prior(sources: Sequence[_Described], algorithm: int, n_dims: int) -> GaussianProcessPrior:
    """Fit the prior of one algorithm to all sources, their losses standardised table by table."""
    datasets = []
    for source in sources:
        losses = source.losses
        kept = np.isfinite(losses)
        scale = float(losses[kept].std()) or 1.0
        mine = kept & (source.tasks == algorithm)
        datasets.append((source.vectors[mine, :n_dims], (losses[mine] - losses[kept].mean()) / scale))
    return fit_prior(datasets)


# ---------------------------------------------------------------- work in progress


def _stamp(source: _Described, settings: BuildSettings) -> str:
    """Return a stamp that identifies the observations of a table, and so its embedding and the searches on it."""
    digest = hashlib.sha256(json.dumps([source.table.name, asdict(settings)]).encode())
    for array in (source.losses.astype(np.float32), source.tasks, source.vectors):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class SearchFile:
    """Results of finished searches, one per line: stamps of the table and of the embedding's source, mean loss."""

    path: Path

    def read(self) -> dict[tuple[str, str], float]:
        """Return the results by stamps; skip lines that hold none, such as those that a kill cut short."""
        found = {}
        for line in self._content().splitlines():
            try:
                target, source, loss = json.loads(line)
                found[target, source] = float(loss)
            except (ValueError, TypeError, OverflowError):
                continue
        return found

    def _content(self) -> bytes:
        with failures_as(ArtefactError, self.path, "Delete it, and the searches are made again."):
            try:
                return read_file(self.path, limit=_MOST_BYTES)
            except FileNotFoundError:
                return b""

    def add(self, results: Mapping[tuple[str, str], float]) -> None:
        """Append results."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        before = self._content()
        with self.path.open("ab") as file:
            if before and not before.endswith(b"\n"):
                file.write(b"\n")  # ends a line that a kill cut short
            file.writelines(json.dumps([*stamps, loss]).encode() + b"\n" for stamps, loss in results.items())
