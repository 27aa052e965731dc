"""The map of a search on a latent space: where the surrogate of all algorithms places the trials of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from cashmere.base.arrays import Float64, FloatArray
from cashmere.base.text import clean_text, redact
from cashmere.evaluation.metrics import ScoreScale
from cashmere.records.origin import OriginKind
from cashmere.records.trial import History
from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks
from cashmere.surrogates.latent import LatentSurrogate
from cashmere.surrogates.latent_space import PretrainedEmbedding

_NAME_LIMIT = 80
_LARGEST = 1e6
"""Larger coordinates cannot be embeddings."""


@runtime_checkable
class LatentStrategy(Protocol):
    """A strategy that decides by one surrogate on a latent space, `cashmere.strategies.latent.Latent` for example."""

    @property
    def blocks(self) -> AlgorithmBlocks:
        """The search space as a set of algorithms."""
        ...

    @property
    def pretrained(self) -> PretrainedEmbedding | None:
        """The networks that the surrogate begins with; None if it trains its own."""
        ...

    def fit(self, history: History, decided: Float64, rng: np.random.Generator) -> tuple[LatentSurrogate, float]:
        """Return the surrogate of a history, and its best loss."""
        ...


def latent_map_fact(strategy: object, history: History) -> dict[str, Any] | None:
    """Return the latent space as plain data for the store.

    The surrogate is fitted once to the whole history; networks trained from scratch start from fixed weights, so that
    the map of a run is unique.

    Returns
    -------
    dict or None
        ``algorithms``: the names. ``source``: the table on which the networks were trained beforehand, None if on none.
        ``n_dims`` of the latent space. ``trials``, ``tasks`` (position in the algorithms), ``losses`` and ``points``
        (see `plane`) of the successful trials; ``centre``: the origin of the space on the same plane. None for other
        strategies, and as long as no trial was decided by the surrogate.
    """
    has_searched = any(trial.origin.kind is OriginKind.MODEL for trial in history.trials)
    if not has_searched or not isinstance(strategy, LatentStrategy):
        return None
    good = [(k, o.trial.number, float(o.loss)) for k, o in enumerate(history) if o.succeeded and o.loss is not None]
    good = [each for each in good if math.isfinite(each[2])]
    if not good:
        return None
    blocks, pretrained = strategy.blocks, strategy.pretrained
    decided = blocks.encoder.encode(trial.configuration for trial in history.trials)
    surrogate, _ = strategy.fit(history, decided, np.random.default_rng(0))
    rows = decided[[k for k, _, _ in good]]
    tasks = blocks.tasks(rows)
    points = surrogate.embed(tasks, blocks.vectors(rows))
    shown, centre = plane(points)
    return {
        "algorithms": list(blocks.names),
        "source": None if pretrained is None else pretrained.source,
        "n_dims": int(points.shape[1]),
        "trials": [number for _, number, _ in good],
        "tasks": tasks.tolist(),
        "losses": [loss for _, _, loss in good],
        "points": shown.tolist(),
        "centre": centre.tolist(),
    }


def plane(points: FloatArray) -> tuple[Float64, Float64]:
    """Return embeddings as points of a plane.

    Parameters
    ----------
    points : (n, q) array
        At least one embedding.

    Returns
    -------
    (n, 2) array
        The embeddings themselves if q is 2, else their first two principal components, padded with zeros.
    (2,) array
        Position of the origin of the latent space.

    Examples
    --------
    >>> shown, centre = plane(np.array([[0.0, 0.0, 1.0], [0.0, 2.0, 1.0]]))
    >>> shown.round(6).tolist(), centre.round(6).tolist()
    ([[-1.0, 0.0], [1.0, 0.0]], [-1.0, 0.0])
    """
    points = np.asarray(points, dtype=np.float64)
    if points.shape[1] == 2:
        return points, np.zeros(2)
    mean = points.mean(axis=0)
    axes = np.linalg.svd(points - mean, full_matrices=False)[2][:2]
    axes *= np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])[:, None]  # else the sign is arbitrary
    shown = np.vstack([points, np.zeros_like(mean)]) - mean
    shown = np.pad(shown @ axes.T, [(0, 0), (0, 2 - len(axes))])
    return shown[:-1], shown[-1]


def summarise_latent_map(fact: Mapping[str, Any], scale: ScoreScale | None = None) -> dict[str, Any]:
    """Return the latent map of a run for the report.

    Parameters
    ----------
    fact : mapping
        From `latent_map_fact`, possibly read back from JSON. Its strings may come from outside; those of the summary
        are cleaned.
    scale : ScoreScale or None
        Turns losses into scores; without it, scores are losses.

    Returns
    -------
    dict
        ``source`` or None, ``n_dims``, ``centre`` (None without a source: only pre-training gives it a meaning), and
        ``points`` in the order of trials: ``trial``, ``algorithm``, ``x``, ``y``, ``loss``, ``score``.

    Raises
    ------
    ValueError
        If the fact does not describe a map.
    """
    try:
        names, columns = fact["algorithms"], [fact[name] for name in ("trials", "tasks", "losses", "points")]
        rows = sorted(zip(*columns, strict=True), key=lambda row: row[0])
        places = [*(row[3] for row in rows), fact["centre"]]
        sound = (
            all(isinstance(name, str) for name in names)
            and all(type(trial) is int and type(task) is int for trial, task, _, _ in rows)
            and all(0 <= task < len(names) for _, task, _, _ in rows)
            and all(math.isfinite(loss) for _, _, loss, _ in rows)
            and all(len(place) == 2 and max(map(abs, place)) <= _LARGEST for place in places)
            and not any(math.isnan(number) for place in places for number in place)
            and len({trial for trial, *_ in rows}) == len(rows)
            and isinstance(fact["source"], str | None)
            and type(fact["n_dims"]) is int
        )
    except (TypeError, KeyError, AttributeError, IndexError, ValueError) as error:
        raise ValueError(f"expected trials with algorithms, losses and points ({error!r})") from error
    if not sound:
        raise ValueError("its parts contradict each other")
    source = fact["source"]
    return {
        "source": None if source is None else _clean(source),
        "n_dims": fact["n_dims"],
        "centre": None if source is None else list(fact["centre"]),
        "points": [
            {
                "trial": trial,
                "algorithm": _clean(names[task]),
                "x": float(x),
                "y": float(y),
                "loss": float(loss),
                "score": float(loss if scale is None else scale.score(loss)),
            }
            for trial, task, loss, (x, y) in rows
        ],
    }


def _clean(name: str) -> str:
    return redact(clean_text(name, _NAME_LIMIT)) or "(blank)"
