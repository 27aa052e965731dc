from __future__ import annotations

import sklearn.ensemble  # noqa: F401  (loads OpenMP)
from threadpoolctl import threadpool_info, threadpool_limits

from cashmere.base.threads import learner_threads


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
