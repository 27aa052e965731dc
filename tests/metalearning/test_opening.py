"""Openings: written and read, and applied to spaces of tables that differ from their sources."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cashmere.data.task import TaskProfile, TaskType
from cashmere.exceptions import ArtefactError
from cashmere.metalearning.opening import SHIPPED, Opening, OpeningStep, load_opening, shipped_opening
from cashmere.space import Algorithm
from cashmere.space.named.registry import SPACES, make_space

PROFILES = [
    TaskProfile(task_type=task, n_rows=n, n_columns=5, n_classes=classes, has_categories=categories)
    for task, classes in ((TaskType.BINARY, 2), (TaskType.MULTICLASS, 9), (TaskType.REGRESSION, 1))
    for n in (60, 30_000, 2_000_000)
    for categories in (False, True)
]


def step(gain=0.1, seconds=1.0, **values):
    name = values.pop("algorithm")
    prefixed = {f"{name}:{key}": value for key, value in values.items()}
    return OpeningStep(values={"algorithm": name, **prefixed}, gain=gain, seconds=seconds)


MADE = Opening(
    space="default",
    first_gain=0.9,
    steps=(
        step(algorithm="lightgbm", learning_rate=0.1, gain=0.5),
        step(algorithm="lightgbm", learning_rate=0.1, encoding="onehot", gain=0.2),
        step(algorithm="ridge", gain=0.1),
        step(algorithm="logistic_regression", gain=0.1),
        step(algorithm="lightgbm", num_leaves=5_000, of_later_versions=1, gain=0.05),
        step(algorithm="of later versions", gain=0.05),
    ),
    sources=({"name": "t", "origin": "t"},),
    notes={"rows": 100},
)


def space_for(task=TaskType.BINARY, *, categories=True, n_classes=2):
    profile = TaskProfile(task_type=task, n_rows=300, n_columns=4, n_classes=n_classes, has_categories=categories)
    return make_space("default", profile)


def test_a_saved_opening_is_loaded_unchanged(tmp_path):
    MADE.save(tmp_path / "opening.json")
    assert load_opening(tmp_path / "opening.json") == MADE


def after_the_defaults(opening, space):
    """Return what follows the defaults and variants, which come first with their share of the same gain."""
    gains = opening.gains(space)
    first = space.first_gains()
    assert tuple(gains)[: len(first)] == tuple(first)
    assert [gains[c] for c in first] == [opening.first_gain * gain for gain in first.values()]
    return {c: gain for c, gain in gains.items() if c not in first}


def test_steps_become_configurations_of_the_space_of_a_table():
    found = after_the_defaults(MADE, space_for().restricted_to(["lightgbm", "logistic_regression", "mlp"]))
    assert [c["algorithm"] for c in found] == ["lightgbm", "lightgbm"]
    assert [c["lightgbm:learning_rate"] for c in found] == pytest.approx([0.1, 0.1])
    assert [c["lightgbm:encoding"] for c in found] == ["ordinal", "onehot"]
    assert list(found.values()) == [0.5, 0.2]


def test_steps_that_are_alike_on_a_table_count_once():
    found = after_the_defaults(MADE, space_for(categories=False).restricted_to(["lightgbm"]))
    assert list(found.values()) == [0.5]


def test_regression_has_its_own_linear_model():
    bins = replace(MADE, steps=(step(algorithm="ridge", basis="bins"), step(algorithm="logistic_regression", C=1.0)))
    (found,) = after_the_defaults(bins, space_for(TaskType.REGRESSION, n_classes=1))
    assert (found["algorithm"], found["ridge:basis"]) == ("ridge", "bins")


def test_algorithms_of_the_user_are_tried_with_the_defaults():
    own = Algorithm(name="own", build=lambda values, context: None)
    gains = MADE.gains(space_for().with_algorithm(own))
    assert {c["algorithm"]: gain for c, gain in gains.items()}["own"] == MADE.first_gain


def test_opening_without_a_step_for_the_space_leaves_the_defaults():
    assert after_the_defaults(MADE, make_space("sklearn12", PROFILES[0]).restricted_to(["adaboost", "qda"])) == {}
    assert after_the_defaults(replace(MADE, steps=()), space_for()) == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "cashmere artefact"}, "of version"),
        ({"version": 99}, "Upgrade cashmere"),
        ({"steps": [{"values": {}, "gain": 0.0, "seconds": 1.0}]}, "gain"),
        ({"first_gain": float("nan")}, "first_gain|NaN|finite"),
        ({"steps": [{"values": {"algorithm": [1]}, "gain": 1.0, "seconds": 1.0}]}, "got `array`"),
        ({"steps": [{"values": {}, "gain": 1.0, "seconds": 1.0}] * 1001}, "1000"),
        ({"sources": None}, "sources"),
    ],
)
def test_invalid_content_is_refused(tmp_path, change, message):
    path = tmp_path / "opening.json"
    path.write_text(json.dumps({**MADE.to_json(), **change}))
    with pytest.raises(ArtefactError, match=message):
        load_opening(path)


def test_missing_and_torn_files_are_refused(tmp_path):
    with pytest.raises(ArtefactError, match="no such file"):
        load_opening(tmp_path / "none.json")
    (tmp_path / "torn.json").write_text('{"format": "cashmere ope')
    with pytest.raises(ArtefactError, match="pretrain"):
        load_opening(tmp_path / "torn.json")


def test_other_spaces_have_no_opening():
    assert [name for name in SPACES if shipped_opening(name) is not None] == ["default"]


def test_shipped_opening_is_small_and_says_where_it_comes_from():
    opening = shipped_opening("default")
    assert (SHIPPED / "default.json").stat().st_size < 60_000
    assert len({source["origin"] for source in opening.sources}) >= 20
    assert {"command", "versions"} <= opening.notes.keys()
    assert load_opening(SHIPPED / "default.json") == opening


@pytest.mark.sampled(4)
@pytest.mark.parametrize("profile", PROFILES, ids=str)
def test_shipped_steps_are_points_of_every_space(profile):
    space = make_space("default", profile)
    opening = shipped_opening("default")
    found = after_the_defaults(opening, space)
    assert found
    # Under a time budget, those that gain most per second come first: the defaults.
    assert 0 < max(found.values()) < opening.first_gain
    offered = {algorithm.name for algorithm in space.algorithms}
    for used in opening.steps:
        assert used.seconds > 0
        if used.values["algorithm"] in offered and profile.has_categories and profile.task_type.is_classification:
            assert used.values.keys() <= {*space.configuration_space}
