from __future__ import annotations

import io
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cashmere.exceptions import CashmereError, CorruptStoreError, ObservationsError, ShapeError
from cashmere.metalearning.observations import SourceObservations, SourceTable

KNN = tuple({"algorithm": "knn", "knn:n_neighbors": k} for k in range(1, 6))


def table(name="iris", positions=(0, 1, 2), losses=(0.1, np.nan, 0.3), **more):
    n = len(positions)
    return SourceTable(
        name=name,
        origin=more.pop("origin", name),
        configurations=np.array(positions, dtype=np.int64),
        losses=np.array(losses, dtype=float),
        seconds=np.full(n, 0.25),
        **more,
    )


def observations(*tables, configurations=KNN, space="sklearn12"):
    return SourceObservations(space=space, metric="accuracy", configurations=configurations, tables=tables)


def assert_same(a, b):
    assert (a.space, a.metric, a.configurations) == (b.space, b.metric, b.configurations)
    assert len(a.tables) == len(b.tables)
    for x, y in zip(a.tables, b.tables, strict=True):
        assert (x.name, x.origin, x.metric) == (y.name, y.origin, y.metric)
        np.testing.assert_array_equal(x.configurations, y.configurations)
        for one, two in ((x.losses, y.losses), (x.seconds, y.seconds)):
            np.testing.assert_array_equal(np.float32(one), two)
            assert two.dtype == np.float64
        assert x.other_losses.keys() == y.other_losses.keys()
        for name in x.other_losses:
            np.testing.assert_array_equal(np.float32(x.other_losses[name]), y.other_losses[name])
        np.testing.assert_equal(dict(x.meta_features), dict(y.meta_features))


losses = hnp.arrays(np.float64, 5, elements=st.floats(0, 100, width=32) | st.just(np.nan))


@settings(max_examples=40)
@given(data=st.lists(st.tuples(st.permutations(range(5)), losses, losses), max_size=4), text=st.text(max_size=8))
def test_saved_observations_are_loaded_unchanged(tmp_path_factory, data, text):
    tables = [
        table(
            f"{i}{text}",
            order[: i + 1],
            values[: i + 1],
            metric=text,
            meta_features={"log_n": 1.5 * i, "gap": np.nan},
            other_losses={} if np.isnan(other[: i + 1]).all() else {"log_loss": other[: i + 1]},
        )
        for i, (order, values, other) in enumerate(data)
    ]
    path = tmp_path_factory.mktemp("saved") / "observations.npz"
    before = observations(*tables)
    before.save(path)
    after = SourceObservations.load(path)
    assert_same(before, after)
    content = path.read_bytes()
    after.save(path)
    assert path.read_bytes() == content


def test_numpy_opens_the_arrays(tmp_path):
    observations(table()).save(tmp_path / "o.npz")
    with np.load(tmp_path / "o.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["losses"], np.float32([0.1, np.nan, 0.3]))


def test_75_tables_of_1200_configurations_take_less_than_5_mb(tmp_path):
    rng = np.random.default_rng(0)
    configurations = tuple({"algorithm": "svc", "svc:C": float(c), "svc:gamma": float(c)} for c in rng.random(1200))
    tables = [
        table(
            f"table{i}",
            range(1200),
            rng.random(1200),  # incompressible: real losses are multiples of 1 / n
            other_losses={"log_loss": rng.random(1200)},
            meta_features={f"feature{k}": float(v) for k, v in enumerate(rng.random(40))},
        )
        for i in range(75)
    ]
    observations(*tables, configurations=configurations).save(tmp_path / "o.npz")
    assert (tmp_path / "o.npz").stat().st_size < 1.5e6


def test_loss_matrix_puts_every_loss_in_its_place():
    found = observations(table("a", (2, 0), (0.2, 0.0)), table("b", (4,), (0.4,))).loss_matrix()
    gap = np.nan
    np.testing.assert_array_equal(found, [[0, gap, 0.2, gap, gap], [gap, gap, gap, gap, 0.4]])


def test_merging_lists_each_configuration_once():
    other_knn = ({"knn:n_neighbors": 9, "algorithm": "knn"}, {"knn:n_neighbors": 2, "algorithm": "knn"})
    added = observations(table("run", (0, 1), (0.9, 0.2), metric="log_loss"), configurations=other_knn)
    merged = observations(table()).merged(added)
    assert merged.configurations == (*KNN, other_knn[0])
    assert [t.name for t in merged.tables] == ["iris", "run"]
    np.testing.assert_array_equal(merged.tables[1].configurations, [5, 1])
    assert merged.tables[1].metric == "log_loss"
    np.testing.assert_array_equal(merged.loss_matrix()[1, [5, 1]], [0.9, 0.2])


def test_merging_refuses_other_spaces_and_equal_names():
    with pytest.raises(ObservationsError, match="'volcano'"):
        observations(table()).merged(observations(table("b"), space="volcano"))
    with pytest.raises(ObservationsError, match="iris"):
        observations(table()).merged(observations(table()))


def test_tables_that_contradict_themselves_are_refused():
    with pytest.raises(ShapeError, match=r"losses of table 'iris'.*\(3,\)"):
        table(losses=(0.1,))
    with pytest.raises(ObservationsError, match="distinct"):
        table(positions=(1, 1, 2))
    with pytest.raises(ObservationsError, match="within the 5"):
        observations(table(positions=(1, 2, 5)))


def test_damaged_and_foreign_files_are_refused(tmp_path):
    path = tmp_path / "o.npz"
    with pytest.raises(CorruptStoreError, match="collect them again"):
        SourceObservations.load(path)
    np.savez(path, losses=np.zeros(3))
    with pytest.raises(CorruptStoreError, match="description"):
        SourceObservations.load(path)
    observations(table(), table("b")).save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(100):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged[: rng.integers(len(whole) // 2, len(whole) + 1)])
        try:
            SourceObservations.load(path)  # a flipped bit in a date or a name of zip's own does no harm
        except CashmereError as error:
            assert isinstance(error, CorruptStoreError)


def change_version(path, version):
    buffer = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b'"version": 2', f'"version": {version}'.encode()))
    path.write_bytes(buffer.getvalue())


def test_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "o.npz"
    observations(table()).save(path)
    change_version(path, 3)
    with pytest.raises(CorruptStoreError, match="up to version 2"):
        SourceObservations.load(path)


def test_earlier_observations_of_the_default_space_are_of_the_classic_one(tmp_path):
    path = tmp_path / "o.npz"
    replace(observations(table()), space="default").save(path)
    assert SourceObservations.load(path).space == "default"
    change_version(path, 1)
    assert SourceObservations.load(path).space == "classic"
