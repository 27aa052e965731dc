from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from synthetic_recording import make_recording

from benchmarks.__main__ import main
from benchmarks.experiments.divbo import surrogate_curve
from benchmarks.experiments.divbo.surrogate_curve import SURROGATES, curve_chart, curve_table, split
from benchmarks.recordings.recorded_history import save_recorded


@pytest.fixture(scope="module")
def history():
    return make_recording(n=90, failures=(3, 5))


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(surrogate_curve, "N_CONFIGURATIONS", 60)
    monkeypatch.setattr(surrogate_curve, "N_JUDGED", 20)


@pytest.mark.usefixtures("small")
def test_more_observations_have_the_same_unseen_configurations(history):
    one, two = split(history, 3, 10), split(history, 3, 30)
    np.testing.assert_array_equal(one.unseen, two.unseen)
    np.testing.assert_array_equal(one.X, two.X[:10])
    assert len(one.unseen) == len(one.unseen_losses) == 20 and one.unseen_distances.shape == (20, 20)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", SURROGATES)
def test_every_surrogate_orders_unseen_configurations(history, name):
    if name.startswith("XGBoost"):
        pytest.importorskip("xgboost")
    tau = SURROGATES[name](split(history, 0, 40), np.random.default_rng(0))
    assert 0 < tau <= 1


def test_the_papers_numbers_stand_beside_ours_after_250_observations():
    rows = pd.DataFrame(
        [("quake-volcano", seed, n, "boosters on pairs", 0.5 + seed / 10) for seed in (0, 1) for n in (50, 250)],
        columns=["recording", "seed", "observations", "surrogate", "tau"],
    )
    table = curve_table(rows)
    assert table.columns[2:] == ("boosters on pairs", "seeds")
    assert table.rows == (
        ("quake-volcano", "50", "0.55 ± 0.05", "2"),
        ("quake-volcano", "250", "0.55 ± 0.05 (0.65)", "2"),
    )
    assert "quake-volcano" in curve_chart(rows)


@pytest.mark.usefixtures("small")
def test_second_call_adds_what_is_missing(history, tmp_path, monkeypatch, capsys):
    save_recorded(history, tmp_path / "made-classic.zip")
    monkeypatch.setattr(surrogate_curve, "SURROGATES", {"forest of losses": surrogate_curve.losses})
    command = ["benchmarks", "curve", "--recordings", str(tmp_path / "made-classic.zip"), "--observations", "15"]
    for seeds in (1, 2):
        monkeypatch.setattr("sys.argv", [*command, "--seeds", str(seeds), "--out", str(tmp_path / "out")])
        main()
        assert len(pd.read_csv(tmp_path / "out" / "curve.csv")) == seeds
    assert capsys.readouterr().out.count("15 observations") == 2
