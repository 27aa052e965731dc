from __future__ import annotations

import sys

import numpy as np
import pytest

from cashmere.exceptions import ArrayError, InvalidParameterError, MissingDependencyError
from cashmere.pretraining.embeddings import one_torch_thread, pairwise_accuracy, pretrain, rank_correlation
from cashmere.surrogates.latent_space import Encoders, PretrainedEmbedding

pytestmark = pytest.mark.long

torch = pytest.importorskip("torch")

M = 4


def source(n=60, seed=0):
    """Losses of four algorithms that are best at different settings of different importance."""
    rng = np.random.default_rng(seed)
    tasks, vectors = np.repeat(np.arange(M), n), rng.random((M * n, 3))
    best = np.array([0.2, 0.5, 0.8, 0.4])[tasks]
    losses = 0.1 + 0.4 * np.square(vectors[:, 0] - best) + 0.1 * np.abs(vectors[:, 1] - best)
    vectors[tasks == 3, 2] = 0.0  # two hyper-parameters only
    return tasks, vectors, losses


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def trained():
    """Embeddings of the same source without and with the adversarial term."""
    return {weight: pretrain(*source(), n_algorithms=M, rng=rng(), lambda_adv=weight) for weight in (0.0, 1.0)}


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_radius_ranks_configurations_that_were_not_seen(trained, weight):
    assert rank_correlation(trained[weight], *source(seed=1)) > 0.85


def test_squared_radius_is_the_regret_in_the_unit_of_the_losses(trained):
    tasks, vectors, losses = source()
    radii = np.square(trained[0.0].encoders.embed(tasks, vectors)).sum(axis=1)
    errors = radii - (losses - losses.min())
    assert np.sqrt(np.square(errors).mean()) < 0.2 * losses.std()
    assert trained[0.0].loss_std == losses.std()


def test_adversarial_term_hides_the_algorithm(trained):
    (tasks, vectors, _), (new_tasks, new_vectors, _) = source(), source(seed=1)
    apart, mixed = (
        pairwise_accuracy(
            trained[weight].encoders.embed(tasks, vectors),
            tasks,
            trained[weight].encoders.embed(new_tasks, new_vectors),
            new_tasks,
            rng=rng(1),
        )
        for weight in (0.0, 1.0)
    )
    assert apart > 0.7
    assert mixed < apart - 0.1


def test_very_bad_losses_do_not_drown_the_others_if_capped():
    tasks, vectors, losses = source()
    losses[::20] += 50
    plain, capped = (pretrain(tasks, vectors, losses, n_algorithms=M, rng=rng(), cap=cap) for cap in (False, True))
    seen = source(seed=1)
    assert rank_correlation(capped, *seen) > max(0.8, rank_correlation(plain, *seen))
    assert capped.loss_std < 0.01 * plain.loss_std


def test_same_generator_same_embedding():
    one, two, other = (pretrain(*source(), n_algorithms=M, rng=rng(seed), n_steps=20).encoders for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.w2, two.w2)
    assert not np.array_equal(one.w2, other.w2)


def test_numpy_encoders_are_the_trained_network():
    """The quadratic target falls from draw to result by what torch has optimised."""
    tasks, vectors, losses = source()
    trained = pretrain(tasks, vectors, losses, n_algorithms=M, rng=rng(3), lambda_adv=0.0, n_steps=100)
    drawn = Encoders.draw(n_algorithms=M, width=3, q=2, rng=rng(3))
    before, after = (np.square(found.embed(tasks, vectors)).sum(axis=1) for found in (drawn, trained.encoders))
    regrets = losses - losses.min()
    assert np.square(after - regrets).mean() < 0.1 * np.square(before * losses.std() - regrets).mean()


def test_failures_are_left_out():
    tasks, vectors, losses = source()
    failed = np.zeros(len(tasks), dtype=bool)
    failed[::3] = True
    with_failures = pretrain(tasks, vectors, np.where(failed, np.nan, losses), n_algorithms=M, rng=rng(), n_steps=10)
    without = pretrain(tasks[~failed], vectors[~failed], losses[~failed], n_algorithms=M, rng=rng(), n_steps=10)
    np.testing.assert_array_equal(with_failures.encoders.w3, without.encoders.w3)
    assert with_failures.loss_std == losses[~failed].std()


def test_algorithm_without_success_is_of_mean_quality():
    tasks, vectors, losses = source()
    losses[tasks == 2] = np.nan
    known = np.isfinite(losses)
    embedding = pretrain(tasks, vectors, losses, n_algorithms=M, rng=rng(), n_steps=10)
    points = embedding.encoders.embed(tasks[~known], vectors[~known])
    expected = losses[known].mean() - losses[known].min()
    np.testing.assert_allclose(np.square(points).sum(axis=1), expected)


@pytest.mark.parametrize("case", ["equal losses", "one algorithm", "one configuration each", "unequal numbers"])
def test_odd_sources_are_survived(case):
    tasks, vectors, losses = source(20)
    if case == "equal losses":
        losses[:] = 0.25
    else:
        kept = {
            "one algorithm": tasks == 1,
            "one configuration each": np.arange(len(tasks)) % 20 == 0,
            "unequal numbers": (tasks == 0) | (np.arange(len(tasks)) % 7 == 0),
        }[case]
        tasks, vectors, losses = tasks[kept], vectors[kept], losses[kept]
    embedding = pretrain(tasks, vectors, losses, n_algorithms=M, rng=rng(), n_steps=30)
    assert np.isfinite(embedding.encoders.embed(tasks, vectors)).all()
    assert embedding.loss_std == pytest.approx(losses.std())


def test_half_precision_on_disk_moves_predicted_losses_little(trained):
    tasks, vectors, losses = source()
    exact = trained[1.0].encoders
    names = ("w1", "b1", "w2", "b2", "w3", "b3")
    halved = Encoders(*(getattr(exact, name).astype(np.float16).astype(np.float64) for name in names))
    one, other = (np.square(found.embed(tasks, vectors)).sum(axis=1) for found in (exact, halved))
    assert np.abs(one - other).max() < 0.05 * losses.std()


def test_radius_of_the_true_regret_is_a_perfect_ranking():
    tasks, vectors = np.zeros(9, dtype=np.int64), np.linspace(-1, 1, 9)[:, None]
    # Small inputs leave tanh linear: the radius is the distance to 0.
    arrays = np.full((1, 1, 1), 1e-3), np.zeros((1, 1)), np.ones((1, 1, 1)), np.zeros((1, 1))
    encoders = Encoders(*arrays, np.ones((1, 1, 1)), np.zeros((1, 1)))
    losses = vectors[:, 0] ** 2
    losses[0] = np.nan
    assert rank_correlation(PretrainedEmbedding(encoders, 1.0, "x"), tasks, vectors, losses) == pytest.approx(
        1, abs=0.05
    )


def test_accuracy_is_one_for_separate_and_half_for_equal_clouds():
    tasks, shift = np.repeat([0, 2, 5], 60), np.repeat([[0.0, 0], [9, 0], [0, 9]], 60, axis=0)
    cloud, other = rng(1).normal(size=(2, 180, 2))
    options = {"rng": rng(), "n_steps": 200}
    assert pairwise_accuracy(cloud + shift, tasks, other + shift, tasks, **options) > 0.98
    assert pairwise_accuracy(cloud, tasks, other, tasks, **options) == pytest.approx(0.5, abs=0.1)


def test_the_number_of_torch_threads_is_restored():
    before = torch.get_num_threads()
    with one_torch_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_missing_torch_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'cashmere-automl\[latent\]'"):
        pretrain(*source(5), n_algorithms=M, rng=rng())


def test_wrong_arguments_are_named():
    tasks, vectors, losses = source(5)
    with pytest.raises(InvalidParameterError, match="lambda_adv"):
        pretrain(tasks, vectors, losses, n_algorithms=M, rng=rng(), lambda_adv=-1)
    with pytest.raises(ArrayError, match="losses"):
        pretrain(tasks, vectors, np.full(len(losses), np.nan), n_algorithms=M, rng=rng())
    with pytest.raises(ArrayError, match="held_out_tasks"):
        pairwise_accuracy(vectors, tasks, vectors[:5], tasks[:5], rng=rng())
