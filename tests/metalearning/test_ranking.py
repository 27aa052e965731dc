from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ranking_quality import leave_one_origin_out, random_ndcg
from scipy import stats
from sklearn.metrics import ndcg_score

from cashmere.exceptions import ArrayError, InvalidParameterError, ObservationsError, ShapeError
from cashmere.metalearning.ranking import (
    algorithm_features,
    algorithm_queries,
    apply_ranker,
    choose_candidates,
    configuration_features,
    configuration_queries,
    embedding_features,
    embedding_queries,
    fit_ranker,
    ndcg,
    quantile_labels,
)

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "ndcg.json").read_text())["cases"]
RELEVANCE = st.lists(st.integers(0, 30), min_size=1, max_size=40)


def planted(S=20, F=4, seed=0):
    """Return scaled meta-features and losses (S, S) of embeddings that are the better the nearer their source."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(S, F))
    losses = np.abs(z[:, None, 0] - z[None, :, 0]) + 0.05 * rng.random((S, S))
    return z, losses, [f"origin{i}" for i in range(S)]


# ---------------------------------------------------------------- NDCG


@pytest.mark.parametrize("case", VECTORS)
def test_ndcg_agrees_with_vectors(case):
    assert ndcg(case["rel_in_predicted_order"], case["k"]) == pytest.approx(case["ndcg"], abs=1e-12)


@given(RELEVANCE.filter(any), st.integers(1, 50))
def test_ndcg_agrees_with_scikit_learn(relevance, k):
    if len(relevance) > 1:  # theirs refuses a single one
        gains = np.exp2(relevance)[None] - 1
        expected = ndcg_score(gains, -np.arange(len(relevance))[None], k=k)
        assert ndcg(relevance, k) == pytest.approx(expected, rel=1e-9)


@given(RELEVANCE, st.integers(1, 50))
def test_ndcg_is_a_share_of_the_best_order(relevance, k):
    assert 0 <= ndcg(relevance, k) <= 1 + 1e-12
    assert ndcg(sorted(relevance, reverse=True), k) == pytest.approx(1)
    assert ndcg(relevance, 100) == ndcg(relevance, len(relevance))


@given(RELEVANCE.filter(lambda r: len(r) > 1), st.integers(1, 50), st.data())
def test_correcting_the_order_of_a_pair_never_harms(relevance, k, data):
    i = data.draw(st.integers(0, len(relevance) - 2))
    j = data.draw(st.integers(i + 1, len(relevance) - 1))
    better = list(relevance)
    better[i], better[j] = max(relevance[i], relevance[j]), min(relevance[i], relevance[j])
    assert ndcg(better, k) >= ndcg(relevance, k) - 1e-12


@given(st.lists(st.integers(0, 6), min_size=1, max_size=12), st.integers(1, 12))
def test_no_order_can_be_wrong_if_all_are_alike(relevance, k):
    alike = [relevance[0]] * len(relevance)
    assert ndcg(alike, k) == pytest.approx(1)
    assert random_ndcg(alike, k) == pytest.approx(1)


def test_expectation_of_random_orders():
    rng = np.random.default_rng(0)
    relevance = rng.integers(6, size=15)
    drawn = [ndcg(rng.permutation(relevance), 5) for _ in range(4000)]
    standard_error = np.std(drawn) / np.sqrt(len(drawn))
    assert abs(np.mean(drawn) - random_ndcg(relevance, 5)) < 4 * standard_error


@pytest.mark.parametrize("relevance", [[], [1, -1], [1, np.nan], [[1, 2]]])
def test_ndcg_refuses_impossible_relevances(relevance):
    with pytest.raises(ArrayError, match="relevance"):
        ndcg(relevance, 1)


def test_ndcg_of_no_candidate_is_refused():
    with pytest.raises(InvalidParameterError, match="k must be at least 1; got 0"):
        ndcg([1, 2], 0)


# ---------------------------------------------------------------- labels


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=80), st.integers(1, 40))
def test_labels_follow_the_ranks(losses, n_levels):
    ranks = stats.rankdata(losses)
    labels = quantile_labels(ranks, n_levels)
    assert labels.min() >= 0
    assert labels.max() < min(len(losses), n_levels)
    for i, j in zip(range(len(losses)), range(1, len(losses)), strict=False):
        if losses[i] < losses[j]:
            assert labels[i] >= labels[j]
        elif losses[i] == losses[j]:
            assert labels[i] == labels[j]


@given(st.integers(1, 200), st.integers(1, 40))
def test_levels_are_equally_full(n, n_levels):
    counts = np.bincount(quantile_labels(np.arange(1, n + 1), n_levels))
    assert len(counts) == min(n, n_levels)
    assert counts.max() - counts.min() <= 1


def test_ranks_out_of_range_are_refused():
    for ranks in ([0, 1], [1, 3], [1, np.nan]):
        with pytest.raises(ArrayError, match="ranks"):
            quantile_labels(ranks)


# ---------------------------------------------------------------- the model


@pytest.mark.long
def test_ranker_recovers_a_planted_rule():
    """The nearest source is best: on unseen tables the ranker finds it far more often than chance."""
    z, losses, origins = planted(30)
    quality = leave_one_origin_out(embedding_queries(z, losses, origins), origins, k=5)
    assert quality.mean_ranked > 0.6 > 0.3 > quality.mean_random
    assert len(quality.ranked) == len(quality.random) == 30


def test_nothing_to_learn_is_as_good_as_chance():
    z, losses, origins = planted(24)
    shuffled = np.random.default_rng(1).permuted(losses, axis=1)
    quality = leave_one_origin_out(embedding_queries(z, shuffled, origins), origins, k=10)
    spread = np.std(quality.ranked - quality.random) / np.sqrt(len(quality.ranked))
    assert abs(quality.mean_ranked - quality.mean_random) < 3.5 * spread


def test_same_input_same_text_whatever_the_order_of_queries():
    queries = embedding_queries(*planted())
    text = queries.fit(seed=3)
    assert text == queries.fit(seed=3) != queries.fit(seed=4)
    apart = np.argsort(np.arange(len(queries.targets)) % 23, kind="stable")  # queries interleaved, rows in order
    kept = apart[np.argsort(queries.targets[apart], kind="stable")]
    interleaved = fit_ranker(queries.features[apart], queries.labels[apart], queries.targets[apart], 3)
    assert interleaved == fit_ranker(queries.features[kept], queries.labels[kept], queries.targets[kept], 3)


@pytest.mark.long
def test_scores_survive_a_file_and_another_process(tmp_path):
    queries = embedding_queries(*planted())
    text = queries.fit()
    (tmp_path / "ranker.txt").write_text(text)
    np.save(tmp_path / "features.npy", queries.features)
    code = (
        "import sys, numpy as np; from pathlib import Path; from cashmere.metalearning.ranking import apply_ranker; "
        f"folder = Path({str(tmp_path)!r}); text = (folder / 'ranker.txt').read_text(); "
        "np.save(folder / 'scores.npy', apply_ranker(text, np.load(folder / 'features.npy')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "scores.npy"), apply_ranker(text, queries.features))


def test_few_rows_and_constant_features_give_scores():
    for n in (2, 7):
        features = np.ones((n, 3))
        text = fit_ranker(features, np.zeros(n, dtype=np.int64), np.arange(n))
        assert np.isfinite(apply_ranker(text, features)).all()
    assert apply_ranker(text, np.empty((0, 3))).shape == (0,)


def test_unusable_input_is_refused():
    features, labels, groups = np.zeros((4, 2)), np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    with pytest.raises(ArrayError, match="from 0 to 30"):
        fit_ranker(features, labels + 30, groups)
    with pytest.raises(ArrayError, match="shapes"):
        fit_ranker(features, labels[:3], groups)
    with pytest.raises(ArrayError, match="n > 1"):
        fit_ranker(features[:1], labels[:1], groups[:1])
    with pytest.raises(ArrayError, match="at most 10000 rows"):
        fit_ranker(np.zeros((10_001, 1)), np.zeros(10_001, dtype=np.int64), np.zeros(10_001, dtype=np.int64))
    with pytest.raises(ShapeError, match=r"\(n, 2\)"):
        apply_ranker(fit_ranker(features, labels, groups), np.zeros((4, 3)))


def test_texts_that_are_not_a_model_are_refused(capfd):
    text = fit_ranker(np.zeros((4, 2)), np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]))
    for broken in ("", "a poem", "tree\n", text[:60]):
        with pytest.raises(InvalidParameterError, match="fit_ranker"):
            apply_ranker(broken, np.zeros((1, 2)))


# ---------------------------------------------------------------- features and queries


def test_pairs_of_tables():
    features = embedding_features([1.0, 2.0], np.array([[0.0, 5.0], [1.0, 2.0]]))
    np.testing.assert_array_equal(features, [[1, 2, 0, 5, 1, 3], [1, 2, 1, 2, 0, 0]])


def test_embeddings_of_kin_and_of_the_table_itself_are_not_candidates():
    losses = np.arange(16.0).reshape(4, 4)
    losses[0, 3] = np.nan  # not tried
    queries = embedding_queries(np.arange(4.0)[:, None], losses, ["a", "b", "a", "c"])
    assert list(zip(queries.targets.tolist(), queries.sources.tolist(), strict=True)) == [
        (0, 1), (1, 0), (1, 2), (1, 3), (2, 1), (2, 3), (3, 0), (3, 1), (3, 2),
    ]  # fmt: skip
    assert queries.labels.tolist() == [0, 2, 1, 0, 1, 0, 2, 1, 0]


def test_kin_leave_together():
    """Twins know each other's losses by heart, which must not help: all tables of an origin are left out together."""
    rng = np.random.default_rng(2)
    z = np.repeat(rng.normal(size=(12, 3)), 2, axis=0)
    losses = np.repeat(rng.random((12, 8)), 2, axis=0)
    queries = algorithm_queries(z, losses)
    apart = leave_one_origin_out(queries, [str(i) for i in range(24)], k=3)
    together = leave_one_origin_out(queries, [str(i // 2) for i in range(24)], k=3)
    assert apart.mean_ranked > together.mean_ranked + 0.1


def test_a_single_origin_leaves_nothing_to_fit():
    z, losses, _ = planted(4)
    with pytest.raises(ObservationsError, match="at least two origins"):
        leave_one_origin_out(algorithm_queries(z, losses), ["a"] * 4, k=1)


def test_algorithms_and_their_labels():
    np.testing.assert_array_equal(algorithm_features([7.0], 2), [[7, 1, 0], [7, 0, 1]])
    queries = algorithm_queries(np.array([[7.0], [8.0]]), np.array([[0.3, 0.1, 0.2], [0.3, np.nan, 0.3]]))
    np.testing.assert_array_equal(queries.features[3], [8, 1, 0, 0])
    assert queries.targets.tolist() == [0, 0, 0, 1, 1, 1]
    assert queries.labels.tolist() == [0, 2, 1, 1, 0, 1]  # the failed one is the worst


def test_best_algorithm_by_a_meta_feature():
    rng = np.random.default_rng(3)
    z = rng.normal(size=(40, 3))
    best_losses = np.column_stack([z[:, 0], -z[:, 0], np.full(40, 0.3)]) + 0.01 * rng.random((40, 3))
    quality = leave_one_origin_out(algorithm_queries(z, best_losses), [str(i) for i in range(40)], k=1)
    assert quality.mean_ranked > 0.85 > quality.mean_random


@pytest.mark.parametrize("S", [5, 12, 50])
def test_few_tables_suffice_to_see_that_one_algorithm_is_best(S):
    rng = np.random.default_rng(4)
    z = rng.normal(size=(S, 40))
    best_losses = rng.random((S, 12)) - 5 * (np.arange(12) == 7)
    scores = apply_ranker(algorithm_queries(z, best_losses).fit(), algorithm_features(rng.normal(size=40), 12))
    assert np.argmax(scores) == 7


def test_configurations_lie_in_columns_of_their_algorithm():
    tasks, vectors = np.array([1, 0, 1]), np.array([[0.1, 0.2], [0.3, 0.0], [0.4, 0.5]])
    features = configuration_features([9.0], tasks, vectors, (1, 2))
    np.testing.assert_array_equal(features, [[9, 0, 1, -1, 0.1, 0.2], [9, 1, 0, 0.3, -1, -1], [9, 0, 1, -1, 0.4, 0.5]])
    losses = np.array([[0.2, 0.1, np.nan], [0.0, 0.5, 0.6]])
    queries = configuration_queries(np.array([[9.0], [4.0]]), losses, tasks, vectors, (1, 2))
    np.testing.assert_array_equal(queries.features[:3], features)
    assert queries.labels.tolist() == [1, 2, 0, 2, 1, 0]


def test_candidates_are_the_union_of_the_best():
    losses = np.array([[0.1, 0.2, 0.3, 0.4, np.nan], [0.5, 0.1, 0.4, np.nan, np.nan]])
    assert choose_candidates(losses, n_top=1).tolist() == [0, 1]
    assert choose_candidates(losses, n_top=2).tolist() == [0, 1, 2]
    assert choose_candidates(losses).tolist() == [0, 1, 2, 3]  # the last one never succeeded
    assert choose_candidates(losses, n_max=2).tolist() == [0, 1]


@given(st.integers(1, 5), st.integers(1, 30), st.integers(1, 10), st.integers(1, 40), st.integers(0, 999))
def test_candidates_come_from_the_top_of_every_table(S, C, n_top, n_max, seed):
    rng = np.random.default_rng(seed)
    losses = np.where(rng.random((S, C)) < 0.2, np.nan, rng.random((S, C)))
    expected = {int(c) for row in losses for c in np.argsort(row)[:n_top] if not np.isnan(row[c])}
    chosen = choose_candidates(losses, n_top=n_top, n_max=n_max)
    assert set(chosen.tolist()) <= expected
    assert len(chosen) == min(len(expected), n_max)
    if n_max >= S:
        assert {int(np.nanargmin(row)) for row in losses if not np.isnan(row).all()} <= set(chosen.tolist())
