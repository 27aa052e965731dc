from __future__ import annotations

import pytest
import sklearn.ensemble  # noqa: F401  (loads OpenMP)
from threadpoolctl import threadpool_info, threadpool_limits

from cashmere.base.threads import learner_threads, one_blas_thread, one_openmp_thread


def threads(api):
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == api}


def test_sums_of_learners_do_not_depend_on_the_threads_of_the_process():
    """A trial in this process is to give what it gives in a worker, whose BLAS has one thread."""
    with threadpool_limits(2):
        with learner_threads(1):
            assert threads("blas") == threads("openmp") == {1}
        with learner_threads(2):
            assert threads("blas") == {1} and threads("openmp") == {2}
        assert threads("blas") == {2}


@pytest.mark.parametrize("limit", [one_blas_thread, one_openmp_thread])
def test_limits_that_overlap_in_python_threads_are_restored(limit):
    def counts():
        return [(each["user_api"], each["num_threads"]) for each in threadpool_info()]

    with threadpool_limits(2):
        before = counts()
        first, second = limit(), limit()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert counts() != before
        second.__exit__(None, None, None)
        assert counts() == before
