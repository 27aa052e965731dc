from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from ConfigSpace import ConfigurationSpace
from hypothesis import given
from hypothesis import strategies as st

from cashmere.records.origin import Origin, OriginKind, Turn
from cashmere.records.trial import Outcome, Suggestion, Trial, TrialStatus
from cashmere.storage.store import RunStore
from cashmere.storage.trial_tables import leaderboard

TURNS = st.lists(st.builds(Turn, st.text(max_size=9), st.none() | st.integers(0, 9)), max_size=3).map(tuple)
SPACE = ConfigurationSpace({"algorithm": ["svm", "knn"]})


@given(st.builds(Origin, st.sampled_from(OriginKind), st.text(max_size=20), TURNS))
def test_what_is_stored_is_read_again(origin):
    assert Origin.parse(origin.to_json()) == origin


@pytest.mark.parametrize(
    ("origin", "text"),
    [
        (Origin(OriginKind.WARM_START), "warm start"),
        (Origin(OriginKind.START, "smote"), "start: smote"),
        (Origin(OriginKind.RANDOM).within("svm").within("linear", round=0), "round 0 · linear · svm · random"),
        (Origin.other("neighbour").within("svm"), "svm · neighbour"),
        (Origin.other(""), ""),
    ],
)
def test_origins_in_words(origin, text):
    assert str(origin) == text


@pytest.mark.parametrize(
    "text", ["round 1 · svm · model", "start: smote", "", "{", "[1]", '{"kind": "unknown"}', "null", "[" * 100_000]
)
def test_other_texts_are_kept_unparsed(text):
    origin = Origin.parse(text)
    assert (origin.kind, origin.detail, str(origin)) == (OriginKind.OTHER, text, text)


def test_custom_strategies_may_give_a_text():
    configuration = SPACE.get_default_configuration()
    assert Suggestion(configuration=configuration, origin="neighbour").origin == Origin.other("neighbour")
    assert Suggestion(configuration=configuration, origin="random").origin == Origin(OriginKind.RANDOM)


def test_runs_of_earlier_versions_hold_texts(tmp_path):
    configuration = SPACE.get_default_configuration()
    with RunStore(tmp_path) as store:
        for number in range(2):
            trial = Trial(number=number, configuration=configuration, seed=0, origin=Origin(OriginKind.MODEL))
            store.add([(trial, Outcome(status=TrialStatus.SUCCESS, loss=0.1))], finished_at=1.0)
    with closing(sqlite3.connect(tmp_path / "run.sqlite", isolation_level=None)) as database:
        database.execute("UPDATE trials SET origin = 'round 0 · svm · model' WHERE number = 0")
    with RunStore(tmp_path) as store:
        loaded, rows = store.load(SPACE), store.rows()
    assert [loaded[n].trial.origin.kind for n in (0, 1)] == [OriginKind.OTHER, OriginKind.MODEL]
    assert leaderboard(rows)["origin"].tolist() == ["round 0 · svm · model", "model"]
