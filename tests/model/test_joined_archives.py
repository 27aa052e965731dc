"""Two archives are joined without changing what their models predict."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cashmere.data.task import Encoding
from cashmere.model.archives import dump_fold_models, load_fold_models
from cashmere.model.fold_model import FoldModel
from cashmere.model.joined_archives import joined_archives
from cashmere.model.zip_entries import SCHEMA, entry_of, joined

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)


def fold_models(learner):
    """Fit two models, each to a half of the rows."""
    halves = [(X[rows], Y[rows]) for rows in (slice(100), slice(100, None))]
    pipelines = [make_pipeline(StandardScaler(), learner()).fit(x, y) for x, y in halves]
    return [
        FoldModel(pipeline=pipeline, encoding=Encoding.ORDINAL, classes=np.arange(2), n_classes=2)
        for pipeline in pipelines
    ]


def boosting():
    return LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1)


@pytest.mark.parametrize("learner", [LogisticRegression, boosting])
def test_models_of_both_predict_as_before(learner, tmp_path):
    models = [*fold_models(learner), *fold_models(LogisticRegression), *fold_models(boosting)]
    found = dump_fold_models(models[:2])
    for first in (2, 4):  # a joined one is joined again
        found = joined_archives(found, dump_fold_models(models[first : first + 2]))
    (tmp_path / "joined.skops").write_bytes(found)
    loaded = load_fold_models(tmp_path / "joined.skops")
    assert len(loaded) == len(models)
    for before, after in zip(models, loaded, strict=True):
        np.testing.assert_array_equal(before.predict(X), after.predict(X))


def test_objects_and_arrays_with_the_same_numbers_in_both_are_kept_apart(tmp_path):
    """Two workers may put different objects at the same address."""

    def renumbered(data):
        """Number the arrays of an archive, and the objects, from 1 on."""
        schema, names, numbers = json.loads(entry_of(data, SCHEMA)), {}, iter(range(1, 10**6))
        stack = [schema]
        while stack:
            value = stack.pop()
            if isinstance(value, dict):
                if "__id__" in value:
                    value["__id__"] = next(numbers)
                if "file" in value:
                    names[value["file"]] = value["file"] = f"{value['__id__']}.npy"
            stack += value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
        return joined([(data, names)], schema=json.dumps(schema).encode())

    first, second = (renumbered(dump_fold_models(fold_models(LogisticRegression))) for _ in range(2))
    with zipfile.ZipFile(io.BytesIO(first)) as a, zipfile.ZipFile(io.BytesIO(second)) as b:
        assert set(a.namelist()) == set(b.namelist())
    (tmp_path / "joined.skops").write_bytes(joined_archives(first, second))
    loaded = load_fold_models(tmp_path / "joined.skops")
    expected = fold_models(LogisticRegression)
    for before, after in zip([*expected, *expected], loaded, strict=True):
        np.testing.assert_array_equal(before.predict(X), after.predict(X))


def test_archives_of_other_versions_are_not_joined():
    data = dump_fold_models(fold_models(LogisticRegression))
    schema = json.loads(entry_of(data, SCHEMA)) | {"protocol": -1}
    assert joined_archives(data, joined([(data, {})], schema=json.dumps(schema).encode())) is None
