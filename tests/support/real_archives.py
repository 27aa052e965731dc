"""Archives of everything that model files can hold: each algorithm, operator and choice of the named spaces."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from ConfigSpace import CategoricalHyperparameter, Configuration
from ConfigSpace.exceptions import ForbiddenValueError
from ConfigSpace.hyperparameters import Hyperparameter
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from cashmere.data.inference import infer_schema
from cashmere.data.preparation import FoldEncoder
from cashmere.data.task import Encoding, TaskProfile, TaskType
from cashmere.space import BuildContext, Space, make_space
from cashmere.space.component import Resampler
from cashmere.space.named.features import ARITHMETIC, FEATURES

N_ROWS = 60
N_CLASSES = {TaskType.BINARY: 2, TaskType.MULTICLASS: 3, TaskType.REGRESSION: 1}
ONLY_CLASSES = ("sklearn12", "imbalance", "autosklearn6")
NAMES = ("default", "classic", "volcano", "sklearn12", "autosklearn6", "imbalance")


def space_for(name: str, task: TaskType) -> Space:
    profile = TaskProfile(
        task_type=task, n_rows=N_ROWS, n_columns=5, n_classes=N_CLASSES[task], has_categories=name != "imbalance"
    )
    return make_space(name, profile)


def fitted(
    space: Space, configuration: Configuration, *, quantile: float | None = None, power: float | None = None
) -> tuple[Any, np.ndarray]:
    """Return the pipeline of a configuration, fitted to a small table, and the rows it was fitted to."""
    task = space.profile.task_type
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 5)).astype(np.float32)
    X[:, 1] = rng.integers(0, 3, N_ROWS)
    y = X[:, 0] + (X[:, 1] == 1)
    categorical = np.zeros(5, dtype=bool)
    if space.encoding_of(configuration) is Encoding.ORDINAL:
        categorical[1] = True
        if space.name in ("classic", "default"):  # the others fill gaps with operators, or have no such form
            X[::9, 1] = np.nan
    if task.is_classification:
        y = np.digitize(y, np.quantile(y, np.arange(1, N_CLASSES[task]) / N_CLASSES[task]))
    if power is not None:
        y = np.exp(y)
    context = BuildContext(
        task_type=task,
        n_classes=N_CLASSES[task],
        n_rows=N_ROWS,
        n_features=5,
        categorical=categorical,
        quantile=quantile,
        power=power,
    )
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)
        warnings.filterwarnings("ignore", "No features were selected|Features .* are constant")
        # Fast ICA with cubes diverges or not, depending on how the processor rounds (docs/spaces.md#volcano).
        warnings.filterwarnings(
            "ignore", "(overflow|invalid value) encountered", RuntimeWarning, module=r"sklearn\.decomposition\._fastica"
        )
        return space.build(configuration, context).fit(X, y), X


def choices(space: Space, component: str) -> Iterator[Configuration]:
    """Yield the default of a component, and each other choice of each of its parameters with all else at its default.

    Ensembles are as small as they may be. For two classes there are defaults only: choices save the same types as for
    three.
    """
    parameters = [p for p in space.configuration_space.values() if p.name.startswith(f"{component}:")]
    small = {p.name: p.lower for p in parameters if p.name.endswith(":n_estimators") and hasattr(p, "lower")}
    base = {"algorithm": space.algorithms[0].name, **small}
    yield space.completed(base)
    if space.profile.task_type is not TaskType.BINARY:
        for parameter in parameters:
            for choice in _others(parameter):
                with contextlib.suppress(ForbiddenValueError):  # together with the other defaults
                    yield space.completed({**base, parameter.name: choice})


def _others(parameter: Hyperparameter) -> list[Any]:
    """Return the choices of a parameter; numbers decide about a type only as the exponent of a distance."""
    if isinstance(parameter, CategoricalHyperparameter):
        return [choice for choice in parameter.choices if choice != parameter.default_value]
    return [p for p in (0, 1, 3) if parameter.legal_value(p)] if parameter.name.endswith(":p") else []


def every_configuration(name: str, task: TaskType) -> Iterator[tuple[str, Space, Configuration]]:
    """Yield all algorithms and operators of a named space, with each of their choices.

    The embedding by random trees, whose result is sparse, comes before every algorithm.
    """
    space = space_for(name, task)
    for algorithm in space.algorithms:
        only = space.restricted_to([algorithm.name])
        for configuration in choices(only, algorithm.name):
            yield f"{name} {algorithm.name}", only, configuration
        sparse = {"preprocessor": "random_trees_embedding", "random_trees_embedding:n_estimators": 10}
        preprocessors = space.operators.get("preprocessor", ())
        if task is TaskType.MULTICLASS and any(o.name == sparse["preprocessor"] for o in preprocessors):
            with contextlib.suppress(ForbiddenValueError):  # for algorithms that cannot read it
                yield f"{name} {algorithm.name} sparse", only, only.completed({"algorithm": algorithm.name, **sparse})
    fast = tuple(a for a in space.algorithms if a.name in ("knn", "bernoulli_nb"))[:1]
    for step, operators in space.operators.items():
        for operator in operators:
            if not isinstance(operator, Resampler):
                one = Space(name="one", algorithms=fast, operators={step: (operator,)}, profile=space.profile)
                for configuration in choices(one, operator.name):
                    yield f"{name} {operator.name}", one, configuration


def tasks_of(name: str) -> list[TaskType]:
    return [task for task in TaskType if task.is_classification or name not in ONLY_CLASSES]


def encoders() -> Iterator[tuple[str, FoldEncoder]]:
    """Yield the encoders of a table with all kinds of columns, fitted for each encoding and task."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "number": rng.normal(size=N_ROWS),
            "gaps": np.where(rng.random(N_ROWS) < 0.3, np.nan, 1.0),
            "category": rng.choice(list("abc"), N_ROWS),
            "truth": rng.choice([True, False], N_ROWS),
            "text": [f"{'long ' * (i % 3)}text of row {i}, {i * 7 % 13} and {i * i}" for i in range(N_ROWS)],
        }
    )
    schema = infer_schema(table)
    assert schema.text_names
    for encoding in Encoding:
        for task, n_classes in N_CLASSES.items():
            y = rng.normal(size=N_ROWS) if task is TaskType.REGRESSION else rng.integers(0, n_classes, N_ROWS)
            encoder = FoldEncoder.for_schema(encoding, schema)
            encoder.fit_transform(schema.code(table), y, task, 0)
            yield f"encoder {encoding.value} {task.value}", encoder


def with_features() -> Iterator[tuple[str, Any, np.ndarray, str]]:
    """Yield a learner after the columns that a trial may add to its table; other learners come after the same ones."""
    for task in TaskType:
        space = space_for("default", task)
        configuration = space.completed({"algorithm": "lightgbm", f"lightgbm:{FEATURES}": ARITHMETIC})
        pipeline, X = fitted(space, configuration)
        yield f"default features {task.value}", pipeline, X, "predict_proba" if task.is_classification else "predict"


def of_other_losses() -> Iterator[tuple[str, Any, np.ndarray, str]]:
    """Yield the learners that learn a quantile or minimise a deviance."""
    space = space_for("default", TaskType.REGRESSION)
    for name in ("lightgbm", "xgboost", "catboost", "hist_gradient_boosting"):
        for loss in ({"quantile": 0.9}, {"power": 1.0}, {"power": 1.5}, {"power": 2.0}):
            pipeline, X = fitted(space, space.completed({"algorithm": name}), **loss)
            yield f"default {name} {loss}", pipeline, X, "predict"


def every_pipeline() -> Iterator[tuple[str, Any, np.ndarray, str]]:
    """Yield all of them fitted, with rows to predict and the method that predicts them."""
    yield from with_features()
    yield from of_other_losses()
    for name in NAMES:
        for task in tasks_of(name):
            for label, space, configuration in every_configuration(name, task):
                try:
                    pipeline, X = fitted(space, configuration)
                except (TypeError, ValueError) as error:
                    known = "leaves no column|Found array with 0 feature|Sparse data was passed"
                    if label.endswith("ica"):  # it has diverged
                        known += "|array must not contain infs or NaNs"
                    assert re.search(known, str(error)), error
                    continue
                yield f"{label} {task.value}", pipeline, X, "predict_proba" if task.is_classification else "predict"
