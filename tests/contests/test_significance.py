from __future__ import annotations

import json
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import scikit_posthocs
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from cashmere.contests.significance import (
    compare_with_best,
    friedman_test,
    holm_adjusted,
    paired_samples,
    rank_rows,
    wilcoxon_test,
)

VECTORS = Path(__file__).parents[1] / "vectors"
FRIEDMAN = json.loads((VECTORS / "friedman_holm.json").read_text())
LOSSES = np.array(FRIEDMAN["losses_rows_are_blocks_columns_are_candidates"])

tables = nps.array_shapes(min_dims=2, max_dims=2, min_side=3, max_side=12).flatmap(
    lambda shape: nps.arrays(np.float64, shape, elements=st.integers(0, 6).map(float))
)
samples = st.integers(1, 70).flatmap(
    lambda n: nps.arrays(np.float64, (2, n), elements=st.one_of(st.integers(0, 4).map(float), st.floats(-5, 5)))
)


def test_samples_agree_with_vectors():
    vectors = json.loads((VECTORS / "stat_samples.json").read_text())
    names = list(vectors["histories"])
    found = paired_samples([np.array(vectors["histories"][name]) for name in names], vectors["n_init"])
    np.testing.assert_array_equal(found.T, [vectors["samples"][name] for name in names])
    assert len(found) == vectors["n_elem"] + 1


def test_samples_before_and_at_the_end_of_the_start_up():
    losses = [np.array([3.0, 1.0, 2.0]), np.array([5.0, 6.0])]
    assert paired_samples(losses, 3).shape == (0, 2)
    np.testing.assert_array_equal(paired_samples(losses, 2), [[1.0, 5.0]])
    np.testing.assert_array_equal(paired_samples(losses, 1), [[1.0, 5.0], [2.0, 6.0]])


def test_friedman_agrees_with_vectors():
    found = friedman_test(LOSSES)
    assert found.chi2 == pytest.approx(FRIEDMAN["friedman_chi2"], abs=1e-9)
    assert found.p_value == pytest.approx(FRIEDMAN["friedman_p"], abs=1e-9)
    assert found.f == pytest.approx(FRIEDMAN["iman_davenport_F"], abs=1e-9)
    np.testing.assert_allclose(found.average_ranks, FRIEDMAN["average_ranks"])
    ties = FRIEDMAN["ties_example"]
    found = friedman_test(np.array(ties["losses"]))
    assert found.chi2 == pytest.approx(ties["friedman_chi2_tie_corrected"], abs=1e-9)
    assert found.p_value == pytest.approx(ties["friedman_p"], abs=1e-9)
    np.testing.assert_allclose(found.average_ranks, ties["average_ranks"])


@pytest.mark.parametrize(
    ("form", "authors_z"), [("corrected", False), ("authors_variant_without_se", True)], ids=["corrected", "authors"]
)
def test_comparisons_with_the_best_agree_with_vectors(form, authors_z):
    expected = FRIEDMAN[form]
    found = compare_with_best(np.array(FRIEDMAN["average_ranks"]), len(LOSSES), authors_z=authors_z)
    assert found.best == FRIEDMAN["best"]
    for name, values in (("z", found.z), ("p", found.p_values), ("holm_adjusted", found.adjusted)):
        assert {str(j): values[j] for j in (1, 2, 3)} == pytest.approx(expected[name], abs=1e-9)
    assert np.flatnonzero(found.adjusted >= 0.05).tolist() == expected["survivors_alpha0.05"]


def test_wilcoxon_agrees_with_vectors():
    expected = FRIEDMAN["wilcoxon_pair_0_2"]
    assert wilcoxon_test(LOSSES[:, 0], LOSSES[:, 2]) == (expected["statistic"], expected["p"])


@settings(deadline=None)
@given(tables)
def test_friedman_agrees_with_scipy(table):
    found = friedman_test(table)
    np.testing.assert_array_equal(rank_rows(table), scipy.stats.rankdata(table, axis=1))
    if (table == table[:, :1]).all():
        assert (found.chi2, found.p_value) == (0.0, 1.0)
        return
    expected = scipy.stats.friedmanchisquare(*table.T)
    assert found.chi2 == pytest.approx(expected.statistic, rel=1e-9, abs=1e-9)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9, abs=1e-12)


@given(st.integers(0, 10**6), st.integers(3, 8), st.integers(2, 20))
def test_iman_davenport_agrees_with_scipy(seed, k, n):
    table = np.random.default_rng(seed).normal(size=(n, k)) + np.arange(k)
    found = friedman_test(table)
    n_max = n * (k - 1)
    assert found.chi2 <= n_max + 1e-9
    if found.chi2 > n_max - 1e-9:
        assert (found.f, found.f_p_value) == (np.inf, 0.0)
    else:
        expected = (n - 1) * found.chi2 / (n_max - found.chi2)
        assert found.f_p_value == pytest.approx(scipy.stats.f.sf(expected, k - 1, (k - 1) * (n - 1)), rel=1e-6)


@given(st.integers(0, 10**6), st.integers(3, 8), st.integers(2, 20))
def test_comparisons_rest_on_the_normal_distribution(seed, k, n):
    ranks = friedman_test(np.random.default_rng(seed).normal(size=(n, k))).average_ranks
    found = compare_with_best(ranks, n)
    z = (ranks - ranks.min()) / np.sqrt(k * (k + 1) / (6 * n))
    np.testing.assert_allclose(found.p_values, 2 * scipy.stats.norm.sf(z), rtol=1e-9)
    assert found.adjusted[found.best] == 1.0


def test_standard_error_is_that_of_nemenyi():
    """The studentised range of two groups is the normal test: with k = 2 both procedures are the same."""
    table = np.random.default_rng(3).normal(size=(9, 2)) + np.array([0.0, 0.5])
    found = compare_with_best(friedman_test(table).average_ranks, len(table))
    library = scikit_posthocs.posthoc_nemenyi_friedman(table).to_numpy()
    assert found.p_values[1 - found.best] == pytest.approx(library[0, 1], rel=1e-4)


@pytest.mark.parametrize("k", [4, 7])
def test_contenders_are_ordered_as_by_nemenyi(k):
    table = np.random.default_rng(3).normal(size=(9, k)) + np.arange(k) / 2
    found = compare_with_best(friedman_test(table).average_ranks, len(table))
    library = scikit_posthocs.posthoc_nemenyi_friedman(table).to_numpy()[found.best]
    assert np.argsort(library).tolist() == np.argsort(found.p_values).tolist()


@given(nps.arrays(np.float64, st.integers(1, 12), elements=st.floats(0, 1)))
def test_holm_is_monotone_and_never_below_the_probability(p_values):
    adjusted = holm_adjusted(p_values)
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(adjusted[order]) >= 0).all()
    assert (adjusted >= p_values).all() and (adjusted <= 1).all()
    m = len(p_values)
    direct = [max(min(1.0, (m - j) * p_values[order[j]]) for j in range(i + 1)) for i in range(m)]
    np.testing.assert_allclose(adjusted[order], direct)


@pytest.mark.long
@settings(deadline=None, max_examples=40)
@given(samples)
def test_wilcoxon_agrees_with_scipy(pair):
    x, y = pair
    statistic, p_value = wilcoxon_test(x, y)
    if (x == y).all():
        assert (statistic, p_value) == (0.0, 1.0)
        return
    differences = np.abs(x - y)
    n = np.count_nonzero(differences)
    has_ties = len(np.unique(differences)) < len(x) or n < len(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = scipy.stats.wilcoxon(x, y, method="approx" if n > 50 else "auto")
    assert statistic == pytest.approx(expected.statistic)
    is_asymptotic = has_ties and len(x) > 13 and n <= 50  # scipy's, not ours
    assert p_value == pytest.approx(expected.pvalue, rel=1e-9, abs=0.15 if is_asymptotic else 1e-12)


def test_wilcoxon_is_exact_by_enumeration():
    sizes = np.array([0.1, 0.25, 0.3, 0.7, 1.2, 1.9])
    sums = [sum(r for r, sign in zip(range(1, 7), signs, strict=True) if sign) for signs in product([0, 1], repeat=6)]
    statistic, p_value = wilcoxon_test(sizes * [1, -1, 1, 1, -1, 1], np.zeros(6))
    assert statistic == 7
    assert p_value == pytest.approx(2 * np.mean(np.array(sums) <= 7))
