"""Columns made of texts are the same in all forms, so that predictions compute them once."""

from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from cashmere.data.inference import infer_schema
from cashmere.data.preparation import FoldEncoder
from cashmere.data.prepared import prepare_folds
from cashmere.data.resampling import make_folds
from cashmere.data.task import Encoding, TaskType
from cashmere.exceptions import ModelFileError
from cashmere.model.consistency import check_encoders


@pytest.fixture
def encoders(tmp_path):
    frame = pd.DataFrame({"c": list("abc") * 20, "t": [f"some words about number {i % 7} or é{i}" for i in range(60)]})
    schema, y = infer_schema(frame), np.arange(60) % 2
    folds = make_folds(y, TaskType.BINARY, "2fold", seed=0)
    coded = schema.code(frame)
    _, found = prepare_folds(tmp_path, coded, y, folds, list(Encoding), task_type=TaskType.BINARY, seed=0)
    return schema, coded, found


def test_forms_agree_on_texts_and_others_are_refused(encoders):
    schema, coded, found = encoders
    of_texts = [fold[form].text_columns(coded.take_texts(slice(None)), 60) for fold in found for form in fold]
    assert all(np.array_equal(each, of_texts[0]) for each in of_texts[:3])
    check_encoders(Path("encoders"), found, schema)
    with mock.patch("cashmere.data.preparation._MOST_SCORES", 0):
        other = FoldEncoder.for_schema(Encoding.TARGET, schema)
        other.fit_transform(coded, np.arange(60) % 2, TaskType.BINARY, 0)
    found[0][Encoding.TARGET] = other
    with pytest.raises(ModelFileError, match="other columns of texts for one form"):
        check_encoders(Path("encoders"), found, schema)
