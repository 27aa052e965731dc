from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cashmere.base.sorting import sorted_by


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=30))
def test_order_is_that_of_numpy(rows):
    keys = [np.array([row[i] for row in rows], dtype=np.uint64) for i in range(3)]
    for n in (1, 2, 3):
        np.testing.assert_array_equal(sorted_by(keys[:n]), np.lexsort(keys[:n]))
