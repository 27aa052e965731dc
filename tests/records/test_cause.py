from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from ConfigSpace import ConfigurationSpace
from hypothesis import given
from hypothesis import strategies as st

from cashmere.records.cause import Cause, CauseKind
from cashmere.records.trial import Outcome, Trial, TrialStatus
from cashmere.storage.store import RunStore
from cashmere.storage.trial_tables import failures_table

NUMBERS = st.none() | st.floats(0, 1e9)


@given(st.builds(Cause, kind=st.sampled_from(CauseKind), text=st.text(max_size=40), limit=NUMBERS, used=NUMBERS))
def test_what_is_stored_is_read_again(cause):
    assert Cause.parse(cause.to_json()) == cause


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (Cause(kind=CauseKind.TIME_LIMIT, limit=2.5), "over the time limit of 2.5 s"),
        (Cause(kind=CauseKind.CPU_LIMIT, limit=3, used=4), "over the limit of 3 s of CPU time"),
        (
            Cause(kind=CauseKind.MEMORY_LIMIT, limit=512, used=700.2),
            "over the memory limit of 512 MiB (700 MiB resident)",
        ),
        (Cause(kind=CauseKind.MEMORY_LIMIT, text="MemoryError: no"), "MemoryError: no"),
        (Cause(kind=CauseKind.WORKER_DIED), "the worker process died (crash in native code, exit, or kill)"),
        (
            Cause(kind=CauseKind.WORKER_NOT_READY, text="the worker ended while it started"),
            "no worker was ready for the trial: the worker ended while it started",
        ),
        (
            Cause(kind=CauseKind.WORKER_LOST, text="tcp://a:1, tcp://b:2"),
            "lost every worker of the cluster that ran it: tcp://a:1, tcp://b:2",
        ),
        (Cause(kind=CauseKind.WORKER_SLOT, text="KeyError: 3"), "worker slot: KeyError: 3"),
        (Cause(kind=CauseKind.EXCEPTION, text="KeyError: 3\ntraceback"), "KeyError: 3\ntraceback"),
    ],
)
def test_causes_in_words(cause, text):
    assert str(cause) == text


@pytest.mark.parametrize(
    "text", ["over the time limit of 5 s", "", "{", "[1]", '{"kind": "unknown"}', "null", "3", "[" * 10_000]
)
def test_other_texts_are_kept_unparsed(text):
    cause = Cause.parse(text)
    assert (cause.kind, str(cause)) == (CauseKind.OTHER, text)


def test_custom_objectives_may_give_a_text():
    assert Outcome(status=TrialStatus.ERROR, error="no luck").error == Cause.other("no luck")


def test_runs_of_earlier_versions_hold_texts(tmp_path):
    space = ConfigurationSpace({"algorithm": ["svm", "knn"]})
    with RunStore(tmp_path) as store:
        for number in range(2):
            trial = Trial(number=number, configuration=space.get_default_configuration(), seed=0)
            cause = Cause(kind=CauseKind.WORKER_DIED)
            store.add([(trial, Outcome(status=TrialStatus.ERROR, error=cause))], finished_at=1.0)
    with closing(sqlite3.connect(tmp_path / "run.sqlite", isolation_level=None)) as database:
        database.execute("UPDATE trials SET error = 'ValueError: 3' || char(10) || 'traceback' WHERE number = 0")
    with RunStore(tmp_path) as store:
        loaded, rows = store.load(space), store.rows()
    assert [loaded[n].error.kind for n in (0, 1)] == [CauseKind.OTHER, CauseKind.WORKER_DIED]
    table = failures_table(rows)
    assert table["cause"].tolist() == ["ValueError: 3", "the worker process died (crash in native code, exit, or kill)"]
    assert "traceback" in table["what_to_try"][0] and "logs/" in table["what_to_try"][1]
