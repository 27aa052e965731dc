"""The audit: on real tables no validation row enters resampled rows, and it would notice one that does."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import Configuration

from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.data.inference import infer_schema
from cashmere.data.prepared import prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.task import TaskProfile, TaskType
from cashmere.evaluation.metrics import get_metric
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.evaluation.resampling_audit import audit_resampling
from cashmere.evaluation.row_origins import Origin
from cashmere.records.trial import Trial, TrialStatus
from cashmere.space import CLASSIFICATION, Space, make_space
from cashmere.space.component import Resampler
from cashmere.space.named.imbalance import IMBALANCE_CLASSIFIERS
from cashmere.space.named.resamplers import RESAMPLERS

pytest.importorskip("imblearn")

TABLES = Path(__file__).parents[1] / "tables"
NAMES = [resampler.name for resampler in RESAMPLERS]
QUICK = {
    "instance_hardness_threshold": {"instance_hardness_threshold:estimator": "decision-tree"},
    "cluster_centroids": {"cluster_centroids:estimator": "MiniBatchKMeans"},
}
OTHER_KINDS = [
    {"resampler": "borderline_smote", "borderline_smote:kind": "borderline-2"},
    {"resampler": "cluster_centroids", "cluster_centroids:voting": "hard"},
    {"resampler": "svm_smote", "svm_smote:out_step": 1.0, "svm_smote:m_neighbors": 2},
    {"resampler": "near_miss", "near_miss:version": 3},
    {"resampler": "random_under_sampler", "random_under_sampler:replacement": True},
]
ALL = [{"resampler": name} | QUICK.get(name, {}) for name in NAMES] + OTHER_KINDS

MADE_BY = {
    Origin.BETWEEN: {"smoteenn", "smotetomek", "smote", "borderline_smote", "kmeans_smote", "svm_smote", "adasyn"},
    Origin.MIXED: {"smotenc"},
    Origin.BEYOND: {"svm_smote"},
    Origin.ACROSS: {"borderline_smote"},
    Origin.CENTROID: {"cluster_centroids"},
}


def read(name, folder=TABLES):
    frame = pd.read_parquet(Path(folder) / f"{name}.parquet")
    return frame.drop(columns="target"), frame["target"]


def check(table, may_fail=()):
    """Assert both proofs for every fold, and that rows are made the way the method makes them."""
    failed = table[table["failure"] != ""]
    assert set(failed["resampler"]) <= set(may_fail), failed[["resampler", "failure"]].to_string()
    proven = table[table["failure"] == ""]
    assert (proven["resampled_rows"] > 0).all()
    assert (proven["unexplained"] == 0).all(), proven[proven["unexplained"] > 0].to_string()
    assert proven["same_without_validation"].all()
    assert (proven[[origin.value for origin in Origin]].sum(axis=1) == proven["resampled_rows"]).all()
    makers = {name for names in MADE_BY.values() for name in names}
    copying = proven[~proven["resampler"].isin(makers)]
    assert (copying["kept"] == copying["resampled_rows"]).all()
    return proven


@pytest.mark.long
def test_every_resampler_is_proven_on_a_table_of_keel():
    proven = check(audit_resampling(*read("glass-0-1-6_vs_2"), configurations=ALL, resampling="2fold"), ["smotenc"])
    assert set(proven["resampler"]) == set(NAMES) - {"smotenc"}  # the table has numbers only
    made = {origin: set(proven.loc[proven[origin.value] > 0, "resampler"]) for origin in Origin}
    for origin in (Origin.BETWEEN, Origin.ACROSS, Origin.CENTROID):
        assert made[origin] >= MADE_BY[origin]
    unchanged = proven[proven["resampler"] == "none"]
    assert (unchanged["kept"] == unchanged["training_rows"]).all()


def test_resamplers_are_proven_on_a_table_with_categories_and_gaps():
    frame = demo_table().iloc[:260].copy()
    y = frame.pop(DEMO_TARGET)
    frame.iloc[::7, :2] = None
    chosen = [{"resampler": name} for name in ("smotenc", "smote", "svm_smote", "tomek_links")]
    proven = check(audit_resampling(frame, y, configurations=chosen, resampling="2fold"))
    assert set(proven.loc[proven["mixed"] > 0, "resampler"]) == {"smotenc"}
    assert set(proven.loc[proven["beyond"] > 0, "resampler"]) <= {"svm_smote"}


@pytest.mark.long
def test_more_classes_than_two_are_proven():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], [60, 25, 9])
    X = rng.normal(size=(94, 4)) + 2 * np.unique(y, return_inverse=True)[1][:, None]
    chosen = [c for c in ALL if c["resampler"] not in ("smotenc", "kmeans_smote")]
    check(audit_resampling(X, y, configurations=chosen, resampling="2fold"), ["adasyn", "one_sided_selection"])


def leaking_space(profile):
    """Return a space whose resampler adds rows that do not come from the fold."""

    def build(values, context):
        def change(X, y):
            return np.vstack([X, np.full((3, X.shape[1]), 0.123)]), np.append(y, [1, 1, 1])

        return change

    leak = Resampler(name="leak", build=build, tasks=CLASSIFICATION)
    return Space(name="own", algorithms=IMBALANCE_CLASSIFIERS, operators={"rows": (leak,)}, profile=profile)


def test_the_audit_finds_rows_from_elsewhere():
    """Class 1 has eight training rows and nine columns: no foreign row is a mean of them by accident."""
    table = audit_resampling(*read("glass-0-1-6_vs_2"), space=leaking_space, resampling="2fold")
    assert (table["unexplained"] == 3).all()


def test_models_do_not_depend_on_validation_rows(tmp_path):
    """With validation rows overwritten in the prepared files, the objective itself gives the same models."""
    X, y = read("glass-0-1-6_vs_2")
    schema = infer_schema(X)
    coded, codes = schema.code(X), np.unique(y, return_inverse=True)[1]
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=len(y), n_columns=9, n_classes=2)
    space = make_space("imbalance", profile)
    folds = make_folds(codes, TaskType.BINARY, "holdout", seed=0)
    configuration = space.completed({"resampler": "smote", "algorithm": "decision_tree"})
    assert isinstance(configuration, Configuration)
    models, losses = [], []
    for folder in (tmp_path / "as it is", tmp_path / "overwritten"):
        prepare_folds(folder, coded, codes, folds, sorted(space.encodings), task_type=TaskType.BINARY, seed=0)
        if folder.name == "overwritten":
            valid = folder / "fold0-ordinal-valid.npy"
            np.save(valid, np.full_like(np.load(valid), 1e6))
            classes = np.load(folder / "y.npy")
            classes[folds[0].validation] = 1 - classes[folds[0].validation]
            np.save(folder / "y.npy", classes)
        objective = CrossValidationObjective(
            folder=folder, space=space, metric=get_metric("accuracy", TaskType.BINARY), keep_model=True
        )
        outcome = objective(Trial(number=0, configuration=configuration, seed=5))
        assert outcome.status is TrialStatus.SUCCESS
        models.append(tree_of(outcome.model, tmp_path))
        losses.append(outcome.loss)
    assert losses[0] != losses[1]
    assert all(np.array_equal(a, b) for a, b in zip(*models, strict=True))


def tree_of(data, folder):
    from cashmere.model.archives import load_fold_models

    path = folder / "models.skops"
    path.write_bytes(data)
    (model,) = load_fold_models(path)
    assert [name for name, _ in model.pipeline.steps] == ["standardise", "learner"]
    tree = model.pipeline["learner"].tree_
    return tree.threshold, tree.feature, tree.value


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif("CASHMERE_DATA" not in os.environ, reason="needs CASHMERE_DATA, a folder of tables")
@pytest.mark.parametrize(
    "name", ["ecoli4", "new-thyroid2", "shuttle-c2-vs-c4", "glass5", "yeast-2_vs_8", "vowel0", "abalone19", "pima"]
)
def test_every_resampler_is_proven_on_more_tables_of_keel(name):
    X, y = read(name, os.environ["CASHMERE_DATA"])
    proven = check(
        audit_resampling(X, y, configurations=ALL, resampling="3fold"),
        ["smotenc", "kmeans_smote", "svm_smote", "adasyn", "edited_nearest_neighbours"],
    )
    assert len(set(proven["resampler"])) >= len(NAMES) - 3
