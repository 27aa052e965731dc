"""What every surrogate must do. A newcomer supplies the fixture `surrogate` (a factory) and inherits the tests."""

from __future__ import annotations

import numpy as np
import pytest


class SurrogateContract:
    """Inherit and define the fixture `surrogate`: a function that makes an unfitted surrogate."""

    @pytest.fixture
    def data(self):
        rng = np.random.default_rng(0)
        X = rng.random((60, 4))
        X[rng.random(60) < 0.3, 3] = -1  # inactive
        return X, (X[:, 0] - 0.3) ** 2 + 0.1 * X[:, 1]

    def test_mean_and_variance_have_a_value_per_row(self, surrogate, data):
        mean, variance = surrogate().fit(*data, np.random.default_rng(0)).predict(data[0][:17])
        assert mean.shape == variance.shape == (17,)
        assert np.isfinite(mean).all()
        assert (variance > 0).all()

    def test_same_generator_gives_the_same_predictions(self, surrogate, data):
        first, second = (surrogate().fit(*data, np.random.default_rng(3)).predict(data[0]) for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_refit_forgets_what_was_learned_before(self, surrogate, data):
        X, y = data
        refitted = surrogate().fit(X, 10 - y, np.random.default_rng(1)).fit(X, y, np.random.default_rng(2))
        fresh = surrogate().fit(X, y, np.random.default_rng(2))
        np.testing.assert_array_equal(refitted.predict(X), fresh.predict(X))

    def test_prediction_depends_on_the_row_alone(self, surrogate, data):
        fitted = surrogate().fit(*data, np.random.default_rng(0))
        together, alone = fitted.predict(data[0])[0], [fitted.predict(row[None])[0][0] for row in data[0][:5]]
        np.testing.assert_allclose(together[:5], alone)

    def test_data_is_left_as_it_was(self, surrogate, data):
        X, y = data[0].copy(), data[1].copy()
        surrogate().fit(X, y, np.random.default_rng(0)).predict(X)
        np.testing.assert_array_equal(X, data[0])
        np.testing.assert_array_equal(y, data[1])

    def test_learns_which_rows_are_good(self, surrogate, data):
        X, y = data
        mean, _ = surrogate().fit(X, y, np.random.default_rng(0)).predict(X)
        assert np.corrcoef(mean, y)[0, 1] > 0.7

    @pytest.mark.parametrize("n", [1, 2])
    def test_one_or_two_observations_are_enough(self, surrogate, data, n):
        mean, variance = surrogate().fit(data[0][:n], data[1][:n], np.random.default_rng(0)).predict(data[0])
        assert np.isfinite(mean).all()
        assert (variance > 0).all()

    def test_equal_losses_are_survived(self, surrogate, data):
        mean, _ = surrogate().fit(data[0], np.ones(60), np.random.default_rng(0)).predict(data[0])
        np.testing.assert_allclose(mean, 1, atol=1e-6)
