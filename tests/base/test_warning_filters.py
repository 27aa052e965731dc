from __future__ import annotations

import warnings

from cashmere.base.warning_filters import warning_filters_kept


def test_filters_come_back_after_callers_that_overlap():
    before, content = warnings.filters, list(warnings.filters)
    first, second = warnings.catch_warnings(), warnings.catch_warnings()
    with warning_filters_kept():
        first.__enter__()
        warnings.simplefilter("error", ResourceWarning)
        with warning_filters_kept():
            second.__enter__()
            first.__exit__(None, None, None)
        second.__exit__(None, None, None)  # to what the first has changed
        assert warnings.filters != content
    assert warnings.filters is before
    assert warnings.filters == content
