"""A space made of small hand-written components."""

from __future__ import annotations

from dataclasses import replace

import cloudpickle
import numpy as np
import pytest
from ConfigSpace import (
    Categorical,
    Constant,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    Integer,
    NotEqualsCondition,
)
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from cashmere.data.task import Encoding, TaskProfile, TaskType
from cashmere.exceptions import InvalidParameterError, MetricError, SpaceError, UnknownNameError
from cashmere.space import NO_OPERATOR, REGRESSION, Algorithm, BuildContext, Operator, Space, Subspace

PROFILE = TaskProfile(task_type=TaskType.BINARY, n_rows=50, n_columns=3, n_classes=2, has_categories=True)
CONTEXT = BuildContext(
    task_type=TaskType.BINARY, n_classes=2, n_rows=50, n_features=3, categorical=np.zeros(3, dtype=bool), seed=7
)


def remembered(values, context):
    """Build a dummy that keeps what the builder was given."""
    return DummyClassifier(constant=(dict(values), context.seed))


def nested_subspace(profile):
    kind = Categorical("kind", ["a", "b", "c"], default="a")
    size = Integer("size", (1, 9), default=3)
    depth = Integer("depth", (1, 5), default=2)
    forbidden = ForbiddenAndConjunction(ForbiddenEqualsClause(kind, "b"), ForbiddenEqualsClause(size, 9))
    return Subspace(
        hyperparameters=[kind, size, depth],
        conditions=[
            NotEqualsCondition(size, kind, "a"),
            EqualsCondition(depth, kind, "c"),
        ],
        forbidden=[forbidden],
    )


def plain_subspace(profile):
    return Subspace(hyperparameters=[Float("rate", (0.01, 1.0), log=True, default=0.1)])


NESTED = Algorithm(name="nested", build=remembered, subspace=nested_subspace)
PLAIN = Algorithm(
    name="plain", build=remembered, subspace=plain_subspace, encodings=(Encoding.ORDINAL, Encoding.TARGET)
)
SCALE = Operator(name="scale", build=lambda values, context: StandardScaler())
WIDE = Operator(name="wide", build=remembered, subspace=plain_subspace)


def make(**changes):
    return Space(**{"name": "test", "algorithms": (NESTED, PLAIN), "profile": PROFILE} | changes)


def test_samples_hold_only_the_active_parameters_of_the_chosen_components():
    space = make(operators={"step": (NO_OPERATOR, SCALE, WIDE)})
    space.configuration_space.seed(0)
    expected = {
        ("nested", "a"): {"nested:kind"},
        ("nested", "b"): {"nested:kind", "nested:size"},
        ("nested", "c"): {"nested:kind", "nested:size", "nested:depth"},
        ("plain", None): {"plain:rate"},
    }
    seen = set()
    for configuration in space.configuration_space.sample_configuration(300):
        case = (configuration["algorithm"], configuration.get("nested:kind"))
        operator = {"wide:rate"} if configuration["step"] == "wide" else set()
        assert set(configuration) == {"algorithm", "step"} | expected[case] | operator
        assert (configuration.get("nested:kind"), configuration.get("nested:size")) != ("b", 9)
        seen.add(case)
    assert seen == set(expected)


def test_the_subspace_of_a_component_is_not_changed():
    shared = nested_subspace(PROFILE)
    algorithm = Algorithm(name="shared", build=remembered, subspace=lambda profile: shared)
    make(algorithms=(algorithm,)).configuration_space.get_default_configuration()
    make(algorithms=(algorithm,)).configuration_space.get_default_configuration()
    assert [hp.name for hp in shared.hyperparameters] == ["kind", "size", "depth"]


def test_default_configurations_follow_the_order_of_the_algorithms():
    configurations = make().default_configurations()
    assert [dict(c) for c in configurations] == [
        {"algorithm": "nested", "nested:kind": "a"},
        {"algorithm": "plain", "plain:encoding": "ordinal", "plain:rate": pytest.approx(0.1)},
    ]


def test_variants_follow_all_defaults():
    defaults = make().default_configurations()
    more = replace(PLAIN, variants=lambda profile: [{"rate": 0.2}])
    first = make(algorithms=(NESTED, more)).first_configurations()
    assert first[:2] == defaults
    assert [c["plain:rate"] for c in first[2:]] == [pytest.approx(0.2)]
    assert make().first_configurations() == defaults


def test_first_configurations_have_the_gains_of_their_algorithms():
    more = replace(PLAIN, variants=lambda profile: [{"rate": 0.2}], gain=0.5, gain_of_variants=0.25)
    gains = make(algorithms=(NESTED, more)).first_gains()
    assert list(gains.values()) == [1.0, 0.5, 0.25]


def test_the_builder_gets_its_own_values_without_prefix_as_plain_objects():
    space = make(operators={"step": (WIDE, NO_OPERATOR)})
    pipeline = space.build(space.default_configurations()[0], CONTEXT)
    assert [name for name, _ in pipeline.steps] == ["step", "learner"]
    assert pipeline["learner"].constant == ({"kind": "a"}, 7)
    values, _ = make().build(make().default_configurations()[1], CONTEXT)["learner"].constant
    assert values == {"rate": pytest.approx(0.1)}
    assert type(values["rate"]) is float


def test_pass_through_steps_are_skipped_and_pipelines_of_learners_are_flattened():
    inner = Algorithm(name="inner", build=lambda v, c: Pipeline([("scaler", StandardScaler()), ("m", "model")]))
    space = make(algorithms=(inner,), operators={"step": (NO_OPERATOR, SCALE)})
    pipeline = space.build(space.default_configurations()[0], CONTEXT)
    assert [name for name, _ in pipeline.steps] == ["scaler", "learner"]


def test_encodings_are_a_choice_only_with_categories_and_without_operators():
    with_categories = make()
    no_categories = make(profile=TaskProfile(task_type=TaskType.BINARY, n_rows=50, n_columns=3, n_classes=2))
    with_operators = make(operators={"step": (NO_OPERATOR,)})
    every = frozenset({Encoding.ONEHOT, Encoding.ORDINAL, Encoding.TARGET})
    assert with_categories.encodings == every
    assert no_categories.encodings == every - {Encoding.TARGET}
    assert with_operators.encodings == {Encoding.ONEHOT}
    assert "plain:encoding" not in no_categories.configuration_space
    assert "plain:encoding" not in with_operators.configuration_space
    assert [no_categories.encoding_of(c) for c in no_categories.default_configurations()] == ["onehot", "ordinal"]
    assert [with_operators.encoding_of(c) for c in with_operators.default_configurations()] == ["onehot"] * 2
    with_categories.configuration_space.seed(1)
    for configuration in with_categories.configuration_space.sample_configuration(50):
        encoding = with_categories.encoding_of(configuration)
        assert encoding == configuration.get("plain:encoding", "onehot")
        assert isinstance(encoding, Encoding)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tasks": REGRESSION}, "does not support binary targets"),
        ({"max_rows": 49}, "up to 49 rows"),
        ({"requires": ("no_such_module_at_all",)}, "needs a package that is not installed: no_such_module_at_all"),
    ],
)
def test_unavailable_components_are_left_out_with_the_reason(changes, reason):
    space = make(algorithms=(PLAIN, Algorithm(name="other", build=remembered, **changes)))
    assert [algorithm.name for algorithm in space.algorithms] == ["plain"]
    assert reason in space.left_out["other"]
    with pytest.raises(SpaceError, match=reason):
        space.restricted_to(["other"])


def test_no_algorithm_left_is_an_error_that_names_each_reason():
    with pytest.raises(SpaceError, match="plain is offered up to 3 rows"):
        make(algorithms=(Algorithm(name="plain", build=remembered, max_rows=3),))


def test_missing_probabilities_are_a_metric_error_with_a_remedy():
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=50, n_columns=3, n_classes=2, needs_probabilities=True)
    margins = Algorithm(name="margins", build=remembered, has_probabilities=False)
    with pytest.raises(MetricError, match="MarginProbabilities"):
        make(algorithms=(margins,), profile=profile)
    assert list(make(algorithms=(margins, PLAIN), profile=profile).left_out) == ["margins"]


def test_restriction_keeps_the_order_and_names_unknown_algorithms():
    assert [a.name for a in make().restricted_to(["plain", "nested"]).algorithms] == ["nested", "plain"]
    assert [a.name for a in make().restricted_to("plain").algorithms] == ["plain"]
    with pytest.raises(UnknownNameError, match="Did you mean 'plain'"):
        make().restricted_to(["plane"])
    with pytest.raises(InvalidParameterError, match="one or more of"):
        make().restricted_to([])


def test_a_custom_algorithm_takes_ten_lines():
    from sklearn.tree import DecisionTreeClassifier

    def build(values, context):
        return DecisionTreeClassifier(**values, random_state=context.seed)

    def subspace(profile):
        return Subspace(hyperparameters=[Integer("max_depth", (1, 10), default=3)])

    space = make().with_algorithm(Algorithm(name="my_tree", build=build, subspace=subspace))
    configuration = space.default_configurations()[-1]
    assert dict(configuration) == {"algorithm": "my_tree", "my_tree:max_depth": 3}
    assert space.build(configuration, CONTEXT)["learner"].max_depth == 3
    assert len(space.with_algorithm(PLAIN).algorithms) == 3
    assert [algorithm.name for algorithm in make().algorithms] == ["nested", "plain"]


def test_an_unavailable_algorithm_cannot_be_added():
    with pytest.raises(SpaceError, match="does not support binary"):
        make().with_algorithm(Algorithm(name="regressor", build=remembered, tasks=REGRESSION))


@pytest.mark.parametrize("name", ["a:b", "a__b", ""])
def test_names_contain_no_separators(name):
    with pytest.raises(InvalidParameterError, match="name must be a text without ':'"):
        make(algorithms=(PLAIN, Algorithm(name=name, build=remembered)))


@pytest.mark.parametrize("name", ["algorithm", "learner", "plain"])
def test_names_are_unique(name):
    with pytest.raises(SpaceError, match=f"different names, but '{name}' occurs 2 times"):
        make(algorithms=(PLAIN, Algorithm(name=name, build=remembered)))


@pytest.mark.parametrize(
    "layers",
    [
        Categorical("layers", [(50,), (100, 50)]),
        Categorical("layers", [(50,), (100, 50)], ordered=True),
        Constant("layers", (50,)),
    ],
)
def test_values_that_cannot_be_stored_are_refused_before_the_search(layers):
    own = Algorithm(name="own", build=remembered, subspace=lambda p: Subspace(hyperparameters=[layers]))
    with pytest.raises(SpaceError, match=r"'layers' of 'own' has the value \(50,\)\. .* by texts"):
        _ = make(algorithms=(own,)).configuration_space


def test_the_name_encoding_is_reserved():
    clash = Algorithm(
        name="clash", build=remembered, subspace=lambda p: Subspace(hyperparameters=[Float("encoding", (0, 1))])
    )
    with pytest.raises(SpaceError, match="encoding"):
        _ = make(algorithms=(clash,)).configuration_space


def test_a_pickled_space_is_small_and_equal():
    space = make(operators={"step": (NO_OPERATOR, WIDE)})
    before = space.configuration_space
    again = cloudpickle.loads(cloudpickle.dumps(space))
    assert again.configuration_space == before
    assert len(cloudpickle.dumps(space)) < 20_000


def test_forbidden_combinations_across_steps_are_never_drawn():
    clauses = ({"step": ("wide", "gone"), "algorithm": ("plain",)}, {"missing": ("wide",), "algorithm": ("plain",)})
    space = make(operators={"step": (NO_OPERATOR, SCALE, WIDE)}, forbidden=clauses)
    assert len(space.configuration_space.forbidden_clauses) == 2  # one is NESTED's own
    space.configuration_space.seed(0)
    drawn = {(c["step"], c["algorithm"]) for c in space.configuration_space.sample_configuration(200)}
    every = {(step, algorithm) for step in ("none", "scale", "wide") for algorithm in ("nested", "plain")}
    assert drawn == every - {("wide", "plain")}
    assert len(space.restricted_to(["nested"]).configuration_space.forbidden_clauses) == 1


def test_operators_read_the_form_that_the_space_names():
    space = make(operators={"step": (SCALE,)}, reads=Encoding.ORDINAL)
    assert space.encodings == {Encoding.ORDINAL}
    assert space.encoding_of(space.default_configurations()[0]) is Encoding.ORDINAL


def test_an_operator_that_builds_a_function_changes_the_learner():
    def named(learner):
        return ("changed", learner)

    change = Operator(name="change", build=lambda values, context: named)
    space = make(operators={"learner_change": (change,), "step": (SCALE,)})
    pipeline = space.build(space.default_configurations()[0], CONTEXT)
    assert [name for name, _ in pipeline.steps] == ["step", "learner"]
    assert pipeline.steps[-1][1][0] == "changed"


def test_parameters_of_one_form_are_active_only_under_it():
    def subspace(profile):
        return replace(nested_subspace(profile), only_under={"depth": Encoding.ORDINAL})

    algorithm = replace(PLAIN, subspace=subspace)
    space = Space(name="test", algorithms=(algorithm,), profile=PROFILE)
    for kind, encoding, is_active in (("c", "ordinal", True), ("c", "target", False), ("b", "ordinal", False)):
        values = {"algorithm": "plain", "plain:kind": kind, "plain:encoding": encoding}
        assert ("plain:depth" in space.completed(values)) is is_active
    without = Space(name="test", algorithms=(algorithm,), profile=replace(PROFILE, has_categories=False))
    assert "plain:depth" in without.completed({"algorithm": "plain", "plain:kind": "c"})
