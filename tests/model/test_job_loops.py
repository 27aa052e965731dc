"""One caller at a time is in a loop over jobs, which empties the warning filters of the process."""

from __future__ import annotations

import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, RandomTreesEmbedding
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils import parallel

from cashmere.data.task import Encoding
from cashmere.model.fold_model import fit_fold_model
from cashmere.model.job_loops import loops_over_jobs
from cashmere.model.many_rows import LEAST_ROWS, predict_in_threads
from cashmere.space.estimators.autosklearn6 import BalancedClassifier
from cashmere.space.estimators.forests import ExponentForestClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(LEAST_ROWS, 3)).astype(np.float32)
CLASSES = (X[:, 0] > 0).astype(np.int64)

LOOPING = {
    "neighbours": make_pipeline(KNeighborsClassifier()),
    "neighbours with two jobs": make_pipeline(KNeighborsClassifier(n_jobs=2)),
    "columns": make_pipeline(
        make_pipeline(ColumnTransformer([("chosen", "passthrough", [0, 1])]), PolynomialFeatures()),
        LogisticRegression(),
    ),
    "embedding": make_pipeline(RandomTreesEmbedding(3, random_state=0), LogisticRegression()),
    "bagging": make_pipeline(BaggingClassifier(n_estimators=3, random_state=0)),
    "wrapped": make_pipeline(BalancedClassifier(RandomForestClassifier(3, random_state=0))),
}


@pytest.mark.parametrize("pipeline", LOOPING.values(), ids=LOOPING)
@pytest.mark.parametrize("n_rows", [1, LEAST_ROWS], ids=["one row", "many rows"])
def test_one_caller_at_a_time_is_in_a_loop_over_jobs(pipeline, n_rows, monkeypatch):
    model = fit_fold_model(pipeline, Encoding.ONEHOT, X[:300], CLASSES[:300], n_classes=2)
    assert loops_over_jobs(pipeline)
    callers = set()
    loop = parallel.Parallel.__call__

    def watched(self, jobs):
        callers.add(threading.get_ident())
        try:
            time.sleep(0.001)
            assert callers == {threading.get_ident()}
            return loop(self, jobs)
        finally:
            callers.clear()

    expected = model.predict(X[:n_rows])
    monkeypatch.setattr(parallel.Parallel, "__call__", watched)
    before = list(warnings.filters)
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(lambda _: predict_in_threads(model, X[:n_rows], n_threads=2), range(6)))
    assert warnings.filters == before
    for each in found:
        np.testing.assert_array_equal(each, expected)


def test_others_do_not_wait():
    forest = ExponentForestClassifier(n_estimators=3, max_features=1, random_state=0)
    scaled = TransformedTargetRegressor(Ridge(), transformer=StandardScaler())
    for learner in (forest, LogisticRegression(), KNeighborsClassifier(algorithm="brute"), scaled):
        assert not loops_over_jobs(make_pipeline(PolynomialFeatures(), learner).fit(X[:300], CLASSES[:300]))
    assert not loops_over_jobs(None)
