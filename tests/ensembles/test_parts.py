"""Choices made on some validation rows are judged on rows of other groups, or on later rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cashmere.data.fold import Fold
from cashmere.data.row_structure import RowStructure, StructureKind
from cashmere.ensembles import build_ensemble
from cashmere.ensembles.calibration import choose_calibration
from cashmere.ensembles.parts import parts_of_rows
from cashmere.ensembles.pool import ValidationPool, cross_fitted_predictions
from cashmere.ensembles.threshold import tune_thresholds
from cashmere.evaluation.metrics import METRICS

GROUPS, TIME = StructureKind.GROUPS, StructureKind.TIME
LABELS = st.lists(st.integers(0, 12), min_size=2, max_size=60).filter(lambda values: len(set(values)) > 1)


def are_apart(structure, inside, outside):
    codes = structure.codes
    if structure.kind is GROUPS:
        return not set(codes[inside]) & set(codes[outside])
    return codes[inside].max() < codes[outside].min()


@settings(max_examples=100, deadline=None)
@given(labels=LABELS, kind=st.sampled_from(StructureKind), seed=st.integers(0, 99))
def test_parts_respect_the_structure(labels, kind, seed):
    structure = RowStructure.from_values(labels, kind)
    parts = parts_of_rows(len(labels), 5, np.random.default_rng(seed), structure)
    assert 1 <= len(parts) <= 5
    assert all(are_apart(structure, part.train, part.validation) for part in parts)


def test_rows_without_structure_are_all_judged():
    parts = parts_of_rows(23, 5, np.random.default_rng(0))
    assert sorted(np.concatenate([part.validation for part in parts])) == list(range(23))


def test_rows_of_one_group_cannot_be_cut():
    structure = RowStructure.from_values([1, 2], GROUPS).take(np.array([0, 0]))
    assert parts_of_rows(2, 5, np.random.default_rng(0), structure) == []


class FirstMember:
    """An ensemble that notes the rows it predicts."""

    members = (0,)

    def __init__(self, chosen_by, structure, noted):
        self.chosen_by, self.structure, self.noted = chosen_by, structure, noted

    def combine(self, stack):
        self.noted.append((self.chosen_by, stack[0].astype(int)))
        return stack[0]

    def to_json(self):
        return {}


@settings(max_examples=50, deadline=None)
@given(
    labels=st.lists(st.integers(0, 12), min_size=50, max_size=80).filter(lambda values: len(set(values)) > 1),
    kind=st.sampled_from(StructureKind),
    seed=st.integers(0, 99),
)
def test_no_row_is_predicted_by_an_ensemble_that_its_group_or_its_future_chose(labels, kind, seed):
    structure, rows, noted = RowStructure.from_values(labels, kind), np.arange(len(labels)), []

    def build(stacks, pool):
        np.testing.assert_array_equal(np.unique(structure.codes[pool.y], return_inverse=True)[1], pool.structure.codes)
        return FirstMember(pool.y, pool.structure, noted)

    pool = ValidationPool(y=rows, structure=structure)
    unseen = cross_fitted_predictions(build, [rows.astype(float)], pool, rng=np.random.default_rng(seed))
    assert noted and all(are_apart(structure, inside, outside) for inside, outside in noted)
    np.testing.assert_array_equal(unseen.predictions, unseen.rows)
    assert np.array_equal(unseen.rows, np.sort(np.concatenate([outside for _, outside in noted])))
    assert kind is TIME or len(unseen.rows) == len(rows)


def test_a_pool_takes_the_structure_of_its_rows():
    structure = RowStructure.from_values(list("aabbcc"), GROUPS)
    pool = ValidationPool.draw(np.array([2, 4, 5]), np.arange(6), None, structure=structure, seed=0)
    assert pool.structure.codes.tolist() == [0, 1, 1]


def test_part_of_a_pool_takes_everything_of_its_rows(monkeypatch):
    monkeypatch.setattr("cashmere.ensembles.pool.MAX_ROWS", 5)
    structure = RowStructure.from_values(list("aabbccdd"), GROUPS)
    folds = [Fold(np.arange(4, 8), np.arange(4)), Fold(np.arange(4), np.arange(4, 8))]
    y = np.arange(8.0)
    pool = ValidationPool.draw(np.arange(8), y, 10 * y, structure=structure, splits=folds, seed=0)
    part = pool.part(np.array([0, 3, 4]))
    np.testing.assert_array_equal(part.y, pool.y[[0, 3, 4]])
    np.testing.assert_array_equal(part.weight, 10 * part.y)
    np.testing.assert_array_equal(part.take(y), part.y)
    np.testing.assert_array_equal(part.fold, part.y >= 4)
    assert len(part.structure.codes) == 3


def shifted(n=400):
    """Probabilities whose best threshold moves from low to high half way through."""
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.3).astype(np.int64)
    late = np.arange(n) >= n // 2
    second = np.clip(np.where(late, 0.6, 0.2) + 0.25 * y * rng.random(n) + 0.05 * rng.normal(size=n), 0.01, 0.99)
    return np.column_stack([1 - second, second]), y


def test_thresholds_of_the_past_are_judged_in_the_future():
    p, y = shifted()
    metric = METRICS["balanced_accuracy"]
    moments = RowStructure.from_values(np.arange(len(y)), TIME)
    mixed = tune_thresholds(p, y, metric, rng=np.random.default_rng(0))
    later = tune_thresholds(p, y, metric, structure=moments, rng=np.random.default_rng(0))
    assert mixed.gain > 0 and mixed.thresholds is not None
    assert later.gain <= 0 and later.thresholds is None


def test_thresholds_of_a_group_are_judged_by_others():
    p, y = shifted()
    halves = RowStructure.from_values(np.arange(len(y)) >= 200, GROUPS)
    found = tune_thresholds(p, y, METRICS["balanced_accuracy"], structure=halves, rng=np.random.default_rng(0))
    assert found.gain < tune_thresholds(p, y, METRICS["balanced_accuracy"], rng=np.random.default_rng(0)).gain
    one = halves.take(np.zeros(400, dtype=np.int64))
    assert tune_thresholds(p, y, METRICS["balanced_accuracy"], structure=one, rng=np.random.default_rng(0)).gain is None


@pytest.mark.parametrize("kind", list(StructureKind))
def test_a_calibration_that_only_fits_other_groups_or_the_past_is_not_kept(kind):
    """Predictions are too certain for half of the rows, and not certain enough for the others."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=600)
    late = np.arange(600) >= 300
    y = (rng.random(600) < 1 / (1 + np.exp(-np.where(late, 3.0, 0.3) * z))).astype(np.int64)
    second = 1 / (1 + np.exp(-1.2 * z))
    p = np.column_stack([1 - second, second])
    structure = RowStructure.from_values(late.astype(int), kind)
    assert choose_calibration(p, y, "log_loss", structure=structure, rng=np.random.default_rng(0)) is None
    one = structure.take(np.flatnonzero(late))
    sharp = choose_calibration(p[late], y[late], "log_loss", rng=np.random.default_rng(0))
    assert sharp is not None and sharp.temperature < 1
    assert choose_calibration(p[late], y[late], "log_loss", structure=one, rng=np.random.default_rng(0)) is None


@pytest.mark.parametrize("kind", list(StructureKind))
def test_the_loss_of_stacking_respects_the_structure(kind):
    rng = np.random.default_rng(0)
    y = np.repeat(rng.normal(size=30), 10)  # of ten rows each
    members = [y + np.repeat(rng.normal(size=30), 10) for _ in range(5)]
    structure = RowStructure.from_values(np.arange(300) // 10, kind)
    metric = METRICS["rmse"]
    random = build_ensemble("stacking", range(5), members, y, metric, rng=np.random.default_rng(0))
    kept = build_ensemble("stacking", range(5), members, y, metric, structure=structure, rng=np.random.default_rng(0))
    assert random[0].to_json() == kept[0].to_json() and kept[1] != random[1]
    assert kind is TIME or kept[1] > random[1]
    one = structure.take(np.zeros(300, dtype=np.int64))
    alone = build_ensemble("stacking", range(5), members, y, metric, structure=one)
    assert alone[1] == pytest.approx(metric.loss(y, alone[0].combine([members[n] for n in alone[0].members]), None))
