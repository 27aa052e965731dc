"""The order of configurations that lowers the loss of the ensemble fastest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cashmere.data.task import TaskType
from cashmere.evaluation.metrics import default_metric
from cashmere.pretraining.opening_choice import OpeningSource, choose_opening

METRIC = default_metric(TaskType.REGRESSION)

GOOD, AS_GOOD_BUT_DEAR, HARMLESS_COPY, OTHER_HALF, BAD, FAILED = range(6)


def source(name, *, origin=None, seed=0, n=400):
    """Return a source on which two candidates know one half of the signal each, and the others nothing new."""
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(2, n))
    y = first + second + 0.1 * rng.normal(size=n)
    predictions = {
        GOOD: 2 * first + 0.5 * second,
        AS_GOOD_BUT_DEAR: 2 * first + 0.5 * second + 0.01 * rng.normal(size=n),
        HARMLESS_COPY: 2 * first + 0.5 * second,
        OTHER_HALF: 1.6 * second,
        BAD: 30 * rng.normal(size=n),
    }
    seconds = {GOOD: 1.0, AS_GOOD_BUT_DEAR: 20.0, HARMLESS_COPY: 1.0, OTHER_HALF: 2.0, BAD: 0.1, FAILED: 1.0}
    return OpeningSource(
        name=name,
        origin=origin or name,
        y=y,
        metric=METRIC,
        predictions=predictions,
        seconds=seconds,
        same_as={n: n for n in seconds},
    )


SOURCES = [source("a", seed=1), source("b", seed=2), source("c", seed=3)]


def order(sources, **options):
    return [step.candidate for step in choose_opening(sources, range(6), **{"most_steps": 6, **options})]


def test_cheap_and_complementary_candidates_come_first():
    steps = choose_opening(SOURCES, range(6), most_steps=2)
    assert {step.candidate for step in steps} <= {GOOD, HARMLESS_COPY, OTHER_HALF}
    assert OTHER_HALF in {step.candidate for step in steps}
    assert all(step.gain > 0.1 for step in steps)


def test_candidates_that_add_nothing_are_left_out():
    found = order(SOURCES)
    assert not {BAD, FAILED} & set(found)
    assert order(SOURCES, most_steps=1) == found[:1]


def test_a_candidate_joins_with_the_share_that_is_best_for_other_rows():
    each = SOURCES[0]
    assert each.gain(frozenset(), BAD) < 0.1  # its share is small, so it does little harm
    assert each.gain(frozenset(), GOOD) > 0.5
    assert each.gain(frozenset([GOOD]), OTHER_HALF) > 0.5
    assert abs(each.gain(frozenset([GOOD]), HARMLESS_COPY)) < 0.01


def test_given_candidates_come_first_with_equal_shares():
    steps = choose_opening(SOURCES, range(6), first=[BAD, GOOD], most_steps=1)
    assert [step.candidate for step in steps] == [BAD, GOOD, OTHER_HALF]
    both = frozenset([BAD, GOOD])
    expected = np.mean([each.gain_of(both) for each in SOURCES]) / 2
    assert [step.gain for step in steps[:2]] == pytest.approx([expected, expected])
    assert steps[0].seconds < steps[1].seconds


def test_configurations_that_are_alike_on_a_table_take_no_time_there():
    same = [replace(each, same_as={**each.same_as, OTHER_HALF: GOOD}) for each in SOURCES[:2]]
    steps = choose_opening([*same, SOURCES[2]], range(6), most_steps=6)
    second = next(step for step in steps if step.candidate == OTHER_HALF)
    assert second.seconds == pytest.approx(SOURCES[2].relative_seconds(OTHER_HALF))


def test_untried_candidates_count_as_without_gain():
    without = {k: v for k, v in SOURCES[0].seconds.items() if k != OTHER_HALF}
    predictions = {k: v for k, v in SOURCES[0].predictions.items() if k != OTHER_HALF}
    partly = [replace(SOURCES[0], seconds=without, predictions=predictions), *SOURCES[1:]]
    all_known, known = (
        next(s for s in choose_opening(each, [GOOD, OTHER_HALF], most_steps=2) if s.candidate == OTHER_HALF)
        for each in (SOURCES, partly)
    )
    assert known.gain < all_known.gain


def test_tables_of_one_origin_count_as_one():
    flat = source("flat", seed=4)
    useless = {k: np.full(len(flat.y), flat.y.mean()) for k in flat.predictions}
    many = [replace(flat, name=f"flat {k}", origin="flat", predictions=useless) for k in range(4)]
    once = choose_opening([SOURCES[0], many[0]], [GOOD], most_steps=1)
    assert choose_opening([SOURCES[0], *many], [GOOD], most_steps=1)[0].gain == pytest.approx(once[0].gain)


def test_sources_may_have_the_same_name():
    lacking = {k: v for k, v in SOURCES[0].predictions.items() if k != OTHER_HALF}
    sources = [replace(SOURCES[0], predictions=lacking), *SOURCES[1:]]
    assert order([replace(each, name="run") for each in sources]) == order(sources)


def test_a_source_on_which_everything_failed_counts_as_without_gain():
    failed = replace(SOURCES[0], predictions={})
    (step,) = choose_opening([failed, SOURCES[1]], [GOOD], first=[GOOD], most_steps=1)
    assert step.gain == pytest.approx(SOURCES[1].gain_of(frozenset([GOOD])) / 2)


def test_without_sources_there_is_no_opening():
    assert choose_opening([], range(6), most_steps=5) == []


def test_gains_follow_weights_of_the_rows():
    each = SOURCES[0]
    known_by_first = np.abs(each.predictions[GOOD] - each.y) < 0.5
    weighted = replace(each, weight=np.where(known_by_first, 1.0, 0.01))
    assert weighted.gain(frozenset(), GOOD) > each.gain(frozenset(), GOOD)


def test_classes_begin_with_their_shares():
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=300) < 0.2).astype(int)
    constant = np.tile([0.8, 0.2], (300, 1))
    known = np.where(y[:, None] == np.arange(2), 0.9, 0.1)
    each = replace(
        SOURCES[0], y=y, metric=default_metric(TaskType.BINARY), predictions={0: constant, 1: known},
        seconds={0: 1.0, 1: 1.0},
    )  # fmt: skip
    assert abs(each.gain(frozenset(), 0)) < 0.01
    assert each.gain(frozenset(), 1) > 1
