"""Boosters of the space ``default``: learning rates that fit the rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cashmere.data.task import TaskProfile, TaskType
from cashmere.space import make_space
from cashmere.space.named.boosters import rate_on

ROWS = st.integers(1, 10**8)


@given(rate=st.floats(0.01, 0.3), n_rows=ROWS, more=st.integers(0, 10**8))
def test_rate_grows_with_the_rows_up_to_the_highest(rate, n_rows, more):
    assert rate <= rate_on(n_rows, rate) <= rate_on(n_rows + more, rate) <= 0.3


@pytest.mark.parametrize(("n_rows", "expected"), [(300, 0.05), (50_000, 0.05), (200_000, 0.1), (10**7, 0.3)])
def test_rate_by_hand(n_rows, expected):
    assert rate_on(n_rows, 0.05) == pytest.approx(expected)


@pytest.mark.parametrize("n_rows", [1_000, 200_000, 10_000_000, 1_000_000_000])
@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "catboost", "hist_gradient_boosting"])
def test_range_and_defaults_of_a_booster_follow_the_rows(name, n_rows):
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=n_rows, n_columns=3, n_classes=2, has_categories=False)
    space = make_space("default", profile)
    rate = space.configuration_space[f"{name}:learning_rate"]
    short = {"catboost": 0.08, "hist_gradient_boosting": 0.06}.get(name, 0.05)
    assert rate.default_value == pytest.approx(rate_on(n_rows, short))
    assert rate.lower <= 0.24 < rate.upper == 0.3
    firsts = [each for each in space.first_configurations() if each["algorithm"] == name]
    assert firsts  # the variants lie in the range, too
    assert all(rate.lower <= each[f"{name}:learning_rate"] <= rate.upper for each in firsts)


OF_CATEGORIES = {
    "lightgbm": {"cat_smooth", "cat_l2", "max_cat_to_onehot", "min_data_per_group"},
    "xgboost": {"max_cat_to_onehot"},
    "catboost": {"one_hot_max_size", "max_ctr_complexity"},
}


@pytest.mark.parametrize("encoding", ["ordinal", "target", "onehot"])
@pytest.mark.parametrize("name", OF_CATEGORIES)
def test_categories_are_searched_only_where_the_booster_sees_them(name, encoding):
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=500, n_columns=4, n_classes=2, has_categories=True)
    space = make_space("default", profile)
    configuration = space.completed({"algorithm": name, f"{name}:encoding": encoding})
    active = {key.partition(":")[2] for key in configuration if key.startswith(name)}
    assert OF_CATEGORIES[name] & active == (OF_CATEGORIES[name] if encoding == "ordinal" else set())
    without = make_space("default", replace(profile, has_categories=False)).configuration_space
    assert not {f"{name}:{each}" for each in OF_CATEGORIES[name]} & set(without)


def test_own_categories_of_catboost_come_first_on_long_tables():
    for n_rows, variants in ((50_000, ["ordinal", "onehot"]), (100_000, ["ordinal"])):
        profile = TaskProfile(task_type=TaskType.BINARY, n_rows=n_rows, n_columns=4, n_classes=2, has_categories=True)
        firsts = make_space("default", profile).first_configurations()
        assert [c["catboost:encoding"] for c in firsts if c["algorithm"] == "catboost"] == variants


@pytest.mark.parametrize(
    ("levels", "monotone", "expected"),
    [
        (20, (), ["ordinal", "ordinal"]),
        (21, (), ["ordinal", "ordinal", "target"]),
        (21, (1,), ["ordinal", "ordinal"]),
    ],
)
def test_lightgbm_begins_with_means_as_well_if_a_category_has_many_levels(levels, monotone, expected):
    profile = TaskProfile(
        task_type=TaskType.BINARY,
        n_rows=500,
        n_columns=4,
        n_classes=2,
        has_categories=True,
        most_levels=levels,
        monotone=monotone,
    )
    firsts = make_space("default", profile).first_configurations()
    assert [c["lightgbm:encoding"] for c in firsts if c["algorithm"] == "lightgbm"] == expected


@pytest.mark.parametrize(("n_rows", "monotone", "n"), [(100_000, (0,), 1), (100_001, (0,), 0), (1000, (1,), 0)])
def test_one_booster_begins_with_added_columns(n_rows, monotone, n):
    profile = TaskProfile(
        task_type=TaskType.BINARY, n_rows=n_rows, n_columns=1, n_classes=2, has_categories=False, monotone=monotone
    )
    firsts = make_space("default", profile).first_configurations()
    assert sum(each.get(f"{each['algorithm']}:features") == "arithmetic" for each in firsts) == n
