"""How the state of a search is told."""

from __future__ import annotations

import io

from cashmere.run.progress import PlainLines, Status


def test_lines_tell_the_time_left_only_where_it_is_known():
    stream = io.StringIO()
    lines = PlainLines(stream)
    status = Status(trials=3, best_score=0.5, ensemble_score=0.4, metric="rmse", seconds_left=75.0)
    for each in (Status(phase="preparing", metric="rmse"), status, status.finishing()):
        lines.update(each)
    assert stream.getvalue().splitlines() == [
        "preparing: 0 trials, 0 failed, best single -, ensemble - (rmse)",
        "searching: 3 trials, 0 failed, best single 0.5, ensemble 0.4 (rmse), 1:15 left",
        "finishing: 3 trials, 0 failed, best single 0.5, ensemble 0.4 (rmse)",
    ]
