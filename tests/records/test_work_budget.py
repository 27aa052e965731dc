from __future__ import annotations

import pytest

from cashmere.exceptions import InvalidParameterError
from cashmere.records.work_budget import WorkBudget


@pytest.mark.parametrize("text", ["24trials", "3601.5s", "0.333333s,50trials"])
def test_stored_text_is_read_back(text):
    assert str(WorkBudget.from_text(text)) == text


@pytest.mark.parametrize("limits", [{}, {"trials": 0}, {"worker_seconds": 0.0}, {"worker_seconds": float("inf")}])
def test_budget_without_a_positive_limit_is_refused(limits):
    with pytest.raises(InvalidParameterError):
        WorkBudget(**limits)
