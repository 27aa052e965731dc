from __future__ import annotations

import doctest

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.recordings import replay_study
from benchmarks.reporting.comparison import make_report, reference_table
from benchmarks.reporting.report import write_report
from benchmarks.statistics import comparison
from benchmarks.statistics import ranks_and_tests as statistics


def make_runs(losses: dict[tuple[str, str], dict[int, list[float]]]) -> pd.DataFrame:
    """Return a frame from {(recording, strategy): {trials: [losses by seed]}}; test is validation + 1."""
    return pd.DataFrame(
        [
            {"recording": r, "strategy": s, "seed": seed, "trials": n, "validation": loss, "test": loss + 1}
            for (r, s), curve in losses.items()
            for n, values in curve.items()
            for seed, loss in enumerate(values)
        ]
    )


TWO = make_runs(
    {
        ("r1", "a"): {5: [4.0, 4.0], 10: [1.0, 3.0]},
        ("r1", "b"): {5: [2.0, 3.0], 10: [2.0, 2.5]},
        ("r2", "a"): {5: [9.0, 9.0], 10: [5.0, 5.0]},
        ("r2", "b"): {5: [8.0, 8.0], 10: [5.0, 6.0]},
    }
)


@pytest.mark.parametrize("module", [comparison, replay_study])
def test_examples(module):
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


def test_means_by_hand():
    assert comparison.mean_losses(TWO, 10, "validation").loc["r1"].to_dict() == {"a": 2.0, "b": 2.25}
    assert comparison.mean_losses(TWO, 10, "test").loc["r2"].to_dict() == {"a": 6.0, "b": 6.5}
    assert comparison.standard_errors(TWO, 10, "validation").loc["r1", "a"] == pytest.approx(1.0)


def test_equal_seconds_end_all_runs_when_the_quickest_has_used_up_its_trials():
    runs = TWO[TWO["recording"] == "r1"].copy()
    quick, slow, very_slow = {5: 1.0, 10: 6.0}, {5: 5.0, 10: 9.0}, {5: 7.0, 10: 8.0}
    spent = {("a", 0): quick, ("b", 0): slow, ("a", 1): very_slow, ("b", 1): quick}
    runs["seconds"] = [
        spent[s, seed][n] for s, seed, n in zip(runs["strategy"], runs["seed"], runs["trials"], strict=True)
    ]
    found = comparison.at_equal_seconds(runs)
    assert comparison.losses_at(found, 10, "validation").loc["r1", 0].to_dict() == {"a": 1.0, "b": 2.0}
    second = comparison.losses_at(found, 10, "validation").loc["r1", 1]  # after 6 s, `a` had no row yet
    assert second["b"] == 2.5 and np.isnan(second["a"])
    assert found.set_index(["strategy", "seed"])["finished"].to_dict() == {("a", 0): 10, ("b", 0): 5, ("b", 1): 10}


def test_ranks_by_hand():
    # Means: a wins both. Seeds: r1 one each, r2 a tie and a win.
    assert comparison.average_ranks(TWO, 10, "validation").to_dict() == {"a": 1.0, "b": 2.0}
    assert comparison.average_ranks(TWO, 10, "validation", per_seed=True).to_dict() == {"a": 1.375, "b": 1.625}


def test_missing_losses_rank_last_and_spoil_the_mean():
    runs = TWO[~((TWO["strategy"] == "a") & (TWO["seed"] == 0) & (TWO["trials"] == 5))]
    assert np.isnan(comparison.mean_losses(runs, 5, "validation").loc["r1", "a"])
    assert comparison.average_ranks(runs, 5, "validation").to_dict() == {"a": 2.0, "b": 1.0}


def test_rounding_errors_are_ties():
    runs = make_runs({("r", "a"): {5: [0.1 + 0.2]}, ("r", "b"): {5: [0.3]}})
    assert comparison.average_ranks(runs, 5, "validation").to_dict() == {"a": 1.5, "b": 1.5}
    assert statistics.signed_rank_test(np.array([0.1 + 0.2 - 0.3])) == (1.0, 0)


def test_only_complete_pairs_are_kept():
    runs = TWO[~((TWO["recording"] == "r1") & (TWO["strategy"] == "b") & (TWO["seed"] == 1))]
    kept = comparison.paired(runs)[["recording", "seed"]].drop_duplicates()
    assert sorted(map(tuple, kept.to_numpy())) == [("r1", 0), ("r2", 0), ("r2", 1)]


def test_signed_ranks_agree_with_scipy():
    differences = np.random.default_rng(3).normal(0.3, 1, size=20)
    p_value, direction = statistics.signed_rank_test(np.append(differences, [0.0, 0.0]))
    assert p_value == pytest.approx(stats.wilcoxon(differences).pvalue)
    ranks = stats.rankdata(np.abs(differences))
    assert direction == np.sign(ranks[differences > 0].sum() - ranks[differences < 0].sum())


def test_wilcoxon_counts():
    bo = np.arange(10.0)
    runs = make_runs(
        {
            ("r1", "bo"): {5: [*bo]},
            ("r1", "other"): {5: [*(bo - 0.1 * (1 + bo))]},
            ("r1", "same"): {5: [*bo]},
            ("r2", "bo"): {5: [*bo]},
            ("r2", "other"): {5: [*(bo + 0.1 * (1 + bo))]},
            ("r2", "same"): {5: [*bo]},
        }
    )
    found = comparison.wilcoxon_by_recording(runs, 5, "validation", "bo")
    counts = statistics.count_verdicts(found)
    assert counts.loc["other"].to_dict() == {"better": 1, "same": 0, "worse": 1}
    assert counts.loc["same"].to_dict() == {"better": 0, "same": 2, "worse": 0}
    assert found["p_value"].min() == pytest.approx(2 / 2**10)


@pytest.mark.parametrize("missing", [4, 10])
def test_missing_losses_are_the_worst_in_the_test_over_seeds(missing):
    bo = np.arange(10.0)
    # Better wherever it has an ensemble; without the other seeds the verdict would be "better" for 4.
    gappy = np.where(bo < missing, np.nan, bo - 1 - bo / 10)
    runs = make_runs({("r", "bo"): {5: [*bo]}, ("r", "gappy"): {5: [*gappy]}})
    found = comparison.wilcoxon_by_recording(runs, 5, "validation", "bo").iloc[0]
    worst = np.where(bo < missing, 99.0, -1 - bo / 10)
    assert found["p_value"] == pytest.approx(stats.wilcoxon(worst).pvalue)
    assert found["verdict"] == ("same" if missing == 4 else "worse")
    reverse = comparison.wilcoxon_by_recording(runs, 5, "validation", "gappy").iloc[0]
    assert reverse["p_value"] == found["p_value"]
    assert reverse["verdict"] == ("same" if missing == 4 else "better")


def test_two_missing_losses_are_a_tie():
    runs = make_runs({("r", "bo"): {5: [np.nan] * 9}, ("r", "a"): {5: [np.nan] * 9}})
    found = comparison.wilcoxon_by_recording(runs, 5, "validation", "bo").iloc[0]
    assert (found["p_value"], found["verdict"]) == (1.0, "same")


def test_missing_means_lose_over_recordings():
    losses = {}
    for i in range(8):
        losses |= {(f"r{i}", "bo"): {5: [1.0] * 2}, (f"r{i}", "a"): {5: [0.9 - i / 100, 0.9 if i else np.nan]}}
    found = comparison.across_recordings(make_runs(losses), 5, "validation", "bo").loc["a"]
    assert (found["wins"], found["ties"], found["losses"]) == (7, 0, 1)
    # The missing mean has the largest of eight ranks: P(W <= 8) = 25 / 2^8 on each side.
    assert found["wilcoxon_p"] == pytest.approx(2 * 25 / 2**8)


def test_five_seeds_cannot_be_significant():
    runs = make_runs({("r", "bo"): {5: [1.0, 2, 3, 4, 5]}, ("r", "a"): {5: [0.9, 1.8, 2.7, 3.6, 4.5]}})
    assert comparison.wilcoxon_by_recording(runs, 5, "test", "bo")["verdict"].tolist() == ["same"]


def test_over_recordings_each_counts_once():
    losses = {}
    for i, better in enumerate([True, True, True, True, True, True, False, None]):
        factor = 1.0 if better is None else (0.9 - i / 100 if better else 1.01)
        losses |= {(f"r{i}", "bo"): {5: [10.0**i] * 2}, (f"r{i}", "a"): {5: [factor * 10.0**i] * 2}}
    found = comparison.across_recordings(make_runs(losses), 5, "validation", "bo").loc["a"]
    assert (found["wins"], found["ties"], found["losses"]) == (6, 1, 1)
    assert found["sign_p"] == pytest.approx(stats.binomtest(6, 7).pvalue)
    # Ranks of seven relative differences, the one loss is the smallest: P(W <= 1) = 2 / 2^7 on each side.
    assert found["wilcoxon_p"] == pytest.approx(4 / 2**7)
    assert found["holm_p"] == found["wilcoxon_p"]  # of one strategy


def test_relative_differences():
    runs = make_runs(
        {("r1", "bo"): {5: [2.0, 2.0]}, ("r1", "a"): {5: [1.8, 1.8]},
         ("r2", "bo"): {5: [1.0, 3.0]}, ("r2", "a"): {5: [1.1, 3.3]}}
    )  # fmt: skip
    found = comparison.relative_differences(runs, 5, "validation", "bo").loc["a"]
    # Every draw of paired seeds gives the same ratio: the intervals have no length.
    np.testing.assert_allclose(found.loc["r1"], [-10, -10, -10], atol=1e-9)
    np.testing.assert_allclose(found.loc["r2"], [10, 10, 10], atol=1e-9)
    np.testing.assert_allclose(found.loc[""], [0, -10, 10], atol=1e-9)


def test_single_seed_has_no_interval():
    one = {("r1", "bo"): {5: [2.0]}, ("r1", "a"): {5: [1.8]}}
    found = comparison.relative_differences(make_runs(one), 5, "validation", "bo").loc["a"]
    np.testing.assert_allclose(found, [[-10, np.nan, np.nan]] * 2)
    # The recordings themselves can be drawn as soon as there are two.
    two = one | {("r2", "bo"): {5: [1.0]}, ("r2", "a"): {5: [1.1]}}
    found = comparison.relative_differences(make_runs(two), 5, "validation", "bo").loc["a"]
    np.testing.assert_allclose(found.loc[["r1", "r2"]], [[-10, np.nan, np.nan], [10, np.nan, np.nan]])
    np.testing.assert_allclose(found.loc[""], [0, -10, 10], atol=1e-9)
    assert "| a | 0/1/0 | -10.00 [-] |" in reference_table(make_runs(one), 5, "bo").to_markdown()


def test_difference_to_a_reference_without_loss_is_not_defined():
    runs = make_runs(
        {("r1", "bo"): {5: [0.0, 0.0]}, ("r1", "a"): {5: [0.1, 0.0]}, ("r1", "b"): {5: [0.0, 0.0]},
         ("r2", "bo"): {5: [1.0, 1.0]}, ("r2", "a"): {5: [1.1, 1.1]}, ("r2", "b"): {5: [1.1, 1.1]}}
    )  # fmt: skip
    found = comparison.relative_differences(runs, 5, "validation", "bo")
    assert found.loc["a"].loc[["r1", ""]].isna().all(axis=None)
    np.testing.assert_allclose(found.loc["b"].loc["r1"], 0.0)
    assert found.loc[("b", ""), "difference"] == pytest.approx(5.0)


def test_bootstrap_interval_has_about_the_width_of_the_normal_one():
    noise = np.random.default_rng(0).normal(size=100)
    runs = make_runs({("r", "bo"): {5: [100.0] * 100}, ("r", "a"): {5: [*(100 + noise)]}})
    found = comparison.relative_differences(runs, 5, "validation", "bo").loc[("a", "r")]
    assert found["high"] - found["low"] == pytest.approx(2 * 1.96 * noise.std() / 10, rel=0.1)


def test_speed_up_by_hand():
    runs = make_runs(
        {("r", "bo"): {5: [4.0, 4.0], 10: [3.0, 2.0], 15: [3.0, 2.0], 20: [2.0, 2.0]},
         ("r", "a"): {5: [2.0, 4.0], 10: [2.0, 2.0], 15: [1.0, 1.0], 20: [1.0, 1.0]},
         ("r", "never"): {5: [9.0, 9.0], 10: [9.0, 9.0], 15: [9.0, 9.0], 20: [9.0, 2.5]}}
    )  # fmt: skip
    found = comparison.speed_ups(runs, "bo").xs("r", level="recording")
    assert found.loc["a"].to_dict() == {"trials": 10, "seed_trials": 7.5, "speed_up": 2.0, "seed_speed_up": 20 / 7.5}
    assert found.loc["bo"].to_dict() == {"trials": 20, "seed_trials": 15, "speed_up": 1.0, "seed_speed_up": 20 / 15}
    assert found.loc["never"].to_dict() == {
        "trials": np.inf, "seed_trials": np.inf, "speed_up": 0.0, "seed_speed_up": 0.0,
    }  # fmt: skip
    assert comparison.mean_speed_up(found["speed_up"]) == (pytest.approx(2 ** (1 / 3)), 2)


def test_reference_reaches_its_own_final_loss():
    values = np.random.default_rng(1).random(20)
    runs = make_runs({("r", "bo"): {5: [*(values + 1)], 10: [*values]}, ("r", "a"): {5: [*values], 10: [*values]}})
    assert comparison.speed_ups(runs, "bo")["trials"].tolist() == [10, 5]


def test_report_says_whether_ranks_differ(tmp_path):
    rng = np.random.default_rng(0)
    names = ("bo", "middle", "worse")
    runs = make_runs({(f"r{i}", s): {5: [*(rng.random(2) + j)]} for i in range(12) for j, s in enumerate(names)})
    runs["suggest_seconds"] = 0.1
    write_report(tmp_path, make_report(runs, [5], "bo"))
    text, page = ((tmp_path / name).read_text() for name in ("summary.md", "index.html"))
    losses = comparison.mean_losses(runs, 5, "validation")
    expected = stats.friedmanchisquare(*losses.to_numpy().T)
    assert f"over 12 tables: validation chi-squared {expected.statistic:.2f}, p {expected.pvalue:.2g}" in text
    assert "at most 0.05 where ranks are 0.96 or more apart" in text
    assert "| bo | 1.00 [1.00, 1.00] | - | 1.00 [1.00, 1.00] | - |" in text
    assert "| worse | 3.00 [3.00, 3.00] | 2.9e-06 |" in text
    assert page.count(">critical difference 0.96<") == 2
    assert (tmp_path / "critical_difference_test.svg").read_text() in page


def test_one_recording_has_no_ranks_to_test(tmp_path):
    runs = make_runs({("r", s): {5: [1.0, 2.0]} for s in ("bo", "a")})
    runs["suggest_seconds"] = 0.1
    write_report(tmp_path, make_report(runs, [5], "bo"))
    assert "Nemenyi" not in (tmp_path / "summary.md").read_text()
    assert not list(tmp_path.glob("critical*"))
