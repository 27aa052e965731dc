"""Meta-features against pymfe (Alcobaça et al. 2020, JMLR 21), where both have the same definition."""

from __future__ import annotations

import numpy as np
import pytest

from cashmere.data.task import TaskType
from cashmere.metalearning.meta_features import meta_features

pymfe = pytest.importorskip("pymfe.mfe")

LANDMARKERS = {
    "one_nn": "accuracy_nearest_neighbour",
    "naive_bayes": "accuracy_naive_bayes",
    "linear_discr": "accuracy_linear_discriminant",
    "best_node": "accuracy_stump",
}


def extract(X, y, features, summary, **options):
    extractor = pymfe.MFE(groups="all", features=features, summary=summary, random_state=0, **options)
    extractor.fit(X, y, transform_num=False, transform_cat=None)
    return dict(zip(*extractor.extract(), strict=True))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    y = rng.choice(3, size=1500, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(1500, 6)) + 0.8 * rng.normal(size=(3, 6))[y] + np.square(rng.normal(size=(1500, 6)))
    X = (X - X.mean(axis=0)) / X.std(axis=0)  # pymfe leaves the scale to the caller
    return X, y, meta_features(X, y, categorical=np.zeros(6, dtype=bool), task_type=TaskType.MULTICLASS)


def test_simple_ones_are_equal(table):
    X, y, ours = table
    theirs = extract(X, y, ["nr_inst", "nr_attr", "nr_class", "attr_to_inst", "freq_class"], ["min", "max", "mean"])
    assert ours["log_rows"] == pytest.approx(np.log(theirs["nr_inst"]))
    assert ours["log_columns"] == pytest.approx(np.log(theirs["nr_attr"]))
    assert ours["log_classes"] == pytest.approx(np.log(theirs["nr_class"]))
    assert ours["log_columns_per_row"] == pytest.approx(np.log(theirs["attr_to_inst"]))
    assert ours["majority_share"] == pytest.approx(theirs["freq_class.max"])
    for how in ("min", "max", "mean"):
        assert ours[f"class_size_{how}"] == pytest.approx(1500 * theirs[f"freq_class.{how}"])


def test_entropy_differs_by_the_base_of_the_logarithm(table):
    X, y, ours = table
    assert ours["class_entropy"] == pytest.approx(np.log(2) * extract(X, y, ["class_ent"], ["mean"])["class_ent"])


def test_shapes_differ_by_the_divisor_of_the_variance(table):
    """Pymfe divides the variance by n - 1 (its method 3), we by n; its ``sd`` is that of a sample, ours of all."""
    X, y, ours = table
    theirs = extract(X, y, ["skewness", "kurtosis"], ["min", "max", "mean", "sd"])
    ratio = 1500 / 1499
    for how in ("min", "max", "mean"):
        assert ours[f"skewness_{how}"] == pytest.approx(ratio**1.5 * theirs[f"skewness.{how}"])
        assert ours[f"kurtosis_{how}"] + 3 == pytest.approx(ratio**2 * (theirs[f"kurtosis.{how}"] + 3))
    assert ours["skewness_std"] == pytest.approx(np.sqrt(5 / 6) * ratio**1.5 * theirs["skewness.sd"])
    assert ours["kurtosis_std"] == pytest.approx(np.sqrt(5 / 6) * ratio**2 * theirs["kurtosis.sd"])


def test_information_of_categories_differs_by_the_base_of_the_logarithm():
    """Pymfe adds 1e-8 to every share, which moves the sum by about 1e-7 per pair of values; bins of numbers differ."""
    rng = np.random.default_rng(1)
    y = rng.integers(3, size=600)
    codes = np.column_stack([(y + rng.integers(2, size=600)) % 3, rng.integers(5, size=600), y // 2])
    ours = meta_features(codes.astype(float), y, categorical=np.ones(3, dtype=bool), task_type=TaskType.MULTICLASS)
    theirs = extract(codes.astype(str), y, ["mut_inf"], ["mean", "max"])
    for how in ("mean", "max"):
        assert ours[f"information_{how}"] == pytest.approx(np.log(2) * theirs[f"mut_inf.{how}"], abs=3e-6)


def test_landmarkers_differ_by_the_folds_only(table):
    """The folds have other rows: accuracies on 1500 rows may differ by three standard errors of a share, 0.04."""
    X, y, ours = table
    theirs = extract(X, y, list(LANDMARKERS), ["mean"], num_cv_folds=3)
    for name, own_name in LANDMARKERS.items():
        assert ours[own_name] == pytest.approx(theirs[f"{name}.mean"], abs=0.04)
