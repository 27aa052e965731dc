from __future__ import annotations

import argparse
import sys

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import (
    CategoricalHyperparameter,
    Configuration,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    InCondition,
    Integer,
    OrdinalHyperparameter,
)

from benchmarks.experiments import tpe as tpe_study
from benchmarks.experiments.tpe import (
    OPTUNA,
    PROBLEMS,
    Bowl,
    Valley,
    run_optuna,
    run_strategy,
    suggest_by_optuna,
    summary_tables,
)
from cashmere.exceptions import MissingDependencyError
from cashmere.space.encoding.encoder import SpaceEncoder


def parse(*texts: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    tpe_study.add_arguments(parser)
    return parser.parse_args(texts)


def draw(problem, n, seed=0):
    encoder = SpaceEncoder(problem.space)
    return [encoder.decode(row) for row in encoder.sample(n, np.random.default_rng(seed))]


@pytest.mark.parametrize(("name", "size"), [("mixed", 64), ("pipelines", 64), ("interacting", 47)])
def test_made_up_problems_depend_on_their_seed(name, size):
    one, again, other = (PROBLEMS[name](seed) for seed in (0, 0, 1))
    assert len(one.space) == size
    configurations = draw(one, 20)
    losses = [one.loss(c) for c in configurations]
    assert all(0 < loss < 3 for loss in losses)
    assert losses == [again.loss(c) for c in configurations]
    assert losses != [other.loss(Configuration(other.space, values=dict(c))) for c in configurations]


def test_bowl_is_zero_at_its_centre_only():
    space = PROBLEMS["mixed"](0).space
    encoder, bowl = SpaceEncoder(space), Bowl(space, np.random.default_rng(0), operators=["algorithm"])
    centre = bowl._centre.copy()
    centre[encoder.is_categorical] = 0
    for column, costs in bowl._costs.items():
        centre[column] = np.argmin(costs)
    assert bowl(encoder.decode(centre)) == pytest.approx(0, abs=1e-12)
    assert min(bowl(encoder.decode(row)) for row in encoder.sample(200, np.random.default_rng(0))) > 0.01


def test_valley_is_zero_at_the_centre_of_its_choice_and_crosses_the_axes():
    space = PROBLEMS["interacting"](0).space
    names = [name for name in space if name.startswith("learner5:")]
    encoder, valley = SpaceEncoder(space), Valley(space, np.random.default_rng(0), names)
    columns, numbers = [encoder.names.index(name) for name in names], valley._numbers
    code = int(np.argmin(valley._costs))
    drawn = encoder.sample(200, np.random.default_rng(0))
    row = next(row for row in drawn if row[columns[0]] >= 0)
    row[valley._choice] = code
    row[numbers] = valley._centres[code]
    assert valley(encoder.decode(row)) == pytest.approx(0, abs=1e-12)
    elsewhere = row.copy()
    elsewhere[valley._choice] = (code + 1) % 3
    assert valley(encoder.decode(elsewhere)) >= 0.1
    curvature = valley._axes @ valley._axes.T
    assert np.trace(curvature) == pytest.approx(1)
    assert np.linalg.cond(curvature) == pytest.approx(100)
    assert np.max(np.abs(curvature - np.diag(np.diag(curvature)))) > 0.02
    other = next(row for row in drawn if row[columns[0]] < 0)
    assert valley(encoder.decode(other)) == 0


def test_recorded_problem_is_deterministic():
    problem = PROBLEMS["phoneme"](0)
    assert problem is PROBLEMS["phoneme"](1)
    losses = [problem.loss(c) for c in draw(problem, 30)]
    assert 0.2 < min(losses) < max(losses) < 2


def test_strategies_run_and_are_deterministic():
    problem = PROBLEMS["mixed"](0)
    losses, seconds = run_strategy(problem, "tpe:n_initial=5", seed=0, n_trials=8)
    assert len(losses) == len(seconds) == 8
    assert run_strategy(problem, "tpe:n_initial=5", seed=0, n_trials=8)[0] == losses


@pytest.mark.parametrize("name", sorted(OPTUNA))
def test_optuna_searches_the_same_space(name):
    pytest.importorskip("optuna")
    problem = PROBLEMS["pipelines"](0)
    options = OPTUNA[name] | {"n_startup_trials": 3}
    losses, _ = run_optuna(problem, options, seed=0, n_trials=6)
    assert run_optuna(problem, options, seed=0, n_trials=6)[0] == losses
    assert min(losses) > 0


def test_optuna_is_asked_for_active_parameters_of_every_kind():
    optuna = pytest.importorskip("optuna")
    space = ConfigurationSpace(seed=0)
    kind, version = CategoricalHyperparameter("kind", ["a", "b", "c"]), Constant("version", 2)
    x, n, size = Float("x", (1e-3, 1.0), log=True), Integer("n", (1, 9)), OrdinalHyperparameter("size", [1, 3, 9])
    space.add(kind, version, x, n, size)
    space.add(EqualsCondition(x, kind, "a"), InCondition(n, kind, ["b", "c"]), EqualsCondition(size, n, 3))
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    found = [Configuration(space, values=suggest_by_optuna(study.ask(), space)) for _ in range(60)]
    assert {name for configuration in found for name in configuration} == set(space)


def test_missing_optuna_says_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingDependencyError, match=r"\[bench\]"):
        tpe_study.main(parse("--out", str(tmp_path / "tpe.csv")))
    assert not (tmp_path / "tpe.csv").exists()


@pytest.mark.long
def test_study_writes_its_rows_and_prints_tables(tmp_path, capsys):
    out = tmp_path / "results" / "tpe.csv"
    common = ["--problems", "mixed", "--strategies", "tpe", "random", "--seeds", "2", "--trials", "60"]
    tpe_study.main(parse(*common, "--out", str(out)))
    rows = pd.read_csv(out)
    assert rows.groupby("strategy").size().to_dict() == {"tpe": 4, "random": 4}
    assert sorted(rows["trials"].unique()) == [50, 60]
    best = rows.pivot(index=["seed", "strategy"], columns="trials", values="best_loss")
    assert (best[60] <= best[50]).all()
    printed = capsys.readouterr().out
    assert "After 50 trials" in printed and "random" in printed
    written = out.read_text()
    tpe_study.main(parse(*common, "--out", str(out)))  # finds all of them
    assert out.read_text() == written and "After 50 trials" in capsys.readouterr().out


def test_tables_compare_seed_by_seed():
    rows = pd.DataFrame(
        {
            "problem": "p",
            "seed": seed,
            "strategy": name,
            "trials": 50,
            "best_loss": loss,
            "seconds_per_suggestion": 0.01,
        }
        for seed in range(6)
        for name, loss in (("a", 0.2 + seed), ("b", 0.1 + seed))
    )
    (table,) = summary_tables(rows, reference="a")
    assert table.rows[0] == ("p", "a", "2.7000", "0:0, p 1", "10.0", "6")
    assert table.rows[1] == ("p", "b", "2.6000", "6:0, p 0.031", "10.0", "6")
