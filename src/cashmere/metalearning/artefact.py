"""The result of meta-learning for later searches: a folder of numbers and texts, read without running any code.

manifest.json     format, space, algorithms, sources, sizes and checksums of the other files; written last
arrays.npz        encoders of all sources, meta-features, candidates, priors
embeddings.txt    ranker of pre-trained embeddings        (LightGBM text)
algorithms.txt    ranker of algorithms, for `as_ml`
configurations.txt  ranker of configurations, for `ahs_ml`
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import numpy as np

from cashmere.base.array_files import open_arrays
from cashmere.base.arrays import Float64, FloatArray, IntArray
from cashmere.base.files import failures_as, read_file, remove_leftovers, write_atomically
from cashmere.base.json_files import JSON_BYTES, Count, Finite, ShortText, checked, parse_json
from cashmere.exceptions import ArtefactError
from cashmere.metalearning.meta_features import META_FEATURES, MetaFeatureScaler, stack_features
from cashmere.metalearning.observations import SourceObservations
from cashmere.metalearning.ranking import algorithm_features, apply_ranker, configuration_features, embedding_features
from cashmere.model.content.lightgbm_text import check_lightgbm
from cashmere.records.space_names import present_space_name
from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks
from cashmere.surrogates.gaussian_process import GaussianProcessPrior
from cashmere.surrogates.latent_space import Encoders, PretrainedEmbedding

FORMAT = "cashmere artefact"
VERSION = 2
SHIPPED = Path(__file__).parent / "artefacts"
"""Folder of the artefacts shipped with the package, one folder per space."""

_MANIFEST, _ARRAYS = "manifest.json", "arrays.npz"
OBSERVATIONS = "observations.npz"
"""File beside an artefact: the losses it was made from."""

_AGAIN = "Restore it from a copy, or build it again with `cashmere pretrain`."
_N_SCALARS = 3
"""How many numbers a prior has besides its length scales, see `GaussianProcessPrior.theta`."""
_LAYERS = tuple(f.name for f in fields(Encoders))


_FILES = (_MANIFEST, _ARRAYS, "embeddings.txt", "algorithms.txt", "configurations.txt")

_MOST_BYTES = 2**28
"""Largest file of an artefact, and of its arrays unpacked; those of 45 sources and 12 algorithms take 1.5 MB."""


class _Head(TypedDict):
    format: ShortText
    version: Count
    meta_features: list[ShortText]


class _Range(TypedDict):
    kind: ShortText
    values: NotRequired[list[str | bool | int | float]]
    lower: NotRequired[Finite]
    upper: NotRequired[Finite]
    log: NotRequired[bool]


class _Manifest(TypedDict):
    space: ShortText
    metric: ShortText
    signature: dict[ShortText, dict[ShortText, _Range]]
    sources: list[ShortText]
    origins: list[ShortText]
    candidates: list[dict[ShortText, ShortText | bool | int | float]]
    notes: dict[str, Any]
    files: dict[Literal["arrays.npz", "embeddings.txt", "algorithms.txt", "configurations.txt"], ShortText]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Artefact:
    """Everything learned from the source tables of one space.

    Attributes
    ----------
    space : str
        Name of the space.
    metric : str
        Metric whose losses were observed.
    signature : dict
        See `AlgorithmBlocks.signature`; its keys are the algorithms in their order.
    sources, origins : tuple of S str
        Names of the source tables and their origins; tables of the same origin share raw data.
    meta_features : (S, F) array
        Unscaled meta-features of the sources; see `META_FEATURES`.
    encoders : Encoders
        Arrays with a leading axis of S sources.
    loss_stds : (S,) array
        Standard deviation of the losses of each source.
    candidates : tuple of mappings
        Configurations that were among the best on some source, for `ahs_ml`.
    candidate_tasks, candidate_vectors : (C,) int array, (C, width) array
        The candidates in the form of `AlgorithmBlocks`.
    rankers : mapping of str to str
        LightGBM texts, any of ``embeddings``, ``algorithms`` and ``configurations``.
    priors : tuple of GaussianProcessPrior
        One per algorithm, fitted to the standardised losses of all sources; for `pretrain_bo`.
    notes : mapping
        How it was made, for people: number of configurations, limits, versions.
    """

    space: str
    metric: str
    signature: Mapping[str, Any]
    sources: tuple[str, ...]
    origins: tuple[str, ...]
    meta_features: FloatArray
    encoders: Encoders
    loss_stds: FloatArray
    candidates: tuple[Mapping[str, Any], ...] = ()
    candidate_tasks: IntArray
    candidate_vectors: FloatArray
    rankers: Mapping[str, str]
    priors: tuple[GaussianProcessPrior, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Names of the algorithms in the order of the encoders."""
        return tuple(self.signature)

    @property
    def n_dims(self) -> list[int]:
        """Length of each algorithm's vector, see `AlgorithmBlocks.n_dims`."""
        return [
            sum(len(found["values"]) if found["kind"] == "categorical" else 1 for found in ranges.values())
            for ranges in self.signature.values()
        ]

    def serves(self, blocks: AlgorithmBlocks) -> bool:
        """Return whether the artefact knows every algorithm of a space, with the same hyper-parameters and ranges."""
        signature = blocks.signature()
        return all(self.signature.get(name) == ranges for name, ranges in signature.items())

    def positions(self, blocks: AlgorithmBlocks) -> IntArray:
        """Return the positions of a space's algorithms among those of the artefact, which must serve the space."""
        return np.array([self.algorithms.index(name) for name in blocks.names], dtype=np.int64)

    def embedding(self, source: int, blocks: AlgorithmBlocks) -> PretrainedEmbedding:
        """Return the embedding pre-trained on one source, for the algorithms of a space it `serves`."""
        kept = self.positions(blocks)
        arrays = {name: np.asarray(getattr(self.encoders, name)[source][kept], dtype=np.float64) for name in _LAYERS}
        arrays["w1"] = arrays["w1"][:, : blocks.width]
        return PretrainedEmbedding(Encoders(**arrays), float(self.loss_stds[source]), self.sources[source])

    def rank_embeddings(self, meta_features: Mapping[str, float]) -> IntArray:
        """Return the sources for a table with these meta-features, the most promising embedding first."""
        z, z_sources = self._scaled(meta_features)
        return _descending(apply_ranker(self._ranker("embeddings"), embedding_features(z, z_sources)))

    def rank_algorithms(self, meta_features: Mapping[str, float], blocks: AlgorithmBlocks) -> IntArray:
        """Return the algorithms of a space (positions in ``blocks.names``), the most promising first."""
        z, _ = self._scaled(meta_features)
        scores = apply_ranker(self._ranker("algorithms"), algorithm_features(z, len(self.algorithms)))
        return _descending(scores[self.positions(blocks)])

    def rank_configurations(self, meta_features: Mapping[str, float]) -> IntArray:
        """Return the positions in `candidates`, the most promising first."""
        z, _ = self._scaled(meta_features)
        features = configuration_features(z, self.candidate_tasks, self.candidate_vectors, self.n_dims)
        return _descending(apply_ranker(self._ranker("configurations"), features))

    def _ranker(self, name: str) -> str:
        if name not in self.rankers:
            raise ArtefactError(self.space, f"holds no ranker of {name}. Build it again with `cashmere pretrain`.")
        return self.rankers[name]

    def _scaled(self, meta_features: Mapping[str, float]) -> tuple[Float64, Float64]:
        """Return the scaled meta-features of a table ``(F,)`` and of the sources ``(S, F)``."""
        scaler = MetaFeatureScaler.fit(self.meta_features)
        return scaler.apply(stack_features([meta_features]))[0], scaler.apply(self.meta_features)

    def save(self, folder: str | Path) -> None:
        """Write the folder; the manifest comes last, so a folder with a manifest is complete."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder, of=_FILES)
        (folder / _MANIFEST).unlink(missing_ok=True)
        arrays = {
            "meta_features": np.asarray(self.meta_features, dtype=np.float64),
            "loss_stds": np.asarray(self.loss_stds, dtype=np.float64),
            "candidate_tasks": np.asarray(self.candidate_tasks, dtype=np.int16),
            "candidate_vectors": np.asarray(self.candidate_vectors, dtype=np.float64),
            # Half precision moves an embedding by about 0.001, and halves the size of the package.
            **{name: getattr(self.encoders, name).astype(np.float16) for name in _LAYERS},
        }
        arrays["priors"] = np.concatenate([prior.theta for prior in self.priors] or [np.empty(0)])
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
        contents = {_ARRAYS: buffer.getvalue()}
        contents |= {f"{name}.txt": text.encode() for name, text in sorted(self.rankers.items())}
        for name, content in contents.items():
            write_atomically(folder / name, content)
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "space": self.space,
            "metric": self.metric,
            "signature": self.signature,
            "sources": list(self.sources),
            "origins": list(self.origins),
            "meta_features": list(META_FEATURES),
            "candidates": [dict(values) for values in self.candidates],
            "notes": dict(self.notes),
            "files": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
        }
        write_atomically(folder / _MANIFEST, json.dumps(manifest, indent=1).encode())


def load_artefact(folder: str | Path) -> Artefact:
    """Read an artefact written by `Artefact.save`; cached until the folder is written again.

    Parameters
    ----------
    folder : path
        The folder with ``manifest.json``.

    Raises
    ------
    ArtefactError
        If it is missing, damaged, of a newer version, or uses other meta-features.
    """
    folder = Path(folder)
    if not (folder / _MANIFEST).exists() and not (folder / _MANIFEST).is_symlink():
        raise ArtefactError(folder, f"holds no {_MANIFEST}. Expected a folder made by `cashmere pretrain`.")
    return _read(folder.absolute(), (folder / _MANIFEST).lstat().st_mtime_ns)


@functools.lru_cache(maxsize=4)
def _read(folder: Path, stamp: int) -> Artefact:
    with failures_as(ArtefactError, folder, _AGAIN):
        content = parse_json(read_file(folder / _MANIFEST, limit=JSON_BYTES))
        head = checked(content, _Head)
        if head["format"] != FORMAT or head["version"] > VERSION:
            found = f"{head['format']!r} of version {head['version']}"
            raise ArtefactError(
                folder, f"holds {found}; this version reads {FORMAT!r} up to version {VERSION}. Upgrade cashmere."
            )
        if tuple(head["meta_features"]) != META_FEATURES:
            raise ArtefactError(
                folder, f"describes tables by other meta-features than this version of cashmere. {_AGAIN}"
            )
        manifest = checked(content, _Manifest)
        contents: dict[str, bytes] = {name: read_file(folder / name, limit=_MOST_BYTES) for name in manifest["files"]}
        for name, digest in manifest["files"].items():
            if hashlib.sha256(contents[name]).hexdigest() != digest:
                raise ArtefactError(
                    folder, f"holds a damaged {name}: its checksum is not the one in the manifest. {_AGAIN}"
                )
        with open_arrays(contents.pop(_ARRAYS), limit=_MOST_BYTES, compressed=True) as read:
            arrays = dict(read)
        rankers = {name.removesuffix(".txt"): content.decode() for name, content in contents.items()}
        for ranked, text in rankers.items():
            check_lightgbm(f"the ranker of {ranked}", text, objectives=("lambdarank",))
        artefact = Artefact(
            space=present_space_name(manifest["space"], head["version"]),
            metric=manifest["metric"],
            signature=manifest["signature"],
            sources=tuple(manifest["sources"]),
            origins=tuple(manifest["origins"]),
            meta_features=arrays["meta_features"],
            encoders=Encoders(**{name: arrays[name] for name in _LAYERS}),
            loss_stds=arrays["loss_stds"],
            candidates=tuple(manifest["candidates"]),
            candidate_tasks=arrays["candidate_tasks"].astype(np.int64),
            candidate_vectors=arrays["candidate_vectors"],
            rankers=rankers,
            notes=manifest["notes"],
        )
        _check_shapes(artefact)
        lengths = [length + _N_SCALARS for length in artefact.n_dims]
        if len(arrays["priors"]) not in (0, sum(lengths)):
            raise ValueError("the priors do not fit the algorithms")
        thetas = np.split(arrays["priors"], np.cumsum(lengths)[:-1])
        return (
            replace(artefact, priors=tuple(map(GaussianProcessPrior.of, thetas))) if len(arrays["priors"]) else artefact
        )


def _check_shapes(artefact: Artefact) -> None:
    """Raise ValueError unless all parts have the same sources, algorithms and candidates."""
    n_sources, n_algorithms, n_candidates = len(artefact.sources), len(artefact.signature), len(artefact.candidates)
    encoders = [getattr(artefact.encoders, name) for name in _LAYERS]
    arrays = [artefact.meta_features, artefact.loss_stds, artefact.candidate_vectors, *encoders]
    tasks, vectors = artefact.candidate_tasks, artefact.candidate_vectors
    if not (
        all(array.dtype.kind == "f" for array in arrays)
        and all(array.shape[:2] == (n_sources, n_algorithms) for array in encoders)
        and artefact.meta_features.shape == (n_sources, len(META_FEATURES))
        and artefact.loss_stds.shape == (n_sources,)
        and len(artefact.origins) == n_sources
        and tasks.shape == (n_candidates,)
        and vectors.ndim == 2
        and len(vectors) == n_candidates
        and (not n_candidates or 0 <= tasks.min() <= tasks.max() < n_algorithms)
    ):
        raise ValueError("its parts do not fit together")


def find_artefact(artefact: str | Path, blocks: AlgorithmBlocks) -> Artefact | None:
    """Return the artefact for a space.

    Parameters
    ----------
    artefact : str or path
        A folder, or ``"auto"`` for an artefact shipped with the package that serves the space.
    blocks : AlgorithmBlocks
        The space.

    Returns
    -------
    Artefact or None
        None if no shipped artefact serves the space.

    Raises
    ------
    ArtefactError
        If the given folder cannot be read, or was made for other hyper-parameters.
    """
    folder = _find_folder(artefact, blocks)
    return None if folder is None else load_artefact(folder)


def load_source_observations(artefact: str | Path, blocks: AlgorithmBlocks) -> SourceObservations:
    """Return the observations that an artefact was made from, which stand beside it; see `find_artefact`.

    Raises
    ------
    ArtefactError
        If there is no such artefact, or they are missing.
    CorruptStoreError
        If they cannot be read.
    """
    folder = _find_folder(artefact, blocks)
    if folder is None or not (folder / OBSERVATIONS).exists():
        raise ArtefactError(artefact, f"holds no {OBSERVATIONS}, the losses it was made from. {_AGAIN}")
    return SourceObservations.load(folder / OBSERVATIONS)


def _find_folder(artefact: str | Path, blocks: AlgorithmBlocks) -> Path | None:
    if artefact == "auto":
        # Some installers make every file of a package a link; those of this package can be trusted.
        folders = sorted(path.resolve().parent for path in SHIPPED.glob(f"*/{_MANIFEST}"))
        return next((folder for folder in folders if load_artefact(folder).serves(blocks)), None)
    found = load_artefact(Path(artefact))
    if not found.serves(blocks):
        names = [name for name, ranges in blocks.signature().items() if found.signature.get(name) != ranges]
        raise ArtefactError(
            artefact,
            f"was made for the space {found.space!r} and does not know {', '.join(names[:5])} with the ranges of this "
            "space. Search that space, or build an artefact for this one with `cashmere pretrain`.",
        )
    return Path(artefact)


def _descending(scores: FloatArray) -> IntArray:
    return np.argsort(-np.asarray(scores, dtype=np.float64), kind="stable")
