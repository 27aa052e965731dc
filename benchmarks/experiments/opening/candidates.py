"""The configurations that an opening is chosen from: defaults, variants, those of the study of learners, and draws."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.experiments.followed_candidates import Key, Values
from benchmarks.experiments.learners import CANDIDATES, EARLIER
from cashmere.data.task import TaskProfile, TaskType
from cashmere.records.trial import configuration_key
from cashmere.space.named.registry import default_space
from cashmere.space.space import ALGORITHM, Space

LINEAR = {"logistic_regression", "ridge"}
"""One of them is in every space; candidates of one stand for the other."""

DRAWS: Mapping[str, int] = {
    "lightgbm": 34, "catboost": 26, "xgboost": 18, "hist_gradient_boosting": 8, "extra_trees": 10, "random_forest": 6,
    "mlp": 10, "logistic_regression": 8, "svm": 6, "knn": 2,
}  # fmt: skip
"""How many configurations are drawn of each algorithm."""

_SHORT, _LONG = (
    TaskProfile(task_type=TaskType.BINARY, n_rows=n, n_columns=20, n_classes=2, has_categories=True)
    for n in (500, 50_000)
)

_DIGITS = 3


def opening_candidates(folder: Path, *, seed: int = 0) -> dict[Key, Values]:
    """Return the candidates, in the order in which they are to be followed; drawn once and kept in a file.

    Values hold ``algorithm`` and names with its prefix. Tables leave out what their spaces lack, see `offered`.
    """
    path = folder / "candidates.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        entries = [[*key, values] for key, values in _in_turn(_known(), _drawn(seed)).items()]
        path.write_text(json.dumps(entries, indent=0))
    return {(algorithm, name): values for algorithm, name, values in json.loads(path.read_text())}


def offered(candidates: Mapping[Key, Values], space: Space) -> dict[Key, Values]:
    """Return the candidates that differ in a space, with the values that it has."""
    return {key: values for key, (first, values) in counterparts(candidates, space).items() if key == first}


def counterparts(candidates: Mapping[Key, Values], space: Space) -> dict[Key, tuple[Key, Values]]:
    """Return for each candidate that a space offers the first one that is the same there, and the values it has."""
    names = {algorithm.name for algorithm in space.algorithms}
    found: dict[Key, tuple[Key, Values]] = {}
    first: dict[Any, Key] = {}
    for key, values in candidates.items():
        name = next(iter(LINEAR & names)) if values[ALGORITHM] in LINEAR else values[ALGORITHM]
        if name not in names:
            continue
        own = {f"{name}:{each.partition(':')[2]}": value for each, value in values.items() if each != ALGORITHM}
        known = {each: value for each, value in own.items() if each in space.configuration_space}
        of_values = configuration_key(space.completed({ALGORITHM: name, **known}))
        found[key] = (first.setdefault(of_values, key), {ALGORITHM: name, **known})
    return found


def _known() -> dict[Key, Values]:
    """Return defaults and variants, and what the study of learners compared; rows decide some values, left out here."""
    space = default_space(_SHORT)
    candidates: dict[Key, Values] = {(each.name, "default"): {ALGORITHM: each.name} for each in space.algorithms}
    for algorithm in space.algorithms:
        for number, values in enumerate(algorithm.variants(_SHORT), 1):
            candidates[algorithm.name, f"variant {number}"] = _prefixed(algorithm.name, values)
    for algorithm_name, by_name in CANDIDATES.items():
        name = "logistic_regression" if algorithm_name == "linear" else algorithm_name
        for candidate, values in by_name.items():
            changed = {key: value for key, value in values.items() if by_name[EARLIER].get(key) != value}
            candidates[name, candidate] = _prefixed(name, changed)
    return offered(candidates, space)


def _drawn(seed: int) -> dict[Key, Values]:
    candidates: dict[Key, Values] = {}
    for number, (name, n_draws) in enumerate(DRAWS.items()):
        space = default_space(_SHORT).restricted_to([name]).configuration_space
        space.seed(seed + number)
        for draw in range(n_draws):
            values = {key.partition(":")[2]: value for key, value in dict(space.sample_configuration()).items()}
            values.pop(ALGORITHM, None)
            candidates[name, f"draw {draw}"] = _prefixed(name, {key: v for key, v in values.items() if key})
    return candidates


def _prefixed(algorithm: str, values: Mapping[str, Any]) -> Values:
    by_rows = _decided_by_rows()
    named = {f"{algorithm}:{name}": _rounded(value) for name, value in values.items()}
    return {ALGORITHM: algorithm} | {name: value for name, value in named.items() if name not in by_rows}


@functools.cache
def _decided_by_rows() -> set[str]:
    """Return the hyper-parameters whose defaults depend on the number of rows: these tables are no guide for others."""
    short, long = (default_space(profile).configuration_space for profile in (_SHORT, _LONG))
    return {name for name in short if name in long and short[name].default_value != long[name].default_value}


def _rounded(value: Any) -> Any:
    plain = value.item() if hasattr(value, "item") else value
    return float(f"{plain:.{_DIGITS}g}") if isinstance(plain, float) else plain


def _in_turn(known: Mapping[Key, Values], drawn: Mapping[Key, Values]) -> dict[Key, Values]:
    """Return the defaults and variants, then the others and the draws in turn, each algorithm's spread evenly."""
    first = {key: values for key, values in known.items() if key[1] == "default" or key[1].startswith("variant")}
    rest = {key: values for key, values in known.items() if key not in first}
    return first | dict(_merged(_spread(rest), _spread(drawn)))


def _spread(candidates: Mapping[Key, Values]) -> list[tuple[Key, Values]]:
    by_algorithm: dict[str, list[tuple[Key, Values]]] = {}
    for key, values in candidates.items():
        by_algorithm.setdefault(key[0], []).append((key, values))
    placed = [
        ((position + 0.5) / len(items), item) for items in by_algorithm.values() for position, item in enumerate(items)
    ]
    return [item for _, item in sorted(placed, key=lambda pair: pair[0])]


def _merged(first: list[tuple[Key, Values]], second: list[tuple[Key, Values]]) -> Iterator[tuple[Key, Values]]:
    for position in range(max(len(first), len(second))):
        yield from first[position : position + 1]
        yield from second[position : position + 1]
