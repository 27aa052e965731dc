from __future__ import annotations

import doctest
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from benchmarks.statistics import ranks_and_tests as statistics
from cashmere.exceptions import ArrayError, InvalidParameterError, ShapeError, UnknownNameError

PUBLISHED = json.loads((Path(__file__).parents[2] / "vectors" / "published_ranks.json").read_text())

# Ranks of C4.5 without and with tuning of m and cf on 14 tables; Demšar (2006), Table 6.
DEMSAR = np.array(
    [
        [4, 3, 2, 1], [1, 2, 3, 4], [4, 1, 2, 3], [4, 1, 3, 2], [4, 2, 3, 1], [1, 2.5, 4, 2.5], [3, 2, 4, 1],
        [2.5, 2.5, 4, 1], [4, 3, 2, 1], [2.5, 2.5, 2.5, 2.5], [4, 2.5, 1, 2.5], [3, 2, 4, 1], [4, 1, 2, 3],
        [3, 1, 4, 2],
    ]
)  # fmt: skip

tables_with_ties = nps.array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=10).flatmap(
    lambda shape: nps.arrays(np.float64, shape, elements=st.one_of(st.integers(0, 5).map(float), st.just(np.nan)))
)


def test_examples():
    assert doctest.testmod(statistics, optionflags=doctest.ELLIPSIS).failed == 0


@given(tables_with_ties)
def test_ranks_agree_with_pandas(losses):
    expected = pd.DataFrame(losses).rank(axis=1, na_option="bottom")
    np.testing.assert_array_equal(statistics.rank_methods(losses), expected)
    np.testing.assert_array_equal(statistics.average_ranks(losses), expected.mean())


@given(tables_with_ties, st.integers(0, 99))
def test_ranks_are_those_of_any_scale_of_a_table(losses, seed):
    rng = np.random.default_rng(seed)
    scaled = losses * rng.uniform(0.1, 10, size=(len(losses), 1)) + rng.normal(size=(len(losses), 1))
    np.testing.assert_array_equal(statistics.rank_methods(scaled), statistics.rank_methods(losses))


def test_example_of_demsar():
    """All printed figures of his section 3.2.2; he does not correct for ties."""
    found = statistics.friedman_test(DEMSAR)
    np.testing.assert_allclose(found.average_ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    n, k = DEMSAR.shape
    uncorrected = 12 * n / (k * (k + 1)) * np.sum((found.average_ranks - (k + 1) / 2) ** 2)
    assert uncorrected == pytest.approx(9.28, abs=5e-3)
    assert (n - 1) * uncorrected / (n * (k - 1) - uncorrected) == pytest.approx(3.69, abs=5e-3)
    assert uncorrected < found.chi2 == pytest.approx(scipy.stats.friedmanchisquare(*DEMSAR.T).statistic)
    # At 0.10 his two differences with C4.5 are found, at 0.05 none.
    p_values = statistics.nemenyi_p_values(found.average_ranks, n)
    assert np.argwhere(np.triu(p_values <= 0.10)).tolist() == [[0, 1], [0, 3]]
    assert p_values.min() > 0.05


def test_critical_values_of_demsar():
    """Table 5a: two-tailed critical values of the Nemenyi test for 2 to 10 methods."""
    for level, printed in (
        (0.05, [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]),
        (0.10, [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920]),
    ):
        for k, value in enumerate(printed, start=2):
            found = statistics.nemenyi_critical_difference(k, 10, level) / np.sqrt(k * (k + 1) / 60)
            assert found == pytest.approx(value, abs=1.1e-3)  # 3.0309 is printed as 3.031, 2.9483 as 2.949


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(3, 8), st.integers(2, 15))
def test_nemenyi_agrees_with_scikit_posthocs(seed, k, n):
    losses = np.random.default_rng(seed).integers(0, 6, size=(n, k)).astype(float)  # with ties
    ranks = statistics.average_ranks(losses)
    found = statistics.nemenyi_p_values(ranks, n)
    np.testing.assert_allclose(found, scikit_posthocs.posthoc_nemenyi_friedman(losses).to_numpy(), rtol=1e-4, atol=1e-9)
    apart = np.abs(np.subtract.outer(ranks, ranks)) >= statistics.nemenyi_critical_difference(k, n)
    np.testing.assert_array_equal(found <= 0.05, apart)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 6), st.integers(2, 12))
def test_friedman_agrees_with_scipy_where_losses_are_missing(seed, k, n):
    rng = np.random.default_rng(seed)
    losses = rng.integers(0, 5, size=(n, k)).astype(float)
    losses[rng.random((n, k)) < 0.2] = np.nan
    filled = np.where(np.isnan(losses), 99.0, losses)
    found = statistics.friedman_test(losses)
    if (filled == filled[:, :1]).all():
        assert found.p_value == 1.0
    else:
        expected = scipy.stats.friedmanchisquare(*filled.T)
        assert (found.chi2, found.p_value) == pytest.approx(tuple(expected), rel=1e-9, abs=1e-9)


def test_nemenyi_rarely_finds_a_difference_where_there_is_none():
    rng = np.random.default_rng(5)
    critical = statistics.nemenyi_critical_difference(5, 20)
    found = [np.ptp(statistics.average_ranks(rng.random((20, 5)))) >= critical for _ in range(2000)]
    assert np.mean(found) == pytest.approx(0.05, abs=0.02)


@pytest.mark.parametrize("name", ["divbo_table1", "optdivbo_table1", "optdivbo_table3"])
def test_published_average_ranks(name):
    published = PUBLISHED[name]
    found = statistics.average_ranks(published["means"])
    differences = np.abs(found - published["printed_average_ranks"])
    if name == "optdivbo_table1":  # seven of ten are misprinted, none by more than 0.1
        assert np.sum(differences > 0.006) == 7
        assert differences.max() < 0.101
    else:
        assert differences.max() < 0.006


def test_published_counts_fit_the_published_means():
    """A significantly lower loss is a lower mean; only one of nine counts contradicts this."""
    contradictions = []
    for name in ("divbo_table1", "optdivbo_table1", "optdivbo_table3"):
        means = pd.DataFrame(PUBLISHED[name]["means"], columns=PUBLISHED[name]["methods"])
        own = means.columns[-1]
        for other, (better, same, worse) in PUBLISHED[name]["better_same_worse"].items():
            theirs = means[next(method for method in means if method.startswith(other))]
            assert better + same + worse == len(means)
            if better > (means[own] < theirs).sum() or worse > (means[own] > theirs).sum():
                contradictions.append((name, other))
    assert contradictions == [("divbo_table1", "BO-ES")]


def test_published_differences_by_nemenyi():
    """On 15 tables the best methods of the paper are one group: its claim rests on the counts."""
    published = PUBLISHED["divbo_table1"]
    test = statistics.friedman_test(published["means"])
    assert test.p_value < 1e-10
    critical = statistics.nemenyi_critical_difference(9, 15)
    assert critical == pytest.approx(3.102, abs=1e-3)
    near = [
        m
        for m, r in zip(published["methods"], test.average_ranks, strict=True)
        if r - test.average_ranks[-1] < critical
    ]
    assert near == ["BO-ES", "RB-ES", "DivBO"]


def frame(values: object, names: str = "abcdefgh") -> pd.DataFrame:
    array = np.asarray(values, dtype=np.float64)
    return pd.DataFrame(array, columns=list(names[: array.shape[1]]))


def test_wilcoxon_holm_agrees_with_scipy():
    losses = frame(np.random.default_rng(1).gamma(2, size=(12, 5)) * [1, 0.8, 1.3, 1.0, 2.0])
    found = statistics.wilcoxon_holm(losses, "a")
    for name, row in found.iterrows():
        relative = (losses[name] - losses["a"]) / losses[[name, "a"]].max(axis=1)
        assert row["wilcoxon_p"] == pytest.approx(scipy.stats.wilcoxon(relative).pvalue)
        assert row["sign_p"] == pytest.approx(scipy.stats.binomtest(int((relative < 0).sum()), 12).pvalue)
        assert (row["wins"], row["ties"], row["losses"]) == ((relative < 0).sum(), 0, (relative > 0).sum())
    np.testing.assert_allclose(found["holm_p"], statistics.holm(found["wilcoxon_p"].to_numpy()))


@settings(deadline=None)
@given(nps.arrays(np.float64, (8, 2), elements=st.one_of(st.integers(0, 4).map(float), st.just(np.nan))))
def test_it_does_not_matter_which_of_two_is_the_reference(values):
    losses = frame(values)
    if losses.isna().all().any():
        return
    forth = statistics.wilcoxon_holm(losses, "a").loc["b"]
    back = statistics.wilcoxon_holm(losses, "b").loc["a"]
    assert (forth["wins"], forth["losses"]) == (back["losses"], back["wins"])
    assert forth[["ties", "sign_p", "wilcoxon_p"]].tolist() == back[["ties", "sign_p", "wilcoxon_p"]].tolist()


def test_methods_without_any_loss_are_not_compared():
    losses = frame([[1.0, np.nan, 0.5]] * 6)
    found = statistics.wilcoxon_holm(losses, "a")
    assert found.index.tolist() == ["c"]
    assert found.loc["c", "holm_p"] == statistics.smallest_p_value(6)
    assert statistics.wilcoxon_holm(losses[["a", "b"]], "a").empty


@pytest.mark.parametrize("n_tables", [1, 4, 5, 6, 9])
def test_nothing_is_below_the_smallest_p_value(n_tables):
    losses = frame(np.arange(1, n_tables + 1)[:, None] * [1.0, 0.5, 0.4, 0.3])
    found = statistics.wilcoxon_holm(losses, "a")
    assert set(found["wilcoxon_p"]) == set(found["sign_p"]) == {statistics.smallest_p_value(n_tables)}
    assert set(found["holm_p"]) == {statistics.smallest_p_value(n_tables, 3)}


def test_counts_over_repeats():
    repeats = np.arange(10.0)
    index = pd.MultiIndex.from_product([["t1", "t2"], range(10)], names=["table", "repeat"])
    losses = pd.DataFrame(
        {"a": [*repeats, *repeats], "b": [*(repeats - 0.1 - repeats / 99), *(repeats + 1)]}, index=index
    )
    found = statistics.wilcoxon_by_table(losses, "a")
    assert found["table"].tolist() == ["t1", "t2"] and found["verdict"].tolist() == ["better", "worse"]
    assert statistics.wilcoxon_by_table(losses, "b")["verdict"].tolist() == ["worse", "better"]
    five = losses[losses.index.get_level_values("repeat") < 5]  # too few for any difference
    assert statistics.wilcoxon_by_table(five, "a")["verdict"].tolist() == ["same", "same"]
    assert statistics.count_verdicts(found).loc["b"].tolist() == [1, 0, 1]


@pytest.mark.parametrize("n", [5, 9, 30])
@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_intervals_agree_with_scipy(n, method):
    values = np.random.default_rng(n).gamma(1.5, size=n)
    found = statistics.bootstrap_interval(values, np.random.default_rng(1), method=method, n_draws=40000)
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=40000, method={"bca": "BCa"}.get(method, method), rng=np.random.default_rng(2)
    ).confidence_interval
    assert found == pytest.approx(tuple(theirs), abs=0.02 * np.ptp(theirs))


def test_intervals_cover_the_mean_about_as_often_as_claimed():
    rng = np.random.default_rng(7)
    samples = rng.gamma(4, size=(400, 30))
    intervals = np.array([statistics.bootstrap_interval(each, rng, n_draws=500) for each in samples])
    covered = (intervals[:, 0] <= 4) & (intervals[:, 1] >= 4)
    assert 0.90 <= covered.mean() <= 0.98


def test_intervals_at_the_edges():
    rng = np.random.default_rng(0)
    assert np.isnan(statistics.bootstrap_interval(np.array([1.0]), rng)).all()
    assert np.isnan(statistics.bootstrap_interval(np.array([1.0, np.nan, 2.0]), rng)).all()
    assert statistics.bootstrap_interval(np.full(5, 2.0), rng) == (2.0, 2.0)
    assert statistics.bootstrap_interval(np.zeros(5), rng) == (0.0, 0.0)
    levels = [
        statistics.bootstrap_interval(np.arange(9.0), np.random.default_rng(0), level=a) for a in (0.5, 0.9, 0.99)
    ]
    assert all(a[0] > b[0] and a[1] < b[1] for a, b in pairwise(levels))


def test_errors_name_what_is_wrong():
    with pytest.raises(ShapeError, match=r"The shape of losses must be .* got \(3,\)"):
        statistics.rank_methods([1.0, 2.0, 3.0])
    with pytest.raises(ArrayError, match="at least two methods"):
        statistics.friedman_test([[1.0], [2.0]])
    for arguments, name in (((1, 9), "n_methods"), ((3, 0), "n_tables"), ((3, 9, 1.0), "level")):
        with pytest.raises(InvalidParameterError, match=name):
            statistics.nemenyi_critical_difference(*arguments)
    for function in (statistics.wilcoxon_holm, statistics.wilcoxon_by_table):
        with pytest.raises(UnknownNameError, match="Unknown method 'x'"):
            function(frame(np.ones((3, 2))), "x")
