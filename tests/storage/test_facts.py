from __future__ import annotations

import sqlite3

import pytest

from cashmere.exceptions import UnknownNameError
from cashmere.storage.facts import FACT_NAMES, RunFacts
from cashmere.storage.store import RunStore


def test_facts_come_back_as_they_were_set(tmp_path):
    with RunStore(tmp_path) as store:
        assert store.facts() == RunFacts()
        store.set_fact("goal", {"trials": 3, "seconds": None})
        store.set_fact("baseline_loss", 0.1 + 0.2)
        store.set_fact("cross_fitted_loss", 0.5)
        store.set_fact("cross_fitted_loss", None)  # a later call may not know what an earlier one knew
    with RunStore(tmp_path, read_only=True) as store:
        assert store.facts() == RunFacts(goal={"trials": 3, "seconds": None}, baseline_loss=0.1 + 0.2)


def test_unknown_fact_is_refused(tmp_path):
    with RunStore(tmp_path) as store, pytest.raises(UnknownNameError, match="cross_fitted_loss"):
        store.set_fact("cross_fitted_los", 0.5)


def test_facts_are_read_under_their_earlier_names(tmp_path):
    RunStore(tmp_path).close()
    with sqlite3.connect(tmp_path / "run.sqlite") as database:
        database.execute("INSERT INTO facts VALUES ('honest_loss', '0.25')")
    database.close()
    with RunStore(tmp_path) as store:
        assert store.facts().cross_fitted_loss == 0.25
        store.set_fact("cross_fitted_loss", 0.5)
        assert store.facts().cross_fitted_loss == 0.5


def test_facts_of_other_versions_are_ignored(tmp_path):
    RunStore(tmp_path).close()
    with sqlite3.connect(tmp_path / "run.sqlite") as database:
        database.execute("INSERT INTO facts VALUES ('no_longer_known', '1')")
    database.close()
    with RunStore(tmp_path, read_only=True) as store:
        assert "no_longer_known" not in FACT_NAMES
        assert store.facts() == RunFacts()
