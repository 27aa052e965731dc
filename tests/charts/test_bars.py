from __future__ import annotations

from cashmere.charts.bars import bar


def test_bar_length_is_kept_inside_the_cell():
    assert 'width="100" height="10"/></svg>' in bar(7.0, title="t")
    assert 'width="0"' in bar(float("nan"), title="t")
