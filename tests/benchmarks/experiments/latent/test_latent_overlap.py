from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.__main__ import main
from benchmarks.experiments.latent import overlap
from benchmarks.experiments.latent.overlap import (
    LEARNED,
    WEIGHTS,
    JudgedEmbedding,
    learned_part,
    overlap_chart,
    overlap_table,
)
from cashmere.metalearning.observations import SourceObservations, SourceTable
from cashmere.pretraining.collection import draw_configurations
from cashmere.pretraining.collection.configurations import REFERENCE
from cashmere.space.named.registry import make_space

pytest.importorskip("torch")

ALGORITHMS = ("knn", "logistic_regression", "svc")
N = 30


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    """Observations of two tables on which a configuration's loss depends on its first parameter."""
    drawn = draw_configurations(make_space("sklearn12", REFERENCE), N, seed=0)
    configurations = tuple(values for values in drawn if values["algorithm"] in ALGORITHMS)
    rng = np.random.default_rng(0)
    tables = []
    for name in ("alpha", "beta"):
        losses = rng.random(len(configurations))
        losses[4] = np.nan
        n = len(losses)
        tables.append(
            SourceTable(name=name, origin=name, configurations=np.arange(n), losses=losses, seconds=np.ones(n))
        )
    path = tmp_path_factory.mktemp("observations") / "observations.npz"
    SourceObservations(space="sklearn12", metric="accuracy", configurations=configurations, tables=tuple(tables)).save(
        path
    )
    return path


def command(monkeypatch, *words: object) -> None:
    monkeypatch.setattr("sys.argv", ["benchmarks", "overlap", *map(str, words)])
    main()


@pytest.mark.slow
def test_command_judges_every_table_and_weight_and_draws_one(path, tmp_path, monkeypatch, capsys):
    out, chart = tmp_path / "overlap.csv", tmp_path / "overlap.svg"
    command(
        monkeypatch, "--observations", path, "--tables", "beta", "--seeds", 1, "--out", out, "--chart", chart,
        "--algorithms", *ALGORITHMS,
    )  # fmt: skip
    results = pd.read_csv(out)
    assert results["table"].tolist() == ["beta"] * 2 * len(WEIGHTS)
    assert results["capped"].tolist() == [False] * len(WEIGHTS) + [True] * len(WEIGHTS)
    assert results["lambda_adv"].tolist() == [*WEIGHTS, *WEIGHTS]
    assert results["rank_correlation"].between(-1, 1).all()
    assert results[["accuracy", "accuracy_by_loss"]].stack().between(0, 1).all()
    assert results["accuracy_by_loss"].nunique() == 1  # of the same losses for all weights
    assert "beta, seed 0: rank_correlation" in capsys.readouterr().out
    marks = [
        e for e in ET.fromstring(chart.read_text()).iter() if e.tag.endswith("path") and "fill-opacity" in e.attrib
    ]
    held_out = 3 * round((1 - LEARNED) * N)
    assert len(marks) in (2 * held_out, 2 * (held_out - 1))  # in both panels; one evaluation failed


def test_interrupted_command_continues(path, tmp_path, monkeypatch, capsys):
    made, out = [], tmp_path / "overlap.csv"

    def judge(target, seed):
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append((target.name, seed))
        facts = {"rank_correlation": 0.5, "rank_correlation_of_means": 0.4, "accuracy": 0.9, "accuracy_by_loss": 0.7}
        return [
            JudgedEmbedding(
                table=target.name, digest=target.digest, seed=seed, capped=capped, lambda_adv=weight, **facts
            )
            for capped in (False, True)
            for weight in WEIGHTS
        ], {}

    monkeypatch.setattr(overlap, "judge", judge)
    words = ["--observations", path, "--seeds", 2, "--out", out]
    command(monkeypatch, *words)
    assert "What is finished is kept" in capsys.readouterr().out
    first, kept = made.copy(), out.read_text()
    made.clear()
    command(monkeypatch, *words)
    assert first == [("alpha", 0), ("alpha", 1)] and made == [("beta", 0), ("beta", 1)]
    assert out.read_text().startswith(kept)
    assert "very bad losses capped" in capsys.readouterr().out


def test_unknown_tables_are_refused(path, monkeypatch):
    with pytest.raises(SystemExit, match="gamma"):
        command(monkeypatch, "--observations", path, "--tables", "gamma")


def test_every_algorithm_gives_its_share_to_learn_from():
    tasks = np.repeat([0, 2, 5], [10, 20, 1])
    known = learned_part(tasks, np.random.default_rng(0))
    assert [int(known[tasks == m].sum()) for m in (0, 2, 5)] == [7, 14, 1]
    assert not np.array_equal(known, learned_part(tasks, np.random.default_rng(1)))


def test_table_has_medians_over_seeds_and_tables():
    rows = [
        {
            "table": table, "seed": seed, "lambda_adv": weight, "rank_correlation": 0.5 + 0.1 * seed + 0.01 * weight,
            "rank_correlation_of_means": 0.4, "accuracy": 0.9 - 0.01 * weight, "accuracy_by_loss": 0.7,
        }
        for table in ("one", "two") for seed in range(3) for weight in WEIGHTS
    ]  # fmt: skip
    table = overlap_table(pd.DataFrame(rows))
    assert [row[0] for row in table.rows] == ["one", "two", "median"]
    assert table.columns[1] == "correlation, λ = 0" and table.columns[-1] == "by loss"
    assert table.rows[-1][1] == "0.60" and table.rows[-1][-1] == "0.70"
    assert "3 seeds" in table.note


def test_names_are_escaped():
    points = np.array([[0.0, 1.0], [1.0, 0.0]])
    embedded = {(False, weight): (["<knn>", "svc"], points) for weight in WEIGHTS}
    root = ET.fromstring(overlap_chart(embedded, "<table>", ["<knn>"]))
    texts = [element.text for element in root.iter() if element.text]
    assert "<knn>" in texts and any("<table>" in text for text in texts)
