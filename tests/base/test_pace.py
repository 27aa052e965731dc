from __future__ import annotations

import pickle

import pytest

from cashmere.base.pace import Pace


def test_bound_is_above_the_slowest_of_the_latest_executions_and_grows_with_the_size():
    pace = Pace()
    assert pace.bound("load", 10, expected=0.1) == pytest.approx(1.5)
    for seconds in (9.0, 1.0, 2.0, 1.0, 1.0, 1.0):
        pace.note("load", seconds, size=2)
    assert pace.bound("load", expected=0.1) == pytest.approx(1.5)  # 9 seconds were too long ago
    assert pace.bound("load", 4, expected=0.1) == pytest.approx(6)
    assert pace.bound("save", expected=0.1) == pytest.approx(0.15)


def test_a_pickled_pace_keeps_its_executions():
    pace = Pace()
    pace.note("load", 4.0)
    assert pickle.loads(pickle.dumps(pace)).bound("load", expected=0.1) == pytest.approx(6)
