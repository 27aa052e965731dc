"""Judge pre-trained latent spaces: how well they rank unseen configurations, how much their algorithms overlap.

    python -m benchmarks overlap --observations observations.npz --tables diabetes glass --out latent_overlap.csv

On every table the networks are pre-trained on 70 % of each algorithm's recorded configurations, without the adversarial
term (eq. 13) and with three weights of it, on losses as they are and capped. The others are held out. Two questions
are asked about these:

- How well does the predicted regret, the squared radius, rank their losses (Spearman)? For comparison the same of a
  prediction that knows the algorithm only, its mean loss.
- How often do new one-versus-one classifiers distinguish the algorithms of two embeddings (0.5 is chance)? For
  comparison the same by the true losses: as far as algorithms differ in quality, no radius can hide them.

With --chart the embeddings of some algorithms' held-out configurations are drawn, without the term and with ten times
the weight that artefacts are built with (as Figure 3 of the paper). Needs the extra `latent`; one pre-training takes
seconds. Rows are added after each table and seed; the same command continues an interrupted one.
"""

from __future__ import annotations

import argparse
import html
import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.text import Text

from benchmarks.experiments.latent.runs import Target, load_targets
from benchmarks.reporting.charts import COLOURS, STYLE
from benchmarks.reporting.table import Table
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import RowFile
from cashmere.exceptions import UnknownNameError
from cashmere.pretraining.building import BuildSettings
from cashmere.pretraining.embeddings import pairwise_accuracy, pretrain, rank_correlation
from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks
from cashmere.space.encoding.encoder import SpaceEncoder

LEARNED = 0.7
"""Share of each algorithm's configurations that are pre-trained on."""

LAMBDA_ADV = BuildSettings().lambda_adv
"""Weight of the adversarial term where artefacts are built."""

WEIGHTS = (0.0, LAMBDA_ADV, 10 * LAMBDA_ADV, 100 * LAMBDA_ADV)

SHOWN = ("knn", "logistic_regression", "svc", "mlp", "random_forest", "gradient_boosting")

_SHAPES = (
    "M{x} {y}m-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0z",  # disc
    "M{x} {y}m-3.2 -3.2h6.4v6.4h-6.4z",  # square
    "M{x} {y}m0 -4.4l4.2 7.4h-8.4z",  # triangle
    "M{x} {y}m0 -4.6l4.6 4.6l-4.6 4.6l-4.6 -4.6z",  # diamond
    "M{x} {y}m0 4.4l4.2 -7.4h-8.4z",  # triangle, upside down
    "M{x} {y}m-1.3 -4.2h2.6v2.9h2.9v2.6h-2.9v2.9h-2.6v-2.9h-2.9v-2.6h2.9z",  # cross
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedEmbedding:
    """A pre-training, judged by the configurations that were held out.

    Attributes
    ----------
    table, digest : str
        The table, and the digest of what was recorded there.
    seed : int
        Seed of the configurations that are held out, and of the networks.
    capped : bool
        Whether very bad losses were capped.
    lambda_adv : float
        Weight of the adversarial term.
    rank_correlation, rank_correlation_of_means : float
        Spearman's, of the losses with the predicted regrets, and with the mean losses of the algorithms.
    accuracy, accuracy_by_loss : float
        Share of embeddings whose algorithm is recognised among two; the same by the true losses.
    """

    table: str
    digest: str
    seed: int
    capped: bool
    lambda_adv: float
    rank_correlation: float
    rank_correlation_of_means: float
    accuracy: float
    accuracy_by_loss: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--observations", type=Path, required=True, help="recorded losses of source tables")
    parser.add_argument("--tables", nargs="+", default=[], help="names of tables (default: all)")
    parser.add_argument(
        "--seeds", type=int, default=2, help="number of seeds, for held-out configurations and initial weights"
    )
    parser.add_argument("--out", type=Path, default=Path(".replay/latent_overlap.csv"), help="rows; grows")
    parser.add_argument("--chart", type=Path, help="SVG of the embeddings on the first table, first seed")
    parser.add_argument("--algorithms", nargs="+", default=list(SHOWN), help=f"algorithms, at most {len(_SHAPES)}")


def main(arguments: argparse.Namespace) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160)
    targets = {target.name: target for target in load_targets(arguments.observations)}
    for name in arguments.tables:
        if name not in targets:
            raise UnknownNameError("table", name, targets)
    chosen = [targets[name] for name in arguments.tables] or list(targets.values())
    file = RowFile(arguments.out, JudgedEmbedding)
    done = file.keys("table", "digest", "seed")
    with until_interrupted(console):
        for number, (target, seed) in enumerate(itertools.product(chosen, range(arguments.seeds))):
            is_drawn, is_done = arguments.chart and number == 0, (target.name, target.digest, seed) in done
            if is_done and not is_drawn:
                continue
            found, embedded = judge(target, seed)
            if is_drawn:
                arguments.chart.write_text(overlap_chart(embedded, target.name, arguments.algorithms), "utf-8")
            if not is_done:
                file.add(found)
                console.print(f"{target.name}, seed {seed}: {_told(found)}", highlight=False)
    names, digests = ([getattr(target, name) for target in chosen] for name in ("name", "digest"))
    results = file.frame(table=names, digest=digests, seed=range(arguments.seeds))
    if results.empty:
        return
    for capped in (False, True):
        table = overlap_table(results[results["capped"] == capped])
        console.print(Text(table.title + (", very bad losses capped" if capped else ""), style="bold"))
        console.print(table.to_rich(), end="")
        console.print(Text(table.note, style="dim"))


def judge(target: Target, seed: int) -> tuple[list[JudgedEmbedding], Embedded]:
    """Pre-train on a part of a table's configurations and ask about the others, with each of `WEIGHTS`.

    Returns
    -------
    list of JudgedEmbedding
        One for each weight, with losses as they are and capped.
    dict
        Names of algorithms and embeddings ``(n, 2)`` of what was held out, by the cap and the weight of the term.
    """
    blocks = AlgorithmBlocks(SpaceEncoder(target.space))
    encoded = blocks.encoder.encode(target.catalogue)
    tasks, vectors, losses = blocks.tasks(encoded), blocks.vectors(encoded), target.losses
    good = np.isfinite(losses)
    tasks, vectors, losses = tasks[good], vectors[good], losses[good]
    known = learned_part(tasks, np.random.default_rng(seed))
    means = np.array([losses[known & (tasks == m)].mean() for m in np.unique(tasks)])
    predicted = means[np.searchsorted(np.unique(tasks), tasks[~known])]
    by_loss = pairwise_accuracy(
        losses[known, None], tasks[known], losses[~known, None], tasks[~known], rng=np.random.default_rng(seed)
    )
    rows: list[JudgedEmbedding] = []
    embedded: Embedded = {}
    for cap, weight in itertools.product((False, True), WEIGHTS):
        rng = np.random.default_rng(seed)
        embedding = pretrain(
            tasks[known], vectors[known], losses[known],
            n_algorithms=len(blocks.names), rng=rng, source=target.name, lambda_adv=weight, cap=cap,
        )  # fmt: skip
        points = embedding.encoders.embed(tasks, vectors)
        accuracy = pairwise_accuracy(points[known], tasks[known], points[~known], tasks[~known], rng=rng)
        rows.append(
            JudgedEmbedding(
                table=target.name,
                digest=target.digest,
                seed=seed,
                capped=cap,
                lambda_adv=weight,
                rank_correlation=rank_correlation(embedding, tasks[~known], vectors[~known], losses[~known]),
                rank_correlation_of_means=_spearman(predicted, losses[~known]),
                accuracy=accuracy,
                accuracy_by_loss=by_loss,
            )
        )
        embedded[cap, weight] = [blocks.names[m] for m in tasks[~known].tolist()], points[~known]
    return rows, embedded


Embedded = dict[tuple[bool, float], tuple[list[str], np.ndarray]]


def learned_part(tasks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw the configurations to learn from, ``(n,)`` of bool: a share `LEARNED` of those of each algorithm."""
    known = np.zeros(len(tasks), dtype=bool)
    for m in np.unique(tasks):
        rows = rng.permutation(np.flatnonzero(tasks == m))
        known[rows[: max(1, round(LEARNED * len(rows)))]] = True
    return known


def _spearman(predicted: np.ndarray, losses: np.ndarray) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(predicted, losses).statistic)


def _told(rows: Sequence[JudgedEmbedding]) -> str:
    return "; ".join(
        f"{name} {' -> '.join(f'{getattr(row, name):.3f}' for row in rows)}"
        for name in ("rank_correlation", "accuracy")
    )


def overlap_table(results: pd.DataFrame) -> Table:
    """Return the medians over seeds for each table, and over tables."""
    medians = results.groupby(["table", "lambda_adv"], sort=False).median(numeric_only=True).unstack()
    columns: dict[str, pd.Series] = {}
    for measure, reference in (("rank_correlation", "rank_correlation_of_means"), ("accuracy", "accuracy_by_loss")):
        word = measure.partition("_")[2] or measure
        columns |= {f"{word}, λ = {weight:g}": medians[measure][weight] for weight in WEIGHTS}
        columns[reference.rpartition(f"{word}_")[2].replace("_", " ")] = medians[reference][WEIGHTS[0]]
    numbers = pd.DataFrame(columns)
    numbers.loc["median"] = numbers.median()
    return Table(
        title="Pre-trained latent spaces, judged by configurations that were held out",
        columns=("table", *numbers.columns),
        rows=tuple((str(name), *(f"{value:.2f}" for value in row)) for name, row in numbers.iterrows()),
        note=f"median of {results['seed'].nunique()} seeds; λ is the weight of the adversarial term",
    )


def overlap_chart(embedded: Embedded, table: str, algorithms: Sequence[str]) -> str:
    """Draw held-out embeddings without (left) and with the adversarial term, one shape and colour per algorithm."""
    shown = list(algorithms)[: len(_SHAPES)]
    parts, x = [], 14.0
    for k, name in enumerate(shown):
        parts.append(f'<path fill="{COLOURS[k]}" d="{_SHAPES[k].format(x=f"{x + 6:g}", y=16)}"/>')
        parts.append(f'<text class="name" x="{x + 16:g}" y="20">{html.escape(name)}</text>')
        x += 34 + 6.8 * len(name)
    parts += [_ring(f"{x + 9:g}", "16"), f'<text class="name" x="{x + 24:g}" y="20">best loss expected</text>']
    for k, weight in enumerate((WEIGHTS[0], WEIGHTS[2])):
        names, points = embedded[False, weight]
        left = 14 + 472 * k
        heading = "without the adversarial term" if weight == 0 else f"with the term, λ = {weight:g}"
        parts.append(f'<text class="panel" x="{left}" y="48">{heading}</text>')
        parts.append(f'<rect x="{left}" y="58" width="460" height="400" fill="none" class="grid"/>')
        parts += _marks([(shown.index(a), p) for a, p in zip(names, points, strict=True) if a in shown], left, 58)
    title = f"Latent space pre-trained on {table}: configurations of {len(shown)} algorithms that were held out"
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 472" role="img">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style>"
        f'<rect class="paper" width="960" height="472"/>{"".join(parts)}</svg>\n'
    )


def _marks(points: Sequence[tuple[int, np.ndarray]], left: float, top: float) -> list[str]:
    """Draw points in a frame of 460 x 400, the origin (best loss expected) as a ring; both axes have one scale."""
    places = np.array([place for _, place in points] + [np.zeros(2)])
    low, high = places.min(axis=0), places.max(axis=0)
    scale = float(np.min(np.array([436, 376]) / np.maximum(high - low, 1e-9)))
    middle = (low + high) / 2

    def at(place: np.ndarray) -> tuple[str, str]:
        x, y = (place - middle) * scale * np.array([1, -1]) + np.array([left + 230, top + 200])
        return f"{x:.1f}", f"{y:.1f}"

    # Mixed order, so that no algorithm covers another: neighbours in the catalogue are of the same algorithm.
    turns = sorted(range(len(points)), key=lambda i: (i * 7919) % len(points))
    marks = []
    for i in turns:
        k, place = points[i]
        x, y = at(place)
        marks.append(f'<path fill="{COLOURS[k]}" fill-opacity=".75" d="{_SHAPES[k].format(x=x, y=y)}"/>')
    return [*marks, _ring(*at(np.zeros(2)))]


def _ring(x: str, y: str) -> str:
    at = f'cx="{x}" cy="{y}"'
    return f'<circle {at} r="9" fill="none" stroke="#23211d" stroke-width="1.6"/><circle {at} r="1.6" fill="#23211d"/>'
