from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from cashmere.charts.ticks import log_ticks, nice_ticks, tick_labels

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite, finite)
@example(0.0, 5e-324)
def test_ticks_are_few_ascending_and_inside(a, b):
    low, high = min(a, b), max(a, b)
    ticks = nice_ticks(low, high)
    assert len(ticks) <= 12
    assert ticks == sorted(ticks)
    slack = 1e-6 * max(abs(low), abs(high), 1e-300)
    assert all(low - slack <= t <= high + slack for t in ticks)
    assert len(tick_labels(ticks)) == len(ticks)


def test_range_without_length_has_one_tick():
    assert nice_ticks(3.0, 3.0) == [3.0]
    assert nice_ticks(float("nan"), 1.0) == []


def test_many_decades_get_few_log_ticks():
    assert len(log_ticks(1, 1e12)) <= 14
    assert log_ticks(0, 10) == []
