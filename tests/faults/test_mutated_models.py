"""Models changed at random, with correct checksums: refused, or they predict finite numbers; nothing else happens."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from cashmere.model.archives import dump
from support import mutants

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mutants are tried in forked processes")


def sweep(per_algorithm: int, seed: int, only: str = "") -> Counter:
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])}
    variables["OMP_NUM_THREADS"] = "1"
    command = [sys.executable, "-m", "support.mutants", "--per-algorithm", str(per_algorithm), "--seed", str(seed)]
    command += ["--only", only]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    found: Counter = Counter()
    for outcomes in json.loads(done.stdout).values():
        found.update(outcomes)
    return found


HARMLESS = {mutants.OUTCOMES[code] for code in (mutants.REFUSED, mutants.REFUSED_BY_ROWS, mutants.USABLE)}


def test_a_model_has_the_same_mutants_in_every_call():
    for _, pipeline, _, _ in mutants.models("^classic (xgboost|k_nearest)"):
        data = [dump(each) for each in (pipeline, copy.deepcopy(pipeline))]
        assert data[0] != data[1]
        assert mutants.repeatable(data[0]) == mutants.repeatable(data[1])


@pytest.mark.parametrize(
    ("only", "per_algorithm"),
    [("^classic ", 6), pytest.param("^classic (xgboost|lightgbm)", 26, marks=pytest.mark.slow)],
)
def test_a_changed_model_is_refused_or_predicts_finite_numbers(only, per_algorithm):
    found = sweep(per_algorithm, seed=1, only=only)
    assert found.total() >= 100
    assert not found.keys() - HARMLESS - set(mutants.ABSORBED.values()), found
    # The checks before and after reading leave nothing for the child process to absorb.
    assert not found.keys() & set(mutants.ABSORBED.values()), found


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_thousand_changed_models_of_all_algorithms():
    found = sweep(32, seed=7)
    print(dict(found))
    assert found.total() >= 2000
    assert not found.keys() - HARMLESS - set(mutants.ABSORBED.values()), found
